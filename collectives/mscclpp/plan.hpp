// SPDX-License-Identifier: GPL-2.0-only
// An execution plan of MSCCL++ as its file has it. Format: github.com/microsoft/mscclpp src/executor/execution_plan.cc;
// names of operations: python/mscclpp/language.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "collectives/plans/static_schedule.hpp"

namespace weft {

using PlanJson = nlohmann::json;

constexpr std::uint32_t max_plan_gpus = 1024;
constexpr std::uint32_t max_plan_chunks = 1U << 20;
constexpr std::uint32_t max_plan_blocks = 1024;  ///< thread blocks of a GPU

/// A whole number below 2^32; throws PlanJson::type_error if it is another value.
std::uint32_t plan_number(const PlanJson& value);

/// What of a plan is being looked at, for errors.
struct PlanPlace {
  std::string file;
  std::string part;  ///< such as "GPU 3, thread block 0: "; empty: the whole file
  [[noreturn]] void fail(const std::string& message) const;
  /// map[key]; throws InputError if it is more than `max`.
  std::uint32_t number(const PlanJson& map, const char* key, std::uint32_t max) const;
  /// Of "i", "o" or "s".
  Buffer buffer(const std::string& name) const;
};

/// A channel of a GPU to a peer.
struct PlanChannel {
  std::uint32_t peer = 0;
  std::uint32_t number = 0;  ///< among those of its type to this peer
};

/// The memory of a group of GPUs behind the switch that reduces.
struct PlanSwitch {
  std::uint32_t number = 0;  ///< in StaticSchedule::switches
  Buffer buffer = Buffer::input;
};

/// What a GPU has.
struct PlanGpu {
  std::vector<PlanSwitch> switches;                              ///< channels of the type switch
  std::map<std::string, std::vector<PlanChannel>> channels;      ///< by type
  std::vector<std::pair<std::uint32_t, Buffer>> remote_buffers;  ///< GPU, buffer
  std::map<Buffer, std::uint32_t> chunks;                        ///< of each buffer, as the plan counts them
  std::vector<std::uint32_t> semaphores;                         ///< permits of each at the beginning
};

/// A thread block: its operations, in order, and what of its GPU they may name.
struct PlanBlock {
  std::uint32_t gpu = 0;
  std::uint32_t id = 0;
  std::vector<const PlanJson*> operations;                           ///< of ExecutionPlan::json
  std::map<std::string, std::vector<std::uint32_t>> channels;        ///< by type: its channels of the GPU
  std::map<std::string, std::vector<std::uint32_t>> remote_buffers;  ///< the same of remote buffers
};

/// A plan, checked as far as that needs no execution.
struct ExecutionPlan {
  PlanPlace place;
  std::shared_ptr<const PlanJson> json;  ///< the file
  std::vector<PlanGpu> gpus;
  std::vector<PlanBlock> blocks;  ///< of all GPUs
  std::uint32_t parts = 1;        ///< of a chunk of the plan, each of which is a chunk of the schedule

  std::uint32_t gpu_count() const { return static_cast<std::uint32_t>(gpus.size()); }
  /// Chunks of the schedule.
  std::uint32_t schedule_chunks(std::uint32_t gpu, Buffer buffer) const { return gpus[gpu].chunks.at(buffer) * parts; }
};

/// Fills in all of `plan` but the file's name, which it has, and of `schedule` what is not steps: its name, kind,
/// chunks, protocol and switches, and a list without lanes for each GPU and switch. Throws InputError, or
/// PlanJson::exception if a value is missing or has another type.
void read_plan(ExecutionPlan& plan, StaticSchedule& schedule);

}  // namespace weft
