// SPDX-License-Identifier: GPL-2.0-only
// A port of the fabric as an ns-3 net device: attributes, trace sources, and a place for an ns-3 protocol stack.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <ns3/callback.h>
#include <ns3/channel.h>
#include <ns3/data-rate.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device.h>
#include <ns3/node.h>
#include <ns3/packet.h>
#include <ns3/traced-callback.h>

#include "fabric/network/fabric.hpp"
#include "fabric/ns3/ns3_trace_queue.hpp"

namespace weft {

/// A traced callback that reports its first sink, so that it costs nothing before that.
class PortTrace : public ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> {
 public:
  using Base = ns3::TracedCallback<ns3::Ptr<const ns3::Packet>>;
  void ConnectWithoutContext(const ns3::CallbackBase& sink) {
    connected([&] { Base::ConnectWithoutContext(sink); });
  }
  void Connect(const ns3::CallbackBase& sink, std::string path) {
    connected([&] { Base::Connect(sink, std::move(path)); });
  }
  /// Called once, before the first connection.
  void set_first_connection(std::function<void()> action) { first_connection_ = std::move(action); }

 private:
  template <class Connection>
  void connected(const Connection& connection) {
    if (first_connection_) std::exchange(first_connection_, nullptr)();
    connection();
  }
  std::function<void()> first_connection_;
};

/// Where a device sits. `fabric` is nullptr when the device's view has gone.
struct PortPlace {
  Fabric* fabric = nullptr;
  NodeId node;
  std::uint32_t port = 0;
  bool host = false;
  std::string name;                 ///< "host3:0"
  std::uint32_t directed_link = 0;  ///< the direction that leaves here
};

/// TypeId "weft::FabricPortDevice". Attributes: DataRate (of the direction that leaves here; set before the run), Mtu
/// (of an ns-3 stack on top; by default what fits the frames of the fabric), Address (02:00 and the host's number, as
/// in the RoCE frames; 06:00 and the number of the directed link at a switch), Channel (read).
///
/// Trace sources, all void(ns3::Ptr<const ns3::Packet>), with Simulator::Now() exact:
/// * PhyTxBegin, PhyTxEnd, PhyRxEnd: first and last bit leave, last bit arrives. All packets: RoCEv2 frames as
/// roce_frame()
///   makes them, and Ethernet II frames of an ns-3 stack; both without preamble and frame check sequence.
/// * MacTx, MacTxDrop, MacRx: packets that an ns-3 stack hands over, that are refused (longer than Mtu), that it is
/// given.
class FabricPortDevice final : public ns3::NetDevice {
 public:
  static ns3::TypeId GetTypeId();
  FabricPortDevice(PortPlace place, Ns3TraceQueue& traces);

  const PortPlace& place() const { return place_; }
  void set_channel(ns3::Ptr<ns3::Channel> channel) { channel_ = channel; }
  /// The device at the other end, or nullptr if it is on another process.
  void set_peer(FabricPortDevice* peer) { peer_ = peer; }
  /// The fabric is being destroyed: from here on nothing is sent, and attributes of the link have no effect.
  void detach();
  void trace(PortEvent event, const ns3::Ptr<const ns3::Packet>& frame);
  /// Wire bytes of a frame that carries `packet_bytes` of an ns-3 stack: Ethernet header and frame check sequence, at
  /// least 64 B (IEEE 802.3 clause 3.2.8), and the fabric's wire_overhead.
  static Bytes wire_bytes(std::uint32_t packet_bytes, Bytes wire_overhead);
  /// A frame that has arrived here through the fabric's switches.
  void receive(ns3::Ptr<ns3::Packet> frame);

