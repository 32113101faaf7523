// SPDX-License-Identifier: GPL-2.0-only
// Derives values from a training description, and finds its contradictions.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "support/documents/spec.hpp"
#include "workloads/parallel/pass_sizes.hpp"
#include "workloads/parallel/training_description.hpp"
#include "workloads/pipeline/pipeline_schedule.hpp"
#include "workloads/reading/device.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Largest number of anything that is counted: products of two stay within 64 bits.
constexpr std::int64_t max = std::int64_t{1} << 24;

/// "4 or 8": the divisors of `value` around `found`.
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

/// "8 or 16": the multiples of `unit` around `found`.
std::string near_multiples(std::int64_t unit, std::int64_t found) {
  const std::int64_t below = found / unit * unit;
  return below == 0 ? std::to_string(unit) : fmt::format("{} or {}", below, below + unit);
}

class Settling {
 public:
  Settling(TrainingDescription& description, std::int64_t hosts, const SourceLine& otherwise)
      : d_(description), p_(description.parallel), hosts_(hosts), otherwise_(otherwise) {}

  void settle() {
    require_ranges();
    settle_precisions();
    settle_ranks();
    settle_experts();
    settle_batches();
    check_sequence();
    check_tensor_overlap();
    check_model_against_tensor();
    settle_pipeline();
    settle_predictions();
    check_recompute();
    check_combined();
    settle_sharding();
    settle_buckets();
  }

 private:
  /// At the first of these fields that was said.
  [[noreturn]] void complain(std::initializer_list<const char*> fields, const std::string& message) const {
    for (const char* field : fields)
      if (d_.where.contains(field)) throw d_.error(field, message, otherwise_);
    throw InputError(otherwise_, message);
  }

  void require(const char* field, std::int64_t value, std::int64_t min, std::int64_t largest = max) const {
    if (value < min || value > largest)
      complain({field}, fmt::format("{} is {}; expected a whole number from {} to {}", field, value, min, largest));
  }

  void require_ranges() const {
    require("tensor", p_.tensor, 1);
    require("context", p_.context, 1);
    require("data", p_.data, 0);
    require("pipeline", p_.pipeline, 1);
    require("expert", p_.expert, 1);
    require("expert_tensor", p_.expert_tensor, 0);
    require("virtual_stages", p_.virtual_stages, 1);
    require("shard_group", p_.shard_group, 0);
    require("prefetch", p_.prefetch, 0);
    require("shard_copies", p_.shard_copies, 0);
    require("bucket_elements", d_.bucket_elements, 0, std::int64_t{1} << 48);
    require("bucket_elements_per_rank", d_.bucket_elements_per_rank, 0);
    require("world", d_.world, 0);
    require("micro_batch", d_.micro_batch, 0, 65536);
    require("global_batch", d_.global_batch, 0);
    require("micro_batches", d_.micro_batches, 0);
    require("sequence_length", d_.sequence_length, 0);
    require("recompute_layers", d_.recompute_layers, 0);
    if (!(d_.capacity_factor >= 0 && d_.capacity_factor <= 1e6))
      complain({"capacity_factor"},
               fmt::format("capacity_factor is {}; expected a number from 0 to 1e6", d_.capacity_factor));
    if (d_.pad_to_capacity && d_.capacity_factor == 0)
      complain({"pad_to_capacity"}, "pad_to_capacity is set, but no capacity_factor (--moe-expert-capacity-factor)");
    if (d_.pad_to_capacity && p_.expert_server > 0)
      complain({"pad_to_capacity", "expert_server"},
               "pad_to_capacity is for exchanges among all expert-parallel ranks, not over servers; leave out "
               "expert_server");
  }

