// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/step/block_passes.hpp"

#include <algorithm>

#include "workloads/compute/kernel_time.hpp"
#include "workloads/step/pass_work.hpp"
#include "workloads/step/stage_plan.hpp"

namespace weft {
namespace {

class BlockBuilder {
 public:
  explicit BlockBuilder(const PassSetup& setup)
      : setup_(setup),
        plan_(setup.description->parallel),
        tokens_(tokens_per_rank(*setup.description)),
        t_(plan_.tensor),
        c_(plan_.context),
        h_(setup.description->model.hidden),
        element_(activation_bytes(*setup.description)) {}

  PartPasses block(const BlockShape& block) {
    if (!block.products.empty()) return sample_products(block);
    PartPasses passes;
    build_forward(block, passes.forward);
    if (setup_.description->recompute == Recompute::full)
      build_forward(block, passes.recompute, setup_.kernels().recomputes_what_is_needed);
    if (setup_.description->recompute == Recompute::operators) build_operators_again(block, passes.recompute);
    build_backward(block, passes.backward, true, true);
    build_backward(block, passes.input_gradient, true, false);
    build_backward(block, passes.weight_gradient, false, true);
    accumulate(block.tensors, passes);
    copy_shared(block.tensors, passes, true);
    return passes;
  }

  PartPasses embedding() {
    PartPasses passes;
    KernelUnits units = common_units();
    unit(units, KernelUnit::table) = share_of(setup_.description->model.vocabulary, t_) * h_;
    Work look_up(setup_);
    look_up.small(KernelPlace::embedding, false, units);
    passes.forward.push_back(look_up.segment("embedding"));
    if (t_ > 1)
      passes.forward.push_back(tensor_collective(
          "embedding sum", plan_.sequence ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce));
    if (t_ > 1 && plan_.sequence)
      passes.backward.push_back(tensor_collective("embedding gather", CollectiveKind::all_gather));
    Work scatter(setup_);
    scatter.small(KernelPlace::embedding, true, units);
    passes.backward.push_back(scatter.segment("embedding"));
    passes.weight_gradient = passes.backward;  // there is no input to have a gradient
    accumulate(setup_.description->model.embedding, passes);
    copy_shared(setup_.description->model.embedding, passes, false);
    return passes;
  }

  PartPasses head() {
    const ModelConfig& model = setup_.description->model;
    PartPasses passes;
    const Product logits{model.vocabulary > 0 ? tokens_ : setup_.description->micro_batch,
                         share_of(model.vocabulary > 0 ? model.vocabulary : model.head_classes, t_), h_};
    Work norm(setup_);
    norm.small(KernelPlace::final_norm, false, common_units());
    Work forward = unquantised();
    logits.forward(forward);
    forward.small(KernelPlace::loss, false, units_of(logits));
    passes.forward.push_back(norm.segment("final norm"));
    if (t_ > 1 && plan_.sequence)
      passes.forward.push_back(tensor_collective("head gather", CollectiveKind::all_gather));
    passes.forward.push_back(forward.segment("logits"));
    if (t_ > 1)
      for (const char* what : {"loss maximum", "loss target", "loss sum"}) {
        Segment sum = tensor_collective(what, CollectiveKind::all_reduce);
        sum.size = bytes_of(tokens_, 1, 4);  // fp32
        passes.forward.push_back(sum);
      }
    passes.backward = head_backward(logits, true, true);
    passes.input_gradient = head_backward(logits, true, false);
    passes.weight_gradient = head_backward(logits, false, true);
    accumulate(model.head, passes);
    copy_shared(model.head, passes, false);
    return passes;
  }

 private:
  // Small kernels ----------------------------------------------------------------------------------------------------
  static std::int64_t& unit(KernelUnits& units, KernelUnit which) { return units[static_cast<std::size_t>(which)]; }

  KernelUnits common_units() const {
    KernelUnits units{};
    unit(units, KernelUnit::residual) = norm_tokens() * h_;
    unit(units, KernelUnit::hidden) = tokens_ * h_;
    return units;
  }
  KernelUnits units_of(const AttentionShape& a, std::int64_t scores = 0) const {
    KernelUnits units = common_units();
    unit(units, KernelUnit::heads) = tokens_ * heads(a) * a.value_size;
    unit(units, KernelUnit::queries_keys) = tokens_ * (heads(a) + kv_heads(a)) * a.head_size;
    unit(units, KernelUnit::queries_keys_values) =
        unit(units, KernelUnit::queries_keys) + tokens_ * kv_heads(a) * a.value_size;
    unit(units, KernelUnit::keys_values) = tokens_ * exchanged_heads(a) * (a.head_size + a.value_size);
    unit(units, KernelUnit::scores) = scores;
    return units;
  }
  KernelUnits units_of(const Product& logits) const {
    KernelUnits units = common_units();
    unit(units, KernelUnit::logits) = logits.rows * logits.columns;
    return units;
  }

