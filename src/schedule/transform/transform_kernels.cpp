// SPDX-License-Identifier: GPL-2.0-only
// Computations that are scaled, left out or fused.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include "schedule/transform/transform_operations.hpp"
#include "schedule/transform/transformed_workload.hpp"

namespace weft {
namespace {

Time scaled(Time time, double factor) {
  const double ps = static_cast<double>(time.ps()) * factor;
  const auto limit = static_cast<double>(Time::limit().ps());
  return ps >= limit ? Time::limit() : Time::from_ps(std::llround(ps));
}

/// A filter whose programs are all of one class and know its settings.
using MakeProgram = std::function<std::unique_ptr<RankProgram>(std::unique_ptr<RankProgram>)>;
class FilteredWorkload final : public TransformedWorkload {
 public:
  /// Of these ranks; empty: of all.
  FilteredWorkload(std::unique_ptr<Workload> before, MakeProgram make, std::string line,
                   std::set<std::uint32_t> ranks = {})
      : TransformedWorkload(std::move(before), std::move(line)), make_(std::move(make)), ranks_(std::move(ranks)) {}
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    const bool meant = ranks_.empty() || ranks_.contains(rank.value());
    return meant ? make_(inner().program(rank)) : inner().program(rank);
  }

 private:
  MakeProgram make_;
  std::set<std::uint32_t> ranks_;
};

class ScaledProgram final : public ProgramFilter {
 public:
  ScaledProgram(std::unique_ptr<RankProgram> before, Worker worker, std::string pattern, double factor)
      : ProgramFilter(std::move(before)), worker_(worker), pattern_(std::move(pattern)), factor_(factor) {}
  bool next(Operation& operation) override {
    if (!inner().next(operation)) return false;
    if (operation.worker == worker_ && is_kernel(operation, pattern_))
      operation.duration = scaled(operation.duration, factor_);
    return true;
  }

 private:
  Worker worker_;
  std::string pattern_;
  double factor_;
};

/// Operations are left out. The dependencies of a removed operation are kept, because others may still name it.
class ThinnedProgram final : public ProgramFilter {
 public:
  using IsGone = std::function<bool(const Operation&)>;
  ThinnedProgram(std::unique_ptr<RankProgram> before, IsGone is_gone)
      : ProgramFilter(std::move(before)), is_gone_(std::move(is_gone)) {}

  bool next(Operation& operation) override {
    while (inner().next(operation)) {
      pass_over_gone(operation);
      if (!is_gone_(operation)) return true;
      gone_[operation.id] = {std::move(operation.after), std::move(operation.after_start)};
      operation = Operation();
    }
    return false;
  }

 private:
  struct Waits {
    std::vector<std::uint64_t> ends, starts;
  };
  static void make_unique(std::vector<std::uint64_t>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  void pass_over_gone(Operation& operation) const {
    if (gone_.empty()) return;
    Waits waits;
    for (const auto* list : {&operation.after, &operation.after_start}) {
      for (const std::uint64_t before : *list) {
        const auto gone = gone_.find(before);
        if (gone == gone_.end()) {
          (list == &operation.after ? waits.ends : waits.starts).push_back(before);
          continue;
        }
        waits.ends.insert(waits.ends.end(), gone->second.ends.begin(), gone->second.ends.end());
        waits.starts.insert(waits.starts.end(), gone->second.starts.begin(), gone->second.starts.end());
      }
    }
    make_unique(waits.ends);
    make_unique(waits.starts);
    operation.after = std::move(waits.ends);
    operation.after_start = std::move(waits.starts);
  }

  IsGone is_gone_;
  std::unordered_map<std::uint64_t, Waits> gone_;  // looked up only
};

/// Computations that follow each other in the program, on one stream, become one with the id of the last.
class FusedProgram final : public ProgramFilter {
 public:
  FusedProgram(std::unique_ptr<RankProgram> before, std::string pattern, double factor)
      : ProgramFilter(std::move(before)), pattern_(std::move(pattern)), factor_(factor) {}

