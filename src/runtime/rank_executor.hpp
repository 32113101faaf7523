// SPDX-License-Identifier: GPL-2.0-only
// Runs the program of one rank on the network: streams, dependencies, matching, collectives step by step.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "fabric/client/host_network.hpp"
#include "results/collective_log.hpp"
#include "results/records.hpp"
#include "runtime/collective_run.hpp"
#include "runtime/connection.hpp"
#include "runtime/dependency_log.hpp"
#include "runtime/explanation.hpp"
#include "runtime/message_log.hpp"
#include "runtime/slowed_compute.hpp"
#include "runtime/transfer_book.hpp"
#include "schedule/program/placement.hpp"
#include "schedule/program/program.hpp"
#include "schedule/program/workload.hpp"
#include "support/sorted_records.hpp"

namespace weft {

/// Whose operations have a row in /operations.
struct OperationSelection {
  bool any = false;
  std::vector<std::uint32_t> ranks;  ///< ascending; empty: all
  bool keeps(std::uint32_t rank) const {
    return any && (ranks.empty() || std::binary_search(ranks.begin(), ranks.end(), rank));
  }
};

/// What the executors of a process write down.
struct RunRecords {
  MessageLog messages;
  std::uint64_t messages_delivered = 0;
  std::int64_t bytes_delivered = 0;
  CollectiveLog collectives;
  SortedRecords<RankSpan> undecided;  ///< TransferBook::take_kept() of all ranks, so far
  std::vector<OperationRecord> operations;
  std::vector<DependencyRecord> dependencies;  ///< of these
  OperationSelection keep_operations;
  bool explain = true;  ///< keep what times were spent on
  bool causes = true;   ///< and which message had to come before which
};

/// A rank; or an aggregator in one collective and channel, since it serves all that it has at the same time.
struct Waiter {
  std::uint32_t rank = 0;
  std::uint32_t call = none;
  std::uint32_t channel = none;
  static constexpr std::uint32_t none = 0xffffffffU;
  auto operator<=>(const Waiter&) const = default;
};

/// One that waits for another one, and in which operation.
struct RankWait {
  Waiter waiter;
  Waiter awaited;
  std::uint32_t call = Waiter::none;  ///< the collective in which it waits, if it is one
  std::string text;                   ///< one line
};

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
  void on_credit(Time now, std::uint32_t queue_pair);

  /// Every operation was executed and nothing is left over.
  bool finished() const;
  /// One line per operation that waits ("rank 3: operation 17 'grads' (line 7): recv of 4 KiB from rank 2, tag 7: no
  /// such message has come"), at most `most`.
  std::vector<std::string> waiting(std::size_t most) const;
  /// For whom its started operations wait: data, a free slot, or a message.
  void add_waits(std::vector<RankWait>& waits) const;
  /// Closes the books at `end` (idle time runs until there).
  RankRecord record(Time end) const;
  /// What of its communication was transferred, until `end`.
  RankTransfers transfers(Time end) const;
  std::uint64_t operations_done() const { return operations_done_; }
  std::uint32_t rank() const { return rank_.value(); }
  /// A queue pair of the host that collectives of this rank use.
  bool has_connection(std::uint32_t queue_pair) const { return connection_of_queue_pair_.contains(queue_pair); }

  // Used by CollectiveRun ---------------------------------------------------------------------------------------------
  SendConnection& send_connection(const CollectiveCall& call, std::uint32_t channel, std::uint32_t rank);
  ReceiveConnection& receive_connection(std::uint32_t communicator, std::uint32_t channel, std::uint32_t source);
  /// `member`: index of the receiver in the communicator.
  void send_slice(Time now, SendConnection& connection, const CollectiveCall& call, std::uint32_t channel, Bytes bytes,
                  std::uint32_t member);
  const Placement& placement() const { return placement_; }
  void return_credit(Time now, std::uint32_t source_rank, std::uint32_t queue_pair);
  bool credits_limited() const { return network_.parameters().acks; }
  /// When a message that comes to the accelerator's network proxy at `at` is through, if it takes `turn` of it.
  Time proxy_turn(Time at, Time turn) { return proxy_free_ = bounded_sum(std::max(at, proxy_free_), turn); }
  /// Calls CollectiveRun::on_timer of the operation's run.
  void set_lane_timer(Time at, std::uint64_t operation, std::uint32_t lane);

