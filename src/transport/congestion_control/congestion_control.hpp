// SPDX-License-Identifier: GPL-2.0-only
// How fast a queue pair may send: the interface between a NIC and the congestion-control algorithms.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"
#include "transport/congestion_control/telemetry.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

/// Facts about a path that the sender knows when a queue pair opens.
struct FlowPath {
  Bandwidth nic_rate;
  /// From the first bit of a full packet on the wire to the last bit of its ACK, without any queue.
  Time base_rtt;
  Bytes mtu;               ///< payload bytes of a full packet
  Bytes data_overhead;     ///< wire bytes of a data packet beyond its payload
  std::uint32_t hops = 1;  ///< links from host to host

  Bytes wire_packet() const { return mtu + data_overhead; }
};

/// Moment and state of an event of a queue pair.
struct Moment {
  Time now;
  Bytes sent;                      ///< on the wire by the queue pair since it opened, retransmissions included
  std::uint64_t sent_packets = 0;  ///< the same in packets
};

/// An ACK, after the queue pair has taken it into account.
struct AckEvent {
  Moment at;
  Bytes acked;                  ///< payload that this ACK acknowledges and no ACK before it did; 0 for a duplicate
  std::uint64_t acked_psn = 0;  ///< the next number that the receiver expects; unwrapped
  std::uint64_t next_psn = 0;   ///< the next number that the sender will use; unwrapped
  bool ecn = false;             ///< the acknowledged packet carried a congestion mark
  /// Round trip of the acknowledged packet, measured as FlowPath::base_rtt is. 0: unknown (retransmitted packet).
  Time rtt;
  Bytes in_flight;  ///< payload still unacknowledged
  /// Of the acknowledged packet, from the sender's own port on. Empty unless Services::telemetry.
  std::span<const HopTelemetry> hops;
  std::span<const Bandwidth> rates;  ///< by PortLabel::rate()
  Bandwidth rate_of(const HopTelemetry& hop) const { return rates[hop.port().rate()]; }
};

/// A packet is known to be lost.
struct LossEvent {
  Moment at;
  Bytes lost;                   ///< payload that has to be sent again because of it, as far as known
  std::uint64_t acked_psn = 0;  ///< as in AckEvent
  std::uint64_t next_psn = 0;   ///< as in AckEvent, before the queue pair goes back
  Bytes in_flight;              ///< payload still unacknowledged
  std::uint64_t repeated = 0;   ///< packets sent again by the queue pair since it opened
  std::uint64_t waiting = 0;    ///< packets that wait to be sent again; they go before new ones
  bool timeout = false;         ///< the retransmission timer ran out; otherwise a NACK, a gap, or a trimmed header
};

/// Limits of a queue pair until its next event.
struct Allowance {
  /// Most unacknowledged payload, at least 1 B; Bytes::max(): no limit. As everywhere, one packet may leave if nothing
  /// is in flight, and a packet fits if the payload in flight with it is within the window.
  Bytes window = Bytes::max();
  /// Packets leave no closer than their wire bytes take at this rate, at most the NIC's. 0: not paced.
  Bandwidth rate{};
  /// Absolute time of the next on_timer(), later than the event that returned it; Time::max(): none.
  Time next_timer = Time::max();
  /// on_bytes_sent() is called as soon as Moment::sent is at least this; Bytes::max(): no such call.
  Bytes next_bytes = Bytes::max();
  /// No packet leaves once Moment::sent_packets is this many: of algorithms whose receivers pull.
  std::uint64_t max_packets = std::numeric_limits<std::uint64_t>::max();

  friend bool operator==(const Allowance&, const Allowance&) = default;
};

