// SPDX-License-Identifier: GPL-2.0-only
// Training jobs as Megatron-LM's options describe them (megatron/training/arguments.py).
#include "workloads/configuration/megatron_arguments.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "support/documents/text_file.hpp"
#include "workloads/configuration/megatron_model.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/step/recomputed_modules.hpp"

namespace weft {
namespace {

class MegatronApplication {
 public:
  MegatronApplication(const MegatronSource& source, TrainingDescription& description)
      : source_(source), o_(source.options), d_(description), p_(description.parallel) {}

  void apply() {
    require_gpt();
    read_ranks();
    if (o_.has("num-layers")) {
      d_.model = read_megatron_model(o_, p_.tensor);
      d_.where["model"] = o_.where("num-layers");
    }
    read_pipeline();
    read_batches();
    read_precision();
    read_sharding();
    read_gradients();
    read_recomputation();
    read_experts();
    o_.refuse_misspelt();
    for (const auto& name : o_.unasked()) ignore(name);
    for (const auto& part : source_.passed_over) ignore(part);
  }

 private:
  void ignore(const std::string& what) {
    if (std::find(d_.ignored.begin(), d_.ignored.end(), what) == d_.ignored.end()) d_.ignored.push_back(what);
  }
  /// A number of one of these options (the first is today's name, others are older), noted as where `field` is said.
  void count(const char* field, std::int64_t& value, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (o_.has(name)) {
        value = o_.count(name);
        d_.where[field] = o_.where(name);
        return;
      }
  }
  void note(const char* field, const char* name) { d_.where[field] = o_.where(name); }

  void require_gpt() const {
    const std::string& program = source_.program;
    for (const char* other : {"bert", "t5", "vlm", "mamba", "ict", "retro", "vision"})
      if (program.starts_with("pretrain_") && program.find(other) != std::string::npos)
        throw InputError({o_.file(), 0}, fmt::format("{} trains no GPT; only pretrain_gpt.py's models are read from "
                                                     "Megatron-LM's options, other models from their config.json",
                                                     program));
  }

  void read_ranks() {
    if (source_.world > 0) {
      d_.world = source_.world;
      d_.where["world"] = source_.world_where;
    }
    count("tensor", p_.tensor, {"tensor-model-parallel-size", "model-parallel-size"});
    count("pipeline", p_.pipeline, {"pipeline-model-parallel-size"});
    count("context", p_.context, {"context-parallel-size"});
    count("expert", p_.expert, {"expert-model-parallel-size"});
    count("expert_tensor", p_.expert_tensor, {"expert-tensor-parallel-size"});
    // Sequence parallelism of one tensor-parallel rank is none; arguments.py switches it off.
    if (o_.has("sequence-parallel")) {
      p_.sequence = o_.flag("sequence-parallel") && p_.tensor > 1;
      note("sequence", "sequence-parallel");
    }
    read_tensor_overlap();
    if (o_.flag("use-tp-pp-dp-mapping")) p_.order = "tp-cp-ep-pp-dp";
    if (o_.has("cp-comm-type")) read_context_kind();
  }
  /// arguments.py, _add_model_parallel_args and _add_transformer_engine_args: --tp-comm-overlap needs sequence
  /// parallelism. The file of --tp-comm-overlap-cfg is in the job's container.
  void read_tensor_overlap() {
    if (!o_.flag("tp-comm-overlap") || p_.tensor == 1) return;
    d_.tensor_overlap = default_tensor_overlap();
    note("tensor_overlap", "tp-comm-overlap");
    using enum OverlappedGemm;
    const auto leave_out = [&](const char* option, std::initializer_list<OverlappedGemm> gemms) {
      if (!o_.flag(option)) return;
      for (const OverlappedGemm gemm : gemms) d_.tensor_overlap.of(gemm) = default_overlap(OverlapMethod::none);
    };
    leave_out("disable-tp-comm-overlap-ag", {qkv_fprop, fc1_fprop, proj_dgrad, fc2_dgrad});
    leave_out("disable-tp-comm-overlap-rs", {proj_fprop, fc2_fprop});
    leave_out("disable-tp-comm-bulk-dgrad", {qkv_dgrad, fc1_dgrad});
    leave_out("disable-tp-comm-bulk-wgrad", {qkv_wgrad, fc1_wgrad});
    if (o_.has("tp-comm-overlap-cfg")) ignore("--tp-comm-overlap-cfg (what it says goes under tensor_overlap)");
  }
  void read_context_kind() {
    const std::string kind = o_.text("cp-comm-type");
    if (kind == "p2p")
      p_.context_kind = ContextKind::ring;
    else if (kind == "all_gather")
      p_.context_kind = ContextKind::all_gather;
    else if (kind == "a2a")
      p_.context_kind = ContextKind::ulysses;
    else
      throw o_.error("cp-comm-type", fmt::format("'{}' is not supported; use p2p, all_gather or a2a", kind));
    note("context_kind", "cp-comm-type");
  }

