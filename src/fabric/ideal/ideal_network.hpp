// SPDX-License-Identifier: GPL-2.0-only
// The ideal network: the arrival of a message follows from its route and from the ports at both ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/client/host_network.hpp"
#include "fabric/ideal/ideal_events.hpp"
#include "fabric/ideal/ideal_path.hpp"
#include "fabric/ideal/turn_taking.hpp"
#include "fabric/ideal/waiting_line.hpp"
#include "graph/partition/partition.hpp"

namespace weft {

/// No packets, no queues inside the network, no window: the work of a message does not grow with its bytes.
///
/// * At its source a message is served by the slowest link of those that belong to the source alone (its own link; of
///   servers, also those inside and those of its NICs). Queue pairs take turns at that link packet by packet
///   (TurnTaking); messages of one queue pair follow each other.
/// * From there on it moves as its packets would on otherwise empty links, directly behind the previous message of its
///   queue pair (the recurrence of ideal_path.hpp).
/// * At its destination, the slowest link of those that belong to it alone serves messages in the order in which their
///   last bit would have arrived: each takes the first free time there after its first bit could begin, for as long as
///   its bytes need, and ends then, or later if its last packet arrives later. A slow message does not hold the
///   link.
/// * ACKs and credits take the time of their packet on an idle path, and no capacity of any link.
///
/// A flow alone on its links moves as on the packet network to the picosecond: both follow the same recurrence.
///
/// Order at one time: arrivals, by host and message; timers in the order in which they were set; ports. Nothing depends
/// on the partition.
class IdealNetwork final : public HostNetwork {
 public:
  IdealNetwork(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters,
               const RoutingAlgorithm& routing);

  // HostNetwork -------------------------------------------------------------------------------------------------------
  const std::vector<NodeId>& hosts() const override { return owned_hosts_; }
  bool owns(NodeId node) const override {
    return node.value() < local_of_host_.size() && local_of_host_[node] != no_slot;
  }
  std::uint32_t open_queue_pair(NodeId host, NodeId destination) override;
  std::uint64_t post(NodeId host, std::uint32_t queue_pair, Time now, Message message,
                     std::uint64_t token = 0) override;
  void send_credit(NodeId host, Time now, NodeId to, std::uint32_t queue_pair, Time late) override;
  /// Knows only the time on the wire, where the source's messages take turns.
  SendTimes send_times(NodeId host, std::uint32_t queue_pair, Time now) const override;
  void set_timer(NodeId host, Time at, std::uint64_t token) override;
  const NetworkParameters& parameters() const override { return parameters_; }
  bool idle() const override;
  /// Collective: counters of links are summed over processes; every message sent has been delivered if `all_idle`,
  /// else throws InternalError.
  void finish(ProcessGroup& group, bool all_idle) override;
  /// None: messages do not hop.
  std::uint64_t packet_hops() const override { return 0; }
  std::uint64_t events() const override { return events_; }
  /// Data only, and no queues. After finish().
  std::vector<LinkCounters> link_counters() const override { return counters_; }
  /// Only hosts: switches are not simulated.
  std::uint32_t node_count() const override { return static_cast<std::uint32_t>(owned_hosts_.size()); }
  std::uint64_t memory_bytes() const override;

  // DataPath ----------------------------------------------------------------------------------------------------------
  Time next_time() const override;
  void advance(Time end) override;
  Time lookahead() const override { return lookahead_; }
  std::span<const int> neighbours() const override { return neighbours_; }
  std::span<Batch> outgoing() override { return outgoing_; }
  void incoming(std::size_t neighbour, std::span<const std::byte> batch) override;
  Time now() const override { return now_; }

