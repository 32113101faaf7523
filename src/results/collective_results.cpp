// SPDX-License-Identifier: GPL-2.0-only
// Reduction of the parts of collectives over MPI.
#include "results/collective_results.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "results/agreement.hpp"

namespace weft {

namespace {

/// What is known of one collective; travels as bytes.
struct Partial {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = -1;
  std::int64_t sent_bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t finished_ranks = 0;
  std::int64_t last_start = -1;
  CollectiveTimes last;  // of the rank that ended last

  void add(const Partial& other) {
    start = std::min(start, other.start);
    end = std::max(end, other.end);
    last_start = std::max(last_start, other.last_start);
    if (last.before(other.last)) last = other.last;
    sent_bytes += other.sent_bytes;
    messages += other.messages;
    finished_ranks += other.finished_ranks;
  }
};

/// What this process knows of one collective.
struct Share {
  std::uint64_t id = 0;
  Partial partial;
};

/// One share per collective that this process took part in, in ascending order of id.
std::vector<Share> sum_up(const std::vector<CollectivePart>& parts, std::uint64_t collectives,
                          const CollectiveTimesById* times) {
  std::unordered_map<std::uint32_t, Partial> by_id;
  for (const CollectivePart& part : parts) {
    if (part.collective >= collectives)
      throw InternalError(fmt::format("rank {} took part in collective {}, which nobody announced: please report this",
                                      part.rank, part.collective));
    by_id[part.collective].add({part.start, part.end, part.bytes, part.messages, 1, part.start, {}});
  }
  std::vector<Share> shares;
  shares.reserve(by_id.size());
  for (const auto& [id, partial] : by_id) {
    shares.push_back({id, partial});
    if (times != nullptr) shares.back().partial.last = times->at(id);
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.id < b.id; });
  return shares;
}

CollectiveResult result_of(const CollectiveInfo& info, const Partial& partial) {
  CollectiveResult result;
  result.info = info;
  if (partial.finished_ranks > 0) {
    result.start = partial.start;
    result.end = partial.end;
    result.last_start = partial.last_start;
    result.parts = partial.last.parts;
    result.parts[TimePart::peers] += partial.last.start - partial.start;
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

std::vector<Share> sum_up_together(MPI_Comm comm, const std::vector<CollectivePart>& parts, std::uint64_t collectives,
                                   const CollectiveTimesById* times = nullptr) {
  std::vector<Share> shares;
  collectively(comm, [&] { shares = sum_up(parts, collectives, times); });
  return shares;
}

/// Process i owns the ids [bounds[i], bounds[i + 1]).
std::vector<std::uint64_t> block_bounds(std::uint64_t collectives, int processes) {
  std::vector<std::uint64_t> bounds;
  for (int i = 0; i <= processes; ++i)
    bounds.push_back(collectives * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(processes));
  return bounds;
}

/// The shares of the ids that this process owns, from all processes.
std::vector<Share> to_owners(MPI_Comm comm, const std::vector<Share>& mine, const std::vector<std::uint64_t>& bounds) {
  const std::size_t processes = bounds.size() - 1;
  std::vector<int> send_counts(processes), receive_counts(processes);
  std::size_t owner = 0;
  for (const Share& share : mine) {
    while (share.id >= bounds[owner + 1]) ++owner;
    ++send_counts[owner];
  }
  MPI_Alltoall(send_counts.data(), 1, MPI_INT, receive_counts.data(), 1, MPI_INT, comm);
  std::vector<int> send_places(processes), receive_places(processes);
  std::exclusive_scan(send_counts.begin(), send_counts.end(), send_places.begin(), 0);
  std::exclusive_scan(receive_counts.begin(), receive_counts.end(), receive_places.begin(), 0);
  std::vector<Share> owned(static_cast<std::size_t>(receive_places.back() + receive_counts.back()));
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(sizeof(Share)), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Alltoallv(mine.data(), send_counts.data(), send_places.data(), type, owned.data(), receive_counts.data(),
                receive_places.data(), type, comm);
  MPI_Type_free(&type);
  return owned;
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
                                                 const CollectiveDirectory& all, std::size_t limit) {
  const std::size_t count = std::min<std::size_t>(limit, all.count);
  std::vector<Partial> mine(count), total(count);
  for (const Share& share : sum_up_together(comm, parts, all.count))
    if (share.id < count) mine[share.id] = share.partial;
  const PartialReduction reduction;
  MPI_Reduce(mine.data(), total.data(), static_cast<int>(count), reduction.type, reduction.add, 0, comm);
  int process = 0;
  MPI_Comm_rank(comm, &process);
  std::vector<CollectiveResult> results;
  for (std::uint32_t i = 0; process == 0 && i < count; ++i) results.push_back(result_of(all.info(i), total[i]));
  return results;
}

std::vector<CollectiveResult> reduce_owned_collectives(MPI_Comm comm, const std::vector<CollectivePart>& parts,
                                                       const CollectiveDirectory& all,
                                                       const CollectiveTimesById* times) {
  int process = 0;
  int processes = 0;
  MPI_Comm_rank(comm, &process);
  MPI_Comm_size(comm, &processes);
  const std::vector<std::uint64_t> bounds = block_bounds(all.count, processes);
  const std::uint64_t first = bounds[static_cast<std::size_t>(process)];
  std::vector<Partial> owned(bounds[static_cast<std::size_t>(process) + 1] - first);
  for (const Share& share : to_owners(comm, sum_up_together(comm, parts, all.count, times), bounds))
    owned[share.id - first].add(share.partial);
  std::vector<CollectiveResult> results;
  results.reserve(owned.size());
  for (std::size_t i = 0; i < owned.size(); ++i)
    results.push_back(result_of(all.info(static_cast<std::uint32_t>(first + i)), owned[i]));
  return results;
}

}  // namespace weft
