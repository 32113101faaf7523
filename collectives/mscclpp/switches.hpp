// SPDX-License-Identifier: GPL-2.0-only
// NVLink's switch in an MSCCL++ plan: handleMultiLoadReduceStore and handleMultiStore of github.com/microsoft/mscclpp
// src/include/execution_kernel.hpp, which are multimem.ld_reduce and multimem.st.
//
// The switch is an additional rank: data that a thread block loads through it arrive as a message from each GPU, are
// summed up there, and goes to the GPU of the thread block; what it stores goes to the switch, and from there to each
// GPU.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collectives/mscclpp/step_writer.hpp"

namespace weft {

class PlanSwitches {
 public:
  PlanSwitches(const ExecutionPlan& plan, PlanStepWriter& writer, StaticSchedule& schedule)
      : plan_(plan), writer_(writer), schedule_(schedule) {}

  /// glres: the sum over the buffers of all GPUs, in a register, and from there in all of them.
  void load_reduce_store(ThreadBlock& block, const PlanJson& operation);
  /// gstore: from the thread block's GPU into all of them.
  void group_store(ThreadBlock& block, const PlanJson& operation);
  /// When all operations are done: numbers the channels of switches in the schedule, and gives their number. Channels
  /// take turns among the switches of a server: first those of loads, then those of stores, so that each of the
  /// switches has its share of both.
  std::uint32_t number_channels();

 private:
  /// Lanes of what a thread block loads or stores through a switch.
  struct Use {
    std::uint32_t channel = 0;
    std::vector<std::uint32_t> at_gpus;  ///< at each GPU below the switch, in their order
    std::uint32_t own_lane = no_lane;    ///< at the thread block's GPU, the other way
    std::uint32_t in_switch = no_lane;
  };
  using Uses = std::map<std::pair<const ThreadBlock*, std::uint32_t>, Use>;  // by the switch's number; looked up only

  PlanSwitchRange range(const ThreadBlock& block, const PlanJson& operation, const char* key) const;
  std::uint32_t rank_of(std::uint32_t number) const { return plan_.gpu_count() + number; }
  std::uint32_t add_scratch(std::uint32_t rank, std::uint32_t count);
  const Use& use_of(const ThreadBlock& block, std::uint32_t number, bool loads);
  void step_in_switch(std::uint32_t rank, const Use& use, StaticStep step, std::uint32_t from, std::uint32_t to);
  void step_at(ThreadBlock& block, std::uint32_t gpu, std::uint32_t lane, const StaticStep& step);
  void load(ThreadBlock& block, const PlanSwitchRange& from, const PlanRange& to);
  void store(ThreadBlock& block, const PlanRange& from, const PlanSwitchRange& to);

  const ExecutionPlan& plan_;
  PlanStepWriter& writer_;
  StaticSchedule& schedule_;
  Uses loads_, stores_;
  std::map<std::uint32_t, std::uint32_t> scratch_ends_;  // [rank or switch]
};

}  // namespace weft
