// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/training/training_reading.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "schedule/collective/selection.hpp"
#include "support/basics/contract.hpp"
#include "workloads/configuration/deepspeed_config.hpp"
#include "workloads/configuration/hugging_face_fields.hpp"
#include "workloads/configuration/megatron_arguments.hpp"
#include "workloads/configuration/trainer_arguments.hpp"
#include "workloads/parallel/pass_sizes.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/step/recomputed_modules.hpp"
#include "workloads/storage/failure_clock.hpp"

namespace weft {
namespace {

constexpr std::int64_t max_ranks = 1 << 24;

/// The value of an enumeration by its word.
template <class Value>
Value read_word(const Spec& spec, const std::vector<std::pair<std::string, Value>>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.push_back(name);
  const std::string text = spec.one_of(names);
  return words[static_cast<std::size_t>(std::find(names.begin(), names.end(), text) - names.begin())].second;
}

/// Copies the values that a map has into the fields of a description, and remembers where they were.
class Fields {
 public:
  Fields(const Spec& spec, TrainingDescription& description) : spec_(spec), description_(description) {}

  std::optional<Spec> find(const char* key, const char* field = nullptr) {
    auto value = spec_.find(key);
    if (value) description_.where[field == nullptr ? key : field] = value->where();
    return value;
  }
  void count(const char* key, std::int64_t& field, std::int64_t min = 1, std::int64_t max = max_ranks) {
    if (const auto value = find(key)) field = value->integer(min, max);
  }
  void flag(const char* key, bool& field) {
    if (const auto value = find(key)) field = value->boolean();
  }

