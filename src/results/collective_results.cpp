// SPDX-License-Identifier: GPL-2.0-only
// Reduction of the parts of collectives over MPI.
#include "results/collective_results.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "results/agreement.hpp"

namespace weft {

namespace {

/// What is known of one collective on one process; travels as bytes.
struct Partial {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = -1;
  std::int64_t sent_bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t finished_ranks = 0;

  void add(const Partial& other) {
    start = std::min(start, other.start);
    end = std::max(end, other.end);
    sent_bytes += other.sent_bytes;
    messages += other.messages;
    finished_ranks += other.finished_ranks;
  }
};

std::vector<CollectiveInfo> sorted_by_id(std::vector<CollectiveInfo> all) {
  const auto by_id = [](const CollectiveInfo& a, const CollectiveInfo& b) { return a.id < b.id; };
  if (!std::is_sorted(all.begin(), all.end(), by_id)) std::sort(all.begin(), all.end(), by_id);
  return all;
}

/// One partial per collective of `all` (in ascending order of id) from this process's parts.
std::vector<Partial> sum_up(const std::vector<CollectivePart>& parts, const std::vector<CollectiveInfo>& all) {
  std::vector<Partial> partials(all.size());
  for (const CollectivePart& part : parts) {
    const auto at = std::lower_bound(all.begin(), all.end(), part.collective,
                                     [](const CollectiveInfo& info, std::uint32_t id) { return info.id < id; });
    if (at == all.end() || at->id != part.collective)
      throw InternalError(fmt::format("rank {} took part in collective {}, which nobody announced: please report this",
                                      part.rank, part.collective));
    partials[static_cast<std::size_t>(at - all.begin())].add({part.start, part.end, part.bytes, part.messages, 1});
  }
  return partials;
}

CollectiveResult result_of(const CollectiveInfo& info, const Partial& partial) {
  CollectiveResult result;
  result.info = info;
  if (partial.finished_ranks > 0) {
    result.start = partial.start;
    result.end = partial.end;
  }
  result.finished_ranks = static_cast<std::uint32_t>(partial.finished_ranks);
  result.messages = partial.messages;
  result.sent_bytes = partial.sent_bytes;
  return result;
}

void add_partials(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* const from = static_cast<const Partial*>(in);
  auto* const to = static_cast<Partial*>(in_out);
  for (int i = 0; i < *count; ++i) to[i].add(from[i]);
}

/// MPI's type and operation for Partial.
struct PartialReduction {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op add = MPI_OP_NULL;
  PartialReduction() {
    MPI_Type_contiguous(static_cast<int>(sizeof(Partial)), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_partials, 1, &add);
  }
  ~PartialReduction() {
    MPI_Op_free(&add);
    MPI_Type_free(&type);
  }
  PartialReduction(const PartialReduction&) = delete;
  PartialReduction& operator=(const PartialReduction&) = delete;
};

std::vector<Partial> sum_up_together(MPI_Comm comm, const std::vector<CollectivePart>& parts,
                                     const std::vector<CollectiveInfo>& sorted) {
  std::vector<Partial> partials;
  collectively(comm, [&] { partials = sum_up(parts, sorted); });
  return partials;
}

}  // namespace

std::int64_t CollectiveResult::time() const { return finished() ? end - start : -1; }

double CollectiveResult::algorithm_bandwidth() const {
  constexpr double gigabytes_per_second = 1e3;  // 1 B/ps = 10^12 B/s = 10^3 GB/s
  const std::int64_t took = time();
  return took > 0 ? static_cast<double>(info.bytes) / static_cast<double>(took) * gigabytes_per_second : 0.0;
}

double CollectiveResult::bus_bandwidth() const { return algorithm_bandwidth() * info.bus_factor; }

std::vector<CollectiveResult> reduce_collectives(MPI_Comm comm, const std::vector<CollectivePart>& parts,
                                                 const std::vector<CollectiveInfo>& all, std::size_t limit) {
  const std::vector<CollectiveInfo> sorted = sorted_by_id(all);
  const std::vector<Partial> mine = sum_up_together(comm, parts, sorted);
  const std::size_t count = std::min(limit, sorted.size());
  std::vector<Partial> total(count);
  const PartialReduction reduction;
  MPI_Reduce(mine.data(), total.data(), static_cast<int>(count), reduction.type, reduction.add, 0, comm);
  int process = 0;
  MPI_Comm_rank(comm, &process);
  std::vector<CollectiveResult> results;
  for (std::size_t i = 0; process == 0 && i < count; ++i) results.push_back(result_of(sorted[i], total[i]));
  return results;
}

std::vector<CollectiveResult> reduce_owned_collectives(MPI_Comm comm, const std::vector<CollectivePart>& parts,
                                                       const std::vector<CollectiveInfo>& all) {
  const std::vector<CollectiveInfo> sorted = sorted_by_id(all);
  const std::vector<Partial> mine = sum_up_together(comm, parts, sorted);
  int process = 0;
  int processes = 0;
  MPI_Comm_rank(comm, &process);
  MPI_Comm_size(comm, &processes);
  // Block i of the sorted list: [size * i / processes, size * (i + 1) / processes).
  std::vector<std::size_t> bounds;
  for (int i = 0; i <= processes; ++i)
    bounds.push_back(sorted.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(processes));
  std::vector<int> counts;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) counts.push_back(static_cast<int>(bounds[i + 1] - bounds[i]));
  const std::size_t first = bounds[static_cast<std::size_t>(process)];
  std::vector<Partial> owned(static_cast<std::size_t>(counts[static_cast<std::size_t>(process)]));
  const PartialReduction reduction;
  MPI_Reduce_scatter(mine.data(), owned.data(), counts.data(), reduction.type, reduction.add, comm);
  std::vector<CollectiveResult> results;
  for (std::size_t i = 0; i < owned.size(); ++i) results.push_back(result_of(sorted[first + i], owned[i]));
  return results;
}

}  // namespace weft
