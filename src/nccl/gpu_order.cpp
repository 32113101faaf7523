// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/gpu_order.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <boost/container/small_vector.hpp>

namespace weft {
namespace {

using Kind = NcclNode::Kind;

/// The criteria for a GPU as the next one. Whole numbers as in NCCL, larger first but for hops.
struct Score {
  std::uint32_t gpu = 0;
  int from_net = 0;  ///< GB/s from the network that the channel started at
  int pci = 0;
  int net_hops = 0;
  int nvlink = 0;
  int hops = 0;
  std::uint32_t distance = 0;
};
using Scores = boost::container::small_vector<Score, 16>;  // no allocation in each of half a million steps

/// Behind NVSwitches a GPU talks to its neighbours by number only, so that no other GPU needs a score.
std::size_t next_neighbours(const NcclSystem& system, GraphPattern pattern, std::uint32_t gpu,
                            const std::vector<char>& used, std::span<std::uint32_t> next) {
  const std::uint32_t gpus = system.count(Kind::gpu);
  const std::uint32_t before = (gpu + gpus - 1) % gpus;
  const std::uint32_t after = (gpu + 1) % gpus;
  const bool ring = pattern == GraphPattern::ring;
  const bool tree = pattern == GraphPattern::balanced_tree || pattern == GraphPattern::split_tree;
  const std::array<std::uint32_t, 2> both = ring ? std::array{before, after} : std::array{after, before};
  const std::size_t wanted = (ring || tree) && before != after ? 2 : 1;
  std::size_t found = 0;
  for (std::size_t i = 0; i < wanted; ++i)
    if (used[both[i]] == 0 && !system.path(Kind::gpu, gpu, Kind::gpu, both[i]).links.empty()) next[found++] = both[i];
  return found;
}

Score score_of(const NcclSystem& system, const GpuChoice& choice, std::uint32_t other, const NcclPath& way) {
  Score score;
  score.gpu = other;
  score.nvlink = static_cast<int>(way.bandwidth);
  score.hops = static_cast<int>(way.links.size());
  if (!choice.goes_back) return score;
  const NcclPath& net = system.path(Kind::net, choice.net_in, Kind::gpu, other);
  score.from_net = static_cast<int>(net.bandwidth);
  score.net_hops = static_cast<int>(net.links.size());
  score.pci = static_cast<int>(system.pci_bandwidth(other));
  return score;
}

}  // namespace

std::size_t best_next_gpus(const NcclSystem& system, GraphPattern pattern, const GpuChoice& choice,
                           const std::vector<char>& used, std::span<std::uint32_t> next) {
  if (system.count(Kind::nvswitch) > 0) return next_neighbours(system, pattern, choice.gpu, used, next);
  const std::uint32_t gpus = system.count(Kind::gpu);
  Scores scores;
  for (std::uint32_t i = 1; i < gpus; ++i) {
    const std::uint32_t other = (choice.gpu + i) % gpus;
    const NcclPath& way = system.path(Kind::gpu, choice.gpu, Kind::gpu, other);
    if (way.links.empty() || used[other] != 0) continue;
    scores.push_back(score_of(system, choice, other, way));
    scores.back().distance = i;
  }
  // No two have the same distance, so that the order is total.
  std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    return std::tuple(-a.from_net, -a.pci, a.net_hops, -a.nvlink, a.hops, a.distance) <
           std::tuple(-b.from_net, -b.pci, b.net_hops, -b.nvlink, b.hops, b.distance);
  });
  // A GPU that must not return to the network yet: the farthest ones first, if they are equal otherwise.
  const bool alike = std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
    return score.nvlink == scores.front().nvlink && score.hops == scores.front().hops;
  });
  if (choice.goes_back && !choice.goes_back_next && alike) std::reverse(scores.begin(), scores.end());
  std::transform(scores.begin(), scores.end(), next.begin(), [](const Score& score) { return score.gpu; });
  return scores.size();
}

}  // namespace weft
