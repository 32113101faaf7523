// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `training`: data-parallel training of a transformer, from its config.json and a device file.
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "support/contract.hpp"
#include "units/text.hpp"
#include "workloads/reading.hpp"
#include "workloads/training_plan.hpp"

namespace weft {
namespace {

/// The plan of a step, again and again; an id is step * operations of a step + position.
class TrainingProgram : public RankProgram {
 public:
  TrainingProgram(const StepPlan& plan, const std::vector<CollectiveCall>& calls, std::uint64_t steps)
      : plan_(plan), calls_(calls), end_(steps * plan.operations.size()) {}

  bool next(Operation& operation) override {
    if (id_ == end_) return false;
    const std::uint64_t size = plan_.operations.size();
    const std::uint64_t step = id_ / size;
    const PlannedOperation& planned = plan_.operations[id_ % size];
    operation = Operation{};
    operation.id = id_++;
    for (const std::uint32_t position : planned.after) operation.after.push_back(step * size + position);
    operation.label = planned.label;
    if (planned.collective) {
      operation.kind = Operation::Kind::collective;
      operation.stream = Stream::communication;
      operation.call = std::make_shared<CollectiveCall>(calls_[step * plan_.buckets.size() + planned.bucket]);
    } else {
      operation.stream = Stream::compute;
      operation.duration = planned.duration;
    }
    return true;
  }

 private:
  const StepPlan& plan_;
  const std::vector<CollectiveCall>& calls_;
  std::uint64_t end_;
  std::uint64_t id_ = 0;
};

class TrainingWorkload : public Workload {
 public:
  TrainingWorkload(TrainingSetup setup, StepPlan plan, std::uint32_t ranks, std::uint32_t steps, CollectiveCall call,
                   const std::function<void(CollectiveCall&)>& settle)
      : setup_(std::move(setup)), plan_(std::move(plan)), steps_(steps), communicator_(0, ranks) {
    call.communicator = &communicator_;
    for (std::uint32_t step = 0; step < steps; ++step)
      for (std::size_t bucket = 0; bucket < plan_.buckets.size(); ++bucket) {
        call.id = static_cast<std::uint32_t>(calls_.size());
        call.size = plan_.buckets[bucket].size;
        call.label = fmt::format("step {} grad bucket {}", step, bucket);
        calls_.push_back(call);
        settle(calls_.back());
      }
  }

  std::uint32_t ranks() const override { return communicator_.size(); }
  std::uint64_t call_count() const override { return calls_.size(); }
  CollectiveCall call(std::uint32_t id) const override { return calls_.at(id); }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return std::make_unique<TrainingProgram>(plan_, calls_, steps_);
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    unsigned __int128 bytes = 0;
    for (std::size_t bucket = 0; bucket < plan_.buckets.size(); ++bucket) {
      const WorkloadEstimate one = estimate_call(calls_[bucket]);
      estimate.messages += one.messages * steps_;
      bytes += static_cast<unsigned __int128>(one.bytes.count()) * steps_;
    }
    estimate.bytes = saturated(bytes);
    estimate.compute = plan_.compute() * std::int64_t{steps_};
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    const ModelConfig& model = setup_.model;
    const std::int64_t gradient = element_bytes(setup_.gradient_precision);
    const std::int64_t state = adam_state(gradient, element_bytes(setup_.precision));
    return {
        {"model", fmt::format("{}, {} layers, hidden size {}", model.family, model.layers(), model.hidden)},
        {"parameters", grouped(model.parameters())},
        {"device", setup_.device.name},
        {"state per rank", fmt::format("{:.1f} GB of {:.1f} GB: weights, gradients, Adam ({} B per parameter)",
                                       static_cast<double>(model.parameters() * state) / 1e9,
                                       static_cast<double>(setup_.device.memory.count()) / 1e9, state)},
        {"parallelism", fmt::format("data {}", ranks())},
        {"tokens per step", grouped(setup_.batch.tokens() * ranks())},
        {"forward FLOPs per rank", fmt::format("{:.4g} (attention not halved for causality)", plan_.forward_flops)},
        {"compute per step",
         fmt::format("forward {:.3f} ms, backward {:.3f} ms, optimizer {:.3f} ms", plan_.forward.seconds() * 1e3,
                     plan_.backward.seconds() * 1e3, plan_.optimizer.seconds() * 1e3)},
        {"gradients", fmt::format("{} B in {} buckets", grouped(model.parameters() * gradient), plan_.buckets.size())},
        {"all-reduce", calls_.front().algorithm},
        {"steps", std::to_string(steps_)}};
  }

