// SPDX-License-Identifier: GPL-2.0-only
// Reduction of the parts of collectives over MPI.
#include "results/tables/collective_results.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "results/processes/agreement.hpp"
#include "results/tables/result_tables.hpp"

namespace weft {

namespace {

/// The result of one collective; sent as bytes.
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

/// This process's result of one collective.
struct Share {
  std::uint64_t id = 0;
  Partial partial;
};

/// Goes through a log once, in order of the collectives.
class ShareReader {
 public:
  ShareReader(const CollectiveLog& log, bool with_times)
      : parts_(log.parts()), times_(log.times()), with_times_(with_times) {
    more_parts_ = parts_.next(part_);
    more_times_ = with_times && times_.next(of_last_);
  }

  /// One share for each collective below `end` that this process took part in and that has not been read yet.
  std::vector<Share> below(std::uint64_t end) {
    std::vector<Share> shares;
    while (more_parts_ && part_.collective < end) {
      if (shares.empty() || shares.back().id != part_.collective) shares.push_back({part_.collective, {}});
      shares.back().partial.add({part_.start, part_.end, part_.bytes, part_.messages, 1, part_.start, {}});
      more_parts_ = parts_.next(part_);
    }
    for (Share& share : shares)
      if (with_times_) share.partial.last = times_of(share.id);
    return shares;
  }

 private:
  CollectiveTimes times_of(std::uint64_t id) {
    CollectiveTimes last;
    for (; more_times_ && of_last_.collective <= id; more_times_ = times_.next(of_last_))
      if (of_last_.collective == id && last.before(of_last_.times)) last = of_last_.times;
    return last;
  }

  CollectiveLog::PartCursor parts_;
  CollectiveLog::TimesCursor times_;
  bool with_times_;
  bool more_parts_ = false, more_times_ = false;
  CollectivePart part_;
  CollectiveLog::Times of_last_;
};

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

/// Collective: the log in order, if all that it names has been announced.
void sort_together(MPI_Comm comm, CollectiveLog& log, std::uint64_t collectives) {
  collectively(comm, [&] {
    const CollectivePart& greatest = log.greatest();
    if (log.size() > 0 && greatest.collective >= collectives)
      throw InternalError(fmt::format("rank {} took part in collective {}, which no rank announced: please report this",
                                      greatest.rank, greatest.collective));
    log.sort();
  });
}

/// Of the ids first to end - 1 process i owns [bounds[i], bounds[i + 1]).
std::vector<std::uint64_t> block_bounds(std::uint64_t first, std::uint64_t end, int processes) {
  std::vector<std::uint64_t> bounds;
  for (int i = 0; i <= processes; ++i)
    bounds.push_back(first + (end - first) * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(processes));
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

std::vector<CollectiveResult> reduce_collectives(MPI_Comm comm, CollectiveLog& log, const CollectiveDirectory& all,
                                                 std::size_t limit) {
  const std::size_t count = std::min<std::size_t>(limit, all.count);
  std::vector<Partial> mine(count), total(count);
  sort_together(comm, log, all.count);
  collectively(comm, [&] {
    for (const Share& share : ShareReader(log, false).below(count)) mine[share.id] = share.partial;
  });
  const PartialReduction reduction;
  MPI_Reduce(mine.data(), total.data(), static_cast<int>(count), reduction.type, reduction.add, 0, comm);
  int process = 0;
  MPI_Comm_rank(comm, &process);
  std::vector<CollectiveResult> results;
  for (std::uint32_t i = 0; process == 0 && i < count; ++i) results.push_back(result_of(all.info(i), total[i]));
  return results;
}

class CollectivePieces::Sums {
 public:
  Sums(MPI_Comm comm, const CollectiveLog& log, const CollectiveDirectory& all, bool with_times)
      : comm_(comm), all_(all), shares_(log, with_times) {
    MPI_Comm_rank(comm, &process_);
    MPI_Comm_size(comm, &processes_);
  }

  bool done() const { return first_ == all_.count; }

  std::vector<CollectiveResult> next() {
    const std::uint64_t end = std::min(first_ + at_once, all_.count);
    const std::vector<std::uint64_t> bounds = block_bounds(first_, end, processes_);
    first_ = end;
    const std::uint64_t first = bounds[static_cast<std::size_t>(process_)];
    std::vector<Partial> owned(bounds[static_cast<std::size_t>(process_) + 1] - first);
    std::vector<Share> mine;
    collectively(comm_, [&] { mine = shares_.below(end); });
    for (const Share& share : to_owners(comm_, mine, bounds)) owned[share.id - first].add(share.partial);
    std::vector<CollectiveResult> results;
    results.reserve(owned.size());
    for (std::size_t i = 0; i < owned.size(); ++i)
      results.push_back(result_of(all_.info(static_cast<std::uint32_t>(first + i)), owned[i]));
    return results;
  }

 private:
  static constexpr std::uint64_t at_once = 1U << 13;  // collectives

  MPI_Comm comm_;
  const CollectiveDirectory& all_;
  ShareReader shares_;
  int process_ = 0, processes_ = 1;
  std::uint64_t first_ = 0;  // not summed up yet
};

CollectivePieces::CollectivePieces(MPI_Comm comm, CollectiveLog& log, const CollectiveDirectory& all, bool with_times) {
  sort_together(comm, log, all.count);
  collectively(comm, [&] { sums_ = std::make_unique<Sums>(comm, log, all, with_times); });
}
CollectivePieces::~CollectivePieces() = default;

bool CollectivePieces::done() const { return sums_->done(); }
std::vector<CollectiveResult> CollectivePieces::next() { return sums_->next(); }

std::vector<std::uint64_t> longest_texts_of(MPI_Comm comm, const CollectiveDirectory& all) {
  int process = 0, processes = 1;
  MPI_Comm_rank(comm, &process);
  MPI_Comm_size(comm, &processes);
  const std::vector<std::uint64_t> bounds = block_bounds(0, all.count, processes);
  std::vector<CollectiveResult> one(1);
  std::vector<std::uint64_t> longest = longest_texts(one);
  for (std::uint64_t id = bounds[static_cast<std::size_t>(process)]; id < bounds[static_cast<std::size_t>(process) + 1];
       ++id) {
    one.front().info = all.info(static_cast<std::uint32_t>(id));
    const std::vector<std::uint64_t> lengths = longest_texts(one);
    std::transform(lengths.begin(), lengths.end(), longest.begin(), longest.begin(),
                   [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
  }
  return longest;
}

}  // namespace weft
