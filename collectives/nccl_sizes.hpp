// SPDX-License-Identifier: GPL-2.0-only
// What NCCL divides its buffers by, and how it rounds.
#pragma once

#include <cstdint>

namespace weft {

constexpr std::int64_t nccl_steps = 8;       ///< of a channel's buffer: NCCL_STEPS, NCCL src/include/device.h
constexpr std::int64_t nccl_alignment = 16;  ///< bytes, of parts, last chunks and slices: NCCL src/enqueue.cc

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::int64_t align_up(std::int64_t a) { return divide_up(a, nccl_alignment) * nccl_alignment; }

}  // namespace weft
