// SPDX-License-Identifier: GPL-2.0-only
// How the packets of a connection are spread over equal paths: the interface between hosts, switches and the
// disciplines of load balancing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/packet/arrival_order.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/packet/port.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"
#include "transport/messages/packet.hpp"
#include "units/time.hpp"

namespace weft {

/// Whether it is spread: data, and what its receiver answers, because switches that choose a path for each packet do
/// not tell them apart, and receivers that spray answer on many paths, too (csg-htsim,
/// sim/datacenter/fat_tree_switch.cpp: getNextHop; sim/ndp.cpp: send_ack). Credits of collectives and frames of other
/// software keep their order.
constexpr bool is_spread(PacketKind kind) {
  return kind == PacketKind::data || kind == PacketKind::ack || kind == PacketKind::nack || kind == PacketKind::cnp ||
         kind == PacketKind::pull;
}

/// The ports of a switch, for a discipline that decides by queues.
class SwitchPorts {
 public:
  SwitchPorts(NodeId node, std::uint64_t seed, const OutputPort* outputs, const PortState* states)
      : node_(node), seed_(seed), outputs_(outputs), states_(states) {}

  NodeId node() const { return node_; }
  std::uint64_t seed() const { return seed_; }
  /// Time until everything that waits at `now` has left.
  Time load(std::uint16_t port, Time now) const {
    return std::max(Time(), outputs_[port].free_at - now) + states_[port].queue_time;
  }
  /// A full packet's, on the wire.
  Time packet_time(std::uint16_t port) const { return outputs_[port].full_packet; }
  /// One of `ports` whose queue is within a packet of the least, by a hash of the packet: if the smallest queue
  /// decided, switches that move in step would all choose alike.
  std::uint16_t least_loaded(std::span<const std::uint16_t> ports, const RouteRequest& flow, std::uint32_t psn,
                             Time now) const;

 private:
  NodeId node_;
  std::uint64_t seed_;
  const OutputPort* outputs_;  // of the switch
  const PortState* states_;
};

/// The choices of one switch, each by the queues of its moment.
class SwitchBalancer {
 public:
  virtual ~SwitchBalancer() = default;
  /// One of `ports`, of which there are at least two, for a packet that is_spread(). An indirect call for each packet
  /// and switch: a decision by the moment cannot be shared by a batch, and beside the search of the ports it is a
  /// hundredth of the cost.
  virtual std::uint16_t choose(const SwitchPorts& at, std::span<const std::uint16_t> ports, const RouteRequest& flow,
                               std::uint32_t psn, Time now) = 0;
};

/// Distinguishes the draws of one queue pair from all others of a run.
struct EntropyDraw {
  std::uint64_t seed = 0;
  NodeId host;
  std::uint32_t queue_pair = 0;
  Bytes sent_bytes;  ///< by the queue pair, before this packet

  std::uint8_t value() const {
    return static_cast<std::uint8_t>(mix64(seed ^ mix64(std::uint64_t{host.value()} << 32 | queue_pair) ^
                                           static_cast<std::uint64_t>(sent_bytes.count())));
  }
};

/// The choices of one queue pair at its sender: an entropy value for each packet, which selects its path.
class SenderBalancer {
 public:
  virtual ~SenderBalancer() = default;
  virtual std::uint8_t entropy(const EntropyDraw& draw) = 0;
  /// A packet with this entropy was acknowledged. `round_trip`: the packets that fill the idle path there and back.
  virtual void acknowledged(std::uint8_t entropy, bool marked, Time now, std::uint32_t round_trip) = 0;
  /// A packet was lost as a whole: its timer has expired, or many later ones have come. A trimmed one was not.
  virtual void lost(Time now) = 0;
};

/// Whether packets of one connection may overtake each other: never, sometimes, or always.
enum class Overtaking : std::uint8_t { never, between_bursts, always };

/// A discipline and its parameters, made by name: `network.load_balancing`. Immutable once configured. It decides in
/// one or several of three places: by the packet alone, at switches, at senders.
class LoadBalancing {
 public:
  virtual ~LoadBalancing() = default;
  /// There is a map `network.NAME`.
  virtual bool has_parameters() const { return false; }
  /// Reads and finishes that map, if it is given. Throws InputError.
  virtual void configure(const Spec& own) { own.finish(); }
  virtual Overtaking overtaking() const = 0;

  /// spread() does something.
  virtual bool spreads() const { return false; }
  /// The value that routing uses as the queue pair of each packet that is_spread(); others keep theirs. One call for
  /// the arrivals of a window.
  virtual void spread(std::span<const Arrival> arrivals, RouteRequest* requests) const {
    (void)arrivals;
    (void)requests;
  }
  /// nullptr: switches do not choose.
  virtual std::unique_ptr<SwitchBalancer> at_switch() const { return nullptr; }
  /// nullptr: senders do not choose.
  virtual std::unique_ptr<SenderBalancer> at_sender() const { return nullptr; }
};
using LoadBalancingRegistry = Registry<LoadBalancing>;

/// For disciplines that use only the packet: `Discipline::flow_of(packet)` replaces the queue pair.
template <class Discipline>
class SpreadingBalancing : public LoadBalancing {
 public:
  Overtaking overtaking() const override { return Overtaking::always; }
  bool spreads() const override { return true; }
  void spread(std::span<const Arrival> arrivals, RouteRequest* requests) const override {
    for (std::size_t i = 0; i < arrivals.size(); ++i)
      if (is_spread(arrivals[i].packet->kind)) requests[i].queue_pair = Discipline::flow_of(*arrivals[i].packet);
  }
};

}  // namespace weft
