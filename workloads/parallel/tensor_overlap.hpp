// SPDX-License-Identifier: GPL-2.0-only
// Calls of tensor ranks beside the GEMMs next to them, as userbuffers of NVIDIA's Transformer Engine have them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// GEMMs with a call of tensor ranks next to them, by the names that Transformer Engine's configuration has
/// (transformer_engine/pytorch/module/base.py, initialize_ub): queries, keys and values, projection behind attention,
/// both layers of the MLP; forward, gradients of inputs and of weights.
enum class OverlappedGemm : std::uint8_t {
  qkv_fprop,
  qkv_dgrad,
  qkv_wgrad,
  proj_fprop,
  proj_dgrad,
  fc1_fprop,
  fc1_dgrad,
  fc1_wgrad,
  fc2_fprop,
  fc2_dgrad,
};
constexpr std::size_t overlapped_gemm_count = 10;

enum class OverlapMethod : std::uint8_t {
  none,           ///< a call of NCCL before or behind
  bulk,           ///< a call that this GEMM does not need, beside the whole GEMM
  pipeline,       ///< the result in parts, each of which is summed beside the GEMM of the next
  ring_exchange,  ///< parts, one for each rank: each goes to another rank beside the GEMM of another part
};

struct OverlapOfGemm {
  OverlapMethod method = OverlapMethod::none;
  std::int64_t units = 0;   ///< multiprocessors that the communication takes, `num_sm`
  std::int64_t parts = 4;   ///< pipeline, `num_splits`
  bool pairs = false;       ///< ring_exchange of what is gathered: two parts at a time, `aggregate`
  bool sm_margin = false;   ///< the GEMM leaves `units` alone, so that it has no blocks that wait for them
  bool fp8_buffer = false;  ///< sums travel in fp8
};

struct TensorOverlap {
  bool on = false;
  std::array<OverlapOfGemm, overlapped_gemm_count> gemms;
  const OverlapOfGemm& of(OverlappedGemm gemm) const { return gemms[static_cast<std::size_t>(gemm)]; }
  OverlapOfGemm& of(OverlappedGemm gemm) { return gemms[static_cast<std::size_t>(gemm)]; }
};

/// In the order of the values.
const std::vector<std::string>& overlapped_gemm_names();
std::string_view to_text(OverlapMethod method);
/// Methods that a GEMM may have, its own default first.
std::vector<OverlapMethod> methods_of(OverlappedGemm gemm);
/// A GEMM with a method and Transformer Engine's defaults for it (initialize_ub, get_default_config).
OverlapOfGemm default_overlap(OverlapMethod method);
/// All GEMMs with their default methods.
TensorOverlap default_tensor_overlap();

}  // namespace weft
