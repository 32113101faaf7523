// SPDX-License-Identifier: GPL-2.0-only
// Megatron-Core keeps, checks, scales and adds up gradients in 32 bits, or with --grad-reduce-in-bf16 in 16: bytes by
// hand.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/workloads/compute/block_under_test.hpp"

namespace weft::test::gradient_bytes_test {
namespace {

struct WithGradients {
  explicit WithGradients(const std::string& precision) : block("megatron_core", 1, "llama-3.1-8b") {
    block.description.gradient_precision = precision;
  }
  /// Bytes of the GEMMs of a block's backward pass, or of the kernels beside them.
  std::int64_t bytes(bool gemms) const {
    std::int64_t sum = 0;
    for (const Segment& segment : block.passes().backward)
      for (const KernelUse& use : segment.kernels)
        if ((use.kernel.kind == Kernel::Kind::gemm) == gemms) sum += use.kernel.bytes;
    return sum;
  }
  /// Bytes of a list, each kernel over so many units.
  std::int64_t bytes(const std::vector<SmallKernel>& kernels, std::int64_t parameters, std::int64_t kept) const {
    std::int64_t sum = 0;
    for (const SmallKernel& one : kernels)
      if (has_kernel(block.setup(), one))
        sum += kernel_of(one, one.unit == KernelUnit::kept ? kept : parameters, "bf16").bytes;
    return sum;
  }
  BlockOfGpt block;
};

// Llama-3.1-8B: 2 h^2 + 2 h k d of attention, 3 h f of the MLP. The GEMM for a weight's gradient reads and writes the
// buffer, 8 or 4 B (TE, fuse_wgrad_accumulation); all else of a block is as it was.
TEST(GradientBytes, GemmsForWeightsReadAndWriteTheBuffer) {
  const std::int64_t weights = 2 * Llama::h * Llama::h + 2 * Llama::h * Llama::kd + 3 * Llama::h * Llama::f;
  const WithGradients wide("fp32"), narrow("bf16");
  EXPECT_EQ(wide.bytes(true) - narrow.bytes(true), (8 - 4) * weights);
  EXPECT_EQ(wide.bytes(false), narrow.bytes(false));
}

// megatron/core/distributed/param_and_grad_buffer.py: set to zero, checked for NaN, divided: 1, 1 and 2 elements.
// megatron/core/optimizer/distrib_optimizer.py, _copy_model_grads_to_main_grads: `.float()`, which copies 16 bits; the
// norm reads fp32.
TEST(GradientBytes, KernelsOverTheBuffer) {
  const std::int64_t parameters = 1000, kept = 250;
  const WithGradients wide("fp32"), narrow("bf16");
  const auto& norm = wide.block.kernels.gradient_norm;
  EXPECT_EQ(wide.bytes(norm, parameters, kept), 4 * 4 * parameters + 4 * kept);
  EXPECT_EQ(narrow.bytes(norm, parameters, kept), 4 * 2 * parameters + (2 + 4) * kept + 4 * kept);
  const auto& optimizer = wide.block.kernels.optimizer;
  EXPECT_EQ(wide.bytes(optimizer, parameters, kept), narrow.bytes(optimizer, parameters, kept));
}

// The table's gradient of a micro-batch, 2 B, is added to the buffer.
TEST(GradientBytes, TableOfTokens) {
  const WithGradients wide("fp32"), narrow("bf16");
  const auto bytes = [](const WithGradients& one) {
    return small_kernels(embedding_passes(one.block.setup()).backward).bytes;
  };
  const std::int64_t table = wide.block.description.model.vocabulary * Llama::h;
  EXPECT_EQ(bytes(wide) - bytes(narrow), ((2 + 4 + 4) - (2 + 2 + 2)) * table);
}

// Catalogues that do not tell them apart count the same bytes for both.
TEST(GradientBytes, OneNumberForBoth) {
  const Spec spec = Spec::parse(
      "name: mine\nattention: flash\nkernels: {}\n"
      "step: {accumulation: {in_gemms: 5}, optimizer: [{kernel: Adam, per: kept, reads: 16}]}\n",
      "x.yaml");
  const KernelCatalogue kernels = read_kernel_catalogue(spec);
  for (const bool wide : {false, true}) EXPECT_EQ(kernels.accumulation_of(wide).in_gemms, 5);
}

}  // namespace
}  // namespace weft::test::gradient_bytes_test
