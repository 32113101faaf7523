// SPDX-License-Identifier: GPL-2.0-only
// Dragonfly+, also called megafly (A. Shpiner, Z. Haramaty, S. Eliad, V. Zdornov, B. Gafni, E. Zahavi, "Dragonfly+: low
// cost topology for scaling datacenters", HiPINEB 2017, doi:10.1109/HiPINEB.2017.11).
#include <fmt/format.h>

#include "graph/shapes/dragonfly_shape.hpp"
#include "graph/topology/link_spec.hpp"
#include "topologies/families/group_wiring_spec.hpp"

namespace weft {
namespace {

class DragonflyPlusAssembler {
 public:
  DragonflyPlusAssembler(const DragonflyPlusShape& shape, const LinkSpec& host, const LinkSpec& local,
                         const LinkSpec& global)
      : shape_(std::make_shared<DragonflyPlusShape>(shape)), host_(host), local_(local), global_(global) {}

  Topology assemble() {
    for (std::uint32_t i = 0; i < shape_->hosts(); ++i) topology_.graph.add_host(i / (shape_->p * shape_->leaves));
    for (std::uint32_t group = 0; group < shape_->g; ++group) {
      for (std::uint32_t i = 0; i < shape_->leaves; ++i) topology_.graph.add_switch(1, group);
      for (std::uint32_t i = 0; i < shape_->spines; ++i) topology_.graph.add_switch(2, group);
    }
    topology_.graph.set_roles(std::make_shared<TierRoles>(std::vector<TierRoles::Tier>{
        {shape_->hosts(), "group", {{"leaf", shape_->leaves}, {"spine", shape_->spines}}}}));
    add_links();
    topology_.routing = "dragonfly_plus_minimal";
    const std::int64_t half = shape_->g / 2;
    if (shape_->g % 2 == 0)
      topology_.bisection_bps = half * half * shape_->wiring.links_per_pair() * global_.rate.bps();
    topology_.shape = shape_;
    return std::move(topology_);
  }

 private:
  NodeId leaf(std::uint32_t group, std::uint32_t i) const {
    return NodeId(shape_->hosts() + group * (shape_->leaves + shape_->spines) + i);
  }
  NodeId spine(std::uint32_t group, std::uint32_t i) const { return leaf(group, shape_->leaves + i); }

  void add_links() {
    const std::uint8_t host_class = topology_.add_class("host");
    for (std::uint32_t i = 0; i < shape_->hosts(); ++i) {
      const std::uint32_t at = i / shape_->p;
      topology_.connect(host_class, NodeId(i), 0, leaf(at / shape_->leaves, at % shape_->leaves), i % shape_->p,
                        host_.rate, host_.delay);
    }
    const std::uint8_t local_class = topology_.add_class("local");
    for (std::uint32_t group = 0; group < shape_->g; ++group)
      for (std::uint32_t i = 0; i < shape_->leaves; ++i)
        for (std::uint32_t j = 0; j < shape_->spines; ++j)
          topology_.connect(local_class, leaf(group, i), shape_->p + j, spine(group, j), i, local_.rate, local_.delay);
    const std::uint8_t global_class = topology_.add_class("global");
    const std::uint32_t h = shape_->h;
    for (std::uint32_t group = 0; group < shape_->g; ++group) {
      for (std::uint32_t port = 0; port < shape_->wiring.used_ports(); ++port) {
        const auto peer = shape_->wiring.peer({group, port});
        if (peer.group < group) continue;
        topology_.connect(global_class, spine(group, port / h), shape_->leaves + port % h,
                          spine(peer.group, peer.port / h), shape_->leaves + peer.port % h, global_.rate,
                          global_.delay);
      }
    }
  }

  std::shared_ptr<DragonflyPlusShape> shape_;
  LinkSpec host_;
  LinkSpec local_;
  LinkSpec global_;
  Topology topology_;
};

class DragonflyPlus final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    DragonflyPlusShape shape;
    shape.p = static_cast<std::uint32_t>(spec.at("p").integer(1, ClusterGraph::max_ports));
    shape.leaves = static_cast<std::uint32_t>(spec.at("leaves").integer(1, ClusterGraph::max_ports));
    shape.spines = static_cast<std::uint32_t>(spec.at("spines").integer(1, ClusterGraph::max_ports));
    shape.h = static_cast<std::uint32_t>(spec.at("h").integer(0, ClusterGraph::max_ports));
    require_ports(spec.at("p"), std::uint64_t{shape.p} + shape.spines);
    require_ports(spec.at("h"), std::uint64_t{shape.h} + shape.leaves);
    const std::uint64_t ports = std::uint64_t{shape.spines} * shape.h;
    shape.wiring = read_group_wiring(spec, ports, fmt::format("spines h + 1 = {}", ports + 1));
    shape.g = shape.wiring.groups();
    const std::uint64_t group_nodes = saturated_product(shape.p + 1, shape.leaves) + shape.spines;
    require_nodes(spec.at(spec.has("g") ? "g" : "h"), saturated_product(group_nodes, shape.g));
    const LinkSpec link = read_link(spec);
    const LinkSpec host = read_link(spec, "host_link", link);
    const LinkSpec local = read_link(spec, "local_link", link);
    const LinkSpec global = read_link(spec, "global_link", link);
    spec.finish();
    return DragonflyPlusAssembler(shape, host, local, global).assemble();
  }
};

const Registration<TopologyBuilder, DragonflyPlus> dragonfly_plus_registration(
    "dragonfly_plus",
    "groups of leaves and spines, spines joined between groups: {p, leaves, spines, h, link_rate, "
    "link_delay, [g, arrangement, links_between_groups, host_link_*, local_link_*, global_link_*]}");

}  // namespace
}  // namespace weft