  /// Gradients of weights are added to those of the micro-batches before, tensor by tensor. Where the GEMMs do it,
  /// the few parameters that have none (biases, norms) are left out.
  void accumulate(const std::vector<Tensor>& tensors, PartPasses& passes) const {
    const KernelCatalogue::Accumulation& how = setup_.kernels().accumulation;
    if (how.bytes == 0) return;
    SmallKernel add;
    add.bytes = how.bytes;
    Work work(setup_);
    for (const Tensor& tensor : tensors) work.small(tensor.name, add, held_parameters({tensor}, plan_).sum());
    Segment segment = work.segment("gradient accumulation");
    segment.from_second = how.from_second;
    if (segment.kernels.empty()) return;
    passes.backward.push_back(segment);
    passes.weight_gradient.push_back(segment);
  }

  /// Copies of parameters that are shared out when they are gathered, and of their gradients when they are summed up.
  /// `quantised`: of parts whose GEMMs have fp8, if any have.
  void copy_shared(const std::vector<Tensor>& tensors, PartPasses& passes, bool quantised) const {
    if (plan_.sharding != Sharding::parameters) return;
    const KernelCatalogue& kernels = setup_.kernels();
    const std::int64_t held = held_parameters(tensors, plan_).sum();
    const std::int64_t ranks = plan_.shard_group > 0 ? plan_.shard_group : plan_.data * c_;
    const auto copies = [&](const std::vector<SmallKernel>& list, std::string_view what) {
      Work work(setup_);
      for (const SmallKernel& one : list) {
        const bool has = quantised ? has_kernel(*setup_.description, one.when) : one.when != KernelWhen::fp8;
        if (has) work.small(one.name, one, one.unit == KernelUnit::kept ? share_of(held, ranks) : held);
      }
      return work.segment(what);
    };
    const Segment gathered = copies(kernels.gathered, "copies of parameters");
    const Segment scattered = copies(kernels.scattered, "copies of gradients");
    if (!gathered.kernels.empty()) {
      passes.forward.insert(passes.forward.begin(), gathered);
      for (auto* pass : {&passes.backward, &passes.input_gradient})
        if (plan_.reshard_after_forward) pass->insert(pass->begin(), gathered);
    }
    if (!scattered.kernels.empty())
      for (auto* pass : {&passes.backward, &passes.weight_gradient}) pass->push_back(scattered);
  }

  /// GEMMs that do not have fp8: the core of attention, routers and the head.
  Work unquantised() const { return {setup_, activation_precision(*setup_.description)}; }

  std::int64_t norm_tokens() const { return plan_.sequence ? share_of(tokens_, t_) : tokens_; }

  Segment tensor_collective(std::string_view what, CollectiveKind kind) const {
    Segment segment;
    segment.kind = Segment::Kind::collective;
    segment.what = what;
    segment.stream = Stream::tensor;
    segment.group = GroupKind::tensor;
    segment.collective = kind;
    segment.size = bytes_of(tokens_, h_, element_);
    return segment;
  }

  /// Sums and gathers of a backward pass run beside the GEMMs for the gradients of weights.
  bool overlaps(bool weights_too) const { return weights_too && setup_.description->overlap_tensor; }

  /// What a GEMM reads is gathered as it reads it, in fp8 where it has fp8 (NVIDIA, Transformer Engine,
  /// transformer_engine/pytorch/module/layernorm_linear.py: with_quantized_all_gather).
  void gather(std::vector<Segment>& to, std::string_view what, bool beside = false) const {
    if (t_ == 1 || !plan_.sequence) return;
    to.push_back(tensor_collective(what, CollectiveKind::all_gather));
    to.back().size = bytes_of(tokens_, h_, element_bytes(setup_.description->precision));
    to.back().beside = beside;
    add_small(KernelPlace::tensor_gathered, false, common_units(), "copies of what was gathered", to);
  }
  /// The same for the gradients of weights, if it was not kept.
  void gather_again(std::vector<Segment>& to, std::string_view what, bool weights_too) const {
    if (!setup_.kernels().keeps_gathered) gather(to, what, overlaps(weights_too));
  }
  /// The sum over tensor ranks of what a GEMM, cut along its inner dimension, leaves on each.
  void sum(std::vector<Segment>& to, std::string_view what) const {
    if (t_ == 1) return;
    if (plan_.sequence)
      add_small(KernelPlace::tensor_scattered, false, common_units(), "copies of what is scattered", to);
    to.push_back(tensor_collective(what, plan_.sequence ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce));
  }

