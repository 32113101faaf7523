// SPDX-License-Identifier: GPL-2.0-only
// Runs the program of one rank on the network: streams, dependencies, matching, collectives step by step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/client/host_network.hpp"
#include "results/tables/records.hpp"
#include "runtime/books/dependency_log.hpp"
#include "runtime/books/rank_book.hpp"
#include "runtime/books/run_records.hpp"
#include "runtime/execution/connection.hpp"
#include "runtime/execution/lane_timers.hpp"
#include "runtime/execution/live_operations.hpp"
#include "runtime/execution/message_matching.hpp"
#include "runtime/execution/operation_queues.hpp"
#include "runtime/execution/rank_connections.hpp"
#include "runtime/execution/rank_wait.hpp"
#include "runtime/execution/slowed_compute.hpp"
#include "schedule/program/placement.hpp"
#include "schedule/program/program.hpp"
#include "schedule/program/workload.hpp"

namespace weft {

/// One rank. All calls are made at non-decreasing times.
class RankExecutor {
 public:
  /// `place`: number among the ranks of this host. Bits of all its tokens: see place_of().
  RankExecutor(Rank rank, const Placement& placement, std::uint32_t place, std::unique_ptr<RankProgram> program,
               HostNetwork& network, RunRecords& records);
  /// An aggregator in a switch, with the rank of rank_of(): it takes its part in a collective of `workload` when the
  /// first slice for it comes, those of a communicator one after another. It has no program of its own.
  RankExecutor(Rank rank, const Placement& placement, std::uint32_t place, const Workload& workload,
               HostNetwork& network, RunRecords& records);
  bool is_aggregator() const { return served_ != nullptr; }
  /// The executor's place at its host, of a timer or completion that it has asked for; and what is left of the token,
  /// which it is to be given.
  static constexpr std::uint32_t place_of(std::uint64_t token) {
    return static_cast<std::uint32_t>(token >> place_bit) & (max_places - 1);
  }
  static constexpr std::uint64_t without_place(std::uint64_t token) {
    return token & ~(std::uint64_t{max_places - 1} << place_bit);
  }
  static constexpr std::uint32_t max_places = 1U << 12;
  static constexpr unsigned place_bit = 48;  ///< operations are numbered below; kinds of tokens begin at bit 61

  void start(Time now);
  void on_timer(Time now, std::uint64_t token);
  void on_message(Time now, const Message& message);
  void on_sent(Time now, std::uint64_t token);
  void on_credit(Time now, std::uint32_t queue_pair, Time late);

  /// True if every operation was executed and no message is left over.
  bool finished() const;
  /// One line per operation that waits ("rank 3: operation 17 'grads' (line 7): recv of 4 KiB from rank 2, tag 7: no
  /// such message has come"), at most `max`.
  std::vector<std::string> waiting(std::size_t max) const;
  /// The ranks for which its started operations wait: for data, a free slot, or a message.
  void add_waits(std::vector<RankWait>& waits) const;
  /// Closes the books at `end` (idle time runs until there).
  RankRecord record(Time end) const { return book_.record(end); }
  /// The transferred part of its communication until `end`.
  RankTransfers transfers(Time end) const;
  std::uint64_t operations_done() const { return operations_done_; }
  std::uint32_t rank() const { return rank_.value(); }
  /// A queue pair of the host that collectives of this rank use.
  bool has_connection(std::uint32_t queue_pair) const { return connections_.has(queue_pair); }

  // Used by CollectiveRun ---------------------------------------------------------------------------------------------
  SendConnection& send_connection(const CollectiveCall& call, std::uint32_t channel, std::uint32_t rank) {
    return connections_.send_connection(call, channel, rank);
  }
  ReceiveConnection& receive_connection(std::uint32_t communicator, std::uint32_t channel, std::uint32_t source) {
    return connections_.receive_connection(communicator, channel, source);
  }
  /// `member`: index of the receiver in the communicator. `posting`: how long it took to hand the slice to the NIC.
  void send_slice(Time now, SendConnection& connection, const CollectiveCall& call, std::uint32_t channel, Bytes bytes,
                  std::uint32_t member, Time posting);
  const Placement& placement() const { return placement_; }
  void return_credit(Time now, std::uint32_t source_rank, std::uint32_t queue_pair, Time late);
  bool explains() const { return book_.explains(); }
  bool credits_limited() const { return network_.parameters().acks; }
  /// When a message that arrives at the accelerator's network proxy at `at` has passed it, if it takes `turn` there.
  Time proxy_turn(Time at, Time turn) { return proxy_free_ = bounded_sum(std::max(at, proxy_free_), turn); }
  /// Calls CollectiveRun::on_timer of the operation's run.
  void set_lane_timer(Time at, std::uint64_t operation, std::uint32_t lane);