 private:
  /// Kinds of events in the order in which they happen at one time. The place of an event is a host, or for ports their
  /// directed link; its number that of the message, or of the timer at its host, or of the port's plan; what it is
  /// about the slot of the message, the token, or the queue pair.
  enum class Kind : std::uint8_t { arrive, deliver, credit, sent, timer, ready, port };
  /// A message, with the facts that its destination needs.
  struct Flight {
    Message message;
    Time first;  ///< its first packet may begin on the destination's port
    Time end;    ///< its last packet would end there if nobody else used it
    Time work;   ///< serialisation there
    std::uint32_t port = no_slot;
  };
  struct Flow {  // a queue pair
    NodeId host;
    NodeId destination;
    std::uint32_t path = 0;
    std::uint32_t port = 0;        // of the source
    std::uint32_t turn = 0;        // its number there
    std::uint32_t links = 0;       // into links_ and free_, as many as the path has
    std::uint32_t head = no_slot;  // messages that are ready; the first one is in service
    std::uint32_t tail = no_slot;  //
    Time begin;                    // of that service
    Time control_time;             // of ACKs and credits from the destination
    std::uint64_t packets = 0;
    Bytes payload;
  };
  struct Host {
    std::uint64_t messages = 0;
    std::uint64_t timers = 0;
    std::vector<std::uint32_t> flows;  // [queue pairs]
  };
  struct SourcePort {
    std::uint32_t directed_link = 0;
    std::uint64_t plan = 0;  // events of earlier plans are void
    TurnTaking turns;
  };
  struct DestinationPort {
    WaitingLine line;
    Time latest;                // delivery
    std::uint32_t pending = 0;  // messages that have come and are not delivered
  };
  /// A record for another process. `time`: of the arrival, or of the event that causes a credit or an ACK.
  struct Crossing {
    Kind kind;
    NodeId host;
    std::uint32_t queue_pair;
    Time time;
    std::uint64_t number;
    std::uint64_t token;
  };

  void push(Time time, Kind kind, std::uint32_t place, std::uint64_t number, std::uint64_t what);
  void handle(const IdealEvent& event);
  Host& host_state(NodeId host) { return host_states_[local_of_host_[host]]; }
  Flow& flow_of(NodeId host, std::uint32_t queue_pair) { return flows_[host_state(host).flows[queue_pair]]; }
  IdealMessage shape_of(const IdealPath& path, const Message& message) const;
  std::uint32_t intern(IdealPath path);
  std::uint32_t source_port(std::uint32_t directed_link);
  DestinationPort& destination_port(std::uint32_t directed_link);
  std::uint32_t new_flight();
  Time idle_time_of(std::uint32_t path, const Message& message);
  void require_time(const Flow& flow, const Message& message, Time now) const;

  Time pass_own_links(Flow& flow, const Message& message, Time now);
  void make_ready(std::uint32_t flow, std::uint32_t slot, Time now);
  void serve_next(std::uint32_t flow, Time now);
  void plan(std::uint32_t port);
  void run_port(std::uint32_t port, Time now);
  void leave(Flow& flow, std::uint32_t slot, Time now);
  void fly(Flow& flow, std::uint32_t slot, Time now);
  void arrive(std::uint32_t slot, Time now);
  void deliver(std::uint32_t slot, Time now);
  void tell_sender(const Message& message, Time now);
  void give_credit(NodeId to, std::uint32_t queue_pair, Time now, std::uint64_t token);
  void send_across(std::uint16_t process, const Crossing& crossing, const Flight* flight);

  const Topology& topology_;
  const NetworkParameters& parameters_;
  int process_;
  IdealPaths ways_;
  PerNode<std::vector<std::uint16_t>> owner_of_host_;  // [hosts]
  PerNode<std::vector<std::uint32_t>> local_of_host_;  // [hosts] -> host_states_
  std::vector<NodeId> owned_hosts_;
  std::vector<Host> host_states_;
  std::vector<Flow> flows_;
  struct Class {
    IdealPath path;
    Bytes asked = Bytes(-1);  // size of the message whose idle time was asked for last
    Time idle;
  };
  std::vector<Class> classes_;
  std::vector<std::uint32_t> links_;           // [flows, links] directed link
  std::vector<Time> free_;                     // [flows, links] end of the flow's message before
  std::vector<Time> busy_;                     // [flows, links] in which its packets were on the wire
  std::vector<std::uint32_t> source_port_of_;  // [directed links]
  std::vector<SourcePort> source_ports_;
  std::vector<std::uint32_t> destination_port_of_;  // [directed links]
  std::vector<DestinationPort> destination_ports_;
  std::vector<Flight> flights_;
  std::uint32_t free_flight_ = no_slot;
  IdealEvents due_;
  Time now_;
  Time reached_;  // everything before has happened
  std::uint64_t events_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t delivered_ = 0;

  Time lookahead_;
  std::vector<int> neighbours_;
  std::vector<std::uint32_t> neighbour_of_;  // [processes]
  std::vector<Batch> outgoing_;
  std::vector<Time> first_outgoing_;    // [neighbours]
  std::vector<LinkCounters> counters_;  // of owned links
};

}  // namespace weft