  // Pipeline ---------------------------------------------------------------------------------------------------------
  void read_pipeline() {
    const char* by_layers = "num-layers-per-virtual-pipeline-stage";
    const char* by_stages = "num-virtual-stages-per-pipeline-rank";
    if (o_.has(by_layers) && o_.has(by_stages))
      throw o_.error(by_layers, fmt::format("--{} says the same in another way; leave one of them out", by_stages));
    count("virtual_stages", p_.virtual_stages, {by_stages});
    if (o_.has(by_layers)) {
      const std::int64_t own = o_.count(by_layers);
      const std::int64_t unit = own * p_.pipeline;
      const std::int64_t layers = d_.model.layers();
      if (layers % unit != 0)
        throw o_.error(by_layers, fmt::format("{} blocks x {} pipeline ranks = {} do not divide {} layers", own,
                                              p_.pipeline, unit, layers));
      p_.virtual_stages = layers / unit;
      note("virtual_stages", by_layers);
    }
    read_uneven_stages();
    if (p_.virtual_stages > 1) p_.schedule = "interleaved";
    if (!o_.flag("overlap-moe-expert-parallel-comm")) return;
    p_.schedule = "combined_1f1b";
    note("schedule", "overlap-moe-expert-parallel-comm");
    if (!o_.flag("delay-wgrad-compute"))
      ignore("--overlap-moe-expert-parallel-comm without --delay-wgrad-compute (gradients of weights are late here)");
  }

  void read_uneven_stages() {
    if (o_.has("pipeline-model-parallel-layout")) {
      const MegatronLayout layout = pipeline_layout(o_);
      p_.stage_layers = layout.stage_layers;
      p_.prediction_stage = layout.prediction_stage;
      for (const char* field : {"stage_layers", "prediction_stage"}) note(field, "pipeline-model-parallel-layout");
      const auto stages = static_cast<std::int64_t>(p_.stage_layers.size());
      if (stages % p_.pipeline != 0)
        throw o_.error("pipeline-model-parallel-layout",
                       fmt::format("{} stages are no multiple of the {} pipeline ranks", stages, p_.pipeline));
      p_.virtual_stages = stages / p_.pipeline;
      return;
    }
    const char* first = "decoder-first-pipeline-num-layers";
    const char* last = "decoder-last-pipeline-num-layers";
    // A stage with the embedding or the loss has one block less than the others.
    const bool embedding = o_.flag("account-for-embedding-in-pipeline-split");
    const bool loss = o_.flag("account-for-loss-in-pipeline-split");
    if (o_.has(first) || o_.has(last))
      share_out(o_.has(first) ? first : last, o_.has(first) ? o_.count(first) : -1, o_.has(last) ? o_.count(last) : -1);
    else if (embedding || loss)
      share_out_with_parts(embedding ? 1 : 0, loss ? 1 : 0);
  }