  // Attention --------------------------------------------------------------------------------------------------------
  std::int64_t kv_heads(const AttentionShape& a) const { return share_of(a.kv_heads, t_); }
  std::int64_t heads(const AttentionShape& a) const { return share_of(a.heads, t_); }

  /// Heads of keys and values that context ranks exchange.
  std::int64_t exchanged_heads(const AttentionShape& a) const {
    return setup_.kernels().context.repeats_keys ? heads(a) : kv_heads(a);
  }

  /// GEMMs that make queries, keys and values.
  std::vector<Product> inputs(const AttentionShape& a) const {
    if (!a.latent()) return {{tokens_, heads(a) * a.head_size + kv_heads(a) * (a.head_size + a.value_size), h_}};
    std::vector<Product> products;
    if (a.query_rank > 0) {
      products.push_back({tokens_, a.query_rank, h_});
      products.push_back({tokens_, heads(a) * a.head_size, a.query_rank});
    } else {
      products.push_back({tokens_, heads(a) * a.head_size, h_});
    }
    products.push_back({tokens_, a.kv_rank + a.rope_size, h_});
    products.push_back({tokens_, heads(a) * (a.head_size - a.rope_size + a.value_size), a.kv_rank});
    return products;
  }

  /// Keys and values of one rank's part of the sequence.
  Bytes kv_bytes(const AttentionShape& a) const {
    return bytes_of(tokens_, kv_heads(a) * (a.head_size + a.value_size), element_);
  }

  /// Queries and keys of a fused kernel: of each head, heads of both, and whether a causal mask hides half of the
  /// scores.
  struct Extent {
    std::int64_t rows, columns, heads, kv_heads;
    bool causal;
  };
  /// The kernel skips what a causal mask hides. Backward, the scores are computed again: five GEMMs for two (Dao et
  /// al., arXiv:2205.14135, algorithm 4).
  Kernel fused(const AttentionShape& a, const Extent& extent, bool backward) const {
    const double scores = (extent.causal ? 0.5 : 1) * static_cast<double>(extent.rows) *
                          static_cast<double>(extent.columns) * static_cast<double>(extent.heads);
    const auto products =
        static_cast<double>(backward ? 3 * a.head_size + 2 * a.value_size : a.head_size + a.value_size);
    const std::int64_t elements =
        (extent.rows * extent.heads + extent.columns * extent.kv_heads) * (a.head_size + a.value_size);
    Kernel kernel;
    kernel.m = extent.rows;
    kernel.n = extent.columns;
    kernel.k = a.head_size;
    kernel.count = extent.heads;
    kernel.causal = extent.causal;
    kernel.backward = backward;
    kernel.bytes = bytes_of(elements, backward ? 2 : 1, element_).count();
    kernel.flops = 2 * scores * products;
    return kernel;
  }

  /// The core, of which a ring takes one of c parts: 2 GEMMs forward, 4 backward.
  Segment core(const AttentionShape& a, std::string_view what, bool backward) const {
    const TrainingDescription& d = *setup_.description;
    const std::int64_t parts = c_ > 1 && plan_.context_kind == ContextKind::ring ? c_ : 1;
    const bool ulysses = c_ > 1 && plan_.context_kind == ContextKind::ulysses;
    const std::int64_t rows = ulysses ? d.sequence_length : d.sequence_length / c_;
    const std::int64_t seen = a.window > 0 ? std::min(a.window, d.sequence_length) : d.sequence_length;
    const std::int64_t columns = share_of(seen, parts);
    const std::int64_t count = d.micro_batch * share_of(heads(a), ulysses ? c_ : 1);
    Work work = unquantised();
    if (setup_.attention == AttentionKernel::flash) {
      const std::int64_t kv = d.micro_batch * share_of(kv_heads(a), ulysses ? c_ : 1);
      work.attention(fused(a, {rows, columns, count, kv, a.causal && a.window == 0}, backward));
    } else {
      const std::int64_t scores = rows * columns * count;
      if (backward) {
        work.matmul(rows, columns, a.value_size, count);  // of probabilities
        work.matmul(columns, a.value_size, rows, count);  // of values
        work.matmul(rows, a.head_size, columns, count);   // of queries
        work.matmul(columns, a.head_size, rows, count);   // of keys
      } else {
        work.matmul(rows, columns, a.head_size, count);
        work.matmul(rows, a.value_size, columns, count);
      }
      work.small(KernelPlace::attention_core, backward, units_of(a, scores));
    }
    return work.segment(what);
  }

