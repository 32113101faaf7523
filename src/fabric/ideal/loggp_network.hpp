// SPDX-License-Identifier: GPL-2.0-only
// The LogGOPS network: processors, NICs and messages of LogGOPSim; no links.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "fabric/client/host_network.hpp"
#include "fabric/parameters/loggp_parameters.hpp"
#include "graph/partition/partition.hpp"

namespace weft {

/// The model of github.com/spcl/LogGOPSim (LogGOPSim.cpp) for the operations of a schedule, for any workload:
///
/// * A message of s bytes takes its sender's processor o + (s - 1) O and its NIC g + (s - 1) G; both have to be free.
/// * L + o after its beginning it is at its receiver, where it waits for the processor and the NIC, and takes o +
///   max((s - 1) O, (s - 1) G) and g + (s - 1) G; whether or not a recv waits for it.
/// * An eager send (up to S bytes) is complete after its processor time, a larger one when it is matched with a recv,
///   and a one-sided write, which LogGOPSim does not have, when it has been delivered.
/// * Operations of one time run in the order of LogGOPSim's queue: first the operation that became ready first; if
///   several became ready together, ranks in ascending order, and sends before recvs before computations.
///
/// In three things it differs: an operation on another processor waits until those that it requires have ended
/// (LogGOPSim: have begun); messages of one source, destination and tag are matched in program order (LogGOPSim: in the
/// order of arrival); and times are in picoseconds. Slices of collectives are eager sends of processor and NIC 0; their
/// credits take L.
///
/// All hosts belong to one process: a rendezvous notifies the sender at once.
class LogGpNetwork final : public HostNetwork {
 public:
  LogGpNetwork(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters);

  // HostNetwork -------------------------------------------------------------------------------------------------------
  const std::vector<NodeId>& hosts() const override { return hosts_; }
  bool owns(NodeId node) const override { return node.value() < hosts_.size(); }
  std::uint32_t open_queue_pair(NodeId host, NodeId destination) override;
  std::uint64_t post(NodeId host, std::uint32_t queue_pair, Time now, Message message,
                     std::uint64_t token = 0) override;
  void send_credit(NodeId host, Time now, NodeId to, std::uint32_t queue_pair, Time late) override;
  SendTimes send_times(NodeId, std::uint32_t, Time) const override { return {}; }
  void set_timer(NodeId host, Time at, std::uint64_t token) override;
  const NetworkParameters& parameters() const override { return parameters_; }
  bool shares_processors() const override { return true; }
  std::uint64_t cause() const override { return cause_; }
  void request(NodeId host, Time now, const ProcessorRequest& request) override;
  void run_on_processor(NodeId host, Time now, const ProcessorRequest& request, Time duration) override;
  bool idle() const override { return due_.empty(); }
  void finish(ProcessGroup& group, bool all_idle) override;
  std::uint64_t packet_hops() const override { return 0; }
  std::uint64_t events() const override { return events_; }
  std::vector<LinkCounters> link_counters() const override { return counters_; }
  std::uint32_t node_count() const override { return static_cast<std::uint32_t>(hosts_.size()); }
  std::uint64_t memory_bytes() const override;

  // DataPath ----------------------------------------------------------------------------------------------------------
  Time next_time() const override { return due_.empty() ? Time::max() : due_.top().time; }
  void advance(Time end) override;
  /// A single process pauses from time to time, to check for interrupts and show progress.
  Time lookahead() const override { return Time::from_us(100); }
  Time now() const override { return now_; }

 private:
  /// Notifications of ranks come before requests for processors.
  enum class Kind : std::uint8_t { timer, sent, deliver, credit, send, recv, compute, arrive };
  /// When an operation became ready: the number of the event that made it ready, its rank, its type, and its turn.
  struct Stamp {
    std::uint64_t event = 0;
    std::uint64_t owner = 0;  ///< 0: the network; else 1 + rank
    std::uint8_t type = 0;
    std::uint64_t turn = 0;
    friend auto operator<=>(const Stamp&, const Stamp&) = default;
  };
  struct Event {
    Time time;
    bool asks = false;
    Stamp stamp;
    Kind kind = Kind::timer;
    std::uint32_t item = 0;
    bool operator>(const Event& other) const {
      return std::tie(time, asks, stamp) > std::tie(other.time, other.asks, other.stamp);
    }
  };
  /// The subject of an event.
  struct Item {
    NodeId host;
    std::uint64_t token = 0;
    std::uint32_t queue_pair = 0;  // whose credit
    Time late;                     // the receiver, with the credit
    ProcessorRequest request;
    bool is_slice = false;  // of a collective, whose message waits here
    Message message;
    Time begun;                    // of a message
    std::uint64_t cause = 0;       // number of the event that has led to this one
    std::uint32_t next = no_slot;  // of the free list
  };
  struct Clocks {
    std::map<std::uint32_t, Time> processors;          // free from then on
    std::map<std::uint32_t, Time> senders, receivers;  // NICs
  };
  /// Receiver, sender, tag, number of the message among those of the three.
  using MatchKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  /// A message that has arrived before its recv; for a rendezvous, the sender to notify.
  struct Unexpected {
    bool rendezvous = false;
    Message message;
    Time processor_free;
  };

  std::uint32_t add_item(Item item);
  void release_item(std::uint32_t slot);
  void tell(Time time, Kind kind, Item item);
  void ask(Time time, const Stamp& stamp, Kind kind, std::uint32_t item);
  void handle(const Event& event);
  void handle_asking(const Event& event);
  bool wait_for(const Event& event, Time free);
  void begin_send(const Event& event);
  void begin_recv(const Event& event);
  void begin_compute(const Event& event);
  void arrive(const Event& event);
  void send(const Message& message, std::uint32_t cpu, std::uint32_t nic, Time now);
  /// Complete only when it is matched with its recv. One-sided writes do not wait for a recv.
  bool rendezvous(const Message& message) const;
  void meet(const Message& message, Time processor_free, Time now);
  void grant(const Event& event);
  Clocks& clocks(std::uint32_t rank) { return clocks_[rank]; }
  Time gap(Bytes bytes) const;
  Time cost(Time fixed, Time per_byte, Bytes bytes) const;
  Stamp stamp(const ProcessorRequest& wanted);

  const NetworkParameters& parameters_;
  const LogGpParameters& model_;
  std::vector<NodeId> hosts_;
  PerNode<std::vector<std::vector<NodeId>>> queue_pairs_;  // [hosts] destinations
  PerNode<std::vector<std::uint32_t>> messages_of_host_;   // [hosts]
  std::unordered_map<std::uint32_t, Clocks> clocks_;       // by rank; looked up only
  std::priority_queue<Event, std::vector<Event>, std::greater<>> due_;
  std::vector<Item> items_;
  std::uint32_t free_item_ = no_slot;
  std::set<MatchKey> posted_;
  std::map<MatchKey, Unexpected> unexpected_;
  std::uint32_t granted_ = no_slot;  // the item of the send that may begin now
  std::uint64_t cause_ = 0;          // number of the event that makes things ready
  std::uint64_t turn_ = 0;
  Time now_;
  std::uint64_t events_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t delivered_ = 0;
  std::vector<LinkCounters> counters_;
};

}  // namespace weft
