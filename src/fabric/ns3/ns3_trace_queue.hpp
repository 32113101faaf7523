// SPDX-License-Identifier: GPL-2.0-only
// Pending calls of trace sinks, in the order of simulated time.
#pragma once

#include <cstdint>
#include <vector>

#include <ns3/packet.h>
#include <ns3/ptr.h>

#include "fabric/network/fabric.hpp"

namespace weft {

class FabricPortDevice;

/// What happened at a port. At one time a port first receives a packet, then finishes one, then begins the next.
enum class PortEvent : std::uint8_t { rx_end, tx_end, tx_begin };

/// The fabric commits a transmission before its time; sinks are called at its time: with the engine's epochs after the
/// packets of the same advance(), in the order (time, node, port, PortEvent), and as ns-3 events under ns-3's engine.
/// So Simulator::Now() and GetContext() are those of the event and the node.
class Ns3TraceQueue {
 public:
  explicit Ns3TraceQueue(Fabric& fabric);
  ~Ns3TraceQueue();
  Ns3TraceQueue(const Ns3TraceQueue&) = delete;
  Ns3TraceQueue& operator=(const Ns3TraceQueue&) = delete;

  /// `frame`: the packet itself if it is one of ns-3's; otherwise it is made from `packet` at its time.
  void add(Time at, ns3::Ptr<FabricPortDevice> device, PortEvent event, const Packet& packet,
           ns3::Ptr<const ns3::Packet> frame = nullptr);

 private:
  struct Entry {
    Time at;
    std::uint32_t node = 0;
    std::uint32_t port = 0;
    PortEvent event = PortEvent::rx_end;
    std::uint64_t number = 0;  // packets of one port are added in the order of departure
    ns3::Ptr<FabricPortDevice> device;
    Packet packet;
    ns3::Ptr<const ns3::Packet> frame;
  };
  static bool later(const Entry& a, const Entry& b);
  static void fire(const Entry& entry);
  void deliver(Time end);

  Fabric& fabric_;
  std::vector<Entry> heap_;  // earliest first
  std::uint64_t added_ = 0;
};

}  // namespace weft
