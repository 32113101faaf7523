// SPDX-License-Identifier: GPL-2.0-only
// Up/down routing of generalized fat-trees by formula: up until the destination is below, then down. Upwards either by
// the flow's hash (ECMP) or by D-mod-K (E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift
// permutations on real life fat trees", CCIT report 776, Technion 2010).
#include "graph/shapes/tree_shape.hpp"
#include "routing/algorithm/range_routing.hpp"
#include "routing/algorithm/reciprocal.hpp"

namespace weft {
namespace {

/// The numbers for a level's formula.
struct Level {
  std::uint32_t first = 0;     ///< its first switch, counted from the first switch of the machine
  Reciprocal by_copies;        ///< switches over the same hosts
  Reciprocal by_hosts;         ///< hosts below a switch
  Reciprocal by_child_hosts;   ///< hosts below a child
  std::uint32_t children = 0;  ///< m_l
  Reciprocal by_children;
  std::uint32_t parallel = 0;   ///< p_l
  std::uint32_t down = 0;       ///< m_l p_l, also the first port upwards
  std::uint32_t up = 0;         ///< w_{l+1} p_{l+1}; 0 at the top
  std::uint32_t divisor = 1;    ///< prod_{i<=l} w_i, of D-mod-K
  std::uint32_t back_ways = 1;  ///< w_l p_l: ports upwards of a child
  std::uint32_t parents = 1;    ///< w_l
  std::uint32_t child_divisor = 1;
};

struct Place {
  const Level* level;
  std::uint32_t subtree;
};

template <bool by_destination>
class TreeRouting final : public RangeRouting<TreeRouting<by_destination>> {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    const auto shape =
        require_shape<TreeShape>(topology, by_destination ? "d_mod_k" : "up_down", "xgft and leaf_spine");
    this->hosts_ = topology.graph.host_count();
    this->seed_ = seed;
    levels_.clear();
    std::uint32_t first = 0;
    for (std::uint32_t l = 1; l <= shape->levels(); ++l) {
      Level level;
      level.first = first;
      level.by_copies = Reciprocal(static_cast<std::uint32_t>(shape->copies(l)));
      level.by_hosts = Reciprocal(static_cast<std::uint32_t>(shape->below(l)));
      level.by_child_hosts = Reciprocal(static_cast<std::uint32_t>(shape->below(l - 1)));
      level.children = shape->m[l - 1];
      level.by_children = Reciprocal(level.children);
      level.parallel = shape->p[l - 1];
      level.parents = shape->w[l - 1];
      level.back_ways = level.parents * level.parallel;
      level.down = level.children * level.parallel;
      level.up = l < shape->levels() ? shape->w[l] * shape->p[l] : 0;
      level.divisor = static_cast<std::uint32_t>(shape->copies(l));
      level.child_divisor = static_cast<std::uint32_t>(shape->copies(l - 1));
      levels_.push_back(level);
      first += static_cast<std::uint32_t>(shape->switches(l));
    }
  }

  Place place(std::uint32_t node) const {
    std::size_t l = levels_.size() - 1;
    while (node < levels_[l].first) --l;
    return {&levels_[l], levels_[l].by_copies.quotient(node - levels_[l].first)};
  }

  PortRange ports(const Place& place, NodeId destination) const {
    const Level& level = *place.level;
    if (level.by_hosts.quotient(destination.value()) != place.subtree) {
      if (by_destination) return {level.down + destination.value() / level.divisor % level.up, 1};
      return {level.down, level.up};
    }
    const std::uint32_t below = level.by_child_hosts.quotient(destination.value());
    const std::uint32_t child = below - level.by_children.quotient(below) * level.children;
    if (!by_destination || level.parallel == 1) return {child * level.parallel, level.parallel};
    // Down by the parallel link that D-mod-K would take upwards to the same host.
    const std::uint32_t parallel = destination.value() / level.child_divisor % level.back_ways / level.parents;
    return {child * level.parallel + parallel, 1};
  }

 private:
  std::vector<Level> levels_;
};

const Registration<RoutingAlgorithm, TreeRouting<false>> up_down(
    "up_down", "generalized fat-trees by formula: ECMP upwards, down by any parallel link; no tables");
const Registration<RoutingAlgorithm, TreeRouting<true>> d_mod_k(
    "d_mod_k", "generalized fat-trees by formula: one path per destination; shift permutations meet no conflict");

}  // namespace
}  // namespace weft
