// SPDX-License-Identifier: GPL-2.0-only
// Signals, barriers and semaphores of an MSCCL++ plan: a wait makes the following steps wait for all that had been done
// before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/mscclpp/step_writer.hpp"

namespace weft {

/// Operations of one thread block at a time. Operations that cannot go on yet return false, and are called again. All
/// throw InputError if the thread block has no such channel or semaphore.
class PlanSynchronization {
 public:
  PlanSynchronization(const ExecutionPlan& plan, PlanStepWriter& writer);

  void signal(const ThreadBlock& block, const PlanJson& operation);
  bool wait(ThreadBlock& block, const PlanJson& operation);
  bool barrier(ThreadBlock& block, const PlanJson& operation);
  void release(const ThreadBlock& block, const PlanJson& operation);
  bool acquire(ThreadBlock& block, const PlanJson& operation);

 private:
  /// The steps that waiters for a signal have to wait for.
  struct Signal {
    PlanSteps own;     ///< steps of the GPU that signals
    PlanSteps for_it;  ///< steps that stand for the thread block at the GPU that waits
  };
  struct ChannelEnd {
    PlanChannel channel;
    std::vector<Signal> signals;  ///< that have come from the peer
    std::size_t waited = 0;       ///< of these
  };
  struct Barrier {
    std::set<std::uint32_t> blocks;  ///< that have come
    PlanSteps before;
    std::uint32_t left = 0;  ///< thread blocks that have not gone on
  };
  /// Thread blocks of one GPU hand each other a number of permits.
  struct Semaphore {
    std::uint32_t permits = 0;        ///< from the beginning
    std::vector<PlanSteps> released;  ///< what had been done before each release
    std::size_t acquired = 0;         ///< of these
    bool taken() const { return permits == 0 && acquired >= released.size(); }
  };
  struct Gpu {
    std::map<std::string, std::vector<ChannelEnd>> channels;  ///< by type, as PlanGpu has them
    std::map<std::int64_t, Barrier> barriers;
    std::vector<Semaphore> semaphores;
  };

  ChannelEnd& own_end(const ThreadBlock& block, const std::string& type, std::uint32_t id);
  ChannelEnd& other_end(const ThreadBlock& block, const std::string& type, const PlanChannel& channel);
  Semaphore& semaphore(const ThreadBlock& block, const PlanJson& id);

  const PlanPlace& place_;
  PlanStepWriter& writer_;
  std::vector<Gpu> gpus_;
};

}  // namespace weft