 private:
  std::uint64_t with_place(std::uint64_t token) const { return token | std::uint64_t{place_} << place_bit; }

  struct Live {
    Operation operation;
    std::uint32_t unfinished = 0;        // dependencies
    std::uint32_t sequence = 0;          // send, recv: number within its lane
    std::uint32_t parts = 0;             // send: messages that have not been sent in full
    std::uint32_t queue_pair = 0;        // send: of its last message
    std::uint64_t message = no_message;  // send, recv: the last one
    SendTimes times;                     // of that, at the start
    bool started = false;
    std::uint64_t cause = 0;  // HostNetwork::cause() when it last waited for one less
    bool begun = false;       // it has what it needs: at its start, unless it has to ask for a processor
    Time start;
    Time sent;  // recv: when its message was
    std::vector<std::uint64_t> dependents;
    std::vector<std::uint64_t> dependents_of_start;
    std::unique_ptr<CollectiveRun> collective;
  };
  // Of one (source, tag), a lane: the n-th recv takes the message of the n-th send, both in program order, however
  // queue pairs and dependencies let them overtake each other.
  struct Matching {
    std::uint32_t recvs = 0;  // admitted so far
    struct Arrived {
      std::int64_t bytes = 0;
      std::uint64_t message = 0;
    };
    std::map<std::uint32_t, Arrived> arrived;       // messages without a recv, by number
    std::map<std::uint32_t, std::uint64_t> posted;  // recv operations without a message, by number
    struct Part {
      std::int64_t bytes = 0;
      std::uint32_t count = 0;
    };
    std::map<std::uint32_t, Part> parts;  // what has come of messages of several, by number
  };
  // If recvs may take messages of any rank or tag.
  struct AnyMatching {
    struct Message {
      std::uint32_t source = 0, tag = 0;
      std::uint64_t id = 0;
    };
    std::list<Message> arrived;                              // that no recv has taken, in the order in which they came
    std::list<std::uint64_t> posted;                         // recvs without a message, in the order of their start
    std::unordered_map<std::uint64_t, std::uint32_t> taken;  // (source, tag) -> messages that have come in order
  };
  using Queue = std::deque<std::uint64_t>;

  void pull(Time now);
  bool may_read_on() const;
  void admit(Operation operation);
  void make_progress(Time now);
  bool may_start(const Live& live, Time now) const;
  bool start_ready(Time now);
  std::uint32_t number_of_stream(const Operation& operation) const;
  void start_operation(Time now, Live& live);
  ProcessorRequest processor_request(const Live& live) const;
  void begin_operation(Time now, Live& live);
  void keep_dependencies(const Operation& operation);
  void release(const std::vector<std::uint64_t>& dependents);
  bool slows_compute(const Operation& operation) const;
  void start_send(Time now, Live& live);
  std::uint32_t open_queue_pairs(std::uint32_t peer);
  std::uint32_t post_spread(Time now, std::uint32_t first, std::uint32_t& turn, Message message, std::uint64_t token);
  void start_recv(Time now, Live& live);
  void start_any_recv(Time now, Live& live);
  bool match_any(Time now, const Message& message, std::int64_t bytes);
  void deliver_any(Time now, const Message& message, std::uint64_t id_of_message);
  static bool suits(const Operation& recv, std::uint32_t source, std::uint32_t tag) {
    return (recv.any_source || recv.peer.value() == source) && (recv.any_tag || recv.tag == tag);
  }
  std::uint64_t cause_of_end(const Live& live) const;
  void complete(Time now, std::uint64_t id);
  void start_collective(Time now, Live& live);
  void launch_collective(Time now, std::uint64_t operation);
  /// `why`: what has come for it (runtime/explanation.hpp).
  template <class Why>
  void advance_collective(Time now, std::uint32_t communicator, std::uint32_t channel, const Why& why);
  void serve(std::uint32_t communicator);
  void account(Time now);
  template <class Why>
  void explain(Time now, const Why& why);
  BecauseOfSending since_last_answer(Time now, std::uint32_t queue_pair);
  void count_communication(const Live& live, bool starts);
  std::string describe(const Live& live) const;

