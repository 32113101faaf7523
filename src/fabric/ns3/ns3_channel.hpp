// SPDX-License-Identifier: GPL-2.0-only
// A link of the fabric as an ns-3 channel.
#pragma once

#include <cstddef>
#include <vector>

#include <ns3/channel.h>
#include <ns3/data-rate.h>
#include <ns3/nstime.h>

#include "fabric/ns3/ns3_port_device.hpp"

namespace weft {

/// TypeId "weft::FabricChannel". Attributes, set before the run and for both directions: DataRate (reads that of
/// direction 0) and Delay (propagation). Devices: those of the link's ends that this process owns, so one if the
/// partition cuts the link.
class FabricChannel final : public ns3::Channel {
 public:
  static ns3::TypeId GetTypeId();
  FabricChannel(Fabric& fabric, LinkId link) : fabric_(&fabric), link_(link) {}

  void attach(ns3::Ptr<FabricPortDevice> device) { devices_.push_back(device); }
  /// The fabric is being destroyed: from here on attributes have no effect.
  void detach() { fabric_ = nullptr; }
  std::size_t GetNDevices() const override { return devices_.size(); }
  ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override;

 private:
  void DoDispose() override;
  void set_data_rate(const ns3::DataRate& rate);
  ns3::DataRate data_rate() const;
  void set_delay(const ns3::Time& delay);
  ns3::Time delay() const;

  Fabric* fabric_;
  LinkId link_;
  std::vector<ns3::Ptr<FabricPortDevice>> devices_;
};

}  // namespace weft
