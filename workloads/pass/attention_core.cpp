// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/attention_core.hpp"

#include <algorithm>

namespace weft {

KernelUnits AttentionCore::units_of(const AttentionShape& a, std::int64_t scores) const {
  KernelUnits units = common_units();
  unit(units, KernelUnit::heads) = tokens_ * heads(a) * a.value_size;
  unit(units, KernelUnit::queries_keys) = tokens_ * (heads(a) + kv_heads(a)) * a.head_size;
  unit(units, KernelUnit::queries_keys_values) =
      unit(units, KernelUnit::queries_keys) + tokens_ * kv_heads(a) * a.value_size;
  unit(units, KernelUnit::keys_values) = tokens_ * exchanged_heads(a) * (a.head_size + a.value_size);
  unit(units, KernelUnit::scores) = scores;
  return units;
}

// Heads of keys and values that context ranks exchange.
std::int64_t AttentionCore::exchanged_heads(const AttentionShape& a) const {
  return setup_.kernels().context.repeats_keys ? heads(a) : kv_heads(a);
}

// Keys and values of one rank's part of the sequence.
Bytes AttentionCore::kv_bytes(const AttentionShape& a) const {
  return bytes_of(tokens_, kv_heads(a) * (a.head_size + a.value_size), element_);
}

// The kernel skips the scores that a causal mask hides. Backward, the scores are computed again: five GEMMs for two
// (Dao et al., arXiv:2205.14135, algorithm 4).
Kernel AttentionCore::fused(const AttentionShape& a, const Extent& extent, bool backward) const {
  const double scores = (extent.causal ? 0.5 : 1) * static_cast<double>(extent.rows) *
                        static_cast<double>(extent.columns) * static_cast<double>(extent.heads);
  const auto inner = static_cast<double>(backward ? 3 * a.head_size + 2 * a.value_size : a.head_size + a.value_size);
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
  kernel.flops = 2 * scores * inner;
  return kernel;
}

// The core, of which a ring takes one of c parts: 2 GEMMs forward, 4 backward.
Segment AttentionCore::core(const AttentionShape& a, std::string_view what, bool backward) const {
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
      work.gemm(rows, columns, a.value_size, count);         // of probabilities
      work.turned_gemm(columns, a.value_size, rows, count);  // of values
      work.gemm(rows, a.head_size, columns, count);          // of queries
      work.turned_gemm(columns, a.head_size, rows, count);   // of keys
    } else {
      work.gemm(rows, columns, a.head_size, count);
      work.gemm(rows, a.value_size, columns, count);
    }
    work.small(KernelPlace::attention_core, backward, units_of(a, scores));
  }
  return work.segment(what);
}

Segment AttentionCore::context_collective(std::string_view what, CollectiveKind kind, Bytes size) const {
  Segment segment;
  segment.kind = Segment::Kind::collective;
  segment.what = what;
  segment.stream = Stream::context;
  segment.group = GroupKind::context;
  segment.collective = kind;
  segment.size = size;
  return segment;
}