  void settle_precisions() {
    if (d_.gradient_precision.empty()) d_.gradient_precision = d_.parameter_precision;
    if (d_.dispatch_precision.empty()) d_.dispatch_precision = activation_precision(d_);
    if (d_.combine_precision.empty()) d_.combine_precision = activation_precision(d_);
    require_precision("precision", d_.precision, gemm_precision_names());
    require_precision("parameter_precision", d_.parameter_precision);
    require_precision("gradient_precision", d_.gradient_precision);
    require_precision("dispatch_precision", d_.dispatch_precision);
    require_precision("combine_precision", d_.combine_precision);
    require_precision("moment_precision", d_.moment_precision);
    for (const auto& [field, name] : {std::pair("activation_input_precision", d_.activation_input_precision),
                                      std::pair("attention_output_precision", d_.attention_output_precision)})
      if (!name.empty()) require_precision(field, name, kept_precision_names());
  }
  void require_precision(const char* field, const std::string& name,
                         const std::vector<std::string>& known = precision_names()) const {
    if (std::find(known.begin(), known.end(), name) == known.end())
      complain({field},
               fmt::format("unknown {} '{}'{}; known here: {}", field, name, did_you_mean(name, known), listed(known)));
  }

  /// A product of ranks, at most `max`.
  std::int64_t ranks_of(std::initializer_list<std::int64_t> factors) const {
    std::int64_t product = 1;
    for (const std::int64_t factor : factors) {
      product *= factor;
      if (product > max)
        complain({"data", "pipeline", "tensor", "context", "expert"},
                 fmt::format("the parallelism makes more than {} ranks", grouped(max)));
    }
    return product;
  }

  void settle_ranks() {
    const std::int64_t replica = ranks_of({p_.tensor, p_.context, p_.pipeline});
    if (p_.data == 0) p_.data = data_of(replica);
    const std::int64_t product = ranks_of({replica, p_.data});
    const std::string shape = fmt::format("tensor {} x context {} x data {} x pipeline {} = {} ranks", p_.tensor,
                                          p_.context, p_.data, p_.pipeline, grouped(product));
    if (d_.world != 0 && d_.world != product)
      complain({"data", "world", "tensor", "pipeline", "context"},
               fmt::format("{}, but the world is {}; {}", shape, grouped(d_.world), right_data(replica)));
    d_.world = product;
    if (hosts_ > 0 && d_.world > hosts_)
      complain({"world", "data", "tensor", "pipeline", "context"},
               fmt::format("{}, but the machine has {} accelerators; use a machine of {}", shape, grouped(hosts_),
                           grouped(d_.world)));
  }
  std::string right_data(std::int64_t replica) const {
    if (d_.world % replica == 0) return fmt::format("use data {}", d_.world / replica);
    return fmt::format("use a world of {}", grouped(replica * p_.data));
  }

  /// The number of data-parallel ranks if it is not given; each copy has `replica` ranks.
  std::int64_t data_of(std::int64_t replica) const {
    const std::int64_t world = d_.world != 0 ? d_.world : hosts_;
    if (world == 0) return min_data();
    if (world % replica != 0)
      complain(
          {"world", "tensor", "pipeline", "context"},
          fmt::format("tensor {} x context {} x pipeline {} = {} ranks do not divide the {} of {}; use {}", p_.tensor,
                      p_.context, p_.pipeline, grouped(replica), d_.world != 0 ? "world" : "machine's accelerators",
                      grouped(world), near_multiples(replica, world)));
    return world / replica;
  }
  /// If the number of ranks is not given: the number that the batches need, or the least that hold the experts.
  std::int64_t min_data() const {
    if (d_.global_batch != 0 && d_.micro_batches != 0 && d_.micro_batch != 0) {
      const std::int64_t share = d_.micro_batch * d_.micro_batches;
      if (d_.global_batch % share == 0) return d_.global_batch / share;
    }
    const std::int64_t holding = ranks_of({p_.expert, p_.expert_tensor == 0 ? p_.tensor : p_.expert_tensor});
    return holding / std::gcd(holding, p_.tensor * p_.context);
  }

