// SPDX-License-Identifier: GPL-2.0-only
// Collectives that are left out or have other sizes, and all operations again.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/transform/transform_operations.hpp"
#include "schedule/transform/transformed_workload.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

std::string text_of(const CallChoice& choice) {
  std::string text = fmt::format("collectives '{}'", choice.pattern);
  if (!choice.communicators.empty()) text += fmt::format(" of communicator {}", fmt::join(choice.communicators, ", "));
  return text;
}

// Other sizes -------------------------------------------------------------------------------------------------------

std::int64_t resized_bytes(std::int64_t bytes, double factor) {
  if (bytes == 0) return 0;
  const double wanted = std::min(static_cast<double>(bytes) * factor, 0x1p62);
  return std::max<std::int64_t>(1, std::llround(wanted));
}

/// Kinds whose size is that of all members' blocks keep blocks of one size.
bool counts_blocks(CollectiveKind kind) {
  return kind != CollectiveKind::all_reduce && kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce &&
         kind != CollectiveKind::barrier && kind != CollectiveKind::send_recv;
}

std::shared_ptr<const BlockTable> resized(const BlockTable& before, std::uint32_t ranks, double factor) {
  const auto resize_row = [&](std::uint32_t from, std::vector<std::int64_t>& row) {
    for (std::uint32_t to = 0; to < ranks; ++to) row[to] = resized_bytes(before.bytes(from, to), factor);
  };
  if (before.of_pairs()) return BlockTable::of_rows(ranks, resize_row);
  std::vector<std::int64_t> row(ranks);
  resize_row(0, row);
  return std::make_shared<const BlockTable>(ranks, std::move(row));
}

/// Blocks of one size.
CollectiveCall resized(CollectiveCall call, double factor) {
  const std::uint32_t n = call.communicator->size();
  if (counts_blocks(call.kind) && call.size.count() % n == 0) {
    call.size = Bytes(resized_bytes(call.size.count() / n, factor) * n);
  } else {
    call.size = Bytes(resized_bytes(call.size.count(), factor));
  }
  return call;
}

class ResizedCalls final : public TransformedWorkload {
 public:
  ResizedCalls(std::unique_ptr<Workload> before, CallChoice choice, double factor, const Spec& where)
      : TransformedWorkload(std::move(before), fmt::format("{} have {} times the bytes", text_of(choice), factor)),
        choice_(std::move(choice)),
        factor_(factor) {
    for (std::uint32_t id = 0; id < call_count(); ++id) {
      const CollectiveCall one = call(id);
      const auto algorithm = find_collective(one.algorithm);
      if (const std::string why = algorithm ? algorithm->refuses(one) : ""; !why.empty())
        throw where.error(
            fmt::format("'{}' cannot do {} of {} then: {}", one.algorithm, to_text(one.kind), to_text(one.size), why));
    }
  }
  CollectiveCall call(std::uint32_t id) const override {
    CollectiveCall one = inner().call(id);
    if (!choice_.fits(one)) return one;
    if (!one.blocks) return resized(std::move(one), factor_);
    one.blocks = resized_blocks(one);
    one.size = Bytes(one.blocks->total());
    return one;
  }
  std::unique_ptr<RankProgram> program(Rank rank) const override;

 private:
  /// Ranks and repetitions with the same table, one after another, share the result.
  std::shared_ptr<const BlockTable> resized_blocks(const CollectiveCall& call) const {
    if (call.blocks != last_before_) {
      last_after_ = resized(*call.blocks, call.communicator->size(), factor_);
      last_before_ = call.blocks;
    }
    return last_after_;
  }

  CallChoice choice_;
  double factor_;
  mutable std::shared_ptr<const BlockTable> last_before_;
  mutable std::shared_ptr<const BlockTable> last_after_;
};

/// Collectives are as the workload's call() has them.
class ProgramOfCalls final : public ProgramFilter {
 public:
  ProgramOfCalls(std::unique_ptr<RankProgram> before, const Workload& workload)
      : ProgramFilter(std::move(before)), workload_(workload) {}
  bool next(Operation& operation) override {
    if (!inner().next(operation)) return false;
    if (operation.call) operation.call = std::make_shared<CollectiveCall>(workload_.call(operation.call->id));
    return true;
  }

 private:
  const Workload& workload_;
};

std::unique_ptr<RankProgram> ResizedCalls::program(Rank rank) const {
  return std::make_unique<ProgramOfCalls>(inner().program(rank), *this);
}

// Without some ------------------------------------------------------------------------------------------------------

