// SPDX-License-Identifier: GPL-2.0-only
// What several workload readers share: ranks, options of collectives, files beside the experiment, volumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// Algorithm and tuning of collectives, as the keys `algorithm`, `channels`, `chunk_size`, `slices_per_chunk`,
/// `credits`, `protocol`, `ranks_per_server`, `dimensions`, `launch_latency`, `step_latency`, `reduce_rate` and
/// `copy_rate` give them.
struct CollectiveSettings {
  std::string algorithm;  ///< the one that the map names, else the default of all-reduces
  bool algorithm_named = true;
  CollectiveTuning tuning;
};

/// Reads those keys of a map; the caller finishes it. Throws InputError for an unknown algorithm.
CollectiveSettings read_collective_options(const Spec& spec, const WorkloadContext& context);

/// The algorithm of a call of this kind: the one that is named, even if it cannot do the call, else the kind's default.
std::string algorithm_of(const CollectiveSettings& settings, const WorkloadContext& context, CollectiveKind kind);

/// The algorithm of calls for which the experiment names none: NCCL's choice where it is known how fast NCCL runs on
/// the machine's servers, else algorithm_of_network().
std::string default_algorithm(const WorkloadContext& context, CollectiveKind kind);

/// The name of an algorithm or of a selection, or the path of a schedule file, which is read from `directory`; throws
/// InputError with the known names if it is not registered.
std::string read_algorithm(const Spec& value, const std::string& directory);

/// The final check of a call whose kind, members and size are known: applies a selection, and throws InputError at
/// `where` if the algorithm cannot do the call.
void settle_call(const Spec& where, CollectiveCall& call, const WorkloadContext& context);

/// The `size`, which only a barrier may leave out.
Bytes read_size(const Spec& spec, CollectiveKind kind);

/// Throws InputError at `where` if the algorithm cannot do this kind, and names those that can.
void require_support(const Spec& where, const std::string& algorithm, CollectiveKind kind);

/// Throws InputError at `value` if `ranks` is 0 or larger than the machine.
std::uint32_t require_ranks(const Spec& value, std::int64_t ranks, const WorkloadContext& context);

/// The `root` of a broadcast, reduce, gather or scatter over `size` ranks (0 if absent); an InputError for other kinds.
std::uint32_t read_root(const Spec& spec, CollectiveKind kind, std::uint32_t size);

/// A file that an experiment names: a path relative to `directory`, or the name of a file `<folder>/<name><extension>`
/// in `directory`. Throws InputError at `value` with the names that are there.
std::string resolve_file(const Spec& value, const std::string& directory, const std::string& folder,
                         const std::string& extension);

/// What one call sends in all: volumes of bandwidth-optimal algorithms (Patarasuk, Yuan,
/// doi:10.1016/j.jpdc.2008.09.002): all_reduce 2(n-1)S, every other kind (n-1)S. Messages are counted on the steps of
/// one sending rank, or of some.
WorkloadEstimate estimate_call(const CollectiveCall& call);

/// The value, or the largest Bytes if it is larger.
Bytes saturated(unsigned __int128 bytes);

/// 124439808 -> "124,439,808".
std::string grouped(std::int64_t value);

/// "a, b, c".
std::string listed(const std::vector<std::string>& words);

}  // namespace weft
