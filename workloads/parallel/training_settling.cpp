// SPDX-License-Identifier: GPL-2.0-only
// Derives values from a training description, and finds its contradictions.
#include <algorithm>

#include <fmt/format.h>

#include "support/documents/spec.hpp"
#include "workloads/parallel/pass_sizes.hpp"
#include "workloads/parallel/settling.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {

std::string near_divisors(std::int64_t value, std::int64_t found) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  const auto consider = [&](std::int64_t divisor) {
    if (divisor <= found) below = std::max(below, divisor);
    if (divisor >= found) above = above == 0 ? divisor : std::min(above, divisor);
  };
  for (std::int64_t divisor = 1; divisor * divisor <= value; ++divisor)
    if (value % divisor == 0) {
      consider(divisor);
      consider(value / divisor);
    }
  return above == 0 ? std::to_string(below) : fmt::format("{} or {}", below, above);
}

std::string near_multiples(std::int64_t unit, std::int64_t found) {
  const std::int64_t below = found / unit * unit;
  return below == 0 ? std::to_string(unit) : fmt::format("{} or {}", below, below + unit);
}

void Complaints::raise(std::initializer_list<const char*> fields, const std::string& message) const {
  for (const char* field : fields)
    if (description_.where.contains(field)) throw description_.error(field, message, otherwise_);
  throw InputError(otherwise_, message);
}

void Complaints::require(const char* field, std::int64_t value, std::int64_t min, std::int64_t largest) const {
  if (value < min || value > largest)
    raise({field}, fmt::format("{} is {}; expected a whole number from {} to {}", field, value, min, largest));
}

void Complaints::require_precision(const char* field, const std::string& name,
                                   const std::vector<std::string>& known) const {
  if (std::find(known.begin(), known.end(), name) == known.end())
    raise({field},
          fmt::format("unknown {} '{}'{}; known here: {}", field, name, did_you_mean(name, known), listed(known)));
}

void Complaints::check_shares(const char* field, std::int64_t ranks, std::int64_t amount, const char* what) const {
  if (amount % ranks != 0)
    raise({field}, fmt::format("{} {} does not divide {} {}; use {}", field, ranks, grouped(amount), what,
                               near_divisors(amount, ranks)));
}

std::int64_t Complaints::ranks_of(std::initializer_list<std::int64_t> factors) const {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    product *= factor;
    if (product > max)
      raise({"data", "pipeline", "tensor", "context", "expert"},
            fmt::format("the parallelism makes more than {} ranks", grouped(max)));
  }
  return product;
}

namespace {

/// The whole description: ranges, precisions, and the parts of settling.hpp in their order.
class Settling {
 public:
  Settling(TrainingDescription& description, std::int64_t hosts, const Complaints& complaints)
      : d_(description), p_(description.parallel), hosts_(hosts), complaints_(complaints) {}

  void settle() {
    require_ranges();
    settle_precisions();
    settle_ranks_and_batches(d_, hosts_, complaints_);
    check_shapes(d_, complaints_);
    settle_pipeline(d_, complaints_);
    check_recompute(d_, complaints_);
    check_combined();
    check_aligned();
    settle_sharding();
    settle_buckets();
  }

 private:
  void require_ranges() const {
    complaints_.require("tensor", p_.tensor, 1);
    complaints_.require("context", p_.context, 1);
    complaints_.require("data", p_.data, 0);
    complaints_.require("pipeline", p_.pipeline, 1);
    complaints_.require("expert", p_.expert, 1);
    complaints_.require("expert_tensor", p_.expert_tensor, 0);
    complaints_.require("virtual_stages", p_.virtual_stages, 1);
    complaints_.require("shard_group", p_.shard_group, 0);
    complaints_.require("prefetch", p_.prefetch, 0);
    complaints_.require("shard_copies", p_.shard_copies, 0);
    complaints_.require("bucket_elements", d_.bucket_elements, 0, TrainingDescription::all_elements);
    complaints_.require("bucket_elements_per_rank", d_.bucket_elements_per_rank, 0);
    complaints_.require("world", d_.world, 0);
    complaints_.require("micro_batch", d_.micro_batch, 0, 65536);
    complaints_.require("global_batch", d_.global_batch, 0);
    complaints_.require("micro_batches", d_.micro_batches, 0);
    complaints_.require("sequence_length", d_.sequence_length, 0);
    complaints_.require("recompute_layers", d_.recompute_layers, 0);
    if (!(d_.capacity_factor >= 0 && d_.capacity_factor <= 1e6))
      complaints_.raise({"capacity_factor"},
                        fmt::format("capacity_factor is {}; expected a number from 0 to 1e6", d_.capacity_factor));
    if (d_.pad_to_capacity && d_.capacity_factor == 0)
      complaints_.raise({"pad_to_capacity"},
                        "pad_to_capacity is set, but no capacity_factor (--moe-expert-capacity-factor)");
    if (d_.pad_to_capacity && p_.expert_server > 0)
      complaints_.raise({"pad_to_capacity", "expert_server"},
                        "pad_to_capacity is for exchanges among all expert-parallel ranks, not over servers; leave out "
                        "expert_server");
  }

