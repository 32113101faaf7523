// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ns3/ns3_port_device.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <ns3/ethernet-header.h>
#include <ns3/pointer.h>
#include <ns3/simulator.h>
#include <ns3/trace-source-accessor.h>
#include <ns3/uinteger.h>

#include "fabric/frames/ethernet.hpp"
#include "support/basics/error.hpp"

namespace weft {
namespace {

ns3::Time to_ns3(Time time) { return ns3::TimeStep(static_cast<std::uint64_t>(time.ps())); }
Time now() { return Time::from_ps(ns3::Simulator::Now().GetTimeStep()); }

ns3::Mac48Address mac_address(const PortPlace& place) {
  if (place.host) return host_mac_address(place.node);
  std::uint8_t bytes[6] = {0x06, 0};
  for (int i = 0; i < 4; ++i) bytes[2 + i] = static_cast<std::uint8_t>(place.directed_link >> (24 - 8 * i));
  ns3::Mac48Address address;
  address.CopyFrom(bytes);
  return address;
}

ns3::NetDevice::PacketType packet_type(ns3::Mac48Address destination, ns3::Mac48Address own) {
  if (destination.IsBroadcast()) return ns3::NetDevice::PACKET_BROADCAST;
  if (destination.IsGroup()) return ns3::NetDevice::PACKET_MULTICAST;
  return destination == own ? ns3::NetDevice::PACKET_HOST : ns3::NetDevice::PACKET_OTHERHOST;
}

/// Hands what leaves through a port to a function.
class FunctionTap final : public PortTap {
 public:
  using Function = std::function<void(Time start, const Packet& packet)>;
  explicit FunctionTap(Function function) : function_(std::move(function)) {}
  void transmitted(Time start, const Packet& packet) override { function_(start, packet); }