  /// `first` and `last`: blocks of the ranks at the ends, -1: as many as the others.
  void share_out(const char* option, std::int64_t first, std::int64_t last) {
    const std::int64_t rest = d_.model.layers() - std::max<std::int64_t>(first, 0) - std::max<std::int64_t>(last, 0);
    const std::int64_t others = p_.pipeline - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
    require_stages(option);
    const bool even = others > 0 ? rest > 0 && rest % others == 0 : rest == 0;
    if (!even)
      throw o_.error(option, fmt::format("{} of {} layers are left for {} pipeline ranks; use a multiple "
                                         "of {}",
                                         rest, d_.model.layers(), others, others));
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(p_.pipeline), others > 0 ? rest / others : 0);
    if (first >= 0) ranks.front() = first;
    if (last >= 0) ranks.back() = last;
    set_stages(option, ranks);
  }
  /// The blocks of a rank are shared out over its chunks.
  void set_stages(const char* option, const std::vector<std::int64_t>& ranks) {
    p_.stage_layers.clear();
    for (std::int64_t chunk = 0; chunk < p_.virtual_stages; ++chunk)
      for (const std::int64_t layers : ranks) {
        if (layers % p_.virtual_stages != 0)
          throw o_.error(
              option, fmt::format("{} blocks of a rank are no multiple of its {} chunks", layers, p_.virtual_stages));
        p_.stage_layers.push_back(layers / p_.virtual_stages);
      }
    note("stage_layers", option);
  }
  void share_out_with_parts(std::int64_t embedding, std::int64_t loss) {
    const char* option =
        embedding > 0 ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split";
    require_stages(option);
    const std::int64_t stages = p_.pipeline * p_.virtual_stages;
    const std::int64_t parts = d_.model.layers() + embedding + loss;
    if (parts % stages != 0)
      throw o_.error(option, fmt::format("{} layers and parts that count as one are {}, no multiple of {} stages",
                                         d_.model.layers(), parts, stages));
    p_.stage_layers.assign(static_cast<std::size_t>(stages), parts / stages);
    p_.stage_layers.front() -= embedding;
    p_.stage_layers.back() -= loss;
    note("stage_layers", option);
  }
  void require_stages(const char* option) const {
    constexpr std::int64_t max = 65536;
    if (p_.pipeline > max || p_.virtual_stages > max || p_.pipeline * p_.virtual_stages > max)
      throw o_.error(option, fmt::format("{} pipeline ranks with {} chunks each are more than {} stages", p_.pipeline,
                                         p_.virtual_stages, max));
  }

  // What a step works on ---------------------------------------------------------------------------------------------
  void read_batches() {
    count("micro_batch", d_.micro_batch, {"micro-batch-size", "batch-size"});
    count("global_batch", d_.global_batch, {"global-batch-size"});
    count("sequence_length", d_.sequence_length, {"seq-length", "encoder-seq-length"});
  }

  void read_precision() {
    const bool bf16 = o_.flag("bf16");
    const bool fp16 = o_.flag("fp16");
    if (bf16 && fp16) throw o_.error("bf16", "--fp16 is also given; leave one of them out");
    const std::string half = bf16 ? "bf16" : "fp16";
    d_.precision = d_.parameter_precision = bf16 || fp16 ? half : "fp32";
    // arguments.py: gradients of bf16 are summed in fp32 unless --grad-reduce-in-bf16.
    const bool wide = o_.flag("accumulate-allreduce-grads-in-fp32") || (bf16 && !o_.flag("grad-reduce-in-bf16"));
    d_.gradient_precision = wide ? "fp32" : d_.parameter_precision;
    // Float16OptimizerWithFloat16Params copies gradients of 16 bits for its 32-bit parameters: 20 bytes a parameter
    // (docs/user-guide/features/dist_optimizer.md of Megatron-LM).
    d_.gradient_copies = fp16 && !wide;
    read_moments();
    for (const char* option : {"bf16", "fp16"})
      if (o_.has(option)) note("precision", option);
    if (o_.has("fp4-format")) throw o_.error("fp4-format", "fp4 is not supported; use --fp8-format or --bf16");
    for (const char* option : {"fp8-format", "fp8"})
      if (o_.has(option)) {
        d_.precision = "fp8";
        note("precision", option);
      }
    // megatron/core/fp8_utils.py, get_fp8_recipe: DelayedScaling, Float8CurrentScaling, Float8BlockScaling and
    // MXFP8BlockScaling of Transformer Engine.
    static const std::map<std::string, Fp8Recipe> recipes = {{"delayed", Fp8Recipe::delayed},
                                                             {"tensorwise", Fp8Recipe::tensorwise},
                                                             {"blockwise", Fp8Recipe::blockwise},
                                                             {"mxfp8", Fp8Recipe::mxfp8}};
    const std::string recipe = o_.text_or("fp8-recipe", "delayed");
    const auto known = recipes.find(recipe);
    if (known == recipes.end())
      ignore("--fp8-recipe");
    else if (d_.precision == "fp8")
      d_.fp8_recipe = known->second;
    if (recipe != "delayed") d_.amax_ranks = AmaxRanks::none;
    if (recipe == "delayed" && o_.flag("tp-only-amax-red")) d_.amax_ranks = AmaxRanks::tensor;
    if (o_.flag("fp8-param-gather") && d_.precision == "fp8") d_.parameter_precision = "fp8";
    if (o_.flag("activation-func-fp8-input-store")) d_.activation_input_precision = "fp8";
  }

