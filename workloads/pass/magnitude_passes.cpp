// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/magnitude_passes.hpp"

#include "workloads/pass/pass_work.hpp"

namespace weft {
namespace {

std::int64_t attention_gemms(const AttentionShape& a) {
  if (a.heads == 0) return 0;
  // Queries, keys and values, and what attention gives. Latent attention has queries down and up or as they are, keys
  // and values down and up.
  return a.latent() ? (a.query_rank > 0 ? 2 : 1) + 2 + 1 : 2;
}

std::vector<Segment> pass(const PassSetup& setup, bool backward, std::int64_t magnitudes) {
  const std::vector<SmallKernel>& kernels = setup.kernels().at(KernelPlace::magnitudes, backward);
  std::vector<Segment> to;
  const auto add = [&](const SmallKernel& kernel) {
    Work work(setup);
    work.small(kernel.name, kernel, magnitudes);
    to.push_back(work.segment("largest magnitudes"));
  };
  Segment reduction;
  reduction.kind = Segment::Kind::collective;
  reduction.what = "largest magnitudes";
  reduction.stream = Stream::tensor;
  reduction.group = setup.description->amax_ranks == AmaxRanks::tensor ? GroupKind::tensor_context : GroupKind::stage;
  reduction.collective = CollectiveKind::all_reduce;
  reduction.size = Bytes(4 * magnitudes);
  // The first kernel gathers them; the others work on what is reduced.
  for (const SmallKernel& kernel : kernels) {
    if (!has_kernel(setup, kernel)) continue;
    add(kernel);
    if (to.size() == 1) to.push_back(reduction);
  }
  return to;
}

}  // namespace

std::int64_t fp8_gemms(const BlockShape& block, const ParallelPlan& plan) {
  const MlpShape& mlp = block.mlp;
  std::int64_t gemms = attention_gemms(block.attention);
  if (block.cross_attention) gemms += 3;  // queries; keys and values; what it gives
  if (mlp.inner > 0) gemms += 2;
  if (mlp.mixture()) gemms += 2 * (mlp.experts / plan.expert) + (mlp.shared_inner > 0 ? 2 : 0);
  return gemms;
}

std::int64_t mean_fp8_gemms(const TrainingDescription& description) {
  const ModelConfig& model = description.model;
  std::int64_t gemms = 0;
  for (std::int64_t layer = 0; layer < model.layers() + model.prediction_blocks; ++layer)
    gemms += fp8_gemms(model.layer_shape(layer), description.parallel);
  return share_of(gemms, description.parallel.pipeline);
}

PartPasses magnitude_passes(const PassSetup& setup, std::int64_t gemms) {
  PartPasses passes;
  const TrainingDescription& d = *setup.description;
  if (d.precision != "fp8" || d.fp8_scaling != Fp8Scaling::delayed || d.amax_ranks == AmaxRanks::none || gemms == 0)
    return passes;
  passes.forward = pass(setup, false, 3 * gemms);
  passes.backward = pass(setup, true, 2 * gemms);
  passes.input_gradient = passes.backward;
  return passes;
}

}  // namespace weft