class FewerCalls final : public TransformedWorkload {
 public:
  FewerCalls(std::unique_ptr<Workload> before, CallChoice choice)
      : TransformedWorkload(std::move(before), fmt::format("{} are left out", text_of(choice))) {
    for (std::uint32_t id = 0; id < inner().call_count(); ++id) {
      const bool gone = choice.fits(inner().call(id));
      number_.push_back(gone ? none : static_cast<std::uint32_t>(kept_.size()));
      if (!gone) kept_.push_back(id);
    }
  }
  std::uint64_t call_count() const override { return kept_.size(); }
  CollectiveCall call(std::uint32_t id) const override {
    CollectiveCall one = inner().call(kept_.at(id));
    one.id = id;
    return one;
  }
  std::vector<JobInfo> jobs() const override {
    std::vector<JobInfo> all = inner().jobs();
    for (JobInfo& job : all) {
      const auto number_of = [this](std::uint32_t id) {
        return static_cast<std::uint32_t>(std::lower_bound(kept_.begin(), kept_.end(), id) - kept_.begin());
      };
      const std::uint32_t end = number_of(job.first_call + job.calls);
      job.first_call = number_of(job.first_call);
      job.calls = end - job.first_call;
    }
    return all;
  }
  std::unique_ptr<RankProgram> program(Rank rank) const override;
  bool is_gone(std::uint32_t id) const { return number_.at(id) == none; }
  std::uint32_t number(std::uint32_t id) const { return number_.at(id); }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;
  std::vector<std::uint32_t> kept_;    // [number] id in the inner workload
  std::vector<std::uint32_t> number_;  // [id in the inner workload]
};

class ProgramOfFewer final : public ProgramFilter {
 public:
  ProgramOfFewer(std::unique_ptr<RankProgram> before, const FewerCalls& workload)
      : ProgramFilter(std::move(before)), workload_(workload) {}
  bool next(Operation& operation) override {
    while (inner().next(operation)) {
      std::vector<std::uint64_t> waits;
      for (const std::uint64_t before : operation.after) {
        const auto gone = gone_.find(before);
        if (gone == gone_.end())
          waits.push_back(before);
        else
          waits.insert(waits.end(), gone->second.begin(), gone->second.end());
      }
      std::sort(waits.begin(), waits.end());
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      operation.after = std::move(waits);
      if (!operation.call) return true;
      if (!workload_.is_gone(operation.call->id)) {
        operation.call = std::make_shared<CollectiveCall>(workload_.call(workload_.number(operation.call->id)));
        return true;
      }
      gone_[operation.id] = std::move(operation.after);
      operation = Operation();
    }
    return false;
  }

 private:
  const FewerCalls& workload_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> gone_;  // id -> its dependencies; looked up only
};

std::unique_ptr<RankProgram> FewerCalls::program(Rank rank) const {
  return std::make_unique<ProgramOfFewer>(inner().program(rank), *this);
}

// All again ---------------------------------------------------------------------------------------------------------

class RepeatedWorkload final : public TransformedWorkload {
 public:
  RepeatedWorkload(std::unique_ptr<Workload> before, std::uint32_t times, const Spec& where)
      : TransformedWorkload(std::move(before), fmt::format("all operations {} times, one after another", times)),
        times_(times) {
    if (inner().jobs().size() != 1) throw where.error("several jobs; expected a workload of one");
    for (std::uint32_t kind = 0; kind < inner().kind_count(); ++kind) {
      const auto program = inner().program(inner().first_of_kind(kind));
      if (program->accepts_unexpected() || program->in_order_of_time())
        throw where.error("the workload's operations begin at given times, which cannot be repeated");
    }
    if (inner().call_count() * times_ >= std::numeric_limits<std::uint32_t>::max())
      throw where.error("more than 2^32 - 2 collective calls");
  }
  std::uint64_t call_count() const override { return inner().call_count() * times_; }
  CollectiveCall call(std::uint32_t id) const override {
    const auto count = static_cast<std::uint32_t>(inner().call_count());
    CollectiveCall one = inner().call(id % count);
    one.id = id;
    if (id >= count) one.label += fmt::format(" of repetition {}", id / count);
    return one;
  }
  WorkloadEstimate estimate() const override {
    WorkloadEstimate one = inner().estimate();
    one.messages *= times_;
    const auto bytes = static_cast<__int128>(one.bytes.count()) * times_;
    one.bytes = Bytes(bytes > std::numeric_limits<std::int64_t>::max() ? std::numeric_limits<std::int64_t>::max()
                                                                       : static_cast<std::int64_t>(bytes));
    one.compute = bounded_product(times_, one.compute);
    return one;
  }
  std::uint64_t steps() const override { return inner().steps() * times_; }
  std::vector<JobInfo> jobs() const override {
    std::vector<JobInfo> all = inner().jobs();
    all.front().calls = static_cast<std::uint32_t>(call_count());
    all.front().steps *= times_;
    return all;
  }
  std::unique_ptr<RankProgram> program(Rank rank) const override;
  std::uint32_t times() const { return times_; }
  std::unique_ptr<RankProgram> inner_program(Rank rank) const { return inner().program(rank); }
  std::uint32_t inner_calls() const { return static_cast<std::uint32_t>(inner().call_count()); }

