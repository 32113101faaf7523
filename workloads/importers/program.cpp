// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `program`: operations of each rank, as a YAML trace lists them (docs/reference/program_format.md).
#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "workloads/importers/program_trace.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// The items of a rank: those for all ranks and those that list it, merged in file order.
class TraceProgram : public RankProgram {
 public:
  TraceProgram(const Trace& trace, std::uint32_t rank) : trace_(trace), own_(trace.items_of_ranks[rank]), rank_(rank) {}

  bool next(Operation& operation) override {
    const auto& common = trace_.items_of_all;
    if (at_own_ == own_.size() && at_common_ == common.size()) return false;
    const bool from_own = at_common_ == common.size() || (at_own_ < own_.size() && own_[at_own_] < common[at_common_]);
    const std::uint32_t item = from_own ? own_[at_own_++] : common[at_common_++];
    const TraceOperation& entry = trace_.operations[item];
    operation = entry.operation;
    operation.id = item;
    if (!entry.peers.empty()) {
      const auto& ranks = entry.ranks.ranks;
      operation.peer =
          Rank(entry.peers[static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin())]);
    }
    for (const std::uint32_t name : entry.after)
      operation.after.push_back(static_cast<std::uint64_t>(trace_.names[name].item(rank_)));
    if (operation.kind == Operation::Kind::collective) {
      // Not owned: the trace lives as long as the workload.
      operation.call = std::shared_ptr<const CollectiveCall>(std::shared_ptr<void>(), &trace_.calls[entry.call]);
    }
    return true;
  }
  double compute_slowdown() const override { return trace_.slowdown; }
  std::size_t read_ahead() const override { return trace_.read_ahead; }

 private:
  const Trace& trace_;
  const std::vector<std::uint32_t>& own_;
  std::uint32_t rank_;
  std::size_t at_own_ = 0;
  std::size_t at_common_ = 0;
};

class TraceWorkload : public Workload {
 public:
  explicit TraceWorkload(Trace trace) : trace_(std::move(trace)) {}

  std::uint32_t ranks() const override { return trace_.ranks; }
  std::uint64_t call_count() const override { return trace_.calls.size(); }
  CollectiveCall call(std::uint32_t id) const override { return trace_.calls.at(id); }
  bool from_user() const override { return true; }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < trace_.ranks, "rank {} of {}", rank.value(), trace_.ranks);
    return with_noise(std::make_unique<TraceProgram>(trace_, rank.value()), rank, trace_.noise);
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    unsigned __int128 bytes = 0;
    Time compute_of_all;
    std::vector<Time> compute(trace_.ranks);
    for (const TraceOperation& entry : trace_.operations) {
      const Operation& operation = entry.operation;
      if (operation.kind == Operation::Kind::send) {
        estimate.messages += entry.ranks.ranks.size();
        bytes += static_cast<unsigned __int128>(operation.bytes.count()) * entry.ranks.ranks.size();
      }
      if (entry.ranks.all) compute_of_all += operation.duration;
      for (const std::uint32_t rank : entry.ranks.ranks) compute[rank] += operation.duration;
    }
    for (const CollectiveCall& call : trace_.calls) {
      const WorkloadEstimate one = estimate_call(call);
      estimate.messages += one.messages;
      bytes += static_cast<unsigned __int128>(one.bytes.count());
    }
    estimate.bytes = saturated(bytes);
    estimate.compute = compute_of_all + *std::max_element(compute.begin(), compute.end());
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    std::vector<std::pair<std::string, std::string>> lines{
        {"operations in the file", grouped(static_cast<std::int64_t>(trace_.operations.size()))},
        {"collective calls", grouped(static_cast<std::int64_t>(trace_.calls.size()))}};
    lines.insert(lines.end(), trace_.remarks.begin(), trace_.remarks.end());
    for (auto& line : trace_.noise.description(trace_.ranks)) lines.push_back(std::move(line));
    return lines;
  }

 private:
  Trace trace_;
};

class ProgramReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const auto file = spec.find("file");
    if (!file) return std::make_unique<TraceWorkload>(read_trace(spec, context));
    if (const auto operations = spec.find("operations"))
      throw operations->error("both 'file' and 'operations' are given; give one of them");
    const Spec trace = Spec::load(resolve_file(*file, context.directory, "traces", ".yaml"));
    spec.finish();
    return std::make_unique<TraceWorkload>(read_trace(trace, context));
  }
};

const Registration<WorkloadReader, ProgramReader> program_registration(
    "program", "a trace of operations of each rank, with dependencies");

}  // namespace
}  // namespace weft
