// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/storage/training_storage.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

/// Rounds one after another, one at a time in memory.
class TargetProgram : public RankProgram {
 public:
  TargetProgram(const StorageUse& use, std::uint32_t target, std::size_t read_ahead)
      : use_(use), target_(target), read_ahead_(read_ahead) {}

  bool next(Operation& operation) override {
    while (at_ == round_.size()) {
      const auto reads = next_round();
      if (!reads) return false;
      round_ = use_.target(target_, *reads, next_id_, what());
      next_id_ += round_.size();
      at_ = 0;
    }
    operation = std::move(round_[at_++]);
    return true;
  }
  std::size_t read_ahead() const override { return read_ahead_; }

 protected:
  /// True if the next round is one of reads; nothing at the end.
  virtual std::optional<bool> next_round() = 0;
  virtual std::string_view what() const = 0;

 private:
  const StorageUse& use_;
  std::uint32_t target_;
  std::size_t read_ahead_;
  std::uint64_t next_id_ = 0;
  std::vector<Operation> round_;
  std::size_t at_ = 0;
};

class DataTargetProgram final : public TargetProgram {
 public:
  DataTargetProgram(const StorageUse& use, std::uint32_t target, std::uint64_t rounds, std::size_t read_ahead)
      : TargetProgram(use, target, read_ahead), rounds_(rounds) {}

 private:
  std::optional<bool> next_round() override {
    if (rounds_ == 0) return std::nullopt;
    --rounds_;
    return true;
  }
  std::string_view what() const override { return "data"; }
  std::uint64_t rounds_;
};

class CheckpointTargetProgram final : public TargetProgram {
 public:
  CheckpointTargetProgram(const StorageUse& use, std::uint32_t target, const RunOutline& outline,
                          std::size_t read_ahead)
      : TargetProgram(use, target, read_ahead), outline_(outline) {}

 private:
  std::optional<bool> next_round() override {
    while (at_ < outline_.runs()) {
      const StepRun run = outline_.run(at_++);
      if (run.saves) return false;
      if (run.broken && run.restored > 0) return true;
    }
    return std::nullopt;
  }
  std::string_view what() const override { return "checkpoint"; }
  const RunOutline& outline_;
  std::uint64_t at_ = 0;
};

/// `otherwise`: targets if their number is not given, on storage hosts of the machine; 0: there are none.
void read_targets(const Spec& map, StorageTargets& targets, const WorkloadContext& context, std::uint32_t otherwise) {
  const auto storage = static_cast<std::uint32_t>(context.storage.size());
  const auto max = static_cast<std::int64_t>(storage > 0 ? storage : std::max(1U, context.hosts - 1));
  const auto given = otherwise > 0 ? map.find("targets") : map.at("targets");
  targets.count = given ? static_cast<std::uint32_t>(given->integer(1, max)) : otherwise;
  if (const auto piece = map.find("piece")) {
    targets.piece = piece->bytes();
    if (targets.piece == Bytes(0)) throw piece->error("found 0 B; expected at least 1 B");
  }
  if (const auto rate = map.find("device_rate")) targets.device_rate = rate->bandwidth();
  if (const auto latency = map.find("device_latency")) targets.device_latency = latency->time();
}

Time above_zero(const Spec& value) {
  if (value.time() == Time()) throw value.error("found 0; expected a time above 0");
  return value.time();
}

FailurePlan read_failures(const Spec& map, const WorkloadContext& context) {
  FailurePlan plan;
  plan.seed = context.seed;
  const auto times = map.find("times");
  const auto mean = map.find("mean_time");
  if (times.has_value() == mean.has_value())
    throw map.error("give either 'times', a list of when it fails, or 'mean_time' between failures");
  if (times) {
    for (const Spec& item : times->items()) {
      plan.times.push_back(item.time());
      if (plan.times.size() > 1 && plan.times.back() <= plan.times[plan.times.size() - 2])
        throw item.error("a failure that is not later than the one before it");
    }
    if (plan.times.empty()) throw times->error("an empty list; leave 'failures' out for none");
  } else {
    plan.mean = above_zero(*mean);
  }
  if (const auto step = map.find("step_time"))
    plan.step_time = above_zero(*step);
  else if (!context.ideal_time)
    throw map.error("give 'step_time': there is no machine here on which a step could be timed");
  if (const auto value = map.find("detection")) plan.detection = value->time();
  if (const auto value = map.find("restart")) plan.restart = value->time();
  if (const auto value = map.find("seed")) plan.seed = value->natural();
  map.finish();
  return plan;
}

}  // namespace

OutlineSettings TrainingEvents::outline(std::uint32_t steps) const {
  OutlineSettings settings;
  settings.steps = steps;
  settings.checkpoint_every = checkpoints.every;
  settings.asynchronous = checkpoints.asynchronous;
  if (data.targets.count > 0) settings.prefetch = data.prefetch;
  settings.failures = failures;
  settings.where = failures_where;
  return settings;
}