/// Congestion-control state of one queue pair. Each event returns the new allowance, which replaces the one before.
/// Events are reported in the order of their times, none before start().
///
/// A NIC may put off on_timer() while the queue pair has nothing to send, so that idle queue pairs cost nothing and do
/// not keep a run alive: `now` may be long after Allowance::next_timer, and any other event may come first. Every event
/// brings the state up to its time, with the same result as if all timers had been on time. A timer that is overdue
/// when the queue pair sends again comes before the first packet, whose rate it may change.
class CongestionControl {
 public:
  virtual ~CongestionControl() = default;
  /// Opens the queue pair; called once, before its first packet.
  virtual Allowance start(Time now) = 0;
  virtual Allowance on_ack(const AckEvent& ack) = 0;
  /// A congestion notification packet of the receiver (RoCEv2). Only if Services::cnp_interval is not 0.
  virtual Allowance on_cnp(Moment at) = 0;
  virtual Allowance on_loss(const LossEvent& loss) = 0;
  virtual Allowance on_timer(Moment at) = 0;
  virtual Allowance on_bytes_sent(Moment at) = 0;
  /// The receiver wants so many packets more. Only if Services::pulls. `returned`: as Pull says it.
  virtual Allowance on_pull(Moment at, std::uint32_t packets, bool returned) {
    (void)packets;
    (void)returned;
    return on_timer(at);
  }
};

/// A packet of data at its receiver.
struct ReceivedData {
  Time now;
  NodeId source;
  std::uint32_t queue_pair = 0;  ///< of the source
  bool trimmed = false;          ///< its payload will come again
  bool more = false;             ///< its sender had something else to send when it left
};

/// A request of a receiver to a queue pair.
struct Pull {
  NodeId source;
  std::uint32_t queue_pair = 0;
  std::uint32_t packets = 0;
  bool returned = false;  ///< given back to a sender that had nothing more to send
};

/// The receiving half of an algorithm whose receivers pull: the requests of one port of a host to all its senders.
class ReceiverControl {
 public:
  virtual ~ReceiverControl() = default;
  virtual void on_data(const ReceivedData& data) = 0;
  /// Time of the next pull; Time::max(): none before on_data().
  virtual Time next_pull() const = 0;
  /// That pull, at `now`, which is next_pull() or later.
  virtual Pull take_pull(Time now) = 0;
};

/// Services of NICs and switches that an algorithm needs beyond ACKs.
struct Services {
  bool acks = true;     ///< on_ack() may change the allowance; if not, a NIC need not call it
  bool ecn = false;     ///< data packets are ECN-capable: switches mark them, and marks are echoed in ACKs
  Time cnp_interval{};  ///< a receiver of marked packets sends CNPs, at most one per queue pair in this time; 0: none
  bool telemetry = false;  ///< data packets collect HopTelemetry, and ACKs bring it back
  bool pulls = false;      ///< receivers ask for packets: make_receiver()

  friend bool operator==(const Services&, const Services&) = default;
};

/// Marking by random early detection: with probability 0 up to `min` queued wire bytes, rising to `probability` at
/// `max`, 1 beyond. min == max: a step.
struct EcnMarking {
  Bytes min{};
  Bytes max{};
  double probability = 1;

  friend bool operator==(const EcnMarking&, const EcnMarking&) = default;
};

/// An algorithm and its parameters, made by name: see docs/reference/congestion_control.md. Immutable once configured.
class CongestionControlKind {
 public:
  virtual ~CongestionControlKind() = default;
  /// Reads and finishes the map `network.NAME`, all of whose keys are optional. Called once, before everything else.
  /// Throws InputError.
  virtual void configure(const std::optional<Spec>& spec) = 0;
  /// Called before a run for each path profile, or at least for each NIC rate: throws InputError if the parameters do
  /// not suit it, such as a least rate above the NIC's.
  virtual void check(const FlowPath& path) const = 0;
  virtual Services services() const = 0;
  /// Default marking of a port of this rate: the recommendation of the algorithm's authors. `base_rtt`: the longest of
  /// the network. Of no concern unless Services::ecn.
  virtual EcnMarking default_marking(Bandwidth port_rate, Time base_rtt) const = 0;
  virtual std::unique_ptr<CongestionControl> make(const FlowPath& path) const = 0;
  /// For a port of a receiving host at which a full packet takes `packet_time`. Only if Services::pulls.
  virtual std::unique_ptr<ReceiverControl> make_receiver(Time packet_time) const {
    (void)packet_time;
    return nullptr;
  }
};
using CongestionControlRegistry = Registry<CongestionControlKind>;

}  // namespace weft