  Segment context_collective(std::string_view what, CollectiveKind kind, Bytes size) const {
    Segment segment;
    segment.kind = Segment::Kind::collective;
    segment.what = what;
    segment.stream = Stream::context;
    segment.group = GroupKind::context;
    segment.collective = kind;
    segment.size = size;
    return segment;
  }

  /// All-to-alls of queries, keys and values, or of what attention gives.
  void exchange_heads(std::vector<Segment>& to, const AttentionShape& a, bool inputs) const {
    if (!inputs) {
      to.push_back(context_collective("output exchange", CollectiveKind::all_to_all,
                                      bytes_of(tokens_, heads(a) * a.value_size, element_)));
      return;
    }
    to.push_back(context_collective("query exchange", CollectiveKind::all_to_all,
                                    bytes_of(tokens_, heads(a) * a.head_size, element_)));
    to.push_back(context_collective("key exchange", CollectiveKind::all_to_all,
                                    bytes_of(tokens_, kv_heads(a) * a.head_size, element_)));
    to.push_back(context_collective("value exchange", CollectiveKind::all_to_all,
                                    bytes_of(tokens_, kv_heads(a) * a.value_size, element_)));
  }

  /// One block of attention as PyTorch computes it: the first one of the rank's own keys; with a causal mask of others
  /// half of the keys, or half of the queries, since a rank has a piece from each end of the sequence.
  Segment gathered_block(const AttentionShape& a, bool first, bool backward) const {
    const TrainingDescription& d = *setup_.description;
    const std::int64_t rows = d.sequence_length / c_;
    const bool causal = a.causal && a.window == 0;
    std::int64_t seen = a.window > 0 ? share_of(std::min(a.window, d.sequence_length), c_) : rows;
    if (causal && !first) seen /= 2;
    Work work = unquantised();
    work.attention(fused(a, {rows, seen, d.micro_batch * heads(a), d.micro_batch * exchanged_heads(a), causal && first},
                         backward));
    return work.segment("attention block");
  }
  /// All ranks wait for the one whose blocks have all of the queries: the last one.
  void gathered_ring(std::vector<Segment>& to, const AttentionShape& a, bool backward) const {
    const KernelCatalogue::Context& how = setup_.kernels().context;
    const std::int64_t exchanged = tokens_ * exchanged_heads(a) * (a.head_size + a.value_size);
    add_small(KernelPlace::context_begin, backward, units_of(a), "copies of keys and values", to);
    to.push_back(context_collective("key-value gather", CollectiveKind::all_gather, bytes_of(exchanged, c_, element_)));
    to.back().beside = !how.waits;
    for (std::int64_t block = 0; block < c_; ++block) {
      to.push_back(gathered_block(a, block == 0, backward));
      to.back().join = block == 1;  // needs what was gathered
      if (block > 0) {
        Work sums = unquantised();
        sums.small(KernelPlace::context_part, backward, units_of(a));
        to.push_back(sums.segment("sums of blocks"));
        to.back().join = backward;  // adds to what came round
      }
      if (!backward) continue;
      Segment rotation = context_collective("gradient rotation", CollectiveKind::all_to_all,
                                            bytes_of(exchanged, 1, how.gradient_bytes));
      rotation.kind = Segment::Kind::rotation;
      rotation.beside = !how.waits && block + 1 < c_;
      to.push_back(rotation);
    }
    add_small(KernelPlace::context_end, backward, units_of(a), "results of blocks", to);
  }

  void add_core(std::vector<Segment>& to, const AttentionShape& a, bool backward) const {
    if (c_ > 1 && plan_.context_kind == ContextKind::gathered_ring && setup_.attention == AttentionKernel::flash)
      return gathered_ring(to, a, backward);
    Segment computed = core(a, "attention core", backward);
    if (c_ == 1) {
      to.push_back(computed);
      return;
    }
    switch (plan_.context_kind) {
      case ContextKind::ring:
        // Backward, the gradients of keys and values go round with them.
        computed.kind = Segment::Kind::ring;
        computed.what = "ring attention";
        computed.group = GroupKind::context;
        computed.size = kv_bytes(a) * (backward ? 2 : 1);
        to.push_back(computed);
        break;
      case ContextKind::gathered_ring:  // without fused attention there are no blocks
      case ContextKind::all_gather:
        if (!backward)
          to.push_back(context_collective("key-value gather", CollectiveKind::all_gather, kv_bytes(a) * c_));
        to.push_back(computed);
        if (backward)
          to.push_back(context_collective("key-value gradient sum", CollectiveKind::reduce_scatter, kv_bytes(a) * c_));
        break;
      case ContextKind::ulysses:
        exchange_heads(to, a, !backward);
        to.push_back(computed);
        exchange_heads(to, a, backward);
        break;
    }
  }