 private:
  const Spec& spec_;
  TrainingDescription& description_;
};

/// As frameworks abbreviate them, and as they are called here.
const std::map<std::string, std::string> abbreviated_parallelism = {
    {"tp", "tensor"},   {"pp", "pipeline"},       {"dp", "data"},           {"cp", "context"},        {"ep", "expert"},
    {"sp", "sequence"}, {"etp", "expert_tensor"}, {"vp", "virtual_stages"}, {"vpp", "virtual_stages"}};

/// The same where they are beside `parallelism` instead of in it.
std::map<std::string, std::string> misplaced_parallelism() {
  std::map<std::string, std::string> meant;
  for (const auto& [name, key] : abbreviated_parallelism) meant[name] = meant[key] = "parallelism: {" + key + ": ...}";
  return meant;
}

/// Each of the five dimensions once.
std::string read_order(const Spec& value) {
  std::string order = value.text();
  std::vector<std::string> words(1), due{"cp", "dp", "ep", "pp", "tp"};
  for (const char letter : order)
    if (letter == '-')
      words.emplace_back();
    else
      words.back() += letter;
  std::sort(words.begin(), words.end());
  if (words != due)
    throw value.error(
        fmt::format("expected tp, cp, ep, dp and pp once each in any order, such as 'tp-cp-ep-dp-pp'; "
                    "found '{}'",
                    order));
  return order;
}

void read_parallelism(const Spec& map, TrainingDescription& d) {
  ParallelPlan& plan = d.parallel;
  Fields fields(map, d);
  fields.count("data", plan.data);
  fields.count("tensor", plan.tensor);
  fields.count("context", plan.context);
  fields.count("pipeline", plan.pipeline);
  fields.count("expert", plan.expert);
  fields.count("expert_tensor", plan.expert_tensor);
  fields.count("expert_server", plan.expert_server, 2);
  fields.count("servers_per_token", plan.servers_per_token);
  if (const auto value = fields.find("expert_forwarding"))
    plan.forward_in_parts = read_word<bool>(*value, {{"whole", false}, {"parts", true}});
  fields.count("virtual_stages", plan.virtual_stages);
  if (const auto value = fields.find("stage_layers"))
    for (const Spec& layers : value->items()) plan.stage_layers.push_back(layers.integer(0, max_ranks));
  fields.count("prediction_stage", plan.prediction_stage, 0);
  fields.flag("sequence", plan.sequence);
  fields.flag("scatter_gather", plan.scatter_gather);
  if (const auto value = fields.find("context_kind"))
    plan.context_kind = read_word<ContextKind>(*value, {{"ring", ContextKind::ring},
                                                        {"all_gather", ContextKind::all_gather},
                                                        {"gathered_ring", ContextKind::gathered_ring},
                                                        {"ulysses", ContextKind::ulysses}});
  if (const auto value = fields.find("schedule"))
    plan.schedule = value->one_of(PipelineScheduleRegistry::instance().names());
  else if (plan.virtual_stages > 1 && plan.schedule == "1f1b")
    plan.schedule = "interleaved";
  if (const auto value = fields.find("order")) plan.order = read_order(*value);
  if (const auto value = fields.find("sharding"))
    plan.sharding = read_word<Sharding>(*value, {{"none", Sharding::none},
                                                 {"optimizer", Sharding::optimizer},
                                                 {"gradients", Sharding::gradients},
                                                 {"parameters", Sharding::parameters}});
  fields.count("shard_group", plan.shard_group);
  fields.flag("reshard_after_forward", plan.reshard_after_forward);
  fields.count("prefetch", plan.prefetch, 0, 1024);
  map.finish(abbreviated_parallelism);
}

/// Formats that devices have and no device file: "did you mean 'fp8'" would not give the reason.
void refuse_unmeasured(const Spec& value) {
  static const std::set<std::string> formats = {"fp4", "mxfp4", "nvfp4", "fp6", "mxfp6"};
  if (!formats.contains(value.text())) return;
  throw value.error(
      fmt::format("'{}': no device file has measured GEMMs of fp4 or fp6; use fp8 or mxfp8, and `operators` for "
                  "kernels whose times "
                  "are known",
                  value.text()));
}

std::string read_precision(const Spec& value, const Device& device) {
  refuse_unmeasured(value);
  const std::string precision = value.one_of(gemm_precision_names());
  if (device.peak.contains(precision)) return precision;
  std::vector<std::string> known;
  for (const auto& [name, peak] : device.peak) known.push_back(name);
  throw value.error(
      fmt::format("'{}' has no peak for '{}'; its file gives: {}", device.name, precision, listed(known)));
}

/// A method, or a map of it and what belongs to it; what is not said has the method's default.
OverlapOfGemm read_overlap(const Spec& value, OverlappedGemm gemm) {
  std::vector<std::pair<std::string, OverlapMethod>> methods;
  for (const OverlapMethod method : methods_of(gemm)) methods.emplace_back(to_text(method), method);
  if (!value.is_map()) return default_overlap(read_word<OverlapMethod>(value, methods));
  const auto named = value.find("method");
  OverlapOfGemm overlap = default_overlap(named ? read_word<OverlapMethod>(*named, methods) : methods.front().second);
  const bool forward = gemm == OverlappedGemm::proj_fprop || gemm == OverlappedGemm::fc2_fprop;
  constexpr std::int64_t most = 1024;
  if (overlap.method != OverlapMethod::none) {
    if (const auto units = value.find("num_sm")) overlap.units = units->integer(0, most);
    if (const auto margin = value.find("set_sm_margin")) overlap.sm_margin = margin->boolean();
  }
  if (overlap.method == OverlapMethod::pipeline)
    if (const auto splits = value.find("num_splits")) overlap.parts = splits->integer(1, most);
  if (overlap.method == OverlapMethod::ring_exchange && !forward)
    if (const auto pairs = value.find("aggregate")) overlap.pairs = pairs->boolean();
  if (overlap.method != OverlapMethod::none && forward)
    if (const auto fp8 = value.find("fp8_buf")) overlap.fp8_buffer = fp8->boolean();
  value.finish();
  return overlap;
}

void read_tensor_overlap(const Spec& map, TensorOverlap& overlap) {
  overlap = default_tensor_overlap();
  for (std::size_t gemm = 0; gemm < overlapped_gemm_count; ++gemm)
    if (const auto value = map.find(overlapped_gemm_names()[gemm]))
      overlap.gemms[gemm] = read_overlap(*value, static_cast<OverlappedGemm>(gemm));
  map.finish();
}

Bytes read_limit(const Spec& value) {
  if (value.bytes() == Bytes(0)) throw value.error("a limit of 0 B; give at least 1 B");
  return value.bytes();
}

void read_precisions(Fields& fields, const Spec& spec, const Device& device, TrainingDescription& d) {
  if (const auto value = fields.find("precision"))
    d.precision = read_precision(*value, device);
  else if (!device.peak.contains(d.precision))
    throw spec.error(fmt::format("'{}' has no peak for '{}'; set `precision`", device.name, d.precision));
  if (!device.peak.contains(activation_precision(d)))
    throw d.error("precision",
                  fmt::format("'{}' has no peak for '{}', which attention and the head have where GEMMs "
                              "have {}",
                              device.name, activation_precision(d), d.precision),
                  spec.where());
  if (element_bytes(d.precision) == 4) d.parameter_precision = "fp32";
  if (const auto value = fields.find("parameter_precision"))
    d.parameter_precision = value->one_of({"bf16", "fp16", "fp32", "fp8"});
  if (const auto value = fields.find("gradient_precision"))
    d.gradient_precision = value->one_of({"bf16", "fp16", "fp32"});
  if (const auto value = fields.find("dispatch_precision")) d.dispatch_precision = value->one_of(precision_names());
  if (const auto value = fields.find("moment_precision")) d.moment_precision = value->one_of({"bf16", "fp16", "fp32"});
  if (const auto value = fields.find("combine_precision")) d.combine_precision = value->one_of(precision_names());
  if (const auto value = fields.find("activation_input_precision"))
    d.activation_input_precision = value->one_of(kept_precision_names());
  if (const auto value = fields.find("attention_output_precision"))
    d.attention_output_precision = value->one_of(kept_precision_names());
}

void read_batches(Fields& fields, TrainingDescription& d) {
  fields.count("micro_batch", d.micro_batch, 1, 65536);
  fields.count("global_batch", d.global_batch, 1, std::int64_t{1} << 32);
  fields.count("micro_batches", d.micro_batches, 1, 1 << 20);
  const auto length = fields.find("sequence_length");
  if (length) d.sequence_length = length->integer(1, 1 << 24);
  if (d.sequence_length == 0) d.sequence_length = std::max<std::int64_t>(1, d.model.positions);
  if (length && d.model.positions > 0 && d.sequence_length > d.model.positions)
    throw length->error(fmt::format("{} tokens, but the model has {} positions", d.sequence_length, d.model.positions));
}

void read_method(Fields& fields, TrainingDescription& d) {
  if (const auto value = fields.find("recompute"))
    d.recompute = read_word<Recompute>(*value, {{"none", Recompute::none},
                                                {"selective", Recompute::selective},
                                                {"operators", Recompute::operators},
                                                {"full", Recompute::full}});
  if (const auto value = fields.find("recompute_modules")) {
    std::vector<std::string> names;
    for (const Spec& item : value->items()) names.push_back(item.one_of(recomputed_module_names()));
    recompute_modules(names, d);
  }
  fields.count("recompute_layers", d.recompute_layers);
  const auto bucket = fields.find("bucket_size");
  const auto first = fields.find("first_bucket_size");
  if (bucket) d.buckets.further = read_limit(*bucket);
  if (first) d.buckets.first = read_limit(*first);
  if (bucket || first) {  // instead of those of a configuration file
    d.bucket_elements = 0;
    d.buckets_of_first_chunk = false;
  }
  fields.flag("overlap_tensor", d.overlap_tensor);
  if (const auto value = fields.find("tensor_overlap")) read_tensor_overlap(*value, d.tensor_overlap);
  fields.flag("overlap_gradients", d.overlap_gradients);
  fields.flag("align_gradients", d.align_gradients);
  fields.flag("overlap_parameters", d.overlap_parameters);
  fields.flag("reduce_every_micro_batch", d.reduce_every_micro_batch);
  fields.flag("clip_gradients", d.clip_gradients);
  fields.flag("fused_router", d.fused_router);
  fields.flag("fused_loss", d.fused_loss);
  fields.flag("fused_permutation", d.fused_permutation);
  fields.flag("padded_copies", d.padded_copies);
  if (const auto value = fields.find("fp8_scaling"))
    d.fp8_scaling = read_word<Fp8Scaling>(*value, {{"delayed", Fp8Scaling::delayed}, {"current", Fp8Scaling::current}});
  if (const auto value = fields.find("amax_ranks"))
    d.amax_ranks = read_word<AmaxRanks>(
        *value, {{"stage", AmaxRanks::stage}, {"tensor", AmaxRanks::tensor}, {"none", AmaxRanks::none}});
  if (const auto value = fields.find("capacity_factor")) d.capacity_factor = value->number(0, 1e6);
  fields.flag("pad_to_capacity", d.pad_to_capacity);
  std::int64_t predictions = d.model.prediction_blocks;
  fields.count("prediction_blocks", predictions, 0, 64);
  d.model.predict(predictions);
  fields.flag("offload_optimizer", d.offload_optimizer);
  fields.flag("offload_parameters", d.offload_parameters);
  fields.flag("overlap_offload", d.overlap_offload);
}

ExpertRouting read_routing(const std::optional<Spec>& spec, const WorkloadContext& context,
                           const TrainingDescription& d) {
  ExpertRouting routing;
  routing.seed = context.seed;
  routing.capacity_factor = d.capacity_factor;
  routing.pad_to_capacity = d.pad_to_capacity;
  if (!spec) return routing;
  if (const auto value = spec->find("spread")) routing.spread = value->number(0, 10);
  if (const auto value = spec->find("seed")) routing.seed = value->natural();
  spec->finish();
  return routing;
}

GroupCollectives read_group(const Spec& spec, const WorkloadContext& context, GroupKind of) {
  const CollectiveSettings options = read_collective_options(spec, context);
  GroupCollectives group;
  group.tuning = options.tuning;
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
    const auto algorithm = find_collective(options.algorithm);
    const bool able = algorithm == nullptr || algorithm->supports(kind);  // a selection chooses by itself
    group.algorithms[kind] = able ? options.algorithm : algorithm_of_network(kind);
  }
  // These reduce one number, the norm of gradients, or some hundreds, for which a ring takes two steps a rank, and NCCL
  // a tree.
  const bool small =
      of == GroupKind::model || of == GroupKind::world || of == GroupKind::stage || of == GroupKind::tensor_context;
  if (of == GroupKind::tensor_overlap && !spec.has("algorithm"))
    for (auto& [kind, algorithm] : group.algorithms)
      if (find_collective("direct")->supports(kind)) algorithm = "direct";
  if (small && !spec.has("algorithm") && !context.nccl)
    group.algorithms[CollectiveKind::all_reduce] = "double_binary_tree";
  return group;
}

/// Kernels of userbuffers read all peers at once, or write to them, each piece in one go (userbuffers.cu); they are
/// none of NCCL's, so that what the job says of its collectives is not for them.
GroupCollectives read_overlap_calls(const Spec& spec, const WorkloadContext& context) {
  const Spec direct = Spec::parse("{channels: 1, chunk_size: 64 GiB, slices_per_chunk: 1}", spec.where().file);
  return read_group(direct, context, GroupKind::tensor_overlap);
}

void read_collectives(const Spec& spec, const WorkloadContext& context, TrainingJob& job) {
  for (std::size_t k = 0; k < group_kind_count; ++k)
    job.collectives[k] = read_group(spec, context, static_cast<GroupKind>(k));
  job.collectives[static_cast<std::size_t>(GroupKind::tensor_overlap)] = read_overlap_calls(spec, context);
  const auto map = spec.find("collectives");
  if (!map) return;
  for (std::size_t k = 0; k < group_kind_count; ++k) {
    std::string name(to_text(static_cast<GroupKind>(k)));
    std::replace(name.begin(), name.end(), ' ', '_');
    const auto group = map->find(name);
    if (!group) continue;
    job.collectives[k] = read_group(*group, context, static_cast<GroupKind>(k));
    group->finish();
  }
  map->finish();
}

std::uint32_t simulated_ranks(const TrainingJob& job) {
  const TrainingDescription& d = job.description;
  const std::int64_t data = job.simulated_data > 0 ? job.simulated_data : d.parallel.data;
  return static_cast<std::uint32_t>(d.world / d.parallel.data * data);
}

/// With `symmetry` only some of the data-parallel copies need accelerators.
void settle_ranks(TrainingJob& job, const std::optional<Spec>& symmetry, const WorkloadContext& context,
                  const SourceLine& place) {
  TrainingDescription& d = job.description;
  settle_description(d, symmetry ? 0 : context.hosts, place);
  if (!symmetry) return;
  const ParallelPlan& plan = d.parallel;
  const Spec data = symmetry->at("data");
  const std::int64_t copies = data.integer(1, max_ranks);
  symmetry->finish();
  if (copies < 2 || copies > plan.data)
    throw data.error(
        fmt::format("{} copies, but the job has {} data-parallel ranks; use 2 to {}", copies, plan.data, plan.data));
  if (plan.shard_group > 0)
    throw data.error(fmt::format(
        "parameters are shared out over groups of {}; symmetry is for whole data-parallel groups", plan.shard_group));
  const std::int64_t shares = plan.tensor * plan.context * copies;
  if (shares % (plan.expert * plan.expert_tensor) != 0)
    throw data.error(fmt::format("{} copies have {} ranks, which {} expert ranks do not divide", copies, shares,
                                 plan.expert * plan.expert_tensor));
  const std::int64_t experts_of_all = plan.tensor * plan.context * plan.data / (plan.expert * plan.expert_tensor);
  if (plan.expert > 1 && experts_of_all > 1 && shares == plan.expert * plan.expert_tensor)
    throw data.error(
        fmt::format("{} copies have one copy of the experts, of {}; use at least 2", copies, experts_of_all));
  job.simulated_data = static_cast<std::uint32_t>(copies);
  if (simulated_ranks(job) > context.hosts)
    throw data.error(
        fmt::format("{} ranks to simulate, but the machine has {} hosts", simulated_ranks(job), context.hosts));
}

/// Files first, then the keys of the experiment, which replace values of files.
void read_configurations(const Spec& spec, const WorkloadContext& context, TrainingDescription& d) {
  const auto megatron = spec.find("megatron");
  const auto model = spec.find("model");
  if (megatron) read_megatron_arguments(resolve_file(*megatron, context.directory, "megatron", ".sh"), d);
  if (model) {
    read_hugging_face_model(resolve_file(*model, context.directory, "models", ".json"), d);
    d.where["model"] = model->where();
  }
  const auto trainer = spec.find("trainer");
  const auto deepspeed = spec.find("deepspeed");
  if (!megatron && !model && (trainer || deepspeed))
    throw(trainer ? *trainer : *deepspeed)
        .error(
            "its file describes no model; also give `model`, a name or the path of a config.json "
            "(--set workload.model=llama-3.1-8b)");
  if (trainer) read_trainer_arguments(resolve_file(*trainer, context.directory, "trainer", ".json"), d);
  if (deepspeed) read_deepspeed_config(resolve_file(*deepspeed, context.directory, "deepspeed", ".json"), d);
  if (!d.model.blocks.empty()) return;
  if (megatron) throw megatron->error("its options describe no model (--num-layers and so on); also give `model`");
  static_cast<void>(spec.at("model"));  // complains
}

/// `cuda_graphs: true`, or a list of the parts of blocks that a graph launches.
void read_cuda_graphs(const Spec& graphs, KernelCatalogue& catalogue) {
  if (!graphs.is_sequence()) {
    if (graphs.boolean()) catalogue.host.reset();
    return;
  }
  for (const Spec& part : graphs.items()) {
    const bool attention = part.one_of({"attention", "router"}) == "attention";
    if (!catalogue.host) continue;
    (attention ? catalogue.host->graphs_attention : catalogue.host->graphs_router) = true;
  }
}

/// A framework's kernels run in a long step: they have the device's sustained rates.
void read_framework(const Spec& spec, const WorkloadContext& context, TrainingJob& job) {
  const auto name = spec.find("framework");
  if (!name) return;
  if (const auto efficiency = spec.find("efficiency"))
    throw efficiency->error("found with `framework`, whose kernels have the device's rates; use one of them");
  const Spec file = Spec::load(resolve_file(*name, context.directory, "frameworks", ".yaml"));
  KernelCatalogue catalogue = read_kernel_catalogue(file);
  if (const auto graphs = spec.find("cuda_graphs")) read_cuda_graphs(*graphs, catalogue);
  if (catalogue.host) catalogue.host->slow_down(job.times.device().host_slowdown);
  if (const auto blocking = spec.find("blocking_launches"); blocking && blocking->boolean()) {
    if (!catalogue.host)
      throw blocking->error("found with `cuda_graphs`, or with a framework without `host`; no launch takes time there");
    catalogue.host->waits_for_launches = true;
  }
  job.framework = std::make_shared<const KernelCatalogue>(std::move(catalogue));
  job.attention = job.framework->attention;
  job.times.in_a_step();
}

/// What a recipe of fp8 is here, if the framework has its kernels and the device its GEMMs.
void take_recipe(TrainingJob& job) {
  TrainingDescription& d = job.description;
  if (d.precision != "fp8" || !job.framework) return;
  const auto in_blocks = [&](const std::string& precision) {
    if (casts_in_blocks(*job.framework, precision) && job.times.device().peak.contains(precision))
      d.precision = precision;
  };
  if (d.fp8_recipe == Fp8Recipe::blockwise) in_blocks("fp8_block");
  if (d.fp8_recipe == Fp8Recipe::mxfp8) in_blocks("mxfp8");
  if (d.fp8_recipe == Fp8Recipe::tensorwise && finds_magnitudes(*job.framework)) d.fp8_scaling = Fp8Scaling::current;
}

/// The framework's buckets, if nothing else is said. FSDP shares parameters out part by part, without them.
void take_buckets(const Spec& spec, TrainingJob& job) {
  if (!job.framework || job.framework->buckets.elements == 0) return;
  for (const char* configuration : {"megatron", "trainer", "deepspeed"})
    if (spec.has(configuration)) return;
  const KernelCatalogue::Buckets& buckets = job.framework->buckets;
  TrainingDescription& d = job.description;
  if (!spec.has("bucket_size") && !spec.has("first_bucket_size")) {
    d.bucket_elements = d.overlap_gradients ? buckets.elements : TrainingDescription::all_elements;
    d.bucket_elements_per_rank = buckets.elements_per_rank;
    d.buckets_of_first_chunk = buckets.of_first_chunk;
  }
  if (!spec.has("align_gradients"))
    d.align_gradients = buckets.aligned && d.overlap_gradients && d.parallel.schedule == "interleaved" &&
                        d.parallel.sharding != Sharding::parameters && !d.reduce_every_micro_batch;
}

}  // namespace

