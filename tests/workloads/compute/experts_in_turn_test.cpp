// SPDX-License-Identifier: GPL-2.0-only
// Experts of Megatron-Core that are computed one after the other: what is copied besides, by hand.
#include <cstdint>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/compute/framework.hpp"
#include "workloads/pass/block_passes.hpp"

namespace weft::test::experts_in_turn_test {
namespace {

constexpr std::int64_t tokens = 4096, h = 4096, copies = 2 * tokens * h;  // Mixtral 8x7B: two experts for each token

/// Bytes of the kernels of a block of Mixtral that are neither GEMMs nor attention.
struct Bytes {
  std::int64_t forward = 0, backward = 0;
};
Bytes bytes_of(std::int64_t streams, std::int64_t expert_ranks) {
  TrainingDescription description;
  description.model = read_model(JsonConfig::load(workloads_folder() + "/models/mixtral-8x7b.json"));
  description.micro_batch = 1;
  description.sequence_length = tokens;
  description.parallel.data = 1;
  description.parallel.expert = expert_ranks;
  description.parallel.expert_tensor = 1;
  description.precision = "bf16";
  const OperatorTimes times{read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml"))};
  KernelCatalogue kernels = read_kernel_catalogue(Spec::load(workloads_folder() + "/frameworks/megatron_core.yaml"));
  kernels.expert_streams = streams;
  const PartPasses passes =
      block_passes({&description, &times, kernels.attention, &kernels}, description.model.layer_shape(0));
  const auto sum = [](const std::vector<Segment>& pass) {
    std::int64_t bytes = 0;
    for (const Segment& segment : pass)
      for (const KernelUse& use : segment.kernels)
        if (use.kernel.kind == Kernel::Kind::memory) bytes += use.kernel.bytes;
    return bytes;
  };
  return {sum(passes.forward), sum(passes.backward)};
}

// megatron/core/transformer/moe/experts.py (core_r0.9.0), SequentialMLP: torch.cat of the results of experts reads and
// writes 2 B of each element of all copies, and so does the backward pass of torch.split with the gradients of their
// inputs.
TEST(ExpertsInTurn, ResultsAndGradientsArePutTogether) {
  const Bytes grouped = bytes_of(4, 1), in_turn = bytes_of(1, 1);
  EXPECT_EQ(in_turn.forward - grouped.forward, 4 * copies);
  EXPECT_EQ(in_turn.backward - grouped.backward, 4 * copies);
}

// A rank's only expert takes all copies as they are.
TEST(ExpertsInTurn, AnExpertAloneHasNothingToPutTogether) {
  const Bytes grouped = bytes_of(4, 8), in_turn = bytes_of(1, 8);
  EXPECT_EQ(in_turn.forward, grouped.forward);
  EXPECT_EQ(in_turn.backward, grouped.backward);
}

}  // namespace
}  // namespace weft::test::experts_in_turn_test