  void attention_forward(const AttentionShape& a, std::vector<Segment>& to) const {
    Work before(setup_);
    before.small(KernelPlace::attention_norm, false, units_of(a));
    Work in(setup_);
    for (const Product& product : inputs(a)) product.forward(in);
    in.small(KernelPlace::attention_input, false, units_of(a));
    to.push_back(before.segment("attention norm"));
    gather(to, "attention gather");
    to.push_back(in.segment("attention input"));
    add_core(to, a, false);
    Work out(setup_);
    out.small(KernelPlace::attention_output, false, units_of(a));
    Product{tokens_, h_, heads(a) * a.value_size}.forward(out);
    to.push_back(out.segment("attention output"));
    sum(to, "attention sum");
    Work after(setup_);
    after.small(KernelPlace::attention_residual, false, units_of(a));
    to.push_back(after.segment("attention residual"));
  }

  /// With what lies between the core and the GEMM behind it, since that GEMM's input is not kept either.
  void core_again(const AttentionShape& a, std::vector<Segment>& to) const {
    to.push_back(core(a, "attention core again", false));
    add_small(KernelPlace::attention_output, false, units_of(a), "attention output again", to);
  }

  /// Kernels of a place by themselves, if there are any.
  void add_small(KernelPlace place, bool backward, const KernelUnits& units, std::string_view what,
                 std::vector<Segment>& to) const {
    Work work(setup_);
    work.small(place, backward, units);
    Segment segment = work.segment(what);
    if (!segment.kernels.empty()) to.push_back(segment);
  }

  /// Backward through a row-parallel GEMM, the middle, and a column-parallel GEMM: what comes in is gathered, the
  /// gradient of the input is summed beside the GEMMs for the gradients of weights.
  void attention_backward(const AttentionShape& a, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
    const Product out{tokens_, h_, heads(a) * a.value_size};
    if (inputs_too) {
      gather(to, "attention gradient gather");
      Work work(setup_);
      work.small(KernelPlace::attention_residual, true, units_of(a));
      out.input_gradient(work);
      work.small(KernelPlace::attention_output, true, units_of(a));
      to.push_back(work.segment("attention output gradient"));
      if (setup_.description->recompute == Recompute::selective) core_again(a, to);
      add_core(to, a, true);
      gather_again(to, "attention gather again", weights_too);
      Work in(setup_);
      in.small(KernelPlace::attention_input, true, units_of(a));
      for (const Product& product : inputs(a)) product.input_gradient(in);
      to.push_back(in.segment("attention input gradient"));
      sum(to, "attention gradient sum");
      if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    }
    if (weights_too) {
      Work work(setup_);
      out.weight_gradient(work);
      for (const Product& product : inputs(a)) product.weight_gradient(work);
      to.push_back(work.segment("attention weight gradient"));
    }
    if (inputs_too) {
      Work norm(setup_);
      norm.small(KernelPlace::attention_norm, true, units_of(a));
      to.push_back(norm.segment("attention norm gradient"));
      to.back().join = true;
    }
  }

  // Feed-forward -----------------------------------------------------------------------------------------------------
  struct Feed {
    Product up, down;
    bool gated;
  };
  KernelUnits units_of(const Feed& mlp) const {
    KernelUnits units = common_units();
    const std::int64_t inner = mlp.down.rows * mlp.down.inner * mlp.down.count;
    unit(units, KernelUnit::inner) = inner;
    unit(units, KernelUnit::inner_and_gates) = inner * (mlp.gated ? 3 : 2);  // the up projection's result, and theirs
    return units;
  }
  Feed feed(std::int64_t rows, std::int64_t inner, bool gated, std::int64_t ranks, std::int64_t count = 1) const {
    const std::int64_t width = share_of(inner, ranks);
    const std::int64_t first = width * (gated ? 2 : 1);
    return {{rows, first, h_, count}, {rows, h_, width, count}, gated};
  }

  /// `needed_only`: what a backward pass needs, which the last GEMM's result is not.
  void dense_forward(const Feed& mlp, std::string_view what, std::vector<Segment>& to, bool needed_only = false) const {
    gather(to, "MLP gather");
    Work work(setup_);
    mlp.up.forward(work);
    work.small(KernelPlace::mlp_activation, false, units_of(mlp), mlp.gated);
    if (!needed_only) mlp.down.forward(work);
    to.push_back(work.segment(what));
    if (!needed_only) sum(to, "MLP sum");
  }

