// SPDX-License-Identifier: GPL-2.0-only
// Dragonfly (J. Kim, W. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008,
// doi:10.1109/ISCA.2008.19).
#include <fmt/format.h>

#include "graph/shapes/dragonfly_shape.hpp"
#include "graph/topology/link_spec.hpp"
#include "topologies/families/group_wiring_spec.hpp"

namespace weft {
namespace {

struct DragonflyLinks {
  LinkSpec host;
  LinkSpec local;
  LinkSpec global;
};

class DragonflyAssembler {
 public:
  DragonflyAssembler(const DragonflyShape& shape, const DragonflyLinks& links)
      : shape_(std::make_shared<DragonflyShape>(shape)), links_(links) {}

  Topology assemble() {
    const std::uint32_t per_group = shape_->a * shape_->p;
    for (std::uint32_t i = 0; i < shape_->hosts(); ++i) topology_.graph.add_host(i / per_group);
    for (std::uint32_t i = 0; i < shape_->a * shape_->g; ++i) topology_.graph.add_switch(1, i / shape_->a);
    topology_.graph.set_roles(
        std::make_shared<TierRoles>(std::vector<TierRoles::Tier>{{shape_->hosts(), "group", {{"router", shape_->a}}}}));
    add_host_links();
    add_local_links();
    add_global_links();
    topology_.routing = "dragonfly_minimal";
    // Half of the groups against the other half; with an odd number a group has to be split, for which there is no
    // formula.
    const std::int64_t half = shape_->g / 2;
    if (shape_->g % 2 == 0)
      topology_.bisection_bps = half * half * shape_->wiring.links_per_pair() * links_.global.rate.bps();
    topology_.shape = shape_;
    return std::move(topology_);
  }

 private:
  NodeId router(std::uint32_t group, std::uint32_t r) const { return NodeId(shape_->hosts() + group * shape_->a + r); }

  void add_host_links() {
    const std::uint8_t link_class = topology_.add_class("host");
    for (std::uint32_t i = 0; i < shape_->hosts(); ++i)
      topology_.connect(link_class, NodeId(i), 0, NodeId(shape_->hosts() + i / shape_->p), i % shape_->p,
                        links_.host.rate, links_.host.delay);
  }

  void add_local_links() {
    const std::uint8_t link_class = topology_.add_class("local");
    for (std::uint32_t group = 0; group < shape_->g; ++group)
      for (std::uint32_t r = 0; r < shape_->a; ++r)
        for (std::uint32_t s = r + 1; s < shape_->a; ++s)
          topology_.connect(link_class, router(group, r), shape_->local_port(r, s), router(group, s),
                            shape_->local_port(s, r), links_.local.rate, links_.local.delay);
  }

  void add_global_links() {
    const std::uint8_t link_class = topology_.add_class("global");
    const std::uint32_t h = shape_->h;
    for (std::uint32_t group = 0; group < shape_->g; ++group) {
      for (std::uint32_t port = 0; port < shape_->wiring.used_ports(); ++port) {
        const auto peer = shape_->wiring.peer({group, port});
        if (peer.group < group) continue;  // that one has added it
        topology_.connect(link_class, router(group, port / h), shape_->global_port(port % h),
                          router(peer.group, peer.port / h), shape_->global_port(peer.port % h), links_.global.rate,
                          links_.global.delay);
      }
    }
  }

  std::shared_ptr<DragonflyShape> shape_;
  DragonflyLinks links_;
  Topology topology_;
};

class Dragonfly final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    DragonflyShape shape;
    shape.p = static_cast<std::uint32_t>(spec.at("p").integer(1, ClusterGraph::max_ports));
    shape.a = static_cast<std::uint32_t>(spec.at("a").integer(1, ClusterGraph::max_ports));
    shape.h = static_cast<std::uint32_t>(spec.at("h").integer(0, ClusterGraph::max_ports));
    require_ports(spec.at("p"), std::uint64_t{shape.p} + shape.a - 1 + shape.h);
    const std::uint64_t ports = std::uint64_t{shape.a} * shape.h;
    shape.wiring = read_group_wiring(spec, ports, fmt::format("a h + 1 = {}", ports + 1));
    shape.g = shape.wiring.groups();
    require_nodes(spec.at(spec.has("g") ? "g" : "h"), saturated_product(std::uint64_t{shape.p + 1} * shape.a, shape.g));
    const LinkSpec link = read_link(spec);
    const DragonflyLinks links = {read_link(spec, "host_link", link), read_link(spec, "local_link", link),
                                  read_link(spec, "global_link", link)};
    spec.finish();
    return DragonflyAssembler(shape, links).assemble();
  }
};

const Registration<TopologyBuilder, Dragonfly> dragonfly_registration(
    "dragonfly",
    "g groups of a routers with p hosts and h global links each: {p, a, h, link_rate, link_delay, [g, "
    "arrangement, links_between_groups, host_link_*, local_link_*, global_link_*]}");

}  // namespace
}  // namespace weft