  void settle_precisions() {
    if (d_.gradient_precision.empty()) d_.gradient_precision = d_.parameter_precision;
    if (d_.dispatch_precision.empty()) d_.dispatch_precision = activation_precision(d_);
    if (d_.combine_precision.empty()) d_.combine_precision = activation_precision(d_);
    complaints_.require_precision("precision", d_.precision, gemm_precision_names());
    complaints_.require_precision("parameter_precision", d_.parameter_precision);
    complaints_.require_precision("gradient_precision", d_.gradient_precision);
    complaints_.require_precision("dispatch_precision", d_.dispatch_precision);
    complaints_.require_precision("combine_precision", d_.combine_precision);
    complaints_.require_precision("moment_precision", d_.moment_precision);
    for (const auto& [field, name] : {std::pair("activation_input_precision", d_.activation_input_precision),
                                      std::pair("attention_output_precision", d_.attention_output_precision)})
      if (!name.empty()) complaints_.require_precision(field, name, kept_precision_names());
  }

  /// As Megatron-LM refuses it (megatron/core/transformer/transformer_config.py).
  void check_combined() const {
    if (!p_.combined()) return;
    if (p_.expert == 1)
      complaints_.raise(
          {"schedule", "expert"},
          fmt::format("schedule {} hides exchanges with experts, but expert is 1; use 1f1b or interleaved, or "
                      "several expert ranks",
                      p_.schedule));
    if (d_.recompute == Recompute::full || d_.recompute_modules.mixture)
      complaints_.raise(
          {"recompute", "recompute_modules", "schedule"},
          fmt::format("schedule {} has no second forward pass whose exchanges it could hide; use recompute none or "
                      "selective, without moe",
                      p_.schedule));
  }

  void check_aligned() const {
    if (!d_.align_gradients) return;
    if (p_.schedule != "interleaved")
      complaints_.raise({"align_gradients", "schedule"},
                        fmt::format("align_gradients needs schedule interleaved, not {}", p_.schedule));
    if (!d_.overlap_gradients)
      complaints_.raise({"align_gradients", "overlap_gradients"},
                        "align_gradients needs sums beside the backward pass; use overlap_gradients: true");
    if (p_.sharding == Sharding::parameters || d_.reduce_every_micro_batch)
      complaints_.raise({"align_gradients", "sharding", "reduce_every_micro_batch"},
                        "align_gradients needs gradients that are summed once in a step; use sharding none, optimizer "
                        "or gradients, and reduce_every_micro_batch: false");
  }

  void settle_sharding() {
    const std::int64_t replicas = p_.data * p_.context;
    if (p_.shard_copies > 0 && p_.shard_group == 0) {
      complaints_.check_shares("shard_copies", p_.shard_copies, replicas, "data-parallel ranks (data x context)");
      p_.shard_group = p_.shard_copies == 1 ? 0 : replicas / p_.shard_copies;
    }
    if (p_.shard_group == 0) return;
    if (p_.sharding == Sharding::none)
      complaints_.raise({"shard_group", "shard_copies"},
                        fmt::format("shard_group {}, but nothing is sharded; use 0", p_.shard_group));
    complaints_.check_shares("shard_group", p_.shard_group, replicas, "data-parallel ranks (data x context)");
  }

  void settle_buckets() {
    if (d_.bucket_elements == 0) return;
    const std::int64_t elements = std::max(d_.bucket_elements, d_.bucket_elements_per_rank * p_.data * p_.context);
    d_.buckets.first = d_.buckets.further = Bytes(elements * element_bytes(d_.gradient_precision));
  }

  TrainingDescription& d_;
  ParallelPlan& p_;
  std::int64_t hosts_;
  const Complaints& complaints_;
};

}  // namespace

void settle_description(TrainingDescription& description, std::int64_t hosts, const SourceLine& otherwise) {
  const Complaints complaints(description, otherwise);
  Settling(description, hosts, complaints).settle();
}

}  // namespace weft