  void dense_backward(const Feed& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
    if (inputs_too) {
      gather(to, "MLP gradient gather");
      Work down(setup_);
      mlp.down.input_gradient(down);
      down.small(KernelPlace::mlp_activation, true, units_of(mlp), mlp.gated);
      to.push_back(down.segment("MLP inner gradient"));
      gather_again(to, "MLP gather again", weights_too);
      Work up(setup_);
      mlp.up.input_gradient(up);
      to.push_back(up.segment("MLP input gradient"));
      sum(to, "MLP gradient sum");
      if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    }
    if (weights_too) {
      Work work(setup_);
      mlp.up.weight_gradient(work);
      mlp.down.weight_gradient(work);
      to.push_back(work.segment("MLP weight gradient"));
    }
  }

  Segment dispatch(const MlpShape& mlp, std::string_view what, const std::string& precision, bool combine) const {
    Segment segment;
    segment.kind = Segment::Kind::collective;
    segment.what = what;
    segment.stream = Stream::expert;
    segment.group = GroupKind::expert;
    segment.collective = CollectiveKind::all_to_all;
    segment.size = bytes_of(routed_tokens(*setup_.description) * mlp.experts_per_token, h_, element_bytes(precision));
    segment.by_load = true;
    segment.combine = combine;
    return segment;
  }
  /// Copies of tokens to their experts (`combine`: back). By servers: one copy for each server that a token goes
  /// to, as many as may be, then on to the experts there.
  void travel(const MlpShape& mlp, std::string_view what, const std::string& precision, bool combine, bool beside,
              std::vector<Segment>& to) const {
    if (plan_.expert < 2) return;
    std::vector<Segment> legs{dispatch(mlp, what, precision, combine)};
    if (plan_.expert_server > 0) {
      legs.push_back(legs.front());
      legs[0].group = GroupKind::expert_rail;
      legs[0].size =
          bytes_of(routed_tokens(*setup_.description) * servers_of_token(plan_, mlp), h_, element_bytes(precision));
      legs[1].group = GroupKind::expert_server;
      if (combine) std::swap(legs[0], legs[1]);
    }
    for (Segment& leg : legs) {
      leg.beside = beside;  // the second one waits for the first in their stream
      to.push_back(leg);
    }
  }
  /// Rows of one local expert when the tokens are spread evenly.
  Feed expert(const MlpShape& mlp) const {
    const std::int64_t here = share_of(mlp.experts, plan_.expert);
    const std::int64_t rows =
        share_of(routed_tokens(*setup_.description) * mlp.experts_per_token * plan_.expert_tensor, here);
    return feed(rows, mlp.expert_inner, mlp.gated, plan_.expert_tensor, here);
  }
  KernelUnits units_of_choices(const MlpShape& mlp) const {
    KernelUnits units = common_units();
    unit(units, KernelUnit::choices) = routed_tokens(*setup_.description) * mlp.experts;
    return units;
  }
  /// The units of the copies of tokens that come to the experts here, when they are spread evenly.
  KernelUnits units_of_copies(const Feed& inner) const {
    KernelUnits units = common_units();
    unit(units, KernelUnit::copies) = inner.up.rows * inner.up.count * h_;
    return units;
  }
  /// All rows of the experts here, for the ranks that share them.
  Segment expert_collective(const MlpShape& mlp, std::string_view what, CollectiveKind kind) const {
    Segment segment = dispatch(mlp, what, activation_precision(*setup_.description), false);
    segment.group = GroupKind::expert_tensor;
    segment.collective = kind;
    segment.size = segment.size * plan_.expert_tensor;
    segment.by_load = false;
    return segment;
  }

  void mixture_forward(const MlpShape& mlp, std::vector<Segment>& to) const {
    Work router = unquantised();
    router.matmul(routed_tokens(*setup_.description), mlp.experts, h_);
    router.small(KernelPlace::router, false, units_of_choices(mlp));
    to.push_back(router.segment("router"));
    // The shared experts compute while the tokens travel.
    travel(mlp, "dispatch", dispatch_precision(), false, mlp.shared_inner > 0, to);
    if (mlp.shared_inner > 0) dense_forward(feed(tokens_, mlp.shared_inner, mlp.gated, t_), "shared expert", to);
    experts_forward(mlp, to);
    travel(mlp, "combine", activation_precision(*setup_.description), true, false, to);
  }

