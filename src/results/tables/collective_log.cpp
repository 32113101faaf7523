// SPDX-License-Identifier: GPL-2.0-only
// The log of the ranks of a process in collectives, for any number of collectives.
#include "results/tables/collective_log.hpp"

#include "results/tables/fingerprint.hpp"

namespace weft {

void CollectiveLog::add(const CollectivePart& part) {
  parts_.add(part);
  fingerprint_ += weft::fingerprint(part);
  if (part.collective >= greatest_.collective) greatest_ = part;
}

// The ranks of a process mostly end a collective shortly after each other: sums made here need not be written.
void CollectiveLog::add(std::uint32_t collective, const CollectiveTimes& times) {
  CollectiveTimes& last = latest_[collective];
  if (last.before(times)) last = times;
  if (latest_.size() < times_in_memory_) return;
  for (const auto& [id, one] : latest_) times_.add({id, one});
  latest_.clear();
}

void CollectiveLog::sort() {
  for (const auto& [id, one] : latest_) times_.add({id, one});
  latest_.clear();
  parts_.sort();
  times_.sort();
}

}  // namespace weft