// All-to-alls of queries, keys and values, or of what attention gives.
void AttentionCore::exchange_heads(std::vector<Segment>& to, const AttentionShape& a, bool inputs) const {
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

// One block of attention as PyTorch and Transformer Engine compute it: the first one of the rank's own keys; with a
// causal mask of others half of the keys, or half of the queries, since a rank has a piece from each end of the
// sequence.
Segment AttentionCore::gathered_block(const AttentionShape& a, bool first, bool backward) const {
  const TrainingDescription& d = *setup_.description;
  const std::int64_t rows = d.sequence_length / c_;
  const bool causal = a.causal && a.window == 0;
  std::int64_t seen = a.window > 0 ? share_of(std::min(a.window, d.sequence_length), c_) : rows;
  if (causal && !first) seen /= 2;
  Work work = unquantised();
  work.attention(
      fused(a, {rows, seen, d.micro_batch * heads(a), d.micro_batch * exchanged_heads(a), causal && first}, backward));
  return work.segment("attention block");
}

// All ranks wait for the one whose blocks have all of the queries: the last one.
void AttentionCore::gathered_ring(std::vector<Segment>& to, const AttentionShape& a, bool backward) const {
  const KernelCatalogue::Context& how = setup_.kernels().context;
  const std::int64_t exchanged = tokens_ * exchanged_heads(a) * (a.head_size + a.value_size);
  add_small(KernelPlace::context_begin, backward, units_of(a), "copies of keys and values", to);
  to.push_back(context_collective("key-value gather", CollectiveKind::all_gather, bytes_of(exchanged, c_, element_)));
  to.back().beside = !how.waits;
  for (std::int64_t block = 0; block < c_; ++block) {
    to.push_back(gathered_block(a, block == 0, backward));
    to.back().join = block == 1;  // needs the gathered keys and values
    if (block > 0) {
      Work sums = unquantised();
      sums.small(KernelPlace::context_part, backward, units_of(a));
      to.push_back(sums.segment("sums of blocks"));
      to.back().join = backward;  // adds to the gradients that arrived
    }
    if (!backward) continue;
    to.push_back(
        rotation("gradient rotation", bytes_of(exchanged, 1, how.gradient_bytes), !how.waits && block + 1 < c_));
  }
  add_small(KernelPlace::context_end, backward, units_of(a), "results of blocks", to);
}

// To the next rank of the ring, while as much comes from the one before.
Segment AttentionCore::rotation(std::string_view what, Bytes size, bool beside) const {
  Segment segment = context_collective(what, CollectiveKind::all_to_all, size);
  segment.kind = Segment::Kind::rotation;
  segment.beside = beside;
  return segment;
}

bool AttentionCore::has_blocks() const {
  return c_ > 1 && plan_.context_kind == ContextKind::ring && setup_.attention == AttentionKernel::flash &&
         setup_.kernels().context.ring_in_blocks;
}

// The rank's own block comes first. The next keys and values arrive while a block is computed.
void AttentionCore::ring_forward(std::vector<Segment>& to, const AttentionShape& a) const {
  const bool beside = !setup_.kernels().context.waits;
  const std::int64_t exchanged = tokens_ * exchanged_heads(a) * (a.head_size + a.value_size);
  add_small(KernelPlace::context_begin, false, units_of(a), "copies of keys and values", to);
  for (std::int64_t block = 0; block < c_; ++block) {
    if (block > 0) {
      Work part = unquantised();
      part.small(KernelPlace::context_part, false, units_of(a));
      to.push_back(part.segment("sums of blocks"));
      to.back().join = true;  // reads the keys and values that arrived
    }
    if (block + 1 < c_) to.push_back(rotation("key-value rotation", bytes_of(exchanged, 1, element_), beside));
    to.push_back(gathered_block(a, block == 0, false));
  }
  add_small(KernelPlace::context_end, false, units_of(a), "results of blocks", to);
}

// The rank's own block comes last, and keys and values go round once more. Behind them go their gradients, from the
// second block on, to which each rank adds those of its block.
void AttentionCore::ring_backward(std::vector<Segment>& to, const AttentionShape& a) const {
  const KernelCatalogue::Context& how = setup_.kernels().context;
  const std::int64_t exchanged = tokens_ * exchanged_heads(a) * (a.head_size + a.value_size);
  const Bytes keys = bytes_of(exchanged, 1, element_);
  const Bytes gradients = bytes_of(exchanged, 1, how.gradient_bytes);
  add_small(KernelPlace::context_begin, true, units_of(a), "copies of keys and values", to);
  for (std::int64_t block = 0; block < c_; ++block) {
    const bool own = block + 1 == c_;
    to.push_back(rotation("key-value and gradient rotation",
                          (own ? Bytes{} : keys) + (block == 0 ? Bytes{} : gradients), !how.waits));
    to.push_back(gathered_block(a, own, true));
    Work sums = unquantised();
    sums.small(own ? KernelPlace::context_end : KernelPlace::context_part, true, units_of(a));
    to.push_back(sums.segment("sums of blocks"));
    to.back().join = true;  // adds to the gradients that arrived
  }
}

void AttentionCore::add_core(std::vector<Segment>& to, const AttentionShape& a, bool backward) const {
  if (c_ > 1 && plan_.context_kind == ContextKind::gathered_ring && setup_.attention == AttentionKernel::flash)
    return gathered_ring(to, a, backward);
  if (has_blocks()) return backward ? ring_backward(to, a) : ring_forward(to, a);
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
      // Backward again: only the rank's own keys and values are kept (NVIDIA, Transformer Engine,
      // transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py,
      // AttnFuncWithCPAndKVAllGather.backward).
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

void AttentionCore::core_again(const AttentionShape& a, std::vector<Segment>& to) const {
  if (c_ > 1)
    add_core(to, a, false);  // with its exchanges
  else
    to.push_back(core(a, "attention core again", false));
  add_small(KernelPlace::attention_output, false, units_of(a), "attention output again", to);
}

}  // namespace weft