  void experts_forward(const MlpShape& mlp, std::vector<Segment>& to) const {
    if (plan_.expert_tensor > 1) {
      to.push_back(expert_collective(mlp, "expert gather", CollectiveKind::all_gather));
      to.back().join = true;
    }
    const Feed inner = expert(mlp);
    Work work(setup_);
    work.small(KernelPlace::experts_input, false, units_of_copies(inner));
    inner.up.forward(work);
    work.small(KernelPlace::mlp_activation, false, units_of(inner), inner.gated);
    inner.down.forward(work);
    work.small(KernelPlace::experts_output, false, units_of_copies(inner));
    to.push_back(work.segment("experts"));
    to.back().by_load = to.back().join = true;
    if (plan_.expert_tensor > 1) to.push_back(expert_collective(mlp, "expert sum", CollectiveKind::reduce_scatter));
  }

  void mixture_backward(const MlpShape& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
    const Feed inner = expert(mlp);
    if (inputs_too) {
      travel(mlp, "combine gradient", gradient_precision(), false, false, to);
      if (plan_.expert_tensor > 1)
        to.push_back(expert_collective(mlp, "expert gradient gather", CollectiveKind::all_gather));
      Work work(setup_);
      work.small(KernelPlace::experts_output, true, units_of_copies(inner));
      inner.down.input_gradient(work);
      work.small(KernelPlace::mlp_activation, true, units_of(inner), inner.gated);
      inner.up.input_gradient(work);
      work.small(KernelPlace::experts_input, true, units_of_copies(inner));
      to.push_back(work.segment("experts input gradient"));
      to.back().by_load = true;
      if (plan_.expert_tensor > 1)
        to.push_back(expert_collective(mlp, "expert gradient sum", CollectiveKind::reduce_scatter));
      travel(mlp, "dispatch gradient", activation_precision(*setup_.description), true, weights_too, to);
    }
    if (weights_too) {
      Work work(setup_);
      inner.up.weight_gradient(work);
      inner.down.weight_gradient(work);
      to.push_back(work.segment("experts weight gradient"));
      to.back().by_load = true;
    }
    if (mlp.shared_inner > 0) {
      const Feed shared = feed(tokens_, mlp.shared_inner, mlp.gated, t_);
      if (inputs_too && setup_.description->recompute_modules.shared_experts)
        dense_forward(shared, "shared expert again", to);
      dense_backward(shared, to, inputs_too, weights_too);
    }
    if (inputs_too) {
      Work router = unquantised();
      router.small(KernelPlace::router, true, units_of_choices(mlp));
      router.matmul(routed_tokens(*setup_.description), h_, mlp.experts);
      router.matmul(h_, mlp.experts, routed_tokens(*setup_.description));
      to.push_back(router.segment("router gradient"));
      to.back().join = true;
    }
  }
  std::string dispatch_precision() const {
    const TrainingDescription& d = *setup_.description;
    return d.dispatch_precision.empty() ? activation_precision(d) : d.dispatch_precision;
  }
  /// Of gradients on their way to experts: as tokens if GEMMs have fp8, which takes gradients, too (DeepSeek-AI,
  /// arXiv:2412.19437, 3.3.3).
  std::string gradient_precision() const {
    const TrainingDescription& d = *setup_.description;
    return d.precision == "fp8" ? dispatch_precision() : d.precision;
  }

  // Whole blocks -----------------------------------------------------------------------------------------------------
  void build_forward(const BlockShape& block, std::vector<Segment>& to, bool needed_only = false) const {
    attention_forward(block.attention, to);
    if (block.cross_attention) attention_forward(block.attention, to);
    Work norm(setup_);
    norm.small(KernelPlace::mlp_norm, false, common_units());
    to.push_back(norm.segment("MLP norm"));
    if (block.mlp.mixture())
      mixture_forward(block.mlp, to);
    else
      dense_forward(feed(tokens_, block.mlp.inner, block.mlp.gated, t_), "MLP", to, needed_only);
    if (needed_only && !block.mlp.mixture()) return;
    Work residual(setup_);
    residual.small(KernelPlace::mlp_residual, false, common_units());
    to.push_back(residual.segment("MLP residual"));
    to.back().join = true;
  }

