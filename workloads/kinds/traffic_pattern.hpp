// SPDX-License-Identifier: GPL-2.0-only
// Patterns of synthetic traffic: which rank sends to which.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// The flows of each source rank, in the order in which it issues them.
class TrafficPattern {
 public:
  virtual ~TrafficPattern() = default;
  /// Flows that leave `source`.
  virtual std::uint32_t flows(std::uint32_t source) const = 0;
  /// Destination rank of flow `index` < flows(source); never the source itself.
  virtual std::uint32_t destination(std::uint32_t source, std::uint32_t index) const = 0;
  /// The same where it differs from start to start, which are numbered from 0.
  virtual std::uint32_t destination_at(std::uint32_t source, std::uint32_t index, std::uint64_t /*start*/) const {
    return destination(source, index);
  }
  /// False for starts, which are numbered from 0, at which `source` issues nothing.
  virtual bool sends_at(std::uint32_t /*source*/, std::uint64_t /*start*/) const { return true; }
  /// All sources have the same starts.
  virtual bool common_starts() const { return false; }
  /// Flows of all sources at one start.
  virtual std::uint64_t all_flows() const = 0;
};

/// A permutation of 0..ranks-1 without fixed points, uniform among all of them: shuffles (Fisher, Yates; Knuth, TAOCP
/// vol. 2, 3.4.2, algorithm P) are drawn until one has none, about e = 2.7 of them. A function of seed and ranks only.
/// Memory and time are O(ranks). Requires ranks >= 2.
std::vector<std::uint32_t> random_derangement(std::uint32_t ranks, std::uint64_t seed);

/// Every rank sends to one rank and receives from one, by random_derangement().
std::unique_ptr<TrafficPattern> permutation_pattern(std::uint32_t ranks, std::uint64_t seed);
/// Rank i sends to i + shift modulo ranks. Requires 0 < shift < ranks.
std::unique_ptr<TrafficPattern> shift_pattern(std::uint32_t ranks, std::uint32_t shift);
/// The `sources` ranks that follow `destination` (modulo ranks) send to it. Requires sources < ranks.
std::unique_ptr<TrafficPattern> incast_pattern(std::uint32_t ranks, std::uint32_t destination, std::uint32_t sources);
/// At each start, which is the same one for all, `sources` ranks that are drawn anew send to another one that is drawn
/// anew. A function of seed and start. Requires 0 < sources < ranks.
std::unique_ptr<TrafficPattern> random_incast_pattern(std::uint32_t ranks, std::uint32_t sources, std::uint64_t seed);
/// At each start every rank sends to one rank that is drawn from the `group` ranks of the group `shift` behind its own,
/// modulo the number of groups; never to itself. Consecutive ranks form a group; `group` divides `ranks`. A function of
/// seed, source and start. Requires group >= 2, or shift not a multiple of the number of groups.
std::unique_ptr<TrafficPattern> uniform_pattern(std::uint32_t ranks, std::uint32_t group, std::uint32_t shift,
                                                std::uint64_t seed);
/// Every rank sends to each other, to rank + 1, rank + 2, ... modulo ranks.
std::unique_ptr<TrafficPattern> all_to_all_pattern(std::uint32_t ranks);
/// Exactly these (source, destination), the flows of one source in the order of the list.
std::unique_ptr<TrafficPattern> pairs_pattern(std::uint32_t ranks,
                                              const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs);

}  // namespace weft
