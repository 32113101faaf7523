// SPDX-License-Identifier: GPL-2.0-only
// One block of a model with the kernels of a framework, and sums over its kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/compute/framework.hpp"
#include "workloads/pass/block_passes.hpp"
#include "workloads/pass/pass_work.hpp"
#include "workloads/training/training_reading.hpp"

namespace weft::test {

inline KernelCatalogue catalogue(const std::string& name) {
  return read_kernel_catalogue(Spec::load(workloads_folder() + "/frameworks/" + name + ".yaml"));
}

/// GPT-2 with b = 4, s = 1024 on t tensor ranks.
struct BlockOfGpt {
  explicit BlockOfGpt(const std::string& framework, std::int64_t t = 1, const std::string& model = "gpt2")
      : kernels(catalogue(framework)) {
    description.model = read_model(JsonConfig::load(workloads_folder() + "/models/" + model + ".json"));
    description.micro_batch = b;
    description.sequence_length = s;
    description.parallel.data = 1;
    description.parallel.tensor = t;
    description.parallel.expert_tensor = 1;
    description.precision = "bf16";
  }
  PartPasses passes() const { return block_passes(setup(), description.model.layer_shape(0)); }
  PassSetup setup() const { return {&description, &times, kernels.attention, &kernels}; }

  static constexpr std::int64_t b = 4, s = 1024;
  TrainingDescription description;
  KernelCatalogue kernels;
  OperatorTimes times{read_device(Spec::load(workloads_folder() + "/devices/a100-sxm.yaml"))};
};

/// Bytes and FLOPs of all kernels but GEMMs and fused attention.
struct SmallSum {
  std::int64_t bytes = 0;
  double flops = 0;
};

inline SmallSum small_kernels(const std::vector<Segment>& pass) {
  SmallSum sum;
  for (const Segment& segment : pass)
    for (const KernelUse& use : segment.kernels)
      if (use.kernel.kind == Kernel::Kind::memory && use.kernel.flops == 0) {
        sum.bytes += use.kernel.bytes;
        sum.flops += use.flops;
      }
  return sum;
}

/// Llama-3.1-8B: N = T h elements, queries and keys T (h + k d), T f of the MLP.
struct Llama {
  static constexpr std::int64_t tokens = BlockOfGpt::b * BlockOfGpt::s, h = 4096, kd = 1024, f = 14336, n = tokens * h,
                                queries_keys = tokens * (h + kd);
};

}  // namespace weft::test
