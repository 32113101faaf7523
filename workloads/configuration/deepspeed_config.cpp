// SPDX-License-Identifier: GPL-2.0-only
// DeepSpeed's JSON configuration (deepspeed.ai/docs/config-json; deepspeed/runtime/config.py and zero/config.py).
#include "workloads/configuration/deepspeed_config.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::int64_t max_of_a_setting = std::int64_t{1} << 24;
constexpr std::int64_t max_elements = std::int64_t{1} << 48;

class DeepSpeedApplication {
 public:
  DeepSpeedApplication(const JsonConfig& config, TrainingDescription& description)
      : c_(config), d_(description), p_(description.parallel) {}

  void apply() {
    read_ranks();
    read_batches();
    read_precision();
    read_clipping();
    if (c_.has("zero_optimization") && !c_.is_boolean("zero_optimization"))
      read_zero(c_.object("zero_optimization"));
    else
      read_stage(c_.boolean_or("zero_optimization", false) ? 1 : 0);
    ignore_unasked(c_, "");
  }

 private:
  static bool is_auto(const JsonConfig& config, const std::string& key) {
    return config.is_text(key) && config.text(key) == "auto";
  }
  bool said(const char* field) const { return d_.where.contains(field); }
  [[noreturn]] static void refuse_auto(const JsonConfig& config, const std::string& key, const std::string& otherwise) {
    throw config.error(key, fmt::format("\"auto\", but {}; write the value", otherwise));
  }
  void ignore_unasked(const JsonConfig& config, const std::string& prefix) {
    for (const std::string& key : config.unasked())
      if (std::find(d_.ignored.begin(), d_.ignored.end(), prefix + key) == d_.ignored.end())
        d_.ignored.push_back(prefix + key);
  }
  /// A number, noted as where `field` is said.
  void count(const char* field, std::int64_t& value, const JsonConfig& config, const std::string& key) {
    if (!config.has(key)) return;
    value = config.whole(key, 1, max_of_a_setting);
    d_.where[field] = config.where(key);
  }

  void read_ranks() {
    if (c_.has("sequence_parallel_size")) {
      count("context", p_.context, c_, "sequence_parallel_size");
      p_.context_kind = ContextKind::ulysses;
    }
    if (!c_.has("tensor_parallel")) return;
    const JsonConfig tensor = c_.object("tensor_parallel");
    for (const char* key : {"autotp_size", "tp_size"})
      if (tensor.has(key) && tensor.whole(key, 0, max_of_a_setting) > 0) count("tensor", p_.tensor, tensor, key);
    ignore_unasked(tensor, "tensor_parallel.");
  }

  // train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * data-parallel ranks -------------
  void read_batches() {
    const char* batch = "train_batch_size";
    const char* micro = "train_micro_batch_size_per_gpu";
    const char* steps = "gradient_accumulation_steps";
    const bool has_batch = read_batch("global_batch", d_.global_batch, batch);
    const bool has_micro = read_batch("micro_batch", d_.micro_batch, micro);
    const bool has_steps = read_batch("micro_batches", d_.micro_batches, steps);
    if (!has_batch && !has_micro) {
      const char* key = c_.has(micro) ? micro : batch;
      if (c_.has(key)) refuse_auto(c_, key, "nothing says how many sequences a step or a GPU works on");
      throw c_.error(batch, fmt::format("neither this nor {} is there; expected one of them", micro));
    }
    // Derives the values that the file leaves open: _set_batch_related_parameters of deepspeed/runtime/config.py.
    if (!has_micro) d_.micro_batch = 0;
    if (!has_steps) d_.micro_batches = has_batch && has_micro ? 0 : 1;
  }
  /// True if the file or the description has it.
  bool read_batch(const char* field, std::int64_t& value, const char* key) {
    if (!c_.has(key) || is_auto(c_, key)) return said(field);
    count(field, value, c_, key);
    return true;
  }

  // Precision
  // ----------------------------------------------------------------------------------------------------------
  void read_precision() {
    const bool bf16 = enabled("bf16", "bf16") || enabled("bfloat16", "bf16");
    const bool fp16 = enabled("fp16", "fp16");
    if (bf16 && fp16) throw c_.error("fp16", "bf16 is also enabled; leave one of them out");
    const bool mentioned = c_.has("bf16") || c_.has("bfloat16") || c_.has("fp16");
    if (mentioned || !said("precision")) d_.precision = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    d_.parameter_precision = d_.precision;
    d_.gradient_precision = d_.precision;
    if (!c_.has("communication_data_type") || is_auto(c_, "communication_data_type")) return;
    const std::string type = c_.text("communication_data_type");
    if (type != "fp32" && type != "fp16" && type != "bf16" && type != "bfp16")
      throw c_.error("communication_data_type", fmt::format("unknown type '{}'; use fp32, fp16 or bf16", type));
    d_.gradient_precision = type == "bfp16" ? "bf16" : type;
    d_.where["gradient_precision"] = c_.where("communication_data_type");
  }
  bool enabled(const std::string& section, const std::string& precision) {
    if (!c_.has(section)) return false;
    const JsonConfig inner = c_.object(section);
    if (is_auto(inner, "enabled")) {
      if (!said("precision")) refuse_auto(inner, "enabled", "no arguments of a Trainer say the precision");
      return d_.precision == precision;
    }
    const bool on = inner.boolean_or("enabled", true);
    if (on) d_.where["precision"] = inner.where("enabled");
    return on;  // the rest is about the scale of the loss
  }

