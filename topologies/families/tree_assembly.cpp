// SPDX-License-Identifier: GPL-2.0-only
// Building any extended generalized fat-tree.
#include "topologies/families/tree_assembly.hpp"

#include <algorithm>

namespace weft {
namespace {

class TreeAssembler {
 public:
  TreeAssembler(TreeShape shape, const std::vector<LinkSpec>& links, const std::vector<std::string>& classes)
      : shape_(std::make_shared<TreeShape>(std::move(shape))), links_(links), classes_(classes) {}

  Topology assemble(const std::vector<std::string>& roles) {
    add_nodes();
    topology_.graph.set_roles(std::make_shared<TierRoles>(tiers(roles)));
    for (std::uint32_t level = 0; level < shape_->levels(); ++level) add_links_above(level);
    topology_.routing = "up_down";
    topology_.bisection_bps = bisection();
    topology_.shape = shape_;
    return std::move(topology_);
  }

 private:
  /// Two levels have no pods that were worth a name.
  std::vector<TierRoles::Tier> tiers(const std::vector<std::string>& roles) const {
    const std::uint32_t top = shape_->levels();
    std::vector<TierRoles::Tier> result;
    for (std::uint32_t level = 1; level <= top; ++level) {
      const bool in_pods = level < top && top > 2;
      const std::uint64_t count = shape_->switches(level) / (in_pods ? shape_->m[top - 1] : 1);
      result.push_back({first_[level], in_pods ? "pod" : "", {{roles[level - 1], static_cast<std::uint32_t>(count)}}});
    }
    return result;
  }
  void add_nodes() {
    const std::uint32_t top = shape_->levels();
    const std::uint64_t group_hosts = shape_->below(top - 1);
    for (std::uint32_t i = 0; i < shape_->hosts(); ++i)
      topology_.graph.add_host(top > 1 ? static_cast<std::uint32_t>(i / group_hosts) : no_group);
    first_.push_back(0);
    for (std::uint32_t level = 1; level <= top; ++level) {
      first_.push_back(topology_.graph.node_count());
      const std::uint64_t per_group = level < top ? shape_->switches(level) / shape_->m[top - 1] : 1;
      for (std::uint32_t i = 0; i < shape_->switches(level); ++i)
        topology_.graph.add_switch(static_cast<std::uint8_t>(level),
                                   level < top ? static_cast<std::uint32_t>(i / per_group) : no_group);
    }
  }

  /// Port numbers are those that TreeShape promises.
  void add_links_above(std::uint32_t level) {
    const std::uint8_t link_class = topology_.add_class(classes_[level]);
    const auto copies = static_cast<std::uint32_t>(shape_->copies(level));
    const std::uint32_t m = shape_->m[level];
    const std::uint32_t w = shape_->w[level];
    const std::uint32_t p = shape_->p[level];
    const std::uint32_t down_ports = level > 0 ? shape_->m[level - 1] * shape_->p[level - 1] : 0;
    const auto count = static_cast<std::uint32_t>(level > 0 ? shape_->switches(level) : shape_->hosts());
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t subtree = i / copies;
      const std::uint32_t copy = i % copies;
      for (std::uint32_t up = 0; up < w * p; ++up) {
        const std::uint32_t parent = subtree / m * copies * w + up % w * copies + copy;
        topology_.connect(link_class, NodeId(first_[level] + i), down_ports + up, NodeId(first_[level + 1] + parent),
                          subtree % m * p + up / w, links_[level].rate, links_[level].delay);
      }
    }
  }

  /// Half of the highest subtrees against the other half, cut where the links between two levels carry least; none if
  /// their number is odd.
  std::int64_t bisection() const {
    const std::uint32_t top = shape_->levels();
    if (shape_->m[top - 1] % 2 != 0) return 0;
    std::int64_t min = 0;
    for (std::uint32_t level = 0; level < top; ++level) {
      const std::uint64_t count = level > 0 ? shape_->switches(level) : shape_->hosts();
      const auto links = static_cast<std::int64_t>(count * shape_->w[level] * shape_->p[level] / 2);
      const std::int64_t rate = links * links_[level].rate.bps();
      if (level == 0 || rate < min) min = rate;
    }
    return min;
  }

  std::shared_ptr<TreeShape> shape_;
  const std::vector<LinkSpec>& links_;
  const std::vector<std::string>& classes_;
  std::vector<std::uint32_t> first_;  ///< [levels + 1] the first node of each level
  Topology topology_;
};

}  // namespace

Topology assemble_tree(TreeShape shape, const std::vector<LinkSpec>& links, const std::vector<std::string>& classes,
                       const std::vector<std::string>& roles) {
  return TreeAssembler(std::move(shape), links, classes).assemble(roles);
}

void check_tree(const Spec& place, const TreeShape& shape) {
  // The products below cannot overflow: each factor is a 16-bit number of ports, and the first sum that is too large
  // ends the loop.
  std::uint64_t hosts = 1;
  for (const std::uint32_t m : shape.m) hosts = saturated_product(hosts, m);
  std::uint64_t nodes = require_nodes(place, hosts);
  std::uint64_t below = 1;
  std::uint64_t copies = 1;
  for (std::uint32_t level = 1; level <= shape.levels(); ++level) {
    below *= shape.m[level - 1];
    copies = saturated_product(copies, shape.w[level - 1]);
    nodes =
        require_nodes(place, nodes + std::min<std::uint64_t>(saturated_product(hosts / below, copies), max_nodes + 1));
    std::uint64_t ports = std::uint64_t{shape.m[level - 1]} * shape.p[level - 1];
    if (level < shape.levels()) ports += std::uint64_t{shape.w[level]} * shape.p[level];
    require_ports(place, ports);
  }
}

}  // namespace weft
