// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/training/training_program.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "workloads/training/training_workload.hpp"

namespace weft {
namespace {

constexpr std::uint64_t no_id = UINT64_MAX;

/// Iterates over the plan of the rank's stage, execution after execution. Data are requested before, checkpoints
/// written after, and an execution that a failure interrupts is replaced by its cost. Work that the next step must not
/// overtake ends with an empty computation, for which its kernels wait in their stream.
class TrainingProgram final : public RankProgram {
 public:
  TrainingProgram(const TrainingWorkload& workload, Rank rank)
      : workload_(workload),
        rank_(rank),
        place_(workload.layout().place(rank)),
        plan_(workload.plan(place_.pipeline)),
        position_(plan_.operations.size()),
        data_client_(workload.data_client(rank)) {
    for (std::size_t i = 0; i < plan_.operations.size(); ++i)
      if (plan_.operations[i].kind == Operation::Kind::compute && !plan_.operations[i].host) last_compute_ = i;
  }

  bool next(Operation& operation) override {
    while (between_.empty() && position_ == plan_.operations.size()) {
      if (next_run_ == workload_.outline().runs()) return false;
      begin(workload_.outline().run(next_run_++));
    }
    if (!between_.empty()) {
      operation = std::move(between_.front());
      between_.pop_front();
      return true;
    }
    if (position_ == 0) {
      before_ = base_;
      base_ = next_id_;
      next_id_ += plan_.operations.size();
    }
    plan(operation);
    if (++position_ == plan_.operations.size()) end_of_step();
    return true;
  }

  std::size_t read_ahead() const override {
    std::uint64_t outstanding = plan_.gathers_at_start;
    const TrainingEvents& events = workload_.job().events;
    if (events.checkpoints.targets.count > 0)
      outstanding += 2 * (workload_.checkpoint_use().plan().pieces(rank_.value()) + 2);
    if (data_client_)
      outstanding += (workload_.data_use().plan().pieces(*data_client_) + 2) * (events.data.prefetch + 2);
    return 512 + outstanding;
  }
  double compute_slowdown() const override { return slowdown_beside_communication(workload_.job().times.device()); }

 private:
  // Steps
  void plan(Operation& operation) {
    const PlannedOperation& planned = plan_.operations[position_];
    operation = Operation{};
    operation.id = base_ + position_;
    operation.kind = planned.kind;
    operation.stream = planned.stream;
    operation.label = Label::of(planned);
    operation.phase = to_text(planned.phase);
    operation.operator_name = planned.what;
    if (planned.kind != Operation::Kind::compute) operation.group = to_text(planned.group);
    for (const std::int32_t after : plan_.after_of(planned)) {
      if (after == StagePlan::no_operation) continue;
      if (after >= 0)
        operation.after.push_back(base_ + static_cast<std::uint64_t>(after));
      else if (before_ != no_id)
        operation.after.push_back(before_ + static_cast<std::uint64_t>(-1 - after));
    }
    std::sort(operation.after.begin(), operation.after.end());
    operation.after.erase(std::unique(operation.after.begin(), operation.after.end()), operation.after.end());
    fill(operation, planned);
  }

  void fill(Operation& operation, const PlannedOperation& planned) const {
    switch (planned.kind) {
      case Operation::Kind::compute:
        if (planned.host) operation.worker = Worker::host;
        operation.duration = planned.duration;
        operation.flops = planned.flops;
        if (planned.slowed > Time() && planned.duration > Time())
          operation.slowdown = std::clamp(planned.slowed.seconds() / planned.duration.seconds(), 1.0, max_slowdown);
        if (planned.by_load) {
          const auto [load, time] = workload_.load_of(planned, rank_, run_.step);
          operation.duration = time;
          operation.flops *= load;
        }
        break;
      case Operation::Kind::collective:
        operation.call = workload_.make_call(planned, rank_, run_.number);
        break;
      case Operation::Kind::send:
      case Operation::Kind::recv:
        operation.peer = peer(planned);
        operation.tag = planned.tag;
        operation.bytes = planned.size;
        break;
    }
  }