  Rank rank_;
  const Placement& placement_;
  std::uint32_t host_;
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
  bool takes_what_is_ready_ = false;
  std::size_t read_ahead_ = 0;  // 0: no limit
  bool reads_past_started_ = false;
  std::size_t under_way_ = 0;  // of live_, those that have begun
  bool asks_for_processors_ = false;
  bool passes_streams_ = false;  // nothing waits for its stream here
  Time resume_at_;  // if in order of time: the newest operation starts then, and nothing is asked for before
  std::multimap<Time, std::uint64_t> delayed_;  // not_before in the future -> operation
  std::map<std::uint64_t, Live> live_;
  std::vector<std::uint64_t> candidates_;  // operations that may have become startable
  Queue streams_[stream_count];
  // If streams take what is ready: operations that have waited for all others, and whether one is under way.
  struct ReadyStream {
    std::set<std::uint64_t> ready;
    bool busy = false;
  };
  std::map<std::uint32_t, ReadyStream> ready_streams_;  // by number_of_stream()
  bool streams_are_processors_ = false;
  std::map<std::uint32_t, Queue> communicators_;  // order of collectives within each communicator, as NCCL requires
  std::map<std::uint32_t, std::uint64_t> running_collective_;  // communicator -> operation
  std::unordered_map<std::uint64_t, Matching> matching_;       // (source, tag); looked up, never iterated in order
  std::unique_ptr<AnyMatching> any_;                           // instead of the recvs in matching_
  std::unordered_map<std::uint64_t, std::uint32_t> sends_;     // (peer, tag) -> sends admitted so far
  struct SendQueues {
    std::uint32_t first = 0;  // queue pair; those of a connection have neighbouring numbers
    std::uint32_t sent = 0;   // messages
  };
  std::unordered_map<std::uint64_t, SendQueues> queue_pairs_;  // (peer, number)
  std::map<ConnectionKey, SendConnection> send_connections_;
  std::map<ConnectionKey, ReceiveConnection> receive_connections_;
  struct OwnQueuePair {
    SendConnection* connection = nullptr;
    std::uint32_t channel = 0;
    // When a receiver last answered, or it began to send, and what it had spent its time on until then.
    Time answered;
    SendTimes times;
  };
  std::unordered_map<std::uint32_t, OwnQueuePair> connection_of_queue_pair_;
  struct LaneTimer {
    std::uint64_t operation = 0;
    std::uint32_t lane = 0;  // no_lane: the launch of the collective is over
    std::uint64_t cause = no_message;
  };
  std::vector<LaneTimer> lane_timers_;  // by token
  std::vector<std::uint32_t> free_lane_timers_;

  SlowedCompute slowed_;

  // Books
  Time last_change_;
  std::uint32_t computing_ = 0;
  std::uint32_t communicating_ = 0;
  std::uint64_t operations_done_ = 0;
  bool explains_ = false;
  std::uint64_t cause_ = no_message;   // what has happened now is due to this message
  std::uint64_t posted_ = no_message;  // the last one
  std::int64_t unexplained_ = 0;       // ps of record_.exposed that no part has yet
  RankRecord record_;
  TransferBook transfers_;
};

}  // namespace weft