  void read_clipping() {
    const char* key = "gradient_clipping";
    if (!c_.has(key)) {
      d_.clip_gradients = said("clip_gradients") && d_.clip_gradients;
    } else if (is_auto(c_, key)) {
      if (!said("clip_gradients")) refuse_auto(c_, key, "no arguments of a Trainer say max_grad_norm");
    } else {
      d_.clip_gradients = c_.number(key, 0, 1e9) > 0;
    }
  }

  // ZeRO -------------------------------------------------------------------------------------------------------------
  void read_stage(std::int64_t stage) {
    constexpr Sharding stages[] = {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::parameters};
    p_.sharding = stages[stage];
    p_.reshard_after_forward = true;
    d_.reduce_every_micro_batch = stage == 2;
    d_.overlap_gradients = stage == 3;
    d_.overlap_parameters = false;
    d_.bucket_elements = 500'000'000;
    d_.bucket_elements_per_rank = 0;
  }

  void read_zero(const JsonConfig& zero) {
    const std::int64_t stage = zero.has("stage") ? zero.whole("stage", 0, 3) : 0;
    read_stage(stage);
    d_.where["sharding"] = zero.where("stage");
    d_.overlap_gradients = zero.boolean_or("overlap_comm", d_.overlap_gradients);
    if (!zero.boolean_or("reduce_scatter", true) && (stage == 1 || stage == 2))
      throw zero.error("reduce_scatter", "gradients are reduced and scattered; only true is supported");
    // Values of "auto": deepspeed_config_finalize of transformers/integrations/deepspeed.py.
    const std::int64_t square = d_.model.hidden * d_.model.hidden;
    if (const auto bucket = elements(zero, "reduce_bucket_size", square)) d_.bucket_elements = *bucket;
    if (const auto ahead = elements(zero, "stage3_prefetch_bucket_size", square / 10 * 9); ahead && stage == 3)
      p_.prefetch = blocks_in(*ahead);
    if (is_auto(zero, "stage3_param_persistence_threshold")) static_cast<void>(required_hidden(zero, "stage"));
    read_groups(zero, stage);
    d_.offload_optimizer = offloads(zero, "offload_optimizer") || zero.boolean_or("cpu_offload", false);
    d_.offload_parameters = offloads(zero, "offload_param") || zero.boolean_or("cpu_offload_params", false);
    ignore_unasked(zero, "zero_optimization.");
  }

  std::int64_t required_hidden(const JsonConfig& zero, const std::string& key) const {
    if (d_.model.hidden == 0) refuse_auto(zero, key, "it follows from the hidden size, and no model is said");
    return d_.model.hidden;
  }
  std::optional<std::int64_t> elements(const JsonConfig& zero, const std::string& key, std::int64_t of_auto) const {
    if (!zero.has(key)) return std::nullopt;
    if (!is_auto(zero, key)) return zero.whole(key, 0, max_elements);
    static_cast<void>(required_hidden(zero, key));
    return of_auto;
  }
  /// Whole blocks that so many parameters are; a part of one counts as one.
  std::int64_t blocks_in(std::int64_t elements) const {
    if (elements == 0) return 0;
    std::int64_t largest = 0;
    for (const BlockShape& shape : d_.model.shapes) largest = std::max(largest, elements_of(shape.tensors));
    return largest == 0 ? 1 : std::clamp<std::int64_t>(elements / largest, 1, max_of_a_setting);
  }

  /// Groups that keep a copy of the parameters: ZeRO++ (arXiv:2306.10209) and MiCS (arXiv:2205.00119).
  void read_groups(const JsonConfig& zero, std::int64_t stage) {
    for (const char* key : {"zero_hpz_partition_size", "mics_shard_size"}) {
      if (!zero.has(key)) continue;
      const std::int64_t size = zero.whole(key, -1, max_of_a_setting);
      if (size <= 1) continue;
      if (stage != 3) throw zero.error(key, fmt::format("groups of {}, but the stage is {}; expected 3", size, stage));
      p_.shard_group = size;
      d_.where["shard_group"] = zero.where(key);
    }
  }

  static bool offloads(const JsonConfig& zero, const std::string& key) {
    if (!zero.has(key)) return false;
    const std::string device = zero.object(key).text_or("device", "none");
    if (device != "none" && device != "cpu" && device != "nvme")
      throw zero.error(key, fmt::format("unknown device '{}'; use cpu, nvme or none", device));
    return device != "none";
  }

  const JsonConfig& c_;
  TrainingDescription& d_;
  ParallelPlan& p_;
};

}  // namespace

void apply_deepspeed(const JsonConfig& config, TrainingDescription& description) {
  DeepSpeedApplication(config, description).apply();
}

void read_deepspeed_config(const std::string& path, TrainingDescription& description) {
  apply_deepspeed(JsonConfig::load(path), description);
}

}  // namespace weft