  void settle_experts() {
    if (p_.expert_tensor == 0) p_.expert_tensor = p_.tensor;
    if (p_.expert_server > 0 && (p_.expert % p_.expert_server != 0 || p_.expert == p_.expert_server))
      complain(
          {"expert_server", "expert"},
          fmt::format("expert {} is not several times expert_server {}; expected the same number of expert ranks in "
                      "each of several servers",
                      p_.expert, p_.expert_server));
    if (p_.forward_in_parts && p_.expert_server == 0)
      complain({"expert_forwarding"}, "it needs expert_server, the expert ranks of one server");
    if (p_.servers_per_token > 0 && p_.expert_server == 0)
      complain({"servers_per_token"}, "it needs expert_server, the expert ranks of one server");
    if (p_.expert == 1) return;
    const MlpShape* mixture = largest_mixture();
    if (mixture == nullptr)
      complain({"expert"}, fmt::format("expert {}, but no block of the model has experts; use 1", p_.expert));
    const std::int64_t group = ranks_of({p_.expert, p_.expert_tensor});
    const std::int64_t stage = ranks_of({p_.tensor, p_.context, p_.data});
    if (stage % group != 0)
      complain(
          {"expert", "expert_tensor"},
          fmt::format("expert {} x expert_tensor {} = {} ranks do not divide the tensor {} x context {} x data {} = "
                      "{} ranks of a pipeline stage; use {}",
                      p_.expert, p_.expert_tensor, grouped(group), p_.tensor, p_.context, p_.data, grouped(stage),
                      near_divisors(stage, group)));
  }
  const MlpShape* largest_mixture() const {
    const MlpShape* mixture = nullptr;
    for (const BlockShape& shape : d_.model.shapes)
      if (shape.mlp.mixture()) mixture = &shape.mlp;
    return mixture;
  }

  void settle_batches() {
    if (d_.micro_batch == 0) settle_micro_batch();
    const std::int64_t share = d_.micro_batch * p_.data;
    if (d_.micro_batches == 0) {
      if (d_.global_batch % share != 0)
        complain({"global_batch", "micro_batch", "data"},
                 fmt::format("global_batch {} is no multiple of micro_batch {} x data {} = {}; use {}",
                             grouped(d_.global_batch), d_.micro_batch, p_.data, grouped(share),
                             near_multiples(share, d_.global_batch)));
      d_.micro_batches = std::max<std::int64_t>(1, d_.global_batch / share);
    }
    if (d_.micro_batches > max / share)
      complain({"micro_batches", "global_batch", "micro_batch"},
               fmt::format("micro_batch {} x data {} x micro_batches {} is more than {} sequences a step",
                           d_.micro_batch, p_.data, d_.micro_batches, grouped(max)));
    const std::int64_t batch = share * d_.micro_batches;
    if (d_.global_batch != 0 && d_.global_batch != batch)
      complain({"global_batch", "micro_batches", "micro_batch"},
               fmt::format("global_batch {}, but micro_batch {} x data {} x micro_batches {} = {}; {}",
                           grouped(d_.global_batch), d_.micro_batch, p_.data, d_.micro_batches, grouped(batch),
                           right_batch(share, batch)));
    d_.global_batch = batch;
  }
  void settle_micro_batch() {
    const std::int64_t share = p_.data * std::max<std::int64_t>(1, d_.micro_batches);
    if (d_.global_batch == 0 || d_.global_batch % share != 0)
      complain({"global_batch", "micro_batches", "data"},
               fmt::format("global_batch {} is no multiple of data {} x micro_batches {} = {}; use {}",
                           grouped(d_.global_batch), p_.data, std::max<std::int64_t>(1, d_.micro_batches),
                           grouped(share), near_multiples(share, d_.global_batch)));
    d_.micro_batch = d_.global_batch / share;
    require("micro_batch", d_.micro_batch, 1, 65536);
  }
  std::string right_batch(std::int64_t share, std::int64_t batch) const {
    if (d_.global_batch % share == 0) return fmt::format("use micro_batches {}", d_.global_batch / share);
    return fmt::format("use a global_batch of {}", grouped(batch));
  }

