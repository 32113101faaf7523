// SPDX-License-Identifier: GPL-2.0-only
// Leaf switches with hosts, each joined to all spines: a folded Clos network of two levels (M. Alizadeh, T. Edsall, "On
// the data path performance of leaf-spine datacenter fabrics", HOTI 2013, doi:10.1109/HOTI.2013.23).
#include "topologies/families/tree_assembly.hpp"

namespace weft {
namespace {

class LeafSpine final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const auto count = [](const Spec& value) {
      return static_cast<std::uint32_t>(value.integer(1, ClusterGraph::max_ports));
    };
    const Spec leaves = spec.at("leaves");
    const auto parallel = spec.find("parallel");
    TreeShape shape;
    shape.m = {count(spec.at("hosts_per_leaf")), count(leaves)};
    shape.w = {1, count(spec.at("spines"))};
    shape.p = {1, parallel ? count(*parallel) : 1};
    check_tree(leaves, shape);
    const LinkSpec link = read_link(spec);
    const LinkSpec host_link = read_link(spec, "host_link", link);
    spec.finish();
    return assemble_tree(std::move(shape), {host_link, link}, {"host", "leaf-spine"}, {"leaf", "spine"});
  }
};

const Registration<TopologyBuilder, LeafSpine> leaf_spine_registration(
    "leaf_spine",
    "leaves with hosts, each joined to all spines: {leaves, hosts_per_leaf, spines, link_rate, link_delay, "
    "[parallel, host_link_rate, host_link_delay]}");

}  // namespace
}  // namespace weft
