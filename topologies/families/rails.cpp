// SPDX-License-Identifier: GPL-2.0-only
// Rail-only and multi-plane networks: copies of a network that are joined by the servers alone (W. Wang, M. Ghobadi, K.
// Shakeri, Y. Zhang, N. Hasani, "Rail-only: a low-cost high-performance network for training LLMs with trillion
// parameters", HOTI 2024, doi:10.1109/HOTI63208.2024.00013).
#include "graph/shapes/rails_shape.hpp"
#include "graph/topology/link_spec.hpp"

namespace weft {
namespace {

/// rail2/leaf1: the first leaf of the third rail.
class RailRoles final : public NodeRoles {
 public:
  RailRoles(std::shared_ptr<const Topology> rail, std::uint32_t rails) : rail_(std::move(rail)), rails_(rails) {}
  std::string name(NodeId node) const override {
    const ClusterGraph& one = rail_->graph;
    const std::uint32_t hosts = rails_ * one.host_count();
    if (node.value() < hosts) return {};
    const std::uint32_t number = node.value() - hosts;
    return "rail" + std::to_string(number / one.switch_count()) + '/' +
           one.name(NodeId(one.host_count() + number % one.switch_count()));
  }

 private:
  std::shared_ptr<const Topology> rail_;
  std::uint32_t rails_;
};

class Rails final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    auto shape = std::make_shared<RailsShape>();
    const Spec rails = spec.at("rails");
    shape->rails = static_cast<std::uint32_t>(rails.integer(1, 4096));
    auto rail = std::make_shared<Topology>(build_part(spec.at("rail")));
    spec.finish();
    if (!rail->storage_hosts().empty())
      throw spec.at("rail").error("storage_hosts of a rail would be lost; write them beside 'rails'");
    const ClusterGraph& one = rail->graph;
    require_nodes(rails, std::uint64_t{shape->rails} * one.node_count());
    Topology topology;
    for (std::uint32_t r = 0; r < shape->rails; ++r)
      for (std::uint32_t host = 0; host < one.host_count(); ++host) topology.graph.add_host(r);
    for (std::uint32_t r = 0; r < shape->rails; ++r)
      for (std::uint32_t i = one.host_count(); i < one.node_count(); ++i)
        topology.graph.add_switch(one.node(NodeId(i)).tier, r);
    topology.link_classes = rail->link_classes;
    for (std::uint32_t r = 0; r < shape->rails; ++r) add_rail(topology, *rail, shape->rails, r);
    topology.radix = shape->rails;
    topology.routing = "rails";
    shape->rail = rail;
    topology.graph.set_roles(std::make_shared<RailRoles>(rail, shape->rails));
    topology.shape = shape;
    return topology;
  }

 private:
  static void add_rail(Topology& topology, const Topology& rail, std::uint32_t rails, std::uint32_t r) {
    const ClusterGraph& one = rail.graph;
    const auto place = [&](NodeId node) {
      if (one.is_host(node)) return NodeId(r * one.host_count() + node.value());
      return NodeId(rails * one.host_count() + r * one.switch_count() + node.value() - one.host_count());
    };
    for (std::uint32_t i = 0; i < one.link_count(); ++i) {
      const LinkProperties& link = one.link(LinkId(i));
      topology.connect(rail.link_class[i], place(link.ends[0]), link.ports[0], place(link.ends[1]), link.ports[1],
                       link.rate, link.delay);
    }
  }
};

const Registration<TopologyBuilder, Rails> rails_registration(
    "rails", "copies of a network that only servers join: {rails, rail: {kind, ...}, server}");

}  // namespace
}  // namespace weft