  void check_sequence() const {
    const std::int64_t s = d_.sequence_length;
    const bool attends = std::any_of(d_.model.shapes.begin(), d_.model.shapes.end(),
                                     [](const BlockShape& shape) { return shape.attention.heads > 0; });
    if (s == 0 && attends)
      complain({"sequence_length"},
               fmt::format("sequence_length is not said; expected the tokens of a sequence{}",
                           d_.model.positions > 0 ? fmt::format(", up to {}", grouped(d_.model.positions)) : ""));
    if (d_.model.positions > 0 && s > d_.model.positions)
      complain({"sequence_length"}, fmt::format("sequence_length {}, but the model has {} positions; use up to {}", s,
                                                d_.model.positions, d_.model.positions));
    check_context(s);
    const std::int64_t part = s / p_.context;
    if (p_.sequence && part % p_.tensor != 0)
      complain({"sequence", "sequence_length", "tensor"},
               fmt::format("sequence parallelism: tensor {} does not divide the {} tokens of a rank; use {}", p_.tensor,
                           part, near_divisors(part, p_.tensor)));
  }
  bool overlaps(OverlappedGemm gemm) const { return d_.tensor_overlap.of(gemm).method != OverlapMethod::none; }
  /// Parts are those of the sequence, and of hidden vectors. Latent attention gathers compressed vectors instead.
  void check_tensor_overlap() const {
    if (!d_.tensor_overlap.on || p_.tensor == 1) return;
    if (!p_.sequence)
      complain({"tensor_overlap", "sequence"},
               fmt::format("tensor_overlap, but {} tensor ranks without `sequence: true`, "
                           "whose calls sum whole results",
                           p_.tensor));
    const bool inputs = overlaps(OverlappedGemm::qkv_fprop) || overlaps(OverlappedGemm::qkv_dgrad) ||
                        overlaps(OverlappedGemm::qkv_wgrad);
    for (const BlockShape& shape : d_.model.shapes)
      if (inputs && shape.attention.latent())
        complain({"tensor_overlap"},
                 "tensor_overlap, but the model has latent attention, whose compressed vectors have no buffers; add "
                 "`qkv_fprop: none`, `qkv_dgrad: none` and `qkv_wgrad: none`");
    for (std::size_t gemm = 0; gemm < overlapped_gemm_count; ++gemm) {
      const OverlapOfGemm& overlap = d_.tensor_overlap.gemms[gemm];
      const std::string& name = overlapped_gemm_names()[gemm];
      if (overlap.pairs && p_.tensor % 2 != 0)
        complain({"tensor_overlap"},
                 fmt::format("{}: `aggregate` puts tensor ranks in pairs, but there are {}; use an even "
                             "number, or `aggregate: false`",
                             name, p_.tensor));
      if (overlap.method == OverlapMethod::pipeline && d_.model.hidden % overlap.parts != 0)
        complain({"tensor_overlap"},
                 fmt::format("{}: {} parts do not divide the hidden size {}; use {}", name, overlap.parts,
                             d_.model.hidden, near_divisors(d_.model.hidden, overlap.parts)));
    }
  }
  void check_context(std::int64_t s) const {
    if (p_.context == 1) return;
    for (const BlockShape& shape : d_.model.shapes) {
      // In a ring with causal attention a rank has two chunks, one from each end, so that all have as much to do.
      const bool round = p_.context_kind == ContextKind::ring || p_.context_kind == ContextKind::gathered_ring;
      const bool twice = round && shape.attention.causal && shape.attention.heads > 0;
      const std::int64_t chunks = (twice ? 2 : 1) * p_.context;
      if (s % chunks != 0)
        complain({"context", "sequence_length"},
                 fmt::format("sequence_length {} is no multiple of {}context {} = {}; use {}", s, twice ? "2 x " : "",
                             p_.context, chunks, near_multiples(chunks, s)));
      const std::int64_t heads = shape.attention.heads;
      if (p_.context_kind == ContextKind::ulysses && heads % (p_.tensor * p_.context) != 0)
        complain({"context", "context_kind", "tensor"},
                 fmt::format("{} heads are no multiple of tensor {} x context {} = {}, which Ulysses shares them over; "
                             "use {}",
                             heads, p_.tensor, p_.context, p_.tensor * p_.context,
                             near_divisors(heads, p_.tensor * p_.context)));
    }
  }

