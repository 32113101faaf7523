// SPDX-License-Identifier: GPL-2.0-only
// Releases of NCCL that choose differently.
#pragma once

#include <cstdint>

namespace weft {

/// collectives/choice/nccl_tuner.cpp says how; 2.28 has fewer channels to a peer than 2.30 (channel_graph.hpp).
enum class NcclVersion : std::uint8_t { v2_18, v2_21, v2_23, v2_27, v2_28, v2_30 };

}  // namespace weft
