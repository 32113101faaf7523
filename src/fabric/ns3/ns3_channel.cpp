// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ns3/ns3_channel.hpp"

#include <algorithm>
#include <string>

namespace weft {
namespace {

std::string name_of(LinkId link) { return "link " + std::to_string(link.value()); }

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(FabricChannel);

ns3::TypeId FabricChannel::GetTypeId() {
  using Channel = FabricChannel;
  // Not set at construction: the initial values are the topology's.
  constexpr std::uint32_t access = ns3::TypeId::ATTR_GET | ns3::TypeId::ATTR_SET;
  static const ns3::TypeId type =
      ns3::TypeId("weft::FabricChannel")
          .SetParent<ns3::Channel>()
          .SetGroupName("weft")
          .AddAttribute(
              "DataRate", "Rate of both directions; set before the run", access, ns3::DataRateValue(ns3::DataRate()),
              ns3::MakeDataRateAccessor(&Channel::set_data_rate, &Channel::data_rate), ns3::MakeDataRateChecker())
          .AddAttribute("Delay", "Propagation delay of both directions; set before the run", access,
                        ns3::TimeValue(ns3::Time()), ns3::MakeTimeAccessor(&Channel::set_delay, &Channel::delay),
                        ns3::MakeTimeChecker());
  return type;
}

ns3::Ptr<ns3::NetDevice> FabricChannel::GetDevice(std::size_t i) const { return devices_.at(i); }

void FabricChannel::DoDispose() {
  detach();
  devices_.clear();
  Channel::DoDispose();
}

void FabricChannel::set_data_rate(const ns3::DataRate& rate) {
  if (fabric_ == nullptr) return;
  const auto bps = static_cast<std::int64_t>(std::min<std::uint64_t>(rate.GetBitRate(), INT64_MAX));
  for (const std::uint32_t link : {directed(link_, 0), directed(link_, 1)})
    change_link_times(*fabric_, link, {Bandwidth::from_bps(bps), fabric_->link_times(link).delay}, name_of(link_));
}

ns3::DataRate FabricChannel::data_rate() const {
  if (fabric_ == nullptr) return {};
  return {static_cast<std::uint64_t>(fabric_->link_times(directed(link_, 0)).rate.bps())};
}

void FabricChannel::set_delay(const ns3::Time& delay) {
  if (fabric_ == nullptr) return;
  for (const std::uint32_t link : {directed(link_, 0), directed(link_, 1)})
    change_link_times(*fabric_, link, {fabric_->link_times(link).rate, Time::from_ps(delay.GetPicoSeconds())},
                      name_of(link_));
}

ns3::Time FabricChannel::delay() const {
  if (fabric_ == nullptr) return {};
  return ns3::TimeStep(static_cast<std::uint64_t>(fabric_->link_times(directed(link_, 0)).delay.ps()));
}

}  // namespace weft