  /// What torchtitan's selective checkpointing of operators computes again: all small kernels, and every second GEMM
  /// (torchtitan/models/llama/parallelize_llama.py, _apply_ac_to_transformer_block), which are those for keys, behind
  /// attention, and for gates, or the only one of an MLP without; fused attention is kept. So is what tensor ranks have
  /// summed and scattered, so that the GEMM before it is not needed again; what they gather is gathered again.
  void build_operators_again(const BlockShape& block, std::vector<Segment>& to) const {
    const AttentionShape& a = block.attention;
    Work attention(setup_);
    const bool scattered = t_ > 1 && plan_.sequence;
    add_small(KernelPlace::attention_norm, false, units_of(a), "attention norm again", to);
    gather(to, "attention gather");
    attention.matmul(tokens_, kv_heads(a) * a.head_size, h_);
    attention.small(KernelPlace::attention_input, false, units_of(a));
    attention.small(KernelPlace::attention_output, false, units_of(a));
    if (!scattered) attention.matmul(tokens_, h_, heads(a) * a.value_size);
    to.push_back(attention.segment("attention operators again"));
    if (!scattered) sum(to, "attention sum");
    const Feed mlp = feed(tokens_, block.mlp.inner, block.mlp.gated, t_);
    Work middle(setup_), rest(setup_);
    middle.small(KernelPlace::attention_residual, false, units_of(a));
    middle.small(KernelPlace::mlp_norm, false, common_units());
    to.push_back(middle.segment("MLP norm again"));
    gather(to, "MLP gather");
    rest.matmul(tokens_, mlp.down.inner, h_);
    rest.small(KernelPlace::mlp_activation, false, units_of(mlp), mlp.gated);
    to.push_back(rest.segment("MLP operators again"));
  }

  void build_backward(const BlockShape& block, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
    const RecomputedModules& again = setup_.description->recompute_modules;
    if (inputs_too) add_small(KernelPlace::mlp_residual, true, common_units(), "MLP residual gradient", to);
    if (block.mlp.mixture()) {
      if (inputs_too && again.mixture) mixture_forward(block.mlp, to);
      mixture_backward(block.mlp, to, inputs_too, weights_too);
    } else {
      const Feed mlp = feed(tokens_, block.mlp.inner, block.mlp.gated, t_);
      if (inputs_too && again.mlp) dense_forward(mlp, "MLP again", to);
      dense_backward(mlp, to, inputs_too, weights_too);
    }
    if (inputs_too) {
      Work norm(setup_);
      norm.small(KernelPlace::mlp_norm, true, common_units());
      to.push_back(norm.segment("MLP norm gradient"));
      to.back().join = true;
    }
    if (block.cross_attention) attention_backward(block.attention, to, inputs_too, weights_too);
    attention_backward(block.attention, to, inputs_too, weights_too);
  }

  std::vector<Segment> head_backward(const Product& logits, bool inputs_too, bool weights_too) const {
    std::vector<Segment> to;
    if (inputs_too) {
      Work work = unquantised();
      work.small(KernelPlace::loss, true, units_of(logits));
      logits.input_gradient(work);
      to.push_back(work.segment("logits input gradient"));
      sum(to, "head gradient sum");
      if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    }
    if (weights_too) {
      if (t_ > 1 && plan_.sequence) to.push_back(tensor_collective("head gather again", CollectiveKind::all_gather));
      Work work = unquantised();
      logits.weight_gradient(work);
      to.push_back(work.segment("logits weight gradient"));
    }
    if (inputs_too) {
      Work norm(setup_);
      norm.small(KernelPlace::final_norm, true, common_units());
      to.push_back(norm.segment("final norm gradient"));
      to.back().join = true;
    }
    return to;
  }

  PartPasses sample_products(const BlockShape& block) const {
    Work forward(setup_), inputs(setup_), weights(setup_);
    const std::int64_t samples = setup_.description->micro_batch;
    for (const SampleProduct& p : block.products) {
      const Product product{p.rows * samples, p.columns, p.inner};
      product.forward(forward);
      forward.memory(p.rows * samples * p.columns * 4);  // norm and activation: read and written twice
      product.input_gradient(inputs);
      inputs.memory(p.rows * samples * p.columns * 6);
      product.weight_gradient(weights);
    }
    PartPasses passes;
    passes.forward.push_back(forward.segment("products"));
    if (setup_.description->recompute == Recompute::full) passes.recompute = passes.forward;
    passes.input_gradient.push_back(inputs.segment("products input gradient"));
    passes.weight_gradient.push_back(weights.segment("products weight gradient"));
    passes.backward = passes.input_gradient;
    passes.backward.push_back(passes.weight_gradient.front());
    return passes;
  }

  const PassSetup& setup_;
  const ParallelPlan& plan_;
  std::int64_t tokens_, t_, c_, h_, element_;
};

}  // namespace

PartPasses block_passes(const PassSetup& setup, const BlockShape& block) { return BlockBuilder(setup).block(block); }
PartPasses embedding_passes(const PassSetup& setup) { return BlockBuilder(setup).embedding(); }
PartPasses head_passes(const PassSetup& setup) { return BlockBuilder(setup).head(); }

}  // namespace weft
