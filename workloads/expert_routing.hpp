// SPDX-License-Identifier: GPL-2.0-only
// Which tokens go to which experts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/collective.hpp"

namespace weft {

/// Uneven routing: the popularity of expert j in a block and micro-batch is exp(spread * z_j), z_j standard normal from
/// the seed: a log-normal distribution, `spread` 0 being even. Each token takes experts_per_token of them.
struct ExpertRouting {
  double spread = 0;
  std::uint64_t seed = 1;
  double capacity_factor =
      0;  ///< an expert takes at most this times the mean from each rank, the rest is dropped; 0: all
  bool even() const { return spread == 0; }
};

/// One expert-parallel group in one block, micro-batch and step.
struct RoutingCase {
  std::uint32_t ranks = 1;            ///< expert-parallel ranks [e]
  std::int64_t experts = 1;           ///< in all [E], a multiple of e
  std::int64_t copies = 0;            ///< tokens * experts per token that each rank sends
  std::uint64_t block = 0, step = 0;  ///< name the draw
};

/// Token copies from each rank to each rank of the group, row by row (sender by sender). Rows of senders are alike: the
/// same popularity, rounded by largest remainder so that a row has `copies` before experts overflow (Fedus et al.,
/// arXiv:2101.03961, 2.2: capacity).
std::vector<std::int64_t> routed_copies(const ExpertRouting& routing, const RoutingCase& one);

}  // namespace weft
