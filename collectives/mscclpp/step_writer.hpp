// SPDX-License-Identifier: GPL-2.0-only
// Accesses of thread blocks to memory as steps of a schedule.
//
// A plan is one-sided: a thread block writes into and reads from the memory of other GPUs. Here each such access is a
// message with two ends: the thread block's own step, and a step of a lane that represents the block at the other GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "collectives/mscclpp/operands.hpp"
#include "collectives/mscclpp/thread_block.hpp"

namespace weft {

/// A step without peers. nullptr: it reads or writes no buffer.
StaticStep plan_step(Primitive primitive, const PlanRange* from, const PlanRange* to);

/// Writes the lanes and steps of a schedule.
class PlanStepWriter {
 public:
  PlanStepWriter(const PlanPlace& place, StaticSchedule& schedule) : place_(place), schedule_(schedule) {}

  /// From the memory of the thread block's GPU to that of another one, and the other way; throw InputError if the ends
  /// are not so.
  void put(ThreadBlock& block, const PlanRange& from, const PlanRange& to);
  void get(ThreadBlock& block, const PlanRange& from, const PlanRange& to);
  /// Within the GPU.
  void local(ThreadBlock& block, Primitive primitive, const PlanRange& from, const PlanRange& to);
  /// `to` becomes the sum of `sum`, of this GPU, and `from`, of another one.
  void receive_reduce(ThreadBlock& block, const PlanRange& from, const PlanRange& sum, const PlanRange& to);

  /// The thread block's end of a channel to a GPU, which is created at the first call.
  PlanPeer& peer_of(ThreadBlock& block, std::uint32_t gpu);
  /// Position among the lanes of a rank: a GPU or a switch.
  std::uint32_t add_lane(std::uint32_t rank, std::uint32_t id, std::uint32_t channel, std::uint32_t peer);
  /// After all of `waits`, which become empty. A step waits for one other: the rest are steps that do nothing else.
  PlanStep add_step(std::uint32_t rank, std::uint32_t lane, StaticStep step, PlanSteps& waits);
  /// The thread block's own next step.
  void add_own_step(ThreadBlock& block, std::uint32_t lane, const StaticStep& step);
  /// Channels of pairs of GPUs so far.
  std::uint32_t channels() const { return channels_; }

 private:
  void add_step_there(PlanPeer& peer, std::uint32_t gpu, const StaticStep& step);

  const PlanPlace& place_;
  StaticSchedule& schedule_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channels_of_pair_;
  std::uint32_t channels_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace weft