  bool next(Operation& operation) override {
    if (!take(operation)) return false;
    if (!is_kernel(operation, pattern_)) return true;
    members_.clear();
    for (Operation more; take(more); more = Operation()) {
      if (!is_kernel(more, pattern_) || more.stream != operation.stream || more.cpu != operation.cpu ||
          more.not_before > Time()) {
        held_ = std::move(more);
        break;
      }
      join(operation, more);
    }
    if (members_.empty()) return true;
    operation.duration = scaled(operation.duration, factor_);
    operation.label += fmt::format(" and {} more", members_.size());
    return true;
  }

 private:
  bool take(Operation& operation) {
    if (held_) {
      operation = std::move(*held_);
      held_.reset();
    } else if (!inner().next(operation)) {
      return false;
    }
    for (auto* list : {&operation.after, &operation.after_start})
      for (std::uint64_t& before : *list)
        if (const auto other = member_of_.find(before); other != member_of_.end()) before = other->second;
    return true;
  }
  // All members wait for what any of them waits for but themselves.
  void join(Operation& group, Operation& more) {
    members_.push_back(group.id);
    for (const std::uint64_t member : members_) member_of_[member] = more.id;
    add_waits(group.after, more.after, group.id);
    add_waits(group.after_start, more.after_start, group.id);
    group.duration = bounded_sum(group.duration, more.duration);
    group.flops += more.flops;
    group.id = more.id;
  }
  static void add_waits(std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& more, std::uint64_t group) {
    for (const std::uint64_t before : more)
      if (before != group && std::find(all.begin(), all.end(), before) == all.end()) all.push_back(before);
  }

  std::string pattern_;
  double factor_;
  std::optional<Operation> held_;
  std::vector<std::uint64_t> members_;                          // of the current group, but the last
  std::unordered_map<std::uint64_t, std::uint64_t> member_of_;  // id -> that of the group; looked up only
};

}  // namespace

bool fits_pattern(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool is_kernel(const Operation& operation, const std::string& pattern) {
  return operation.kind == Operation::Kind::compute &&
         (fits_pattern(pattern, operation.label.text()) || fits_pattern(pattern, std::string(operation.operator_name)));
}

std::unique_ptr<Workload> with_scaled_kernels(std::unique_ptr<Workload> inner, Worker worker,
                                              const std::string& pattern, double factor,
                                              const std::set<std::uint32_t>& ranks) {
  const std::string whose = ranks.empty() ? "" : fmt::format(" of the ranks {}", fmt::join(ranks, ", "));
  return std::make_unique<FilteredWorkload>(
      std::move(inner),
      [worker, pattern, factor](std::unique_ptr<RankProgram> program) {
        return std::make_unique<ScaledProgram>(std::move(program), worker, pattern, factor);
      },
      fmt::format("{} '{}'{} take {} times as long", worker == Worker::host ? "operations of hosts" : "kernels",
                  pattern, whose, factor),
      ranks);
}

std::unique_ptr<Workload> without_kernels(std::unique_ptr<Workload> inner, const std::string& pattern) {
  return std::make_unique<FilteredWorkload>(
      std::move(inner),
      [pattern](std::unique_ptr<RankProgram> program) {
        return std::make_unique<ThinnedProgram>(
            std::move(program), [pattern](const Operation& operation) { return is_kernel(operation, pattern); });
      },
      fmt::format("kernels '{}' are left out", pattern));
}

std::unique_ptr<Workload> with_fused_kernels(std::unique_ptr<Workload> inner, const std::string& pattern,
                                             double factor) {
  return std::make_unique<FilteredWorkload>(
      std::move(inner),
      [pattern, factor](std::unique_ptr<RankProgram> program) {
        return std::make_unique<FusedProgram>(std::move(program), pattern, factor);
      },
      fmt::format("kernels '{}' that follow each other on a stream are one, {} times as long as all of them", pattern,
                  factor));
}

}  // namespace weft
