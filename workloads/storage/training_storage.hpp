// SPDX-License-Identifier: GPL-2.0-only
// What a training job reads from storage and writes there: its data, and checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"
#include "workloads/storage/run_outline.hpp"
#include "workloads/storage/storage_rounds.hpp"

namespace weft {

/// Storage targets: ranks numbered after those that train.
struct StorageTargets {
  std::uint32_t count = 0;  ///< 0: the job does not use them
  Bytes piece{std::int64_t{4} << 20};
  Bandwidth device_rate;  ///< 0: no time
  Time device_latency;
};

/// `data_loading`. The ranks that hold the first stage of a copy of the model share out its samples.
struct DataLoading {
  StorageTargets targets;
  Bytes sample;                ///< of one sequence, or image
  std::uint32_t prefetch = 1;  ///< steps that are asked for ahead
};

/// `checkpoint`. Every rank writes its part of weights and optimizer: of what all data-parallel ranks have, a share
/// each.
struct Checkpoints {
  StorageTargets targets;
  std::uint32_t every = 0;  ///< steps
  bool asynchronous = false;
  Bytes size;  ///< of each rank; 0: by its parameters
};

/// The keys `data_loading`, `checkpoint` and `failures` of `kind: training`; times of failures are checked by
/// make_outline. `hosts`: those of the machine, of which some must be left for training.
struct TrainingEvents {
  DataLoading data;
  Checkpoints checkpoints;
  FailurePlan failures;
  SourceLine failures_where;

  std::uint32_t targets() const { return data.targets.count + checkpoints.targets.count; }
  OutlineSettings outline(std::uint32_t steps) const;
};
TrainingEvents read_training_events(const Spec& spec, const WorkloadContext& context);

/// A StoragePlan whose clients are some ranks of a job, and whose targets are ranks from `first_target` on.
class StorageUse {
 public:
  StorageUse() = default;
  StorageUse(StoragePlan plan, std::uint32_t first_target, std::function<Rank(std::uint32_t client)> rank_of_client)
      : plan_(std::move(plan)), first_target_(first_target), rank_of_client_(std::move(rank_of_client)) {}

  const StoragePlan& plan() const { return plan_; }
  /// One round of a client, or of a target by its number from 0, between the ranks of the job. Tags of both
  /// directions differ, so that rounds of both may be under way.
  std::vector<Operation> client(std::uint32_t client, bool reads, std::uint64_t first_id,
                                const std::vector<std::uint64_t>& after, std::string_view what) const;
  std::vector<Operation> target(std::uint32_t target, bool reads, std::uint64_t first_id, std::string_view what) const;
  /// Bytes of all clients in a round, and data messages.
  unsigned __int128 bytes_of_round() const;
  std::uint64_t messages_of_round() const;
  /// Pieces of the client with most.
  std::uint64_t max_pieces() const;

 private:
  std::vector<Operation> named(std::vector<Operation> operations, std::string_view what) const;
  StoragePlan plan_;
  std::uint32_t first_target_ = 0;
  std::function<Rank(std::uint32_t)> rank_of_client_;
};

/// The program of a target: data of so many steps, or the checkpoints and restores of an outline.
std::unique_ptr<RankProgram> data_target_program(const StorageUse& use, std::uint32_t target, std::uint64_t rounds,
                                                 std::uint32_t prefetch);
std::unique_ptr<RankProgram> checkpoint_target_program(const StorageUse& use, std::uint32_t target,
                                                       const RunOutline& outline);

}  // namespace weft