 private:
  // Kinds of tokens of timers; those of operations are their numbers.
  static constexpr std::uint64_t lane_tokens = std::uint64_t{1} << 61;
  static constexpr std::uint64_t resume_token = std::uint64_t{1} << 62;
  std::uint64_t with_place(std::uint64_t token) const { return token | std::uint64_t{place_} << place_bit; }

  // Operations: from the program to their end.
  void pull(Time now);
  bool may_read_on() const;
  void admit(Operation& operation);
  void make_progress(Time now);
  bool may_start(const LiveOperation& live, Time now) const;
  bool packs() const;
  void set_aside(LiveOperation& live);
  bool start_ready(Time now);
  void start_operation(Time now, LiveOperation& live);
  ProcessorRequest processor_request(const LiveOperation& live) const;
  void begin_operation(Time now, LiveOperation& live);
  void keep_dependencies(const Operation& operation);
  void release(const Dependents& dependents);
  bool slows_compute(const Operation& operation) const;
  void start_send(Time now, LiveOperation& live);
  void start_recv(Time now, LiveOperation& live);
  void end_recv(Time now, std::uint64_t id, const Message& last, std::uint64_t message);
  std::uint64_t cause_of_end(const LiveOperation& live) const;
  void complete(Time now, std::uint64_t id);
  void end_collective(Time now, const LiveOperation& live);

  // Collectives.
  void start_collective(Time now, LiveOperation& live);
  void launch_collective(Time now, std::uint64_t operation);
  void on_lane_timer(Time now, const LaneTimer& timer);
  void on_slice(Time now, const Message& message, const TimeParts& parts);
  void settle(Time now, CollectiveRun& run);
  /// `why`: the event that ended the wait (runtime/books/explanation.hpp).
  template <class Why>
  void advance_collective(Time now, std::uint32_t communicator, std::uint32_t channel, const Why& why);
  void serve(std::uint32_t communicator);

  BecauseOfSending since_last_answer(Time now, std::uint32_t queue_pair);
  std::string describe(const LiveOperation& live) const;
  std::vector<const LiveOperation*> in_order() const;

  Rank rank_;
  const Placement& placement_;
  NodeId host_;
  std::uint32_t place_;
  std::unique_ptr<RankProgram> program_;
  HostNetwork& network_;
  RunRecords& records_;

  Time proxy_free_;
  const Workload* served_ = nullptr;  // of an aggregator
  std::uint64_t served_calls_ = 0;
  bool exhausted_ = false;
  bool keeps_operations_ = false;
  DependencyLog dependencies_;
  bool accepts_unexpected_ = false;
  bool in_order_of_time_ = false;
  std::size_t read_ahead_ = 0;  // 0: no limit
  bool reads_past_started_ = false;
  std::size_t under_way_ = 0;  // of live_, those that have begun
  bool asks_for_processors_ = false;
  Time resume_at_;  // if in order of time: the newest operation starts then, and nothing is asked for before
  std::multimap<Time, std::uint64_t> delayed_;  // not_before in the future -> operation
  LiveOperations live_;                         // see in_order()
  Operation next_;                              // of the program, until admit()
  std::vector<std::uint64_t> candidates_;       // operations that may have become startable
  OperationQueues queues_;
  std::map<std::uint32_t, std::uint64_t> running_collective_;  // communicator -> operation
  MessageMatching matching_;
  RankConnections connections_;
  LaneTimers lane_timers_;
  SlowedCompute slowed_;
  RankBook book_;
  std::uint64_t operations_done_ = 0;
  std::uint64_t cause_ = no_message;  // what has happened now is due to this message
};

}  // namespace weft
