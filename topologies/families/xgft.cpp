// SPDX-License-Identifier: GPL-2.0-only
// Extended generalized fat-trees, with parallel links (S. Ohring, M. Ibel, S. Das, M. Kumar, "On generalized fat
// trees", IPPS 1995, doi:10.1109/IPPS.1995.395911; E. Zahavi, CCIT report 776, Technion 2010). A k-ary n-tree is m =
// [k, k, ...], w = [1, k, ...]. Level l is oversubscribed by m_l p_l / (w_{l+1} p_{l+1}) if rates are equal.
#include <fmt/format.h>

#include "topologies/families/tree_assembly.hpp"

namespace weft {
namespace {

constexpr std::size_t max_levels = 16;

class Xgft final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    TreeShape shape;
    const Spec m = spec.at("m");
    shape.m = read_numbers(m, 1, max_levels, 1, ClusterGraph::max_ports);
    const std::size_t levels = shape.m.size();
    const Spec w = spec.at("w");
    shape.w = read_numbers(w, levels, levels, 1, ClusterGraph::max_ports);
    shape.p.assign(levels, 1);
    const auto p = spec.find("p");
    if (p) shape.p = read_numbers(*p, levels, levels, 1, ClusterGraph::max_ports);
    if (shape.w[0] != 1)
      throw w[0].error(fmt::format("found {}; a host has one link, so the first number is 1", shape.w[0]));
    if (shape.p[0] != 1)
      throw(*p)[0].error(fmt::format("found {}; a host has one link, so the first number is 1", shape.p[0]));
    check_tree(m, shape);
    const auto links = read_links(spec, "link", levels);
    spec.finish();
    std::vector<std::string> classes = {"host"};
    for (std::size_t level = 1; level < levels; ++level)
      classes.push_back(fmt::format("level {}-{}", level, level + 1));
    std::vector<std::string> roles;
    for (std::size_t level = 1; level <= levels; ++level) roles.push_back(fmt::format("level{}-switch", level));
    return assemble_tree(std::move(shape), links, classes, roles);
  }
};

const Registration<TopologyBuilder, Xgft> xgft_registration(
    "xgft",
    "generalized fat-tree: per level children m, parents w and parallel links p, bottom first: {m: [4, 4, 8], "
    "w: [1, 4, 4], link_rate, link_delay, [p]}");

}  // namespace
}  // namespace weft