TrainingJob read_training_job(const Spec& spec, const WorkloadContext& context) {
  TrainingJob job;
  job.where = spec.where();
  TrainingDescription& d = job.description;
  read_configurations(spec, context, d);
  job.times = read_operator_times(spec, context.directory);
  if (const auto efficiency = spec.find("efficiency")) {
    Device device = job.times.device();
    device.efficiency = device.gemm_fraction = device.fused_fraction = efficiency->number(1e-6, 1);
    device.tiles.reset();
    job.times = OperatorTimes(std::move(device));
    if (spec.has("operators")) throw efficiency->error("found with `operators`; use one of them");
  }
  read_framework(spec, context, job);
  if (const auto value = spec.find("attention"))
    job.attention =
        read_word<AttentionKernel>(*value, {{"flash", AttentionKernel::flash}, {"unfused", AttentionKernel::unfused}});
  take_recipe(job);  // the keys `precision` and `fp8_scaling`, which are read next, count first
  Fields fields(spec, d);
  read_batches(fields, d);
  read_precisions(fields, spec, job.times.device(), d);
  if (job.framework && activation_bytes(d) != 2)
    throw d.error("precision",
                  fmt::format("the kernels of '{}' are counted for activations of 16 bits, not for {}",
                              job.framework->name, activation_precision(d)),
                  spec.where());
  const std::string missing = job.framework ? "'" + job.framework->name + "' does not have" : "the job does not name";
  if (is_scaled_in_blocks(d.precision) && !(job.framework && casts_in_blocks(*job.framework, d.precision)))
    throw d.error("precision",
                  fmt::format("'{}' needs the casts of a framework, which {}; use `framework: megatron_core`, or fp8",
                              d.precision, missing),
                  spec.where());
  read_method(fields, d);
  if (d.fp8_scaling == Fp8Scaling::current && !(job.framework && finds_magnitudes(*job.framework)))
    throw d.error(
        "fp8_scaling",
        fmt::format("'current' needs the kernels of a framework that look for largest magnitudes, which {}; use "
                    "`framework: megatron_core`, or leave it out",
                    missing),
        spec.where());
  const auto parallelism = spec.find("parallelism");
  if (parallelism) read_parallelism(*parallelism, d);
  take_buckets(spec, job);
  job.routing = read_routing(spec.find("routing"), context, d);
  read_collectives(spec, context, job);
  if (const auto repeat = spec.find("steps")) job.steps = static_cast<std::uint32_t>(repeat->integer(1, 1'000'000));
  job.events = read_training_events(spec, context);
  const auto noise = spec.find("compute_noise");
  const auto symmetry = spec.find("symmetry");
  spec.finish(misplaced_parallelism());
  WorkloadContext without_targets = context;
  if (context.storage.empty()) without_targets.hosts -= job.events.targets();
  settle_ranks(job, symmetry, without_targets, parallelism ? parallelism->where() : spec.where());
  const bool offloads = d.offload_optimizer || d.offload_parameters;
  if (offloads && job.times.device().host_link == Bandwidth())
    throw d.error(d.offload_optimizer ? "offload_optimizer" : "offload_parameters",
                  fmt::format("'{}' has no link to its host; give `host_link` in the device's file, such as 64 GB/s",
                              job.times.device().name),
                  job.where);
  if (job.events.failures.any() && job.events.failures.step_time == Time()) time_failures(context, job.events);
  const double copies = static_cast<double>(d.world) / simulated_ranks(job);
  if (noise) job.noise = ComputeNoise(*noise, simulated_ranks(job), context.seed, copies);
  return job;
}

}  // namespace weft
