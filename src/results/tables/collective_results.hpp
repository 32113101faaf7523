// SPDX-License-Identifier: GPL-2.0-only
// The result of each collective, from the parts that each MPI rank saw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <mpi.h>

#include "results/tables/collective_log.hpp"
#include "results/tables/records.hpp"

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
  /// Of end - start: until the rank that ended last had started, this is waiting for peers; from there on it is that
  /// rank's waits.
  TimeParts parts;

  bool finished() const { return finished_ranks == info.ranks; }
  /// end - start in ps, -1 if unfinished.
  std::int64_t time() const;
  /// nccl-tests' algorithm bandwidth: bytes / time in GB/s (10^9 B/s). 0 if unfinished or if it took no time.
  double algorithm_bandwidth() const;
  /// nccl-tests' bus bandwidth: algorithm bandwidth x bus factor (NVIDIA nccl-tests, doc/PERFORMANCE.md).
  double bus_bandwidth() const;
};

/// Collective: every process passes its own log and the same `all`. Process 0 gets the `limit` collectives with the
/// lowest ids, in ascending order; the others get nothing. Parts of unknown collectives throw InternalError everywhere.
std::vector<CollectiveResult> reduce_collectives(MPI_Comm comm, CollectiveLog& log, const CollectiveDirectory& all,
                                                 std::size_t limit = 1000);

/// All collectives in ascending order of id, some thousand at a time, each on one process. Every member function except
/// done() is collective. The log and the directory must outlive this object.
class CollectivePieces {
 public:
  /// `with_times`: the log has those of all finished collectives. Parts of unknown ones throw InternalError everywhere.
  CollectivePieces(MPI_Comm comm, CollectiveLog& log, const CollectiveDirectory& all, bool with_times);
  ~CollectivePieces();
  CollectivePieces(const CollectivePieces&) = delete;
  CollectivePieces& operator=(const CollectivePieces&) = delete;

  bool done() const;
  /// Those of the next collectives that this process has summed up. Throws EnvironmentError everywhere if a log cannot
  /// be read.
  std::vector<CollectiveResult> next();

 private:
  class Sums;
  std::unique_ptr<Sums> sums_;
};

/// What longest_texts() says of all of them, of a share of them on each process.
std::vector<std::uint64_t> longest_texts_of(MPI_Comm comm, const CollectiveDirectory& all);

}  // namespace weft