  void check_model_against_tensor() const {
    for (const BlockShape& shape : d_.model.shapes) {
      const AttentionShape& attention = shape.attention;
      check_shares("tensor", p_.tensor, attention.heads, "attention heads");
      // Fewer key-value heads than ranks: each has a copy of one.
      if (attention.kv_heads > 0 && p_.tensor % attention.kv_heads != 0)
        check_shares("tensor", p_.tensor, attention.kv_heads, "key-value heads");
      check_shares("tensor", p_.tensor, shape.mlp.inner, "inner width of the MLP");
      check_shares("tensor", p_.tensor, shape.mlp.shared_inner, "inner width of the shared experts");
      if (!shape.mlp.mixture()) continue;
      // Each tensor rank would route all tokens, and the experts compute each of them tensor times. Megatron-LM refuses
      // it, too (megatron/core/transformer/moe/moe_layer.py).
      if (p_.tensor > 1 && !p_.sequence)
        complain({"tensor", "expert"},
                 fmt::format("tensor {} and experts, but no sequence parallelism: all tensor ranks would send the same "
                             "tokens to the experts; use `sequence: true` (--sequence-parallel), or tensor 1",
                             p_.tensor));
      check_shares("expert", p_.expert, shape.mlp.experts, "experts");
      check_servers(shape.mlp);
      check_shares("expert_tensor", p_.expert_tensor, shape.mlp.expert_inner, "inner width of an expert");
    }
  }
  /// The experts of a token are on the servers that it may go to.
  void check_servers(const MlpShape& mlp) const {
    if (p_.servers_per_token == 0) return;
    const std::int64_t here = mlp.experts / (p_.expert / p_.expert_server);
    if (mlp.experts_per_token > p_.servers_per_token * here)
      complain(
          {"servers_per_token"},
          fmt::format("a token goes to {} experts, but servers_per_token {} have {} each; use at least {}",
                      mlp.experts_per_token, p_.servers_per_token, here, (mlp.experts_per_token + here - 1) / here));
  }
  /// `ranks`, said by `field`, share out `amount` of something.
  void check_shares(const char* field, std::int64_t ranks, std::int64_t amount, const char* what) const {
    if (amount % ranks != 0)
      complain({field}, fmt::format("{} {} does not divide {} {}; use {}", field, ranks, grouped(amount), what,
                                    near_divisors(amount, ranks)));
  }

