// SPDX-License-Identifier: GPL-2.0-only
// Departures from a port with queues: packets are counted, observed and sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/batch.hpp"
#include "fabric/local/local_network.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

struct ClassQueue;
struct PortState;
struct QueuedModel;

/// Brings a packet from its first bit on the link to the queue of the other end, in this process or another one.
class Departures {
 public:
  Departures(QueuedModel& model, LocalNetwork& net) : q_(model), net_(net) {}

  /// The first bit of a packet leaves now.
  void launch(PortId port_index, Time now, Packet& packet, WireTime size);
  /// The same where only telemetry inspects the packet (QueuedState::plain).
  void launch_plain(PortId port_index, ClassQueue& queue, Time now, Packet& packet, WireTime size);
  // What launching is made of
  // ------------------------------------------------------------------------------------------
  /// The packet takes along what this hop shows it, and the port counts what telemetry tells.
  void collect_telemetry(PortId port_index, Time now, Packet& packet, WireTime size);
  /// Packets and bytes of the port and of the class.
  void count(OutputPort& port, ClassQueue& queue, const Packet& packet, WireTime size) const;
  /// The port is busy with the packet from now on.
  void occupy(OutputPort& port, Time now, WireTime size) const;
  /// When the other end can process a packet that leaves now.
  Time arrival_of(const OutputPort& port, const PortState& ps, Time now, WireTime size) const;
  /// To the other end of the link, in this process or another one.
  void send_on(const OutputPort& port, const Packet& packet, Time arrival);

  /// Releases the records that a packet holds.
  void forget(const Packet& packet);
  /// A packet from another process with which more has come, or that is no packet of a queue, or is observed. `at`:
  /// behind the packet in the batch.
  void take_in(const CutEnd& end, Packet packet, Time arrival, std::span<const std::byte> batch, std::size_t& at);
  void export_packet(const OutputPort& port, const Packet& packet, Time arrival);

 private:
  void launch_watched(PortId port_index, Time now, Packet& packet, WireTime size);
  void record_hop(PortId port_index, Packet& packet, Time now);
  void record_in(std::uint32_t& record, PortId port_index, Time now);
  void record_end(PortId port_index, Packet& packet, Time now);
  void export_rest(const Packet& packet, Batch& batch);
  std::uint32_t telemetry_of(const Packet& packet) const;
  static constexpr Time never = Time::max();

  QueuedModel& q_;
  LocalNetwork& net_;
};

}  // namespace weft
