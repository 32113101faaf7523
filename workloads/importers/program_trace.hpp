// SPDX-License-Identifier: GPL-2.0-only
// A trace of per-rank operations, as read from YAML (docs/reference/program_format.md).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"
#include "workloads/compute/compute_noise.hpp"

namespace weft {

/// A set of ranks: all of the program, or a list in file order.
struct RankSet {
  bool all = false;
  std::vector<std::uint32_t> ranks;
};

/// One item of `operations`. Its position is the id of the operation on every rank that has it.
struct TraceOperation {
  Operation operation;  ///< without id, after and call
  RankSet ranks;
  std::vector<std::uint32_t> peers;  ///< of sends and recvs whose ranks have different ones: in the order of `ranks`
  std::vector<std::uint32_t> after;  ///< names, as indices into Trace::names
  std::uint32_t call = 0;            ///< id of the collective call

  /// The peer of the rank at `index` of `ranks`.
  std::uint32_t peer(std::size_t index) const { return peers.empty() ? operation.peer.value() : peers[index]; }
};

/// Which item a name means on each rank.
struct TraceName {
  std::string text;
  std::int64_t of_all = -1;                                   ///< item that gives the name to all ranks
  std::unordered_map<std::uint32_t, std::uint32_t> of_ranks;  ///< or rank -> item; looked up only, never walked
  /// The item of this name on a rank, or -1.
  std::int64_t item(std::uint32_t rank) const {
    if (of_all >= 0) return of_all;
    const auto at = of_ranks.find(rank);
    return at == of_ranks.end() ? -1 : std::int64_t{at->second};
  }
};

/// The content of a program file. Memory grows with the file, not with ranks times operations.
struct Trace {
  std::uint32_t ranks = 0;
  std::deque<Communicator> communicators;  ///< addresses stay; [0] is all ranks
  std::vector<CollectiveCall> calls;
  std::vector<TraceOperation> operations;
  std::vector<TraceName> names;
  std::vector<std::uint32_t> items_of_all;                 ///< items for all ranks, ascending
  std::vector<std::vector<std::uint32_t>> items_of_ranks;  ///< per rank: items that list it, ascending
  ComputeNoise noise;
  std::size_t read_ahead = 0;                                ///< RankProgram::read_ahead
  double slowdown = 1;                                       ///< of compute while the rank communicates
  std::vector<std::pair<std::string, std::string>> remarks;  ///< on devices and kernels, for `weft describe`
};

/// Reads `ranks`, `communicators`, `operations`, the options of collectives, and those of compute times (`device`,
/// `operators`, `compute_noise`, `compute_slowdown_while_communicating`) from a map, and finishes it. Throws
/// InputError for whatever is wrong, also for a send without its recv.
Trace read_trace(const Spec& spec, const WorkloadContext& context);

/// For each (source, destination, tag), sends and recvs must agree in number and, in order, in size. Throws InputError
/// at the first operation in the file that has no partner.
void require_matching(const Trace& trace, const std::vector<Spec>& items);

}  // namespace weft