 private:
  std::uint32_t times_;
};

/// Between two rounds there is a computation of no time that waits for all that nothing else waits for, and for which
/// all wait that would wait for nothing.
class RepeatedProgram final : public ProgramFilter {
 public:
  RepeatedProgram(const RepeatedWorkload& workload, Rank rank)
      : ProgramFilter(workload.inner_program(rank)), workload_(workload), rank_(rank) {}

  bool next(Operation& operation) override {
    RankProgram& program = round_ == 0 ? inner() : *again_;
    if (program.next(operation)) {
      move_on(operation);
      return true;
    }
    if (++round_ >= workload_.times()) return false;
    again_ = workload_.inner_program(rank_);
    operation = Operation();
    operation.id = join_ = next_id_++;
    operation.after.assign(open_.begin(), open_.end());
    operation.label = fmt::format("end of repetition {}", round_ - 1);
    base_ = next_id_;
    open_.clear();
    last_of_stream_.clear();
    return true;
  }
  Time compute_time(const Operation& operation, Time now) const override {
    return round_ == 0 || operation.id == join_ ? ProgramFilter::compute_time(operation, now)
                                                : again_->compute_time(operation, now);
  }

 private:
  void move_on(Operation& operation) {
    operation.id += base_;
    next_id_ = operation.id + 1;
    for (auto* list : {&operation.after, &operation.after_start})
      for (std::uint64_t& before : *list) before += base_;
    for (const std::uint64_t before : operation.after) open_.erase(before);
    open_.insert(operation.id);
    // On a stream that takes operations in order, the next one waits for the last.
    if (operation.stream != Stream::none && !takes_what_is_ready()) {
      const auto [last, fresh] = last_of_stream_.try_emplace(operation.stream, operation.id);
      if (!fresh) open_.erase(std::exchange(last->second, operation.id));
    }
    if (round_ == 0) return;
    if (operation.after.empty() && operation.after_start.empty()) operation.after.push_back(join_);
    if (operation.call)
      operation.call =
          std::make_shared<CollectiveCall>(workload_.call(operation.call->id + round_ * workload_.inner_calls()));
    if (!operation.label.empty()) operation.label += fmt::format(" of repetition {}", round_);
  }

  const RepeatedWorkload& workload_;
  Rank rank_;
  std::unique_ptr<RankProgram> again_;
  std::uint32_t round_ = 0;
  std::uint64_t base_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t join_ = 0;
  std::set<std::uint64_t> open_;  // operations of this round for which none waits
  std::map<Stream, std::uint64_t> last_of_stream_;
};

std::unique_ptr<RankProgram> RepeatedWorkload::program(Rank rank) const {
  return std::make_unique<RepeatedProgram>(*this, rank);
}

}  // namespace

bool CallChoice::fits(const CollectiveCall& call) const {
  if (!communicators.empty() &&
      std::find(communicators.begin(), communicators.end(), call.communicator->id()) == communicators.end())
    return false;
  return fits_pattern(pattern, call.label) || fits_pattern(pattern, std::string(to_text(call.kind)));
}

std::unique_ptr<Workload> without_calls(std::unique_ptr<Workload> inner, const CallChoice& choice) {
  return std::make_unique<FewerCalls>(std::move(inner), choice);
}

std::unique_ptr<Workload> with_resized_calls(std::unique_ptr<Workload> inner, const CallChoice& choice, double factor,
                                             const Spec& where) {
  return std::make_unique<ResizedCalls>(std::move(inner), choice, factor, where);
}

std::unique_ptr<Workload> repeated(std::unique_ptr<Workload> inner, std::uint32_t times, const Spec& where) {
  return std::make_unique<RepeatedWorkload>(std::move(inner), times, where);
}

}  // namespace weft
