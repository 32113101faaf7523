// SPDX-License-Identifier: GPL-2.0-only
// Programs of ranks on a small machine, with everything that they wrote down.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/execution/runtime.hpp"
#include "tests/fabric/lean_machine.hpp"
#include "tests/workloads/workload_under_test.hpp"

namespace weft::test {

/// Operations as a list for each rank; ids are positions.
class ListWorkload final : public Workload {
 public:
  explicit ListWorkload(std::uint32_t ranks) : operations_(ranks) {}

  std::vector<Operation>& of(std::uint32_t rank) { return operations_[rank]; }
  /// Gives the operation's id.
  std::uint64_t add(std::uint32_t rank, Operation operation) {
    operation.id = operations_[rank].size();
    operations_[rank].push_back(std::move(operation));
    return operations_[rank].back().id;
  }
  std::uint64_t compute(std::uint32_t rank, Time duration, std::vector<std::uint64_t> after = {}) {
    Operation operation;
    operation.duration = duration;
    operation.after = std::move(after);
    return add(rank, std::move(operation));
  }
  std::uint64_t send(std::uint32_t rank, std::uint32_t to, std::int64_t bytes, std::uint32_t tag = 0,
                     std::uint32_t queue_pair = 0, std::vector<std::uint64_t> after = {}) {
    Operation operation = transfer(Operation::Kind::send, to, bytes, tag, std::move(after));
    operation.queue_pair = queue_pair;
    return add(rank, std::move(operation));
  }
  std::uint64_t recv(std::uint32_t rank, std::uint32_t from, std::int64_t bytes, std::uint32_t tag = 0,
                     std::vector<std::uint64_t> after = {}) {
    return add(rank, transfer(Operation::Kind::recv, from, bytes, tag, std::move(after)));
  }
  /// A call that `members` of its communicator make by `collective`.
  void call(std::uint32_t rank, std::uint32_t id, std::vector<std::uint64_t> after = {}) {
    Operation operation;
    operation.kind = Operation::Kind::collective;
    operation.call = std::make_shared<CollectiveCall>(calls_.at(id));
    operation.after = std::move(after);
    add(rank, std::move(operation));
  }
  /// Before the first call() of any.
  std::uint32_t define(const Communicator& communicator, CollectiveKind kind, Bytes size,
                       const std::string& algorithm = "ring", const CollectiveTuning& tuning = {}) {
    CollectiveCall call;
    call.id = static_cast<std::uint32_t>(calls_.size());
    call.kind = kind;
    call.communicator = &communicator;
    call.size = size;
    call.algorithm = algorithm;
    call.tuning = tuning;
    calls_.push_back(call);
    return call.id;
  }

  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(operations_.size()); }
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    return std::make_unique<List>(operations_[rank.value()]);
  }
  std::uint64_t call_count() const override { return calls_.size(); }
  CollectiveCall call(std::uint32_t id) const override { return calls_.at(id); }
  WorkloadEstimate estimate() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> description() const override { return {}; }

 private:
  class List final : public RankProgram {
   public:
    explicit List(const std::vector<Operation>& operations) : operations_(operations) {}
    bool next(Operation& operation) override {
      if (at_ == operations_.size()) return false;
      operation = operations_[at_++];
      return true;
    }

   private:
    const std::vector<Operation>& operations_;
    std::size_t at_ = 0;
  };
  static Operation transfer(Operation::Kind kind, std::uint32_t peer, std::int64_t bytes, std::uint32_t tag,
                            std::vector<std::uint64_t> after) {
    Operation operation;
    operation.kind = kind;
    operation.peer = Rank(peer);
    operation.bytes = Bytes(bytes);
    operation.tag = tag;
    operation.after = std::move(after);
    return operation;
  }

  std::vector<std::vector<Operation>> operations_;
  std::vector<CollectiveCall> calls_;
};

/// A star at 100 Gb/s, 80 ps per byte, with links of 1 us; mtu 4096 B, frames with 82 B more, ACKs and credits of 86 B.
struct Job {
  /// `text`: a `workload:` map.
  Job(std::uint32_t hosts, const std::string& text, const NetworkParameters& network = {}, const Placement& where = {},
      std::uint64_t seed = 1)
      : Job(hosts, read_workload(text, context_of(hosts)), network, where, seed) {}
  Job(std::uint32_t hosts, std::unique_ptr<Workload> what, const NetworkParameters& network = {},
      const Placement& where = {}, std::uint64_t seed = 1)
      : Job(star(hosts), std::move(what), network, where, seed) {}
  /// On another machine: `topology` is a `topology:` map.
  Job(const std::string& topology, std::unique_ptr<Workload> what, const NetworkParameters& network,
      const Placement& where = {}, std::uint64_t seed = 1)
      : machine(topology, network, seed),
        workload(std::move(what)),
        placement(where.ranks() > 0 ? where : Placement::regular(workload->ranks())),
        runtime(*workload, placement, *machine.fabric, MessageSelection{}, OperationSelection{true, {}}) {
    machine.fabric->set_client(&runtime);
  }

  LeanMachine machine;
  std::unique_ptr<Workload> workload;
  Placement placement;
  Runtime runtime;

  static std::string star(std::uint32_t hosts) {
    return "{kind: star, hosts: " + std::to_string(hosts) + ", link_rate: 100 Gb/s, link_delay: 1 us}";
  }
  void run() {
    machine.run();
    EXPECT_EQ(machine.fabric->next_time(), Time::max());
  }
  void run_until(Time end) { machine.run_until(end); }
  /// Runs; everything must get done.
  void complete() {
    run();
    EXPECT_EQ(runtime.unfinished(), 0U);
    EXPECT_EQ(runtime.waiting(9), std::vector<std::string>());
    ProcessGroup group = ProcessGroup::alone();
    EXPECT_NO_THROW(machine.fabric->check_conservation(group));
  }

  const std::vector<MessageRecord>& messages() { return runtime.records().messages.rows(); }
  OperationRecord operation(std::uint32_t rank, std::uint64_t id) {
    for (const OperationRecord& row : runtime.records().operations)
      if (row.rank == rank && row.operation == id) return row;
    ADD_FAILURE() << "rank " << rank << " has not done operation " << id;
    return {};
  }
  Time start(std::uint32_t rank, std::uint64_t id) { return Time::from_ps(operation(rank, id).start); }
  Time end(std::uint32_t rank, std::uint64_t id) { return Time::from_ps(operation(rank, id).end); }
  RankRecord rank(std::uint32_t number) { return runtime.rank_records(machine.fabric->now()).at(number); }
};

/// Time of a lone message of one packet, to its destination.
inline Time one_packet(std::int64_t bytes) { return Time::from_ps(2 * 80 * (bytes + 82)) + Time::from_us(2); }
/// Time of a lone ACK or credit.
inline constexpr Time control_packet = Time::from_ps(2 * 80 * 86 + 2'000'000);

/// Quantities in tests are printed in ps.
inline constexpr Time us(std::int64_t n) { return Time::from_us(n); }

}  // namespace weft::test
