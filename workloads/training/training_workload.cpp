// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/training/training_workload.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/step/training_memory.hpp"
#include "workloads/training/training_program.hpp"

namespace weft {
namespace {

ParallelPlan simulated_plan(const TrainingJob& job) {
  ParallelPlan plan = job.description.parallel;
  if (job.simulated_data > 0) plan.data = job.simulated_data;
  return plan;
}

}  // namespace

TrainingWorkload::TrainingWorkload(TrainingJob job, Settle settle, ChannelGraphs graphs)
    : job_(std::move(job)),
      settle_(std::move(settle)),
      graphs_(std::move(graphs)),
      layout_(simulated_plan(job_)),
      whole_(job_.description.parallel),
      outline_(OutlineSettings{}) {
  const ParallelPlan& plan = job_.description.parallel;
  schedule_ = PipelineScheduleRegistry::instance().find(plan.schedule)->make();
  shape_ = {static_cast<std::uint32_t>(plan.pipeline), static_cast<std::uint32_t>(plan.virtual_stages),
            static_cast<std::uint32_t>(job_.description.micro_batches)};
  if (const std::string reason = schedule_->refuses(shape_); !reason.empty())
    throw job_.description.error("schedule", fmt::format("the schedule '{}' cannot do this: {}", plan.schedule, reason),
                                 job_.where);
  // Other schedules send round in a ring, in which all ranks would wait to be received from.
  const bool in_turn = plan.pipeline > 1 && job_.pass_setup().kernels().messages_in_turn;
  if (in_turn && plan.schedule != "1f1b" && plan.schedule != "gpipe")
    throw job_.description.error("schedule",
                                 fmt::format("the schedule '{}' with the framework '{}', whose stages send one message "
                                             "after the other; it has 1f1b and gpipe",
                                             plan.schedule, job_.pass_setup().kernels().name),
                                 job_.where);
  plans_.resize(shape_.ranks);
  count_calls();
  use_storage();
}

const StagePlan& TrainingWorkload::plan(std::uint32_t pipeline_rank) const {
  auto& plan = plans_.at(pipeline_rank);
  if (!plan) {
    const StageSetup setup{job_.pass_setup(), &layout_, &whole_, schedule_.get(), shape_};
    plan = std::make_unique<const StagePlan>(plan_stage(setup, pipeline_rank));
  }
  return *plan;
}

std::uint32_t TrainingWorkload::groups_of_stage(GroupKind kind) const {
  return RankLayout::spans_pipeline(kind) ? layout_.groups(kind) : layout_.groups(kind) / shape_.ranks;
}

void TrainingWorkload::count_calls() {
  // Plans of long pipelines are made again when they are needed: by a process for its own stages only.
  constexpr std::size_t kept = 4'000'000;
  std::size_t operations = 0;
  const std::uint32_t ranks_of_stage = layout_.world() / shape_.ranks;
  for (auto& counts : calls_) counts.resize(shape_.ranks);
  for (std::uint32_t p = 0; p < shape_.ranks; ++p) {
    const StagePlan& one = plan(p);
    for (std::size_t k = 0; k < group_kind_count; ++k) calls_[k][p] = static_cast<std::uint32_t>(one.calls[k].size());
    compute_ = std::max(compute_, one.compute);
    flops_ += one.flops * ranks_of_stage;
    held_.push_back(one.parameters);
    operations += one.operations.size();
    if (operations > kept) plans_[p].reset();
  }
  for (std::size_t k = 0; k < group_kind_count; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    for (std::uint32_t p = 0; p < shape_.ranks; ++p) {
      first_call_[k].push_back(calls_per_step_);
      if (p == 0 || !RankLayout::spans_pipeline(kind))
        calls_per_step_ += std::uint64_t{calls_[k][p]} * groups_of_stage(kind);
    }
  }
  make_outline();
  constexpr std::uint64_t max = std::numeric_limits<std::uint32_t>::max() - 1;
  if (calls_per_step_ > 0 && outline_.complete() > max / calls_per_step_)
    throw InputError(job_.where, fmt::format("{} steps of {} collective calls are more than {}; simulate fewer steps",
                                             outline_.complete(), calls_per_step_, max));
}

// Training waits for a checkpoint until it is stored, or for its copy over the host's link only.
void TrainingWorkload::make_outline() {
  OutlineSettings settings = job_.events.outline(job_.steps);
  FailurePlan& plan = settings.failures;
  plan.pause = plan.write;
  if (plan.whole_clock && settings.asynchronous) {
    plan.pause = Time();
    const Bandwidth link = job_.times.device().host_link;
    for (std::uint32_t p = 0; p < shape_.ranks && link != Bandwidth(); ++p)
      plan.pause = std::max(plan.pause, serialization_time(checkpoint_bytes(p), link));
    plan.write += plan.pause;
  }
  outline_ = RunOutline(settings);
}

std::uint32_t TrainingWorkload::call_id(GroupKind kind, std::uint32_t group, std::uint32_t sequence,
                                        std::uint32_t run) const {
  const auto k = static_cast<std::size_t>(kind);
  const std::uint32_t per_stage = groups_of_stage(kind);
  const std::uint32_t stage = RankLayout::spans_pipeline(kind) ? 0 : group / per_stage;
  return static_cast<std::uint32_t>(run * calls_per_step_ + first_call_[k][stage] +
                                    std::uint64_t{group % per_stage} * calls_[k][stage] + sequence);
}

CollectiveCall TrainingWorkload::call(std::uint32_t id) const {
  const auto run = static_cast<std::uint32_t>(id / calls_per_step_);
  const std::uint64_t within = id % calls_per_step_;
  for (std::size_t k = group_kind_count; k-- > 0;)
    for (std::uint32_t stage = shape_.ranks; stage-- > 0;) {
      const auto kind = static_cast<GroupKind>(k);
      if (within < first_call_[k][stage] || calls_[k][stage] == 0) continue;
      if (RankLayout::spans_pipeline(kind) && stage > 0) continue;
      const std::uint64_t rest = within - first_call_[k][stage];
      const auto group = static_cast<std::uint32_t>(rest / calls_[k][stage]) +
                         (RankLayout::spans_pipeline(kind) ? 0 : stage * groups_of_stage(kind));
      // Pairs of a pipeline's ranks that mirror each other reduce as much as they hold: the plan is that of the pair.
      const StagePlan& one = plan(kind == GroupKind::mirror ? group % ((shape_.ranks + 1) / 2) : stage);
      return call_of(one.operations[one.calls[k][rest % calls_[k][stage]]], group, run);
    }
  WEFT_EXPECT(false, "collective {} of {}", id, call_count());
  return {};
}

const Communicator& TrainingWorkload::communicator(GroupKind kind, std::uint32_t group) const {
  const std::uint32_t id = layout_.communicator_id(kind, group);
  auto known = communicators_.find(id);
  if (known == communicators_.end()) known = communicators_.emplace(id, layout_.communicator(kind, group)).first;
  return known->second;
}

// Of D ranks n are simulated: each of them sends and receives as much as among all. That is (D - 1)/D of the buffer in
// an all-gather or reduce-scatter, and twice as much in an all-reduce, so that a buffer (D - 1)/D / ((n - 1)/n) times
// as large makes n ranks do the same.
Bytes TrainingWorkload::represented(const PlannedOperation& operation) const {
  const auto all = static_cast<unsigned __int128>(whole_.size(operation.group));
  const auto some = static_cast<unsigned __int128>(layout_.size(operation.group));
  if (all == some || operation.size.count() == 0) return operation.size;
  const auto size = static_cast<unsigned __int128>(operation.size.count());
  return saturated((size * (all - 1) * some + all * (some - 1) - 1) / (all * (some - 1)));
}

CollectiveCall TrainingWorkload::call_of(const PlannedOperation& operation, std::uint32_t group,
                                         std::uint32_t run) const {
  // The choices for a call depend only on its kind, size and kind of group: the first group represents all, on every
  // process.
  const auto key = std::pair(operation.group, std::pair(operation.collective, operation.size.count()));
  auto settled = settled_.find(key);
  if (settled == settled_.end()) {
    CollectiveCall fresh;
    const GroupCollectives& wish = job_.collectives[static_cast<std::size_t>(operation.group)];
    fresh.kind = operation.collective;
    fresh.size = represented(operation);
    fresh.algorithm = wish.algorithms.at(operation.collective);
    fresh.tuning = wish.tuning;
    fresh.where = job_.where;
    fresh.communicator = &communicator(operation.group, 0);
    const std::uint32_t ranks = layout_.size(operation.group);
    if (goes_by_load(operation))  // so that unsuitable algorithms report the error
      fresh.blocks = std::make_shared<BlockTable>(ranks, std::vector<std::int64_t>(std::size_t{ranks} * ranks));
    settle_(fresh);
    settled = settled_.emplace(key, fresh).first;
  }
  CollectiveCall call = settled->second;
  call.id = call_id(operation.group, group, operation.sequence, run);
  call.communicator = &communicator(operation.group, group);
  call.graph = graph_of(*call.communicator);
  const std::uint32_t step = outline_.step_of(run);
  call.label = fmt::format("step {} {}", step, operation.label());
  if (goes_by_load(operation)) set_blocks(operation, group, step, call);
  return call;
}

std::shared_ptr<const ChannelGraph> TrainingWorkload::graph_of(const Communicator& members) const {
  if (!graphs_) return nullptr;
  const auto [at, fresh] = graph_of_.try_emplace(members.id());
  if (fresh) at->second = graphs_(members);
  return at->second;
}

bool TrainingWorkload::goes_by_load(const PlannedOperation& operation) const {
  return operation.by_load && !job_.routing.even();
}

// Groups of ranks of one server, and of one place in their servers, number those of an expert group consecutively.
void TrainingWorkload::set_blocks(const PlannedOperation& operation, std::uint32_t group, std::uint32_t step,
                                  CollectiveCall& call) const {
  const std::uint32_t parts = layout_.groups(operation.group) / layout_.groups(GroupKind::expert);
  const RoutingCase one = routing_case(operation, group / parts, step);
  const RoutedRow row = routed_row(job_.routing, one);
  std::vector<std::int64_t> table;
  std::int64_t sent = one.copies();  // by each rank, with even routing
  if (operation.group == GroupKind::expert_rail) {
    table = rail_tokens(one, row);
    sent = one.tokens * one.servers_per_token;
  } else if (operation.group == GroupKind::expert_server) {
    table = server_copies(one, row, group % parts);
  } else {
    table = routed_copies(one, row);
  }
  const std::uint32_t ranks = layout_.size(operation.group);
  if (operation.combine)
    for (std::uint32_t i = 0; i < ranks; ++i)
      for (std::uint32_t j = 0; j < i; ++j) std::swap(table[i * ranks + j], table[j * ranks + i]);
  const std::int64_t bytes = operation.size.count() / sent;
  for (std::int64_t& entry : table) entry *= bytes;
  call.blocks = std::make_shared<BlockTable>(ranks, std::move(table));
  call.size = Bytes(call.blocks->total());
}

RoutingCase TrainingWorkload::routing_case(const PlannedOperation& operation, std::uint32_t expert_group,
                                           std::uint32_t step) const {
  const TrainingDescription& d = job_.description;
  const MlpShape& mlp = d.model.layer_shape(operation.layer).mlp;
  RoutingCase one;
  one.ranks = layout_.size(GroupKind::expert);
  one.experts = mlp.experts;
  one.tokens = routed_tokens(d);
  one.experts_per_token = mlp.experts_per_token;
  if (d.parallel.expert_server > 0) {
    one.servers = layout_.size(GroupKind::expert_rail);
    one.servers_per_token = servers_of_token(d.parallel, mlp);
  }
  one.block = static_cast<std::uint64_t>(operation.layer);
  one.step = (std::uint64_t{step} * shape_.micro_batches + static_cast<std::uint64_t>(operation.micro_batch)) *
                 layout_.groups(GroupKind::expert) +
             expert_group;
  return one;
}

TrainingWorkload::Load TrainingWorkload::load_of(const PlannedOperation& operation, Rank rank,
                                                 std::uint32_t step) const {
  if (job_.routing.even()) return {1, operation.duration};
  const RoutingCase one = routing_case(operation, layout_.group_of(GroupKind::expert, rank), step);
  const RoutedRow row = routed_row(job_.routing, one);
  const std::uint32_t index = layout_.index_of(GroupKind::expert, rank);
  const double load = static_cast<double>(row.copies[index] * one.ranks) / static_cast<double>(one.copies());
  // All ranks send the same; those that share experts have the tokens of all of them.
  const std::int64_t senders = std::int64_t{one.ranks} * job_.description.parallel.expert_tensor;
  const auto here = static_cast<std::ptrdiff_t>(one.experts / one.ranks);
  std::vector<std::int64_t> rows(row.experts.begin() + here * index, row.experts.begin() + here * (index + 1));
  for (std::int64_t& count : rows) count *= senders;
  Time gemms, even;
  if (operation.grouped) {
    for (const KernelUse& use : *operation.grouped) {
      even += use.time;
      gemms += job_.times.of(with_rows(use.kernel, rows));
    }
  }
  const double others = static_cast<double>((operation.duration - even).ps()) * load;
  return {load, gemms + Time::from_ps(static_cast<std::int64_t>(others + 0.5))};
}

std::shared_ptr<const CollectiveCall> TrainingWorkload::make_call(const PlannedOperation& operation, Rank rank,
                                                                  std::uint32_t run) const {
  return std::make_shared<const CollectiveCall>(call_of(operation, layout_.group_of(operation.group, rank), run));
}

std::unique_ptr<RankProgram> TrainingWorkload::program(Rank rank) const {
  WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
  if (rank.value() >= layout_.world()) return target_program(rank.value() - layout_.world());
  return with_noise(training_program(*this, rank), rank, job_.noise);
}

WorkloadEstimate TrainingWorkload::estimate() const {
  unsigned __int128 bytes = 0;
  unsigned __int128 messages = 0;
  std::map<std::pair<GroupKind, std::pair<CollectiveKind, std::int64_t>>, WorkloadEstimate> known;
  const std::uint32_t ranks_of_stage = layout_.world() / shape_.ranks;
  for (std::uint32_t p = 0; p < shape_.ranks; ++p)
    for (const PlannedOperation& operation : plan(p).operations) {
      if (operation.kind == Operation::Kind::send) {
        messages += ranks_of_stage;
        bytes += static_cast<unsigned __int128>(operation.size.count()) * ranks_of_stage;
      }
      if (operation.kind != Operation::Kind::collective) continue;
      const bool mirror = operation.group == GroupKind::mirror;
      const std::uint32_t pairs = (shape_.ranks + 1) / 2;
      if (RankLayout::spans_pipeline(operation.group) && p >= (mirror ? pairs : 1)) continue;
      const auto key = std::pair(operation.group, std::pair(operation.collective, operation.size.count()));
      auto at = known.find(key);
      if (at == known.end()) {
        const std::uint32_t group =
            RankLayout::spans_pipeline(operation.group) ? 0 : p * groups_of_stage(operation.group);
        at = known.emplace(key, estimate_call(call_of(operation, group, 0))).first;
      }
      const std::uint32_t groups = groups_of_stage(operation.group) / (mirror ? pairs : 1);
      messages += static_cast<unsigned __int128>(at->second.messages) * groups;
      bytes += static_cast<unsigned __int128>(at->second.bytes.count()) * groups;
    }
  WorkloadEstimate estimate;
  const std::uint32_t runs = outline_.complete();
  for (const auto& [use, rounds] :
       {std::pair(&data_, outline_.reads()), std::pair(&checkpoints_, outline_.checkpoints() + outline_.restores())}) {
    if (use->plan().piece == Bytes(0) || rounds == 0) continue;
    messages += static_cast<unsigned __int128>(use->messages_of_round()) * rounds / runs;
    bytes += use->bytes_of_round() * rounds / runs;
  }
  estimate.messages = static_cast<std::uint64_t>(messages * runs);
  estimate.bytes = saturated(bytes * runs);
  estimate.compute = compute_ * std::int64_t{runs};
  return estimate;
}

std::vector<std::pair<std::string, std::string>> TrainingWorkload::description() const {
  const TrainingDescription& d = job_.description;
  const ParallelPlan& plan = d.parallel;
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("model",
                     fmt::format("{}, {} blocks, hidden size {}", d.model.family, d.model.layers(), d.model.hidden));
  const std::int64_t published = d.model.published_prediction_blocks, trained = d.model.prediction_blocks;
  if (trained > 0)
    lines.emplace_back("prediction", fmt::format("{} layers of multi-token prediction", trained));
  else if (published > 0)
    lines.emplace_back("prediction",
                       fmt::format("without the {} layers of multi-token prediction that the model's file "
                                   "has (prediction_blocks)",
                                   published));
  lines.emplace_back("parameters", grouped(d.model.parameters()));
  if (d.model.active_parameters() != d.model.parameters())
    lines.emplace_back("active parameters", grouped(d.model.active_parameters()));
  lines.emplace_back("device", job_.times.device().name);
  lines.emplace_back("kernels", job_.framework ? job_.framework->name
                                               : "a plain count; steps of frameworks take 15 to 25 % longer, and "
                                                 "workload.framework counts theirs");
  std::string parallelism;
  const auto add = [&parallelism](const char* name, std::int64_t ranks) {
    if (ranks > 1) parallelism += fmt::format("{}{} {}", parallelism.empty() ? "" : ", ", name, ranks);
  };
  add("tensor", plan.tensor);
  add("context", plan.context);
  add("data", plan.data);
  add("pipeline", plan.pipeline);
  add("expert", plan.expert);
  lines.emplace_back("parallelism", parallelism.empty() ? "none" : parallelism);
  if (job_.simulated_data > 0)
    lines.emplace_back("approximation",
                       fmt::format("{} of {} data-parallel copies are simulated, {} of {} ranks; their "
                                   "collectives carry each rank's bytes among all",
                                   job_.simulated_data, plan.data, layout_.world(), whole_.world()));
  if (plan.pipeline > 1)
    lines.emplace_back("schedule", fmt::format("{}, {} micro-batches, {} chunks per rank", plan.schedule,
                                               shape_.micro_batches, schedule_->chunks(shape_)));
  describe_sizes(lines);
  const std::vector<std::string> missing = job_.times.missing();
  for (const std::string& kernel : missing) lines.emplace_back("not measured", kernel);
  if (const auto note = host_note()) lines.emplace_back("host", *note);
  for (std::string& note : slow_gemms()) lines.emplace_back("slow GEMMs", std::move(note));
  for (const std::string& key : d.ignored) lines.emplace_back("ignored", key);
  lines.emplace_back("steps", std::to_string(job_.steps));
  describe_events(lines);
  for (auto& line : job_.noise.description(ranks())) lines.push_back(std::move(line));
  return lines;
}

std::optional<std::string> TrainingWorkload::host_note() const {
  if (!job_.framework || !job_.framework->host || !job_.framework->block_on_host) return std::nullopt;
  const KernelCatalogue::Host& host = *job_.framework->host;
  const TrainingDescription& d = job_.description;
  const bool mixture = d.model.active_parameters() != d.model.parameters();
  if (mixture || host.graphs_attention || host.attention > Time() || host.mlp > Time()) return std::nullopt;
  // With what the busiest rank has beside its blocks.
  const double blocks = static_cast<double>(d.model.layers()) / shape_.ranks * shape_.micro_batches;
  const double device = compute_.seconds() / blocks * 1e3;
  const auto& [min, max] = *job_.framework->block_on_host;
  if (device >= max.seconds() * 1e3) return std::nullopt;
  return fmt::format(
      "launches alone are counted. Both passes of a block take the device {:.2g} ms, and the host {:.2g} "
      "to {:.2g} ms where that was measured (bf16, x86), so that steps may be up to {:.2g} times as long; "
      "more in docs/reference/compute_times.md#the-host",
      device, min.seconds() * 1e3, max.seconds() * 1e3, max.seconds() * 1e3 / device);
}

void TrainingWorkload::describe_sizes(std::vector<std::pair<std::string, std::string>>& lines) const {
  const TrainingDescription& d = job_.description;
  lines.emplace_back("batch", fmt::format("{} sequences of {} tokens, {} a micro-batch", d.global_batch,
                                          d.sequence_length, d.micro_batch));
  lines.emplace_back("FLOPs per step", fmt::format("{:.4g}, by all ranks", flops_));
  lines.emplace_back("compute per step", fmt::format("{:.3f} ms on the busiest rank", compute_.seconds() * 1e3));
  const StagePlan& first = plan(0);
  lines.emplace_back("gradients", fmt::format("{} B on the first rank, {} reductions of them per step",
                                              grouped(first.parameters.sum() * element_bytes(d.gradient_precision)),
                                              first.calls[static_cast<std::size_t>(GroupKind::data)].size() +
                                                  first.calls[static_cast<std::size_t>(GroupKind::expert_data)].size() +
                                                  first.calls[static_cast<std::size_t>(GroupKind::shard)].size()));
  lines.emplace_back("collective calls", grouped(static_cast<std::int64_t>(calls_per_step_)) + " per step");
  RankMemory worst;
  for (std::uint32_t p = 0; p < shape_.ranks; ++p) {
    const RankMemory memory = memory_of_rank(job_.pass_setup(), *schedule_, shape_, p);
    if (memory.sum() > worst.sum()) worst = memory;
  }
  const double capacity = static_cast<double>(job_.times.device().memory.count());
  lines.emplace_back(
      "memory per rank",
      fmt::format("{:.1f} GB of {:.1f} GB: parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, "
                  "activations {:.1f}, buffers {:.1f}{}",
                  static_cast<double>(worst.sum()) / 1e9, capacity / 1e9, static_cast<double>(worst.parameters) / 1e9,
                  static_cast<double>(worst.gradients) / 1e9, static_cast<double>(worst.optimizer) / 1e9,
                  static_cast<double>(worst.activations + worst.ends) / 1e9, static_cast<double>(worst.buffers) / 1e9,
                  static_cast<double>(worst.sum()) > capacity ? "; DOES NOT FIT" : ""));
}

}  // namespace weft
