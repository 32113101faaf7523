// SPDX-License-Identifier: GPL-2.0-only
// Which tokens go to which experts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/collective/collective.hpp"

namespace weft {

/// Uneven routing: the popularity of expert j in a block and micro-batch is exp(spread * z_j), z_j standard normal from
/// the seed: a log-normal distribution, `spread` 0 being even. Each token takes experts_per_token of them.
struct ExpertRouting {
  double spread = 0;
  std::uint64_t seed = 1;
  double capacity_factor =
      0;  ///< an expert takes at most this times the mean from each rank, the rest is dropped; 0: all
  bool pad_to_capacity = false;  ///< it takes as much in any case: what is missing is padding
  /// All experts get the mean, and nothing of it is dropped or padded.
  bool even() const {
    if (capacity_factor == 0) return spread == 0;
    return pad_to_capacity ? capacity_factor == 1 : spread == 0 && capacity_factor >= 1;
  }
};

/// One expert-parallel group in one block, micro-batch and step.
struct RoutingCase {
  std::uint32_t ranks = 1;             ///< expert-parallel ranks [e]
  std::int64_t experts = 1;            ///< in all [E], a multiple of e
  std::int64_t tokens = 0;             ///< that each rank sends [T]
  std::int64_t experts_per_token = 1;  ///< [K]
  std::uint32_t servers = 1;           ///< of the group [N], each with e / N consecutive ranks
  std::int64_t servers_per_token = 1;  ///< that a token goes to if its experts allow [M], from K N / E to min(K, N)
  std::uint64_t block = 0, step = 0;   ///< name the draw

  std::int64_t copies() const { return tokens * experts_per_token; }  ///< that each rank sends
};

/// What each rank of a group sends. Rows of senders are alike: the same popularity.
struct RoutedRow {
  std::vector<std::int64_t> experts;  ///< [expert] copies of tokens
  std::vector<std::int64_t> copies;   ///< [rank] of tokens, to the experts there
  /// [server] tokens with at least one of these copies, which go to a server once for all its experts (DeepSeek-AI,
  /// arXiv:2412.19437, 3.2.2).
  std::vector<std::int64_t> tokens;
};

/// Copies: T K by popularity, rounded by largest remainder, of which an expert has at most T (a token goes to an expert
/// once) before it overflows (Fedus et al., arXiv:2101.03961, 2.2: capacity). Tokens of server s with C_s copies: T M
/// by C_s, at most min(C_s, T) and, but for rounding, at least C_s / min(K, E / N): as many copies of a token may be on
/// one server. Even routing: T K / e and T M / N.
RoutedRow routed_row(const ExpertRouting& routing, const RoutingCase& one);

/// Token copies from each rank to each rank of the group, row by row (sender by sender).
std::vector<std::int64_t> routed_copies(const RoutingCase& one, const RoutedRow& row);
/// The same over servers, first leg: tokens between the ranks with the same place in their servers, the sender's own
/// server among them [N x N]; second leg: copies that the ranks of `server`, which have those of all N ranks in their
/// place, send on to each other [e/N x e/N].
std::vector<std::int64_t> rail_tokens(const RoutingCase& one, const RoutedRow& row);
std::vector<std::int64_t> server_copies(const RoutingCase& one, const RoutedRow& row, std::uint32_t server);

}  // namespace weft
