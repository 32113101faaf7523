// SPDX-License-Identifier: GPL-2.0-only
// Releases of NCCL that choose differently.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

/// collectives/choice/nccl_tuner.cpp says how; 2.28 has other channels to a peer than 2.30
/// (schedule/pairs/peer_messages.hpp).
enum class NcclVersion : std::uint8_t { v2_18, v2_21, v2_23, v2_27, v2_28, v2_30 };

/// In the order of the values.
constexpr std::array<const char*, 6> nccl_version_names{"2.18", "2.21", "2.23", "2.27", "2.28", "2.30"};
constexpr const char* to_text(NcclVersion version) { return nccl_version_names[static_cast<std::size_t>(version)]; }

}  // namespace weft
