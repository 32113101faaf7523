// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/attention_passes.hpp"

namespace weft {

// GEMMs that make queries, keys and values.
std::vector<Gemm> AttentionPasses::inputs(const AttentionShape& a) const {
  if (!a.latent()) return {{tokens_, heads(a) * a.head_size + kv_heads(a) * (a.head_size + a.value_size), h_}};
  std::vector<Gemm> gemms;
  if (!gathers_compressed(a)) gemms = compressions(a);
  gemms.push_back({tokens_, heads(a) * a.head_size, query_width(a)});
  gemms.push_back({tokens_, heads(a) * (a.head_size - a.rope_size + a.value_size), a.kv_rank});
  return gemms;
}

std::vector<Gemm> AttentionPasses::compressions(const AttentionShape& a) const {
  std::vector<Gemm> gemms;
  if (a.query_rank > 0) gemms.push_back({norm_tokens(), a.query_rank, h_});
  gemms.push_back({norm_tokens(), a.kv_rank + a.rope_size, h_});
  return gemms;
}

void AttentionPasses::forward(const AttentionShape& a, std::vector<Segment>& to) const {
  Work before(setup_);
  before.small(KernelPlace::attention_norm, false, units_of(a));
  Work in(setup_);
  const bool in_parts = overlaps(OverlappedGemm::qkv_fprop) && !a.latent();
  if (!in_parts)
    for (const Gemm& gemm : inputs(a)) gemm.forward(in);
  in.small(KernelPlace::attention_input, false, units_of(a));
  to.push_back(before.segment("attention norm"));
  if (gathers_compressed(a)) {
    Work compression(setup_);
    for (const Gemm& gemm : compressions(a)) gemm.forward(compression);
    to.push_back(compression.segment("attention compression"));
    gather_compressed(a, to);
  } else if (in_parts) {
    gather_beside(to, OverlappedGemm::qkv_fprop, "attention gather", "attention QKV", inputs(a).front());
  } else {
    gather(to, "attention gather");
  }
  to.push_back(in.segment("attention input"));
  add_core(to, a, false);
  const Gemm projection{tokens_, h_, heads(a) * a.value_size};
  Work out(setup_);
  if (overlaps(OverlappedGemm::proj_fprop)) {
    add_small(KernelPlace::attention_output, false, units_of(a), "attention output", to);
    sum_beside(to, OverlappedGemm::proj_fprop, "attention sum", "attention projection", projection);
  } else {
    out.small(KernelPlace::attention_output, false, units_of(a));
    projection.forward(out);
    to.push_back(out.segment("attention output"));
    sum(to, "attention sum");
  }
  Work after(setup_);
  after.small(KernelPlace::attention_residual, false, units_of(a));
  to.push_back(after.segment("attention residual"));
}

void AttentionPasses::gather_compressed(const AttentionShape& a, std::vector<Segment>& to) const {
  if (!gathers_compressed(a)) return;
  gather(to, "query gather", false, query_width(a));
  gather(to, "latent gather", false, a.kv_rank);
  gather(to, "rotary key gather", false, a.rope_size);
}

void AttentionPasses::backward(const AttentionShape& a, std::vector<Segment>& to, bool inputs_too,
                               bool weights_too) const {
  const Gemm out{tokens_, h_, heads(a) * a.value_size};
  if (inputs_too) {
    Work work(setup_);
    if (overlaps(OverlappedGemm::proj_dgrad)) {
      add_small(KernelPlace::attention_residual, true, units_of(a), "attention residual gradient", to);
      gather_beside(to, OverlappedGemm::proj_dgrad, "attention gradient gather", "attention projection gradient", out);
    } else {
      gather_gradient(to, "attention gradient gather");
      work.small(KernelPlace::attention_residual, true, units_of(a));
      out.input_gradient(work);
    }
    work.small(KernelPlace::attention_output, true, units_of(a));
    to.push_back(work.segment("attention output gradient"));
    if (setup_.description->recompute == Recompute::selective) core_again(a, to);
    add_core(to, a, true);
    if (gathers_compressed(a)) {
      gather_again(to, "query gather again", weights_too, query_width(a));
      gather_again(to, "latent gather again", weights_too, a.kv_rank);
    } else {
      const std::size_t begin = to.size();
      gather_again(to, "attention gather again", weights_too);
      in_bulk(to, begin, OverlappedGemm::qkv_dgrad);
    }
    Work in(setup_);
    if (!gathers_compressed(a)) set_beside(in, OverlappedGemm::qkv_dgrad);
    in.small(KernelPlace::attention_input, true, units_of(a));
    for (const Gemm& gemm : inputs(a)) gemm.input_gradient(in);
    to.push_back(in.segment("attention input gradient"));
    const auto add_sum = [&](std::string_view what, std::int64_t width) {
      sum(to, what, width);
      if (overlaps(weights_too) && t_ > 1) to.back().beside = true;
    };
    if (gathers_compressed(a)) {
      add_sum("query gradient sum", query_width(a));
      add_sum("latent gradient sum", a.kv_rank);
      add_sum("rotary key gradient sum", a.rope_size);
    } else {
      const std::size_t begin = to.size();
      add_sum("attention gradient sum", h_);
      if (weights_too) in_bulk(to, begin, OverlappedGemm::qkv_wgrad);
    }
  }
  if (weights_too) {
    Work work(setup_);
    if (!gathers_compressed(a)) set_beside(work, OverlappedGemm::qkv_wgrad);
    out.weight_gradient(work);
    for (const Gemm& gemm : inputs(a)) gemm.weight_gradient(work);
    to.push_back(work.segment("attention weight gradient"));
  }
  if (gathers_compressed(a)) {  // needs the sums
    Work work(setup_);
    for (const Gemm& gemm : compressions(a)) {
      if (inputs_too) gemm.input_gradient(work);
      if (weights_too) gemm.weight_gradient(work);
    }
    to.push_back(work.segment("attention compression gradient"));
    to.back().join = true;
  }
  if (inputs_too) {
    Work norm(setup_);
    norm.small(KernelPlace::attention_norm, true, units_of(a));
    to.push_back(norm.segment("attention norm gradient"));
    to.back().join = true;
  }
}

void AttentionPasses::operators_again(const AttentionShape& a, std::vector<Segment>& to) const {
  Work attention(setup_);
  const bool scattered = t_ > 1 && plan_.sequence;
  add_small(KernelPlace::attention_norm, false, units_of(a), "attention norm again", to);
  gather(to, "attention gather");
  attention.gemm(tokens_, kv_heads(a) * a.head_size, h_);
  attention.small(KernelPlace::attention_input, false, units_of(a));
  attention.small(KernelPlace::attention_output, false, units_of(a));
  if (!scattered) attention.gemm(tokens_, h_, heads(a) * a.value_size);
  to.push_back(attention.segment("attention operators again"));
  if (!scattered) sum(to, "attention sum");
}

}  // namespace weft