  void settle_pipeline() {
    if (p_.pipeline == 1) {
      if (p_.virtual_stages > 1)
        complain({"virtual_stages"}, fmt::format("virtual_stages {}, but pipeline is 1; use 1", p_.virtual_stages));
      settle_stages(1);
      return;
    }
    settle_stages(pipeline_stages());
  }
  void settle_predictions() {
    const auto stages = static_cast<std::int64_t>(p_.stage_layers.size());
    if (p_.prediction_stage < 0) p_.prediction_stage = stages - 1;
    if (p_.prediction_stage >= stages)
      complain({"prediction_stage"}, fmt::format("prediction_stage {}, but there are {} stages; use 0 to {}",
                                                 p_.prediction_stage, stages, stages - 1));
    if (d_.model.prediction_blocks == 0) {
      if (d_.model.tied) p_.embedding_copy = rank_beside_embedding(stages - 1);
      return;
    }
    if (d_.model.blocks.empty()) complain({"prediction_blocks"}, "the model has no blocks; use prediction_blocks 0");
    const AttentionShape& attention = d_.model.layer_shape(d_.model.layers()).attention;
    if (d_.model.vocabulary == 0 || d_.model.encoder_blocks > 0 || attention.heads == 0 || !attention.causal)
      complain({"prediction_blocks"},
               "layers of multi-token prediction want a decoder with a vocabulary; use prediction_blocks 0 with this "
               "model");
    p_.embedding_copy = rank_beside_embedding(p_.prediction_stage);
    if (d_.model.tied && p_.embedding_copy != rank_beside_embedding(stages - 1))
      complain({"prediction_stage"},
               fmt::format("the embedding is tied to the logits, which are on another pipeline rank than stage {}; use "
                           "prediction_stage {}",
                           p_.prediction_stage, stages - 1));
  }
  /// The pipeline rank of a stage, or 0 if the embedding is there, too.
  std::int64_t rank_beside_embedding(std::int64_t stage) const {
    if (p_.pipeline == 1) return 0;
    const PipelineShape shape{static_cast<std::uint32_t>(p_.pipeline), static_cast<std::uint32_t>(p_.virtual_stages),
                              static_cast<std::uint32_t>(d_.micro_batches)};
    const auto schedule = PipelineScheduleRegistry::instance().find(p_.schedule)->make();
    const std::uint32_t rank = schedule->place_of(shape, static_cast<std::uint32_t>(stage), 0).rank;
    for (std::uint32_t chunk = 0; chunk < schedule->chunks(shape); ++chunk)
      if (schedule->stage_of(shape, rank, chunk) == 0) return 0;
    return rank;
  }
  void settle_stages(std::int64_t stages) {
    const std::int64_t layers = d_.model.layers();
    if (p_.stage_layers.empty()) {
      if (layers % stages != 0)
        complain(
            {"pipeline", "virtual_stages"},
            fmt::format("{} layers cannot be shared out over the {} stages of pipeline {} x virtual_stages {}; use {} "
                        "layers, or {} stages",
                        layers, stages, p_.pipeline, p_.virtual_stages, near_multiples(stages, layers),
                        near_divisors(layers, stages)));
      p_.stage_layers.assign(static_cast<std::size_t>(stages), layers / stages);
      return;
    }
    std::int64_t sum = 0;
    for (const std::int64_t own : p_.stage_layers) {
      require("stage_layers", own, 0);
      sum += own;
    }
    if (static_cast<std::int64_t>(p_.stage_layers.size()) != stages)
      complain({"stage_layers", "pipeline"},
               fmt::format("stage_layers has {} stages, but pipeline {} x virtual_stages {} is {}; expected {} "
                           "numbers",
                           p_.stage_layers.size(), p_.pipeline, p_.virtual_stages, stages, stages));
    if (sum != layers)
      complain({"stage_layers", "pipeline"},
               fmt::format("stage_layers has {} blocks in all, but the model has {}; expected a sum "
                           "of {}",
                           sum, layers, layers));
  }
  std::int64_t pipeline_stages() const {
    const auto* entry = PipelineScheduleRegistry::instance().find(p_.schedule);
    if (entry == nullptr) {
      const auto known = PipelineScheduleRegistry::instance().names();
      complain({"schedule"}, fmt::format("unknown schedule '{}'{}; known here: {}", p_.schedule,
                                         did_you_mean(p_.schedule, known), listed(known)));
    }
    ranks_of({p_.pipeline, p_.virtual_stages});
    const auto schedule = entry->make();
    const PipelineShape shape{static_cast<std::uint32_t>(p_.pipeline), static_cast<std::uint32_t>(p_.virtual_stages),
                              static_cast<std::uint32_t>(d_.micro_batches)};
    if (const std::string reason = schedule->refuses(shape); !reason.empty())
      complain({"schedule", "virtual_stages", "micro_batches", "global_batch", "pipeline"},
               fmt::format("schedule {}: {}", p_.schedule, reason));
    return schedule->stages(shape);
  }

  void check_recompute() {
    if (d_.recompute != Recompute::full && d_.recompute_layers > 0)
      complain(
          {"recompute_layers", "recompute"},
          fmt::format("recompute_layers {}, but only full recomputation is by blocks; use 0", d_.recompute_layers));
    check_recomputed_modules();
    if (d_.recompute == Recompute::none) return;
    const bool attends = std::any_of(d_.model.shapes.begin(), d_.model.shapes.end(),
                                     [](const BlockShape& shape) { return shape.attention.heads > 0; });
    if (d_.recompute == Recompute::selective && !attends)
      complain({"recompute"},
               "selective recomputation is of attention, and no block of the model has it; use none "
               "or full");
    const bool dense = std::all_of(d_.model.shapes.begin(), d_.model.shapes.end(), [](const BlockShape& shape) {
      return shape.attention.heads > 0 && !shape.attention.latent() && !shape.cross_attention && !shape.mlp.mixture();
    });
    if (d_.recompute == Recompute::operators && !dense)
      complain(
          {"recompute"},
          "operators are computed again in blocks of attention and an MLP, and the model has other ones; use none, "
          "selective or full");
    if (d_.recompute == Recompute::full && d_.model.blocks.empty())
      complain({"recompute"}, "recomputation of whole blocks, but the model has 0 blocks; use none");
    const std::int64_t own = *std::max_element(p_.stage_layers.begin(), p_.stage_layers.end());
    if (d_.recompute_layers > own)
      complain({"recompute_layers"},
               fmt::format("recompute_layers {}, but a pipeline stage has {} blocks; use up to {}", d_.recompute_layers,
                           own, own));
  }