TrainingEvents read_training_events(const Spec& spec, const WorkloadContext& context) {
  TrainingEvents events;
  const auto data = spec.find("data_loading");
  const auto checkpoint = spec.find("checkpoint");
  // Data and checkpoints share out the machine's storage hosts.
  const auto storage = static_cast<std::uint32_t>(context.storage.size());
  const std::uint32_t of_checkpoints = data ? storage / 2 : storage;
  if (data) {
    const Spec sample = data->at("bytes_per_sample");
    events.data.sample = sample.bytes();
    if (events.data.sample == Bytes(0)) throw sample.error("found 0 B; expected at least 1 B");
    if (const auto prefetch = data->find("prefetch"))
      events.data.prefetch = static_cast<std::uint32_t>(prefetch->integer(0, 1024));
    read_targets(*data, events.data.targets, context, checkpoint ? storage - of_checkpoints : storage);
    data->finish();
  }
  if (checkpoint) {
    events.checkpoints.every = static_cast<std::uint32_t>(checkpoint->at("every").integer(1, 1'000'000));
    if (const auto value = checkpoint->find("asynchronous")) events.checkpoints.asynchronous = value->boolean();
    if (const auto size = checkpoint->find("size")) {
      events.checkpoints.size = size->bytes();
      if (events.checkpoints.size == Bytes(0)) throw size->error("found 0 B; expected at least 1 B");
    }
    read_targets(*checkpoint, events.checkpoints.targets, context, of_checkpoints);
    checkpoint->finish();
  }
  if (storage > 0 && events.targets() > storage)
    throw(checkpoint ? *checkpoint : *data)
        .error(fmt::format("{} storage targets, but the machine has {} storage hosts", events.targets(), storage));
  if (storage == 0 && events.targets() >= context.hosts && events.targets() > 0)
    throw(checkpoint ? *checkpoint : *data)
        .at("targets")
        .error(fmt::format("{} storage targets, but the machine has {} hosts; some must be left for training",
                           events.targets(), context.hosts));
  if (const auto failures = spec.find("failures"); failures && !failures->is_null()) {
    events.failures = read_failures(*failures, context);
    events.failures_where = failures->where();
  }
  return events;
}

std::vector<Operation> StorageUse::named(std::vector<Operation> operations, std::string_view what) const {
  for (Operation& one : operations) {
    one.label = std::string(what) + " " + one.label.text();
    one.phase = "storage";
    one.group = "storage";
    one.operator_name = what;
    if (one.kind != Operation::Kind::send && one.kind != Operation::Kind::recv) continue;
    const std::uint32_t peer = one.peer.value();
    one.peer = peer < plan_.clients ? rank_of_client_(peer) : Rank(first_target_ + peer - plan_.clients);
  }
  return operations;
}

std::vector<Operation> StorageUse::client(std::uint32_t client, bool reads, std::uint64_t first_id,
                                          const std::vector<std::uint64_t>& after, std::string_view what) const {
  StoragePlan plan = plan_;
  plan.reads = reads;
  return named(client_round(plan, client, first_id, after, Time(), reads ? 2 : 0), what);
}

std::vector<Operation> StorageUse::target(std::uint32_t target, bool reads, std::uint64_t first_id,
                                          std::string_view what) const {
  StoragePlan plan = plan_;
  plan.reads = reads;
  return named(target_round(plan, plan.clients + target, first_id, reads ? 2 : 0), what);
}

unsigned __int128 StorageUse::bytes_of_round() const {
  unsigned __int128 sum = 0;
  for (std::uint32_t c = 0; c < plan_.clients; ++c)
    sum += static_cast<unsigned __int128>((plan_.shard_bytes(c) + StoragePlan::word).count());
  return sum;
}

std::uint64_t StorageUse::messages_of_round() const {
  std::uint64_t sum = 0;
  for (std::uint32_t c = 0; c < plan_.clients; ++c) sum += plan_.pieces(c) + 1;
  return sum;
}

std::uint64_t StorageUse::max_pieces() const {
  std::uint64_t max = 0;
  for (std::uint32_t c = 0; c < plan_.clients; ++c) max = std::max(max, plan_.pieces(c));
  return max;
}

// A late client must not delay the pieces of others, in as many rounds as may be in progress.
std::unique_ptr<RankProgram> data_target_program(const StorageUse& use, std::uint32_t target, std::uint64_t rounds,
                                                 std::uint32_t prefetch) {
  const std::uint64_t of_round = use.plan().clients_of(use.plan().clients + target) * (3 * use.max_pieces() + 1);
  return std::make_unique<DataTargetProgram>(use, target, rounds, of_round * (prefetch + 2));
}

std::unique_ptr<RankProgram> checkpoint_target_program(const StorageUse& use, std::uint32_t target,
                                                       const RunOutline& outline) {
  const std::uint64_t clients = use.plan().clients_of(use.plan().clients + target);
  return std::make_unique<CheckpointTargetProgram>(use, target, outline, 4 * clients + 16);
}

}  // namespace weft
