// SPDX-License-Identifier: GPL-2.0-only
// What became of each collective, from the parts that each MPI rank saw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <mpi.h>

#include "results/records.hpp"

namespace weft {

/// One collective as a whole. It starts with its first rank and ends with its last one.
struct CollectiveResult {
  CollectiveInfo info;
  std::int64_t start = -1;           ///< ps; -1 as long as no rank has finished its part
  std::int64_t end = -1;             ///< ps; -1 likewise
  std::int64_t last_start = -1;      ///< ps, its last rank started; -1 likewise
  std::uint32_t finished_ranks = 0;  ///< ranks that have finished their part
  std::uint64_t messages = 0;        ///< sent by all of them
  std::int64_t sent_bytes = 0;       ///< sent by all of them
  /// Of end - start: until the rank that ended last had started, waiting for peers; from there on what it met.
  TimeParts parts;

  bool finished() const { return finished_ranks == info.ranks; }
  /// end - start in ps, -1 if unfinished.
  std::int64_t time() const;
  /// nccl-tests' algorithm bandwidth: bytes / time in GB/s (10^9 B/s). 0 if unfinished or if it took no time.
  double algorithm_bandwidth() const;
  /// nccl-tests' bus bandwidth: algorithm bandwidth x bus factor (NVIDIA nccl-tests, doc/PERFORMANCE.md).
  double bus_bandwidth() const;
};

/// Collective: every process passes its own parts and the same `all`. Process 0 gets the `limit` collectives with the
/// lowest ids, in ascending order; the others get nothing. Parts of unknown collectives throw InternalError everywhere.
/// Memory grows with a process's own parts and its share of the collectives.
std::vector<CollectiveResult> reduce_collectives(MPI_Comm comm, const std::vector<CollectivePart>& parts,
                                                 const CollectiveDirectory& all, std::size_t limit = 1000);

/// The same for the collectives that this process owns in the file: `all` is cut into blocks by id. For Hdf5Recorder.
/// `times`: of all finished collectives of `parts`, or nullptr.
std::vector<CollectiveResult> reduce_owned_collectives(MPI_Comm comm, const std::vector<CollectivePart>& parts,
                                                       const CollectiveDirectory& all,
                                                       const CollectiveTimesById* times = nullptr);

}  // namespace weft