  Rank peer(const PlannedOperation& planned) const {
    const RankLayout& layout = workload_.layout();
    if (planned.group == GroupKind::pipeline) {
      RankPlace there = place_;
      there.pipeline = static_cast<std::uint32_t>(planned.peer);
      return layout.rank(there);
    }
    const std::uint32_t ranks = layout.size(planned.group);
    const std::uint32_t index = layout.index_of(planned.group, rank_);
    if (planned.neighbour) return layout.member(planned.group, layout.group_of(planned.group, rank_), index ^ 1U);
    const auto further = static_cast<std::uint32_t>(static_cast<std::int32_t>(ranks) + planned.peer);
    return layout.member(planned.group, layout.group_of(planned.group, rank_), (index + further) % ranks);
  }

  // Between them
  void begin(const StepRun& run) {
    run_ = run;
    if (data_client_)
      for (std::uint32_t step = run.first_read; step < run.first_read + run.reads; ++step) ask_for(step);
    if (run.broken) return fail();
    if (data_client_) {
      wait("data", {data_here_.at(run.step)});
      data_here_.erase(run.step);
    }
    position_ = 0;
  }

  void ask_for(std::uint32_t step) {
    data_here_[step] = add(workload_.data_use().client(*data_client_, true, next_id_, after(last_), "data"));
  }

  void end_of_step() {
    last_ = base_ + last_compute_;
    if (!run_.saves) return;
    const Checkpoints& checkpoints = workload_.job().events.checkpoints;
    const Bandwidth link = workload_.job().times.device().host_link;
    if (checkpoints.asynchronous && link != Bandwidth())
      last_ = compute("checkpoint snapshot", serialization_time(workload_.checkpoint_bytes(place_.pipeline), link),
                      after(last_));
    std::vector<std::uint64_t> begins = after(last_);
    if (stored_ != no_id) begins.insert(begins.begin(), stored_);
    stored_ = add(workload_.checkpoint_use().client(rank_.value(), false, next_id_, begins, "checkpoint"));
    if (!checkpoints.asynchronous) last_ = wait("checkpoint", {stored_});
  }

  void fail() {
    const FailurePlan& plan = workload_.job().events.failures;
    data_here_.clear();
    last_ = compute("lost work", run_.lost, after(last_));
    last_ = pause("detection", plan.detection, {last_});
    last_ = pause("restart", plan.restart, {last_});
    if (run_.restored > 0)
      last_ = wait("checkpoint",
                   {add(workload_.checkpoint_use().client(rank_.value(), true, next_id_, {last_}, "checkpoint"))});
  }

  static std::vector<std::uint64_t> after(std::uint64_t id) {
    return id == no_id ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{id};
  }

  /// The id of the last one.
  std::uint64_t add(std::vector<Operation> operations) {
    for (Operation& operation : operations) between_.push_back(std::move(operation));
    next_id_ = between_.back().id + 1;
    return between_.back().id;
  }

  std::uint64_t compute(const char* what, Time duration, std::vector<std::uint64_t> after) {
    Operation operation;
    operation.id = next_id_;
    operation.stream = Stream::compute;
    operation.duration = duration;
    operation.after = std::move(after);
    operation.label = what;
    operation.operator_name = what;
    operation.phase = "storage";
    return add({operation});
  }
  /// Time in which the accelerator does nothing.
  std::uint64_t pause(const char* what, Time duration, std::vector<std::uint64_t> after) {
    const std::uint64_t id = compute(what, duration, std::move(after));
    between_.back().worker = Worker::nobody;
    return id;
  }
  std::uint64_t wait(const char* what, std::vector<std::uint64_t> after) { return compute(what, Time(), after); }

  const TrainingWorkload& workload_;
  Rank rank_;
  RankPlace place_;
  const StagePlan& plan_;
  std::size_t position_;  // in the plan
  std::size_t last_compute_ = 0;
  std::optional<std::uint32_t> data_client_;

  StepRun run_;
  std::uint64_t next_run_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t base_ = no_id;    // id of the plan's first operation in this execution
  std::uint64_t before_ = no_id;  // and in the one before
  std::deque<Operation> between_;
  std::uint64_t last_ = no_id;                        // the last operation of the newest step, checkpoint or restart
  std::uint64_t stored_ = no_id;                      // the newest checkpoint is complete
  std::map<std::uint32_t, std::uint64_t> data_here_;  // by step
};

}  // namespace

std::unique_ptr<RankProgram> training_program(const TrainingWorkload& workload, Rank rank) {
  return std::make_unique<TrainingProgram>(workload, rank);
}

}  // namespace weft