  /// arguments.py: other types than fp32 need --use-precision-aware-optimizer.
  void read_moments() {
    if (!o_.flag("use-precision-aware-optimizer")) return;
    const std::string mean = o_.text_or("exp-avg-dtype", "fp32"), square = o_.text_or("exp-avg-sq-dtype", "fp32");
    if (mean != square)
      throw o_.error(o_.has("exp-avg-dtype") ? "exp-avg-dtype" : "exp-avg-sq-dtype",
                     fmt::format("--exp-avg-dtype {} and --exp-avg-sq-dtype {} are different, which is not supported",
                                 mean, square));
    if (mean != "fp32" && mean != "fp16" && mean != "bf16")
      throw o_.error("exp-avg-dtype", fmt::format("'{}' is not supported; use fp32, fp16 or bf16", mean));
    d_.moment_precision = mean;
    if (o_.has("exp-avg-dtype")) note("moment_precision", "exp-avg-dtype");
  }

  // Data parallelism -------------------------------------------------------------------------------------------------
  void read_sharding() {
    if (o_.flag("use-distributed-optimizer")) p_.sharding = Sharding::optimizer;
    if (o_.flag("use-megatron-fsdp") || o_.flag("use-custom-fsdp"))
      p_.sharding = strategy(o_.text_or("data-parallel-sharding-strategy", "no_shard"));
    if (o_.flag("use-torch-fsdp2")) {
      p_.sharding = Sharding::parameters;
      p_.reshard_after_forward = !o_.flag("torch-fsdp2-no-reshard-after-forward");
    }
    count("shard_copies", p_.shard_copies, {"num-distributed-optimizer-instances"});
    if (p_.sharding == Sharding::none) p_.shard_copies = 0;
    d_.offload_optimizer = d_.offload_optimizer || o_.flag("optimizer-cpu-offload");
  }
  Sharding strategy(const std::string& name) const {
    if (name == "no_shard") return Sharding::none;
    if (name == "optim") return Sharding::optimizer;
    if (name == "optim_grads") return Sharding::gradients;
    if (name == "optim_grads_params") return Sharding::parameters;
    throw o_.error("data-parallel-sharding-strategy",
                   fmt::format("unknown strategy '{}'; use no_shard, optim, optim_grads or optim_grads_params", name));
  }

  void read_gradients() {
    if (o_.text_or("DDP-impl", "local") == "torch") return;  // torch's buckets, overlapped
    d_.overlap_gradients = o_.flag("overlap-grad-reduce") || p_.sharding >= Sharding::gradients;
    d_.overlap_parameters = o_.flag("overlap-param-gather");
    // megatron/core/distributed: buckets only where they overlap with the backward pass, and, but for FSDP, only in the
    // first chunk of the first pipeline rank (distributed_data_parallel.py, disable_bucketing).
    d_.buckets_of_first_chunk =
        !o_.flag("use-megatron-fsdp") && !o_.flag("use-custom-fsdp") && !o_.flag("use-torch-fsdp2");
    constexpr std::int64_t all = TrainingDescription::all_elements;
    d_.bucket_elements = d_.overlap_gradients ? 40'000'000 : all;
    d_.bucket_elements_per_rank = d_.overlap_gradients ? 1'000'000 : 0;
    if (o_.has("ddp-bucket-size") && d_.overlap_gradients) {
      d_.bucket_elements = o_.whole("ddp-bucket-size", 1, all);
      d_.bucket_elements_per_rank = 0;
    }
    // megatron/training/training.py: align_grad_reduce gives the schedule grad_sync_func;
    // core/pipeline_parallel/schedules.py.
    d_.align_gradients = d_.overlap_gradients && d_.buckets_of_first_chunk && p_.virtual_stages > 1 &&
                         p_.schedule == "interleaved" && !o_.flag("no-align-grad-reduce");
    if (o_.has("clip-grad")) d_.clip_gradients = o_.number("clip-grad") > 0;
  }