 private:
  TrainingSetup setup_;
  StepPlan plan_;
  std::uint32_t steps_;
  Communicator communicator_;
  std::vector<CollectiveCall> calls_;
};

/// Ranks of `parallelism: {data: n}`.
std::uint32_t read_parallelism(const Spec& map, const WorkloadContext& context) {
  const Spec data = map.at("data");
  const std::uint32_t ranks = require_ranks(data, data.integer(), context);
  for (const char* kind : {"tensor", "pipeline", "sequence", "context", "expert"})
    if (const auto value = map.find(kind); value && value->integer() != 1)
      throw value->error(
          fmt::format("{} parallelism of {}, but only data parallelism is supported yet; use 1 or leave it out", kind,
                      value->integer()));
  map.finish();
  return ranks;
}

std::string read_precision(const Spec& value, const Device& device) {
  const std::string precision = value.one_of(precision_names());
  if (device.peak.contains(precision)) return precision;
  std::vector<std::string> known;
  for (const auto& [name, peak] : device.peak) known.push_back(name);
  throw value.error(
      fmt::format("'{}' has no peak for '{}'; its file gives: {}", device.name, precision, listed(known)));
}

Bytes read_limit(const Spec& spec, const std::string& key, Bytes otherwise) {
  const auto value = spec.find(key);
  if (!value) return otherwise;
  if (value->bytes() == Bytes(0)) throw value->error("a limit of 0 B; give at least 1 B");
  return value->bytes();
}

TrainingSetup read_setup(const Spec& spec, const WorkloadContext& context) {
  TrainingSetup setup;
  setup.model = read_model(JsonConfig::load(resolve_file(spec.at("model"), context.directory, "models", ".json")));
  setup.device = read_device(Spec::load(resolve_file(spec.at("device"), context.directory, "devices", ".yaml")));
  if (const auto efficiency = spec.find("efficiency")) setup.device.efficiency = efficiency->number(1e-6, 1);
  setup.batch.sequences = spec.at("micro_batch").integer(1, 65536);
  const Spec length = spec.at("sequence_length");
  setup.batch.sequence_length = length.integer(1);
  if (setup.batch.sequence_length > setup.model.positions)
    throw length.error(
        fmt::format("{} tokens, but the model has {} positions", setup.batch.sequence_length, setup.model.positions));
  if (const auto precision = spec.find("precision"))
    setup.precision = read_precision(*precision, setup.device);
  else if (!setup.device.peak.contains(setup.precision))
    throw spec.error(fmt::format("'{}' has no peak for '{}'; set `precision`", setup.device.name, setup.precision));
  const auto gradient = spec.find("gradient_precision");
  setup.gradient_precision = gradient                              ? gradient->one_of({"bf16", "fp16", "fp32"})
                             : element_bytes(setup.precision) == 4 ? "fp32"
                                                                   : "bf16";
  setup.buckets.first = read_limit(spec, "first_bucket_size", setup.buckets.first);
  setup.buckets.further = read_limit(spec, "bucket_size", setup.buckets.further);
  return setup;
}

class TrainingReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    TrainingSetup setup = read_setup(spec, context);
    const std::uint32_t ranks = read_parallelism(spec.at("parallelism"), context);
    const CollectiveOptions options = read_collective_options(spec, context);
    const auto repeat = spec.find("steps");
    const auto steps = repeat ? static_cast<std::uint32_t>(repeat->integer(1, 1'000'000)) : 1U;
    spec.finish();
    CollectiveCall call;
    call.algorithm = options.algorithm;
    call.tuning = options.tuning;
    call.where = spec.where();
    constexpr std::int64_t longest_ps = std::numeric_limits<std::int64_t>::max() / 4;
    StepPlan plan = plan_step(setup, spec, Time::from_ps(longest_ps / steps));
    return std::make_unique<TrainingWorkload>(std::move(setup), std::move(plan), ranks, steps, std::move(call),
                                              [&](CollectiveCall& one) { settle_call(spec, one, context); });
  }
};

const Registration<WorkloadReader, TrainingReader> registration("training",
                                                                "data-parallel training steps of a transformer");

}  // namespace
}  // namespace weft
