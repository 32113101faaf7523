// SPDX-License-Identifier: GPL-2.0-only
// When a queue marks packets: the interface between ports and the marking disciplines (ECN).
#pragma once

#include <cstdint>
#include <memory>

#include "support/basics/random.hpp"
#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// A port as a marking discipline sees it.
struct MarkedPort {
  Bandwidth rate;
  EcnMarking usual;         ///< what the congestion control recommends for that rate
  Bytes largest_frame;      ///< of the network
  Time longest_round_trip;  ///< of hosts that are farthest apart, over the slowest links, without queues
  std::uint64_t draws = 0;  ///< random bits of the port, other ones in each run: MarkingDraw
};

/// Distinguishes one draw of a port from all others.
struct MarkingDraw {
  std::uint64_t flow = 0;  ///< source << 32 | queue pair
  std::uint32_t psn = 0;
  std::uint64_t sent = 0;  ///< packets of the port before this one

  /// Uniform from 0 to below 1, for a port of these MarkedPort::draws. Drawn for each packet: several may come between
  /// two departures.
  double uniform(std::uint64_t port) const {
    const std::uint64_t count = mix64(mix64(flow) + psn) + sent;
    const std::uint64_t drawn = mix64(port + count);
    return static_cast<double>(drawn >> 11) * 0x1p-53;
  }
};

/// A packet at the moment at which its queue may mark it.
struct MarkingMoment {
  Time now;
  Time waited;  ///< by the packet, in this queue; 0 at its arrival
  Bytes queue;  ///< frames that wait behind the packet, or that it finds
  MarkingDraw draw;
};

/// The marking state of one queue: a class of a port.
class QueueMarker {
 public:
  virtual ~QueueMarker() = default;
  /// Whether the packet is marked. Called in the order of time, for packets that may carry a mark.
  virtual bool marks(const MarkingMoment& moment) = 0;
};

/// A discipline and its parameters, made by name: `network.ecn.algorithm`. Immutable once configured.
///
/// Calling a marker is an indirect call. A port calls it only beyond floor(), a number that it stores, so that packets
/// in short queues do not pay for it.
class MarkingDiscipline {
 public:
  virtual ~MarkingDiscipline() = default;
  /// Reads its keys of the map `network.ecn`, all optional; the caller finishes the map. Not called where the map is
  /// absent and congestion control wants marks. Throws InputError.
  virtual void configure(const Spec& ecn) = 0;
  /// True if packets are examined when they leave their queue; else when they reach it.
  virtual bool at_departure() const { return true; }
  /// A packet for which its queue holds no more than this is not marked, and its marker need not know of it. Below 0:
  /// the marker sees each packet, also those that find an empty queue.
  virtual Bytes floor(const MarkedPort& port) const = 0;
  virtual std::unique_ptr<QueueMarker> make(const MarkedPort& port) const = 0;
};
using MarkingRegistry = Registry<MarkingDiscipline>;

}  // namespace weft