  void read_recomputation() {
    if (o_.has("recompute-granularity")) {
      const std::string granularity = o_.text("recompute-granularity");
      if (granularity != "full" && granularity != "selective")
        throw o_.error("recompute-granularity",
                       fmt::format("unknown granularity '{}'; use full or selective", granularity));
      recompute(granularity == "full" ? Recompute::full : Recompute::selective, "recompute-granularity");
    }
    for (const char* old : {"recompute-activations"})
      if (o_.flag(old)) recompute(Recompute::selective, old);
    for (const char* old : {"checkpoint-activations", "activations-checkpoint-method"})
      if (o_.flag(old)) recompute(Recompute::full, old);
    read_recomputed_modules();
    read_recomputed_layers();
  }
  void recompute(Recompute what, const char* option) {
    d_.recompute = what;
    note("recompute", option);
  }
  void read_recomputed_modules() {
    if (d_.recompute != Recompute::selective || !o_.has("recompute-modules")) return;
    const auto known = recomputed_module_names();
    const std::vector<std::string> modules = o_.texts("recompute-modules");
    for (const std::string& name : modules)
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw o_.error("recompute-modules", fmt::format("unknown module '{}'; known: {}", name, listed(known)));
    recompute_modules(modules, d_);
    note("recompute_modules", "recompute-modules");
  }
  /// `block` recomputes so many blocks of each stage, `uniform` all, so many at a time.
  void read_recomputed_layers() {
    const std::string method =
        o_.text_or("recompute-method",
                   o_.flag("activations-checkpoint-method") ? o_.text("activations-checkpoint-method") : "uniform");
    for (const char* option : {"recompute-num-layers", "activations-checkpoint-num-layers"})
      if (o_.has(option) && method == "block" && d_.recompute == Recompute::full) {
        d_.recompute_layers = o_.count(option);
        note("recompute_layers", option);
      }
  }

  void read_experts() {
    d_.fused_loss = o_.flag("cross-entropy-loss-fusion") && o_.text_or("cross-entropy-fusion-impl", "native") == "te";
    d_.fused_router = o_.flag("moe-router-fusion");
    d_.fused_permutation = o_.flag("moe-permute-fusion");
    // megatron/core/transformer/moe/moe_utils.py, skip_routed_expert_padding: the router pads, or the dispatcher does.
    for (const char* option : {"moe-router-padding-for-fp8", "moe-router-padding-for-quantization"})
      if (o_.flag(option)) d_.padded_copies = false;
    if (o_.text_or("moe-token-dispatcher-type", "") == "flex" &&
        o_.text_or("moe-flex-dispatcher-backend", "") == "hybridep")
      d_.padded_copies = false;
    if (o_.has("moe-expert-capacity-factor")) {
      d_.capacity_factor = o_.number("moe-expert-capacity-factor");
      note("capacity_factor", "moe-expert-capacity-factor");
    }
    d_.pad_to_capacity = o_.flag("moe-pad-expert-input-to-capacity");
    if (d_.pad_to_capacity) note("pad_to_capacity", "moe-pad-expert-input-to-capacity");
    // alltoall and flex move the same tokens; allgather, the default, moves all tokens to all ranks.
    const char* dispatcher = "moe-token-dispatcher-type";
    if (p_.expert < 2) return;
    if (!o_.has(dispatcher))
      throw o_.error("expert-model-parallel-size",
                     "--moe-token-dispatcher-type is not given, and its default, allgather, is not supported; give "
                     "alltoall or flex");
    if (o_.text(dispatcher) == "allgather")
      throw o_.error(dispatcher, "'allgather' is not supported; use alltoall or flex");
  }

  const MegatronSource& source_;
  const MegatronOptions& o_;
  TrainingDescription& d_;
  ParallelPlan& p_;
};

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

void apply_megatron_options(const MegatronSource& source, TrainingDescription& description) {
  MegatronApplication(source, description).apply();
}

void read_megatron_arguments(const std::string& path, TrainingDescription& description) {
  if (path.ends_with(".yaml") || path.ends_with(".yml"))
    return apply_megatron_options(read_megatron_yaml(Spec::load(path), path, environment), description);
  apply_megatron_options(read_megatron_shell(text_of_file(path), path, environment), description);
}

}  // namespace weft