  void check_recomputed_modules() {
    const RecomputedModules& again = d_.recompute_modules;
    if (again.any() && d_.recompute == Recompute::full)
      complain({"recompute_modules", "recompute"},
               "recompute_modules are of selective recomputation, but whole blocks are computed again; use `recompute: "
               "selective`, or no modules");
    const auto some = [&](auto&& has) { return std::any_of(d_.model.shapes.begin(), d_.model.shapes.end(), has); };
    if (again.norms && !some([](const BlockShape& shape) { return shape.attention.heads > 0; }))
      complain({"recompute_modules"}, "layernorm is to be computed again, but no block of the model has such norms");
    if (again.up_projections && !some([](const BlockShape& shape) { return shape.attention.latent(); }))
      complain({"recompute_modules"},
               "mla_up_proj is to be computed again, but no block of the model has latent attention (kv_lora_rank)");
    if (again.expert_activations && !some([](const BlockShape& shape) { return shape.mlp.mixture(); }))
      complain({"recompute_modules"}, "moe_act is to be computed again, but no block of the model has experts");
    // Megatron-LM takes these for any model.
    const auto say = [&](bool asked, const char* name, auto&& has) {
      if (asked && !some(has)) d_.ignored.push_back(fmt::format("recompute_modules {}: no block has it", name));
    };
    say(again.mlp, "mlp", [](const BlockShape& shape) { return shape.gemms.empty() && !shape.mlp.mixture(); });
    say(again.mixture, "moe", [](const BlockShape& shape) { return shape.mlp.mixture(); });
    say(again.shared_experts, "shared_experts", [](const BlockShape& shape) { return shape.mlp.shared_inner > 0; });
  }

  /// As Megatron-LM refuses it (megatron/core/transformer/transformer_config.py).
  void check_combined() const {
    if (!p_.combined()) return;
    if (p_.expert == 1)
      complain({"schedule", "expert"},
               fmt::format("schedule {} hides exchanges with experts, but expert is 1; use 1f1b or interleaved, or "
                           "several expert ranks",
                           p_.schedule));
    if (d_.recompute == Recompute::full || d_.recompute_modules.mixture)
      complain(
          {"recompute", "recompute_modules", "schedule"},
          fmt::format("schedule {} has no second forward pass whose exchanges it could hide; use recompute none or "
                      "selective, without moe",
                      p_.schedule));
  }

  void settle_sharding() {
    const std::int64_t replicas = p_.data * p_.context;
    if (p_.shard_copies > 0 && p_.shard_group == 0) {
      check_shares("shard_copies", p_.shard_copies, replicas, "data-parallel ranks (data x context)");
      p_.shard_group = p_.shard_copies == 1 ? 0 : replicas / p_.shard_copies;
    }
    if (p_.shard_group == 0) return;
    if (p_.sharding == Sharding::none)
      complain({"shard_group", "shard_copies"},
               fmt::format("shard_group {}, but nothing is sharded; use 0", p_.shard_group));
    check_shares("shard_group", p_.shard_group, replicas, "data-parallel ranks (data x context)");
  }

  void settle_buckets() {
    if (d_.bucket_elements == 0) return;
    const std::int64_t elements = std::max(d_.bucket_elements, d_.bucket_elements_per_rank * p_.data * p_.context);
    d_.buckets.first = d_.buckets.further = Bytes(elements * element_bytes(d_.gradient_precision));
  }

  TrainingDescription& d_;
  ParallelPlan& p_;
  std::int64_t hosts_;
  const SourceLine& otherwise_;
};

}  // namespace

void settle_description(TrainingDescription& description, std::int64_t hosts, const SourceLine& otherwise) {
  Settling(description, hosts, otherwise).settle();
}

}  // namespace weft