 private:
  Function function_;
};

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(FabricPortDevice);

ns3::TypeId FabricPortDevice::GetTypeId() {
  using Device = FabricPortDevice;
  // Not set at construction: the initial values of these attributes are the fabric's.
  constexpr std::uint32_t access = ns3::TypeId::ATTR_GET | ns3::TypeId::ATTR_SET;
  constexpr const char* signature = "ns3::Packet::TracedCallback";
  static const ns3::TypeId type =
      ns3::TypeId("weft::FabricPortDevice")
          .SetParent<ns3::NetDevice>()
          .SetGroupName("weft")
          .AddAttribute("DataRate", "Rate of the direction of the link that leaves here; set before the run", access,
                        ns3::DataRateValue(ns3::DataRate()),
                        ns3::MakeDataRateAccessor(&Device::set_data_rate, &Device::data_rate),
                        ns3::MakeDataRateChecker())
          .AddAttribute("Mtu", "Largest packet, in bytes, that a protocol stack may send", access,
                        ns3::UintegerValue(1500), ns3::MakeUintegerAccessor(&Device::SetMtu, &Device::GetMtu),
                        ns3::MakeUintegerChecker<std::uint16_t>(1))
          .AddAttribute("Address", "MAC address", access, ns3::Mac48AddressValue(),
                        ns3::MakeMac48AddressAccessor(&Device::set_mac, &Device::mac), ns3::MakeMac48AddressChecker())
          .AddAttribute("Channel", "The link", ns3::TypeId::ATTR_GET, ns3::PointerValue(),
                        ns3::MakePointerAccessor(&Device::GetChannel), ns3::MakePointerChecker<ns3::Channel>())
          .AddTraceSource("PhyTxBegin", "The first bit of a packet leaves",
                          ns3::MakeTraceSourceAccessor(&Device::phy_tx_begin_), signature)
          .AddTraceSource("PhyTxEnd", "The last bit of a packet leaves",
                          ns3::MakeTraceSourceAccessor(&Device::phy_tx_end_), signature)
          .AddTraceSource("PhyRxEnd", "The last bit of a packet arrives",
                          ns3::MakeTraceSourceAccessor(&Device::phy_rx_end_), signature)
          .AddTraceSource("MacTx", "A protocol stack hands over a packet",
                          ns3::MakeTraceSourceAccessor(&Device::mac_tx_), signature)
          .AddTraceSource("MacTxDrop", "A packet of a protocol stack is longer than the MTU",
                          ns3::MakeTraceSourceAccessor(&Device::mac_tx_drop_), signature)
          .AddTraceSource("MacRx", "A protocol stack is given a packet", ns3::MakeTraceSourceAccessor(&Device::mac_rx_),
                          signature);
  return type;
}

FabricPortDevice::FabricPortDevice(PortPlace place, Ns3TraceQueue& traces)
    : place_(std::move(place)), traces_(&traces) {
  const NetworkParameters& network = place_.fabric->parameters();
  const std::int64_t fits = (network.mtu + network.header - ethernet_header - frame_check).count();
  constexpr std::int64_t min_mtu = 68;  // RFC 791
  mtu_ = static_cast<std::uint16_t>(std::clamp<std::int64_t>(fits, min_mtu, 65'535));
  address_ = mac_address(place_);
  phy_tx_begin_.set_first_connection([this] { watch_transmissions(); });
  phy_tx_end_.set_first_connection([this] { watch_transmissions(); });
  phy_rx_end_.set_first_connection([this] { watch_arrivals(); });
}

void FabricPortDevice::detach() {
  place_.fabric = nullptr;
  traces_ = nullptr;
  peer_ = nullptr;
}

void FabricPortDevice::DoDispose() {
  detach();
  channel_ = nullptr;
  node_ = nullptr;
  receive_ = ReceiveCallback();
  promiscuous_receive_ = PromiscReceiveCallback();
  NetDevice::DoDispose();
}

void FabricPortDevice::SetAddress(ns3::Address address) { address_ = ns3::Mac48Address::ConvertFrom(address); }

bool FabricPortDevice::SetMtu(std::uint16_t mtu) {
  mtu_ = mtu;
  return true;
}

// Links neither fail nor recover: there is nothing to call.
void FabricPortDevice::AddLinkChangeCallback(ns3::Callback<void> /*callback*/) {}

// The link ------------------------------------------------------------------------------------------------------------

void change_link_times(Fabric& fabric, std::uint32_t directed_link, const LinkTimes& times, const std::string& name) {
  const SourceLine place{name, 0};
  if (fabric.links_closed())
    throw InputError(place, "its DataRate or Delay was set during the run; they are set before it");
  if (times.rate <= Bandwidth()) throw InputError(place, "its DataRate was set to 0; expected a rate above 0");
  if (times.delay <= Time()) throw InputError(place, "its Delay was set to 0 or less; expected a time above 0");
  fabric.set_link_times(directed_link, times);
}

void FabricPortDevice::set_data_rate(const ns3::DataRate& rate) {
  if (place_.fabric == nullptr) return;
  const LinkTimes old = place_.fabric->link_times(place_.directed_link);
  const auto bps = static_cast<std::int64_t>(std::min<std::uint64_t>(rate.GetBitRate(), INT64_MAX));
  change_link_times(*place_.fabric, place_.directed_link, {Bandwidth::from_bps(bps), old.delay}, place_.name);
}

ns3::DataRate FabricPortDevice::data_rate() const {
  if (place_.fabric == nullptr) return {};
  return {static_cast<std::uint64_t>(place_.fabric->link_times(place_.directed_link).rate.bps())};
}

// Trace sources -------------------------------------------------------------------------------------------------------

void FabricPortDevice::trace(PortEvent event, const ns3::Ptr<const ns3::Packet>& frame) {
  switch (event) {
    case PortEvent::rx_end:
      phy_rx_end_(frame);
      break;
    case PortEvent::tx_end:
      phy_tx_end_(frame);
      break;
    case PortEvent::tx_begin:
      phy_tx_begin_(frame);
      break;
  }
}

void FabricPortDevice::note_transmission(Time begin, Time end, const Packet& packet,
                                         const ns3::Ptr<const ns3::Packet>& frame) {
  if (!phy_tx_begin_.IsEmpty()) traces_->add(begin, this, PortEvent::tx_begin, packet, frame);
  if (!phy_tx_end_.IsEmpty()) traces_->add(end, this, PortEvent::tx_end, packet, frame);
}

// The fabric's taps keep the devices that they call alive.
void FabricPortDevice::watch_transmissions() {
  if (transmissions_watched_ || place_.fabric == nullptr) return;
  transmissions_watched_ = true;
  const ns3::Ptr<FabricPortDevice> self(this);
  place_.fabric->probes().add_tap(
      place_.node, place_.port, std::make_shared<FunctionTap>([self](Time start, const Packet& packet) {
        const PortPlace& place = self->place_;
        if (place.fabric == nullptr) return;
        const Time end = start + place.fabric->serialization_at(place.node, place.port, packet);
        self->note_transmission(start, end, packet, place.fabric->frame_of(packet));
      }));
}

void FabricPortDevice::watch_arrivals() {
  if (place_.fabric == nullptr) return;
  const ns3::Ptr<FabricPortDevice> self(this);
  const auto note = [self](Time last_bit, const Packet& packet) {
    if (!self->phy_rx_end_.IsEmpty())
      self->traces_->add(last_bit, self, PortEvent::rx_end, packet, self->place_.fabric->frame_of(packet));
  };
  if (peer_ == nullptr) {
    place_.fabric->probes().add_arrival_observer(place_.node, place_.port,
                                                 [self, note](Time last_bit, const Packet& packet) {
                                                   if (self->place_.fabric != nullptr) note(last_bit, packet);
                                                 });
    return;
  }
  const PortPlace sender = peer_->place_;
  place_.fabric->probes().add_tap(sender.node, sender.port,
                                  std::make_shared<FunctionTap>([self, note, sender](Time start, const Packet& packet) {
                                    Fabric* fabric = self->place_.fabric;
                                    if (fabric == nullptr) return;
                                    note(start + fabric->serialization_at(sender.node, sender.port, packet) +
                                             fabric->link_times(sender.directed_link).delay,
                                         packet);
                                  }));
}

// Packets of an ns-3 stack -------------------------------------------------------------------------------------------

Bytes FabricPortDevice::wire_bytes(std::uint32_t packet_bytes, Bytes wire_overhead) {
  return frame_of_packet(Bytes(packet_bytes)) + wire_overhead;
}

bool FabricPortDevice::Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& destination, std::uint16_t protocol) {
  return SendFrom(packet, address_, destination, protocol);
}

void FabricPortDevice::check_advancing() const {
  if (!place_.fabric->advancing()) return;
  throw InputError(SourceLine{place_.name, 0},
                   fmt::format("a packet of an ns-3 stack was sent from within a trace sink, at {} ps; schedule an "
                               "ns-3 event that sends it, {} ps later or more",
                               now().ps(), place_.fabric->lookahead().ps()));
}

void FabricPortDevice::check_neighbour() const {
  if (peer_ != nullptr) return;
  throw InputError(SourceLine{place_.name, 0},
                   "a packet of an ns-3 stack was sent to the device at the other end of the link, which is on another "
                   "MPI process; Ns3View::carry_packets() has the fabric's switches take packets from host to host, "
                   "whatever process they are on");
}

// The destination of the frame: the host with that MAC address, or, since no address resolution is needed (NeedsArp()
// is false, and IP sends to the broadcast address), the host with the packet's IPv4 address.
bool FabricPortDevice::send_through_fabric(const ns3::Ptr<ns3::Packet>& packet, const ns3::Address& source,
                                           const ns3::Address& destination, std::uint16_t protocol) {
  constexpr std::uint16_t ipv4 = 0x0800;
  const auto mac = ns3::Mac48Address::ConvertFrom(destination);
  const auto flow = protocol == ipv4 ? read_ip_flow(*packet) : IpFlow();
  auto host = host_of_mac(mac);
  if (!host && mac.IsBroadcast() && flow.valid && (flow.destination & host_mask) == host_network)
    host = NodeId(flow.destination & ~host_mask);
  FrameHeader header;
  const Bytes bytes = frame_of_packet(Bytes(packet->GetSize()));
  if (!host || host->value() >= place_.fabric->host_count() || *host == place_.node || bytes > Bytes(UINT16_MAX)) {
    mac_tx_drop_(packet);
    return false;
  }
  header.source = place_.node;
  header.destination = *host;
  header.bytes = bytes;
  header.flow = flow.valid ? flow.hash : protocol;
  // IP precedence, the class selector of RFC 2474, names the priority.
  header.priority = static_cast<std::uint8_t>(flow.type_of_service >> 5);
  header.ecn_capable = (flow.type_of_service & 0x03) != 0;
  ns3::EthernetHeader ethernet(false);
  ethernet.SetSource(ns3::Mac48Address::ConvertFrom(source));
  ethernet.SetDestination(host_mac_address(*host));
  ethernet.SetLengthType(protocol);
  const ns3::Ptr<ns3::Packet> frame = packet->Copy();
  frame->AddHeader(ethernet);
  if (place_.fabric->send_frame(header, now(), frame)) return true;
  mac_tx_drop_(packet);
  return false;
}

bool FabricPortDevice::SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source,
                                const ns3::Address& destination, std::uint16_t protocol) {
  if (place_.fabric == nullptr) return false;
  check_advancing();
  mac_tx_(packet);
  if (packet->GetSize() > mtu_) {
    mac_tx_drop_(packet);
    return false;
  }
  if (place_.host && place_.fabric->carries_frames()) return send_through_fabric(packet, source, destination, protocol);
  check_neighbour();
  const bool mac = ns3::Mac48Address::IsMatchingType(destination);
  ns3::EthernetHeader header(false);
  header.SetSource(ns3::Mac48Address::ConvertFrom(source));
  header.SetDestination(mac ? ns3::Mac48Address::ConvertFrom(destination) : peer_->address_);
  header.SetLengthType(protocol);
  const Bytes wire = wire_bytes(packet->GetSize(), place_.fabric->parameters().wire_overhead);
  const ns3::Ptr<ns3::Packet> frame = packet->Copy();
  frame->AddHeader(header);

  const Fabric::Departure departure = place_.fabric->reserve_port(place_.node, place_.port, now(), wire);
  note_transmission(departure.first_bit, departure.last_bit, Packet(), frame);
  const Time arrival = departure.last_bit + place_.fabric->link_times(place_.directed_link).delay;
  ns3::Simulator::ScheduleWithContext(peer_->node_->GetId(), to_ns3(arrival - now()), &FabricPortDevice::arrive,
                                      ns3::Ptr<FabricPortDevice>(peer_), frame);
  return true;
}

void FabricPortDevice::arrive(ns3::Ptr<ns3::Packet> frame) {
  if (place_.fabric == nullptr) return;
  phy_rx_end_(frame);
  const Time latency = place_.fabric->latency_of(place_.node);
  if (latency == Time())
    deliver(frame);
  else
    ns3::Simulator::Schedule(to_ns3(latency), &FabricPortDevice::deliver, ns3::Ptr<FabricPortDevice>(this), frame);
}

void FabricPortDevice::receive(ns3::Ptr<ns3::Packet> frame) {
  if (place_.fabric != nullptr) deliver(frame);
}

void FabricPortDevice::deliver(ns3::Ptr<ns3::Packet> frame) {
  const ns3::Ptr<ns3::Packet> packet = frame->Copy();
  ns3::EthernetHeader header(false);
  packet->RemoveHeader(header);
  mac_rx_(packet);
  const std::uint16_t protocol = header.GetLengthType();
  if (!promiscuous_receive_.IsNull())
    promiscuous_receive_(this, packet, protocol, header.GetSource(), header.GetDestination(),
                         packet_type(header.GetDestination(), address_));
  if (!receive_.IsNull()) receive_(this, packet, protocol, header.GetSource());
}

}  // namespace weft
