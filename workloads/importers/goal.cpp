// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `goal`: schedules of LogGOPSim and ATLAHS (docs/traces.md).
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "support/contract.hpp"
#include "support/interrupt.hpp"
#include "units/text.hpp"
#include "workloads/compute/compute_noise.hpp"
#include "workloads/importers/goal_file.hpp"
#include "workloads/reading/message_lanes.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

class GoalProgram : public RankProgram {
 public:
  explicit GoalProgram(GoalRank rank) : rank_(std::move(rank)) {}

  bool next(Operation& operation) override {
    if (at_ == rank_.operations.size()) return false;
    const GoalOperation& one = rank_.operations[at_];
    operation = Operation();
    operation.id = at_;
    operation.kind = one.kind;
    operation.line = one.line;
    operation.after.assign(rank_.dependencies.begin() + rank_.first_dependency[at_],
                           rank_.dependencies.begin() + rank_.first_dependency[at_ + 1]);
    ++at_;
    if (one.kind == Operation::Kind::compute) {
      operation.duration = bounded_product(one.size, Time::from_ns(1));
      operation.stream = static_cast<Stream>(1 + one.cpu);
      return true;
    }
    operation.peer = Rank(one.peer);
    operation.tag = one.tag;
    operation.bytes = Bytes(one.size);
    operation.queue_pair = one.nic;
    return true;
  }
  bool takes_what_is_ready() const override { return true; }

 private:
  GoalRank rank_;
  std::size_t at_ = 0;
};

class GoalWorkload : public Workload {
 public:
  /// Goes through the whole file once.
  explicit GoalWorkload(const std::string& path) : path_(path) {
    GoalFile file{ByteSource(path)};
    GoalRank rank;
    MessageLanes lanes;
    index_.ranks.push_back(file.place());
    for (std::uint32_t r = 0; file.next(rank); ++r) {
      look_for_interrupt();
      add(rank, r, lanes);
      index_.ranks.push_back(file.place());
    }
    index_.ranks.pop_back();
    if (const auto lane = lanes.mismatch()) complain(*lane);
  }

  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(index_.ranks.size()); }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t id) const override { throw InternalError(fmt::format("call {} of none", id)); }
  bool from_user() const override { return true; }
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return with_noise(std::make_unique<GoalProgram>(schedule(rank.value())), rank, noise_);
  }
  WorkloadEstimate estimate() const override { return {messages_, saturated(bytes_), busiest_}; }
  std::vector<std::pair<std::string, std::string>> description() const override {
    return {{"ranks", std::to_string(ranks())},
            {"calc", grouped(static_cast<std::int64_t>(calcs_))},
            {"send", grouped(static_cast<std::int64_t>(messages_))},
            {"recv", grouped(static_cast<std::int64_t>(messages_))}};
  }
  void set_noise(ComputeNoise noise) { noise_ = std::move(noise); }

 private:
  GoalRank schedule(std::uint32_t rank) const {
    GoalFile file{ByteSource(path_)};
    file.go_to(index_.ranks[rank], rank);
    GoalRank result;
    file.next(result);
    return result;
  }

  void add(const GoalRank& rank, std::uint32_t r, MessageLanes& lanes) {
    Time compute;
    for (const GoalOperation& one : rank.operations) {
      if (one.kind == Operation::Kind::send) {
        lanes.send({r, one.peer, one.tag}, one.size);
        ++messages_;
        bytes_ += static_cast<unsigned __int128>(one.size);
      } else if (one.kind == Operation::Kind::recv) {
        lanes.recv({one.peer, r, one.tag}, one.size);
      } else {
        const Time duration = bounded_product(one.size, Time::from_ns(1));
        if (duration >= Time::limit())
          throw InputError(
              {path_, static_cast<int>(one.line)},
              fmt::format("a calc of {} ns; less than 106 days, where simulated time ends, are due here", one.size));
        compute = bounded_sum(compute, duration);
        ++calcs_;
      }
    }
    busiest_ = std::max(busiest_, compute);
  }

  /// Reads both ranks once more for the first message without its other end.
  [[noreturn]] void complain(const MessageLanes::Key& key) const {
    const auto& [source, destination, tag] = key;
    const auto messages = [&, t = tag](std::uint32_t rank, std::uint32_t peer, Operation::Kind kind) {
      std::vector<GoalOperation> found;
      for (const GoalOperation& one : schedule(rank).operations)
        if (one.kind == kind && one.peer == peer && one.tag == t) found.push_back(one);
      return found;
    };
    const auto sends = messages(source, destination, Operation::Kind::send);
    const auto recvs = messages(destination, source, Operation::Kind::recv);
    const std::string which = fmt::format("from rank {} to rank {} with tag {}", source, destination, tag);
    const auto error = [this](const GoalOperation& one, const std::string& message) {
      return InputError({path_, static_cast<int>(one.line)}, message);
    };
    for (std::size_t i = 0; i < std::min(sends.size(), recvs.size()); ++i)
      if (sends[i].size != recvs[i].size)
        throw error(sends[i], fmt::format("message {} {}: the send has {} bytes, and the recv on line {} has {}", i,
                                          which, sends[i].size, recvs[i].line, recvs[i].size));
    const std::string counts = fmt::format("there are {} sends and {} recvs", sends.size(), recvs.size());
    if (sends.size() > recvs.size())
      throw error(sends[recvs.size()], fmt::format("the send {} has no recv: {}", which, counts));
    throw error(recvs.at(sends.size()), fmt::format("the recv {} has no send: {}", which, counts));
  }

  std::string path_;
  GoalIndex index_;
  ComputeNoise noise_;
  std::uint64_t calcs_ = 0;
  std::uint64_t messages_ = 0;
  unsigned __int128 bytes_ = 0;
  Time busiest_;
};

class GoalReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const Spec where = spec.at("file");
    auto workload = std::make_unique<GoalWorkload>(resolve_file(where, context.directory, "", ""));
    require_ranks(where, workload->ranks(), context);
    if (const auto map = spec.find("compute_noise")) workload->set_noise({*map, workload->ranks(), context.seed});
    spec.finish();
    return workload;
  }
};

const Registration<WorkloadReader, GoalReader> goal_registration("goal",
                                                                 "a GOAL schedule of LogGOPSim or ATLAHS, as text");

}  // namespace
}  // namespace weft
