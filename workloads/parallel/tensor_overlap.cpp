// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/parallel/tensor_overlap.hpp"

namespace weft {

const std::vector<std::string>& overlapped_gemm_names() {
  static const std::vector<std::string> names = {"qkv_fprop", "qkv_dgrad", "qkv_wgrad", "proj_fprop", "proj_dgrad",
                                                 "fc1_fprop", "fc1_dgrad", "fc1_wgrad", "fc2_fprop",  "fc2_dgrad"};
  return names;
}

std::string_view to_text(OverlapMethod method) {
  constexpr std::array<std::string_view, 4> names{"none", "bulk", "pipeline", "ring_exchange"};
  return names.at(static_cast<std::size_t>(method));
}

std::vector<OverlapMethod> methods_of(OverlappedGemm gemm) {
  switch (gemm) {
    case OverlappedGemm::qkv_fprop:
    case OverlappedGemm::fc1_fprop:
    case OverlappedGemm::proj_dgrad:
    case OverlappedGemm::fc2_dgrad:
      return {OverlapMethod::ring_exchange, OverlapMethod::none};
    case OverlappedGemm::proj_fprop:
    case OverlappedGemm::fc2_fprop:
      return {OverlapMethod::pipeline, OverlapMethod::ring_exchange, OverlapMethod::none};
    case OverlappedGemm::qkv_dgrad:
    case OverlappedGemm::qkv_wgrad:
    case OverlappedGemm::fc1_dgrad:
    case OverlappedGemm::fc1_wgrad:
      break;
  }
  return {OverlapMethod::bulk, OverlapMethod::none};
}

OverlapOfGemm default_overlap(OverlapMethod method) {
  OverlapOfGemm overlap;
  overlap.method = method;
  const bool shares_units = method == OverlapMethod::bulk || method == OverlapMethod::pipeline;
  overlap.units = shares_units ? 16 : 1;
  overlap.sm_margin = shares_units;
  return overlap;
}

TensorOverlap default_tensor_overlap() {
  TensorOverlap overlap;
  overlap.on = true;
  for (std::size_t gemm = 0; gemm < overlapped_gemm_count; ++gemm)
    overlap.gemms[gemm] = default_overlap(methods_of(static_cast<OverlappedGemm>(gemm)).front());
  return overlap;
}

}  // namespace weft
