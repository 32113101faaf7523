// SPDX-License-Identifier: GPL-2.0-only
// The buffers that an operation of an MSCCL++ plan reads and writes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/mscclpp/plan.hpp"

namespace weft {

/// Consecutive chunks of a buffer of some GPU, as the schedule counts them.
struct PlanRange {
  std::uint32_t gpu = 0;
  Buffer buffer = Buffer::input;
  std::uint32_t chunk = 0;  ///< the first
  std::uint32_t count = 1;
  /// Of ranges of one GPU and count.
  bool same_place(const PlanRange& other) const { return buffer == other.buffer && chunk == other.chunk; }
};

/// Which part of each chunk a thread block handles, if several do an operation together: `member` of `size`.
struct OperandShare {
  std::uint32_t size = 1;
  std::uint32_t member = 0;
};
OperandShare operand_share(const ExecutionPlan& plan, const PlanJson& operation);

// All throw InputError if the GPU or the thread block has no such buffer or chunks, and PlanJson::exception if a value
// is missing or has another type.

/// A buffer that an operation names, its own GPU's or one of another GPU: the thread block's share of it.
PlanRange operand(const ExecutionPlan& plan, const PlanBlock& block, const PlanJson& operation, const PlanJson& buffer);
/// Those of operation[key]: one or more, all of one size.
std::vector<PlanRange> operands(const ExecutionPlan& plan, const PlanBlock& block, const PlanJson& operation,
                                const char* key);
/// Sources with destinations: as many of both, or one source for all.
std::vector<std::pair<PlanRange, PlanRange>> operand_pairs(const ExecutionPlan& plan, const PlanBlock& block,
                                                           const PlanJson& operation);
/// One source and one destination, both of the GPU itself.
std::pair<PlanRange, PlanRange> local_operands(const ExecutionPlan& plan, const PlanBlock& block,
                                               const PlanJson& operation);

/// Chunks of the memory behind a switch: the same ones of each of its GPUs.
struct PlanSwitchRange {
  std::uint32_t number = 0;  ///< in StaticSchedule::switches
  PlanRange range;           ///< of the thread block's own GPU
};
/// The one buffer of operation[key], which all GPUs below the switch have.
PlanSwitchRange switch_operand(const ExecutionPlan& plan, const std::vector<StaticSwitch>& switches,
                               const PlanBlock& block, const PlanJson& operation, const char* key);
/// Below a switch, in ascending order.
std::vector<std::uint32_t> gpus_of(const StaticSwitch& one);

}  // namespace weft
