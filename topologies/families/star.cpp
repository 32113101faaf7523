// SPDX-License-Identifier: GPL-2.0-only
// Hosts around one switch.
#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {
namespace {

class Star final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const std::int64_t hosts = spec.at("hosts").integer(1, ClusterGraph::max_ports);
    const LinkSpec link = read_link(spec);
    spec.finish();
    Topology topology;
    for (std::int64_t i = 0; i < hosts; ++i) topology.graph.add_host();
    const NodeId center = topology.graph.add_switch(1);
    for (std::uint32_t i = 0; i < topology.graph.host_count(); ++i)
      topology.graph.add_link(NodeId(i), center, link.rate, link.delay);
    topology.routing = "shortest_path";
    topology.link_class.assign(topology.graph.link_count(), 0);
    topology.link_classes = {"host"};
    topology.bisection_bps = hosts / 2 * link.rate.bps();
    return topology;
  }
};

const Registration<TopologyBuilder, Star> star_registration("star",
                                                            "hosts around one switch: {hosts, link_rate, link_delay}");

}  // namespace
}  // namespace weft
