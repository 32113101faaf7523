// SPDX-License-Identifier: GPL-2.0-only
// Three-level k-ary fat-tree of k-port switches (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008,
// doi:10.1145/1402958.1402967).
#include <algorithm>

#include <fmt/format.h>

#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {
namespace {

enum FatTreeLinkClass : std::uint8_t { host_link, edge_aggregation_link, aggregation_core_link };

/// The largest k with k^3/4 + 5k^2/4 nodes within max_nodes, rounded down to a power of two.
constexpr std::int64_t max_k = 256;
static_assert(max_k * max_k * max_k / 4 + 5 * max_k * max_k / 4 <= max_nodes);

std::uint32_t read_k(const Spec& spec) {
  const std::int64_t k = spec.integer(2, max_k);
  if (k % 2 != 0) {
    throw spec.error(
        fmt::format("a fat-tree splits the k ports of a switch into two halves, so k must be even; found {}; "
                    "use {} or {}",
                    k, k - 1, k + 1));
  }
  return static_cast<std::uint32_t>(k);
}

/// Node numbers: hosts pod by pod and edge by edge, then edge switches pod by pod, aggregation switches pod by pod,
/// cores. Port numbers, which formula routing relies on: edge: 0..k/2-1 hosts, then aggregation 0..k/2-1; aggregation:
/// 0..k/2-1 edges, then cores a*k/2 .. a*k/2+k/2-1 for aggregation switch a of the pod; core: the pod. Direction 0 of a
/// link is up.
class FatTreeAssembler {
 public:
  FatTreeAssembler(std::uint32_t k, const LinkSpec& host_link, const LinkSpec& switch_link)
      : pods_(k), half_(k / 2), host_link_(host_link), switch_link_(switch_link) {}

  Topology assemble() {
    add_nodes();
    // The order of adding makes the port numbers: a node's links downwards are first, each tier in ascending order.
    for (std::uint32_t i = 0; i < hosts(); ++i) add(FatTreeLinkClass::host_link, i, edge(i / half_), host_link_);
    for (std::uint32_t i = 0; i < edges(); ++i)
      for (std::uint32_t a = 0; a < half_; ++a)
        add(edge_aggregation_link, edge(i), aggregation(i / half_ * half_ + a), switch_link_);
    for (std::uint32_t i = 0; i < edges(); ++i)
      for (std::uint32_t j = 0; j < half_; ++j)
        add(aggregation_core_link, aggregation(i), core(i % half_ * half_ + j), switch_link_);
    topology_.routing = "fat_tree";
    topology_.radix = pods_;
    topology_.bisection_bps =
        std::int64_t{hosts() / 2} * std::min(host_link_.rate, switch_link_.rate).bps();  // half of k^3/4 links
    topology_.link_classes = {"host", "edge-aggregation", "aggregation-core"};
    return std::move(topology_);
  }

 private:
  std::uint32_t hosts() const { return pods_ * half_ * half_; }
  std::uint32_t edges() const { return pods_ * half_; }  ///< and as many aggregation switches
  std::uint32_t edge(std::uint32_t i) const { return hosts() + i; }
  std::uint32_t aggregation(std::uint32_t i) const { return hosts() + edges() + i; }
  std::uint32_t core(std::uint32_t i) const { return hosts() + 2 * edges() + i; }

  void add_nodes() {
    ClusterGraph& graph = topology_.graph;
    for (std::uint32_t i = 0; i < hosts(); ++i) graph.add_host(i / (half_ * half_));
    for (std::uint32_t i = 0; i < edges(); ++i) graph.add_switch(1, i / half_);
    for (std::uint32_t i = 0; i < edges(); ++i) graph.add_switch(2, i / half_);
    for (std::uint32_t i = 0; i < half_ * half_; ++i) graph.add_switch(3);
    graph.set_roles(
        std::make_shared<TierRoles>(std::vector<TierRoles::Tier>{{edge(0), "pod", {{"edge", half_}}},
                                                                 {aggregation(0), "pod", {{"aggregation", half_}}},
                                                                 {core(0), "", {{"core", half_ * half_}}}}));
  }

  void add(FatTreeLinkClass link_class, std::uint32_t lower, std::uint32_t upper, const LinkSpec& link) {
    topology_.graph.add_link(NodeId(lower), NodeId(upper), link.rate, link.delay);
    topology_.link_class.push_back(link_class);
  }

  std::uint32_t pods_;
  std::uint32_t half_;
  LinkSpec host_link_;
  LinkSpec switch_link_;
  Topology topology_;
};

class FatTree final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const std::uint32_t k = read_k(spec.at("k"));
    const LinkSpec switch_link = read_link(spec);
    const LinkSpec host_link = read_link(spec, "host_link", switch_link);
    spec.finish();
    return FatTreeAssembler(k, host_link, switch_link).assemble();
  }
};

const Registration<TopologyBuilder, FatTree> fat_tree_registration(
    "fat_tree",
    "three-level fat-tree of k-port switches, k^3/4 hosts: {k, "
    "link_rate, link_delay, [host_link_rate, host_link_delay]}");

}  // namespace
}  // namespace weft