  // ns3::NetDevice ----------------------------------------------------------------------------------------------------
  void SetIfIndex(std::uint32_t index) override { if_index_ = index; }
  std::uint32_t GetIfIndex() const override { return if_index_; }
  ns3::Ptr<ns3::Channel> GetChannel() const override { return channel_; }
  void SetAddress(ns3::Address address) override;
  ns3::Address GetAddress() const override { return address_; }
  bool SetMtu(std::uint16_t mtu) override;
  std::uint16_t GetMtu() const override { return mtu_; }
  bool IsLinkUp() const override { return place_.fabric != nullptr; }
  void AddLinkChangeCallback(ns3::Callback<void> callback) override;
  bool IsBroadcast() const override { return true; }
  ns3::Address GetBroadcast() const override { return ns3::Mac48Address::GetBroadcast(); }
  bool IsMulticast() const override { return true; }
  ns3::Address GetMulticast(ns3::Ipv4Address group) const override { return ns3::Mac48Address::GetMulticast(group); }
  ns3::Address GetMulticast(ns3::Ipv6Address group) const override { return ns3::Mac48Address::GetMulticast(group); }
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return true; }
  /// Hand a packet to the port at Simulator::Now().
  ///
  /// At a host of a fabric that carries packets (Ns3View::carry_packets()) it goes through the switches to the host
  /// with that MAC address; sent to the broadcast address, as IP does, to the host with its IPv4 address 10.n.n.n. Its
  /// IP precedence names its priority. False, with MacTxDrop, if it is longer than the MTU, if there is no such other
  /// host (broadcasts and multicasts have none), or if the transmit queue is full.
  ///
  /// Elsewhere it leaves when all that was committed before has left, and the receive callback of the device at the
  /// other end has it after serialisation, propagation and, at a switch, the switch latency. False if it is longer than
  /// the MTU. Throws InputError if the other end is on another process.
  ///
  /// Throws InputError if it is called by a trace sink (which may schedule an event that calls it).
  bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& destination, std::uint16_t protocol) override;
  bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source, const ns3::Address& destination,
                std::uint16_t protocol) override;
  ns3::Ptr<ns3::Node> GetNode() const override { return node_; }
  void SetNode(ns3::Ptr<ns3::Node> node) override { node_ = node; }
  bool NeedsArp() const override { return false; }
  void SetReceiveCallback(ReceiveCallback callback) override { receive_ = callback; }
  void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override { promiscuous_receive_ = callback; }
  bool SupportsSendFrom() const override { return true; }

 private:
  void DoDispose() override;
  void note_transmission(Time begin, Time end, const Packet& packet, const ns3::Ptr<const ns3::Packet>& frame);
  void check_advancing() const;
  void check_neighbour() const;
  bool send_through_fabric(const ns3::Ptr<ns3::Packet>& packet, const ns3::Address& source,
                           const ns3::Address& destination, std::uint16_t protocol);
  void watch_transmissions();
  void watch_arrivals();
  void arrive(ns3::Ptr<ns3::Packet> frame);
  void deliver(ns3::Ptr<ns3::Packet> frame);
  void set_data_rate(const ns3::DataRate& rate);
  ns3::DataRate data_rate() const;
  void set_mac(ns3::Mac48Address address) { address_ = address; }
  ns3::Mac48Address mac() const { return address_; }

  PortPlace place_;
  Ns3TraceQueue* traces_;             // not to be used when detached
  FabricPortDevice* peer_ = nullptr;  // its view holds both
  ns3::Ptr<ns3::Channel> channel_;
  ns3::Ptr<ns3::Node> node_;
  std::uint32_t if_index_ = 0;
  std::uint16_t mtu_ = 0;
  ns3::Mac48Address address_;
  bool transmissions_watched_ = false;
  ReceiveCallback receive_;
  PromiscReceiveCallback promiscuous_receive_;
  PortTrace phy_tx_begin_;
  PortTrace phy_tx_end_;
  PortTrace phy_rx_end_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_tx_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_tx_drop_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_rx_;
};

/// Set the rate or delay of one direction for an attribute of `name` ("host3:0"): throws InputError if the value is not
/// above 0 or the run has begun.
void change_link_times(Fabric& fabric, std::uint32_t directed_link, const LinkTimes& times, const std::string& name);

}  // namespace weft
