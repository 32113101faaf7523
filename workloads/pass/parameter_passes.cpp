// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/parameter_passes.hpp"

#include <algorithm>
#include <string_view>

#include "workloads/parallel/held_parameters.hpp"
#include "workloads/parallel/pass_sizes.hpp"
#include "workloads/pass/pass_work.hpp"

namespace weft {

void add_gradient_accumulation(const PassSetup& setup, const std::vector<Tensor>& tensors, PartPasses& passes) {
  const KernelCatalogue::Accumulation& how = setup.kernels().accumulation_of(!narrow_gradients(*setup.description));
  if (how.bytes == 0) return;
  SmallKernel add;
  add.bytes = how.bytes;
  Work work(setup);
  for (const Tensor& tensor : tensors)
    work.small(tensor.name, add, held_parameters({tensor}, setup.description->parallel).sum());
  Segment segment = work.segment("gradient accumulation");
  segment.from_second = how.from_second;
  if (segment.kernels.empty()) return;
  passes.backward.push_back(segment);
  passes.weight_gradient.push_back(segment);
}

namespace {

bool of_fp8(KernelWhen when) {
  return when == KernelWhen::fp8 || when == KernelWhen::delayed || when == KernelWhen::current ||
         when == KernelWhen::fp8_block || when == KernelWhen::mxfp8 || when == KernelWhen::fp8_scaled;
}

}  // namespace

void add_shared_copies(const PassSetup& setup, const std::vector<Tensor>& tensors, PartPasses& passes, bool quantised) {
  const ParallelPlan& plan = setup.description->parallel;
  if (plan.sharding != Sharding::parameters) return;
  const KernelCatalogue& kernels = setup.kernels();
  const std::int64_t held = held_parameters(tensors, plan).sum();
  const std::int64_t ranks = plan.shard_group > 0 ? plan.shard_group : plan.data * plan.context;
  const auto copies = [&](const std::vector<SmallKernel>& list, std::string_view what) {
    Work work(setup);
    for (const SmallKernel& one : list) {
      const bool casts = std::any_of(one.when.begin(), one.when.end(), of_fp8);
      const bool has = quantised ? has_kernel(setup, one) : !casts;
      if (has) work.small(one.name, one, one.unit == KernelUnit::kept ? share_of(held, ranks) : held);
    }
    return work.segment(what);
  };
  const Segment gathered = copies(kernels.gathered, "copies of parameters");
  const Segment scattered = copies(kernels.scattered, "copies of gradients");
  if (!gathered.kernels.empty()) {
    passes.forward.insert(passes.forward.begin(), gathered);
    for (auto* pass : {&passes.backward, &passes.input_gradient})
      if (plan.reshard_after_forward) pass->insert(pass->begin(), gathered);
  }
  if (!scattered.kernels.empty())
    for (auto* pass : {&passes.backward, &passes.weight_gradient}) pass->push_back(scattered);
}

}  // namespace weft
