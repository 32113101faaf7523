// SPDX-License-Identifier: GPL-2.0-only
// HyperX and its special cases (J. Ahn, N. Binkert, A. Davis, M. McLaren, R. Schreiber, "HyperX: topology, routing, and
// packaging of efficient large-scale networks", SC 2009, doi:10.1145/1654059.1654101): flattened butterfly, hypercube,
// fully connected switches.
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "graph/shapes/hyperx_shape.hpp"
#include "graph/topology/link_spec.hpp"

namespace weft {
namespace {

constexpr std::size_t max_hyperx_dimensions = 24;

class HyperxAssembler {
 public:
  HyperxAssembler(HyperxShape shape, const std::vector<LinkSpec>& links, const LinkSpec& host_link)
      : shape_(std::make_shared<HyperxShape>(std::move(shape))), links_(links), host_link_(host_link) {}

  Topology assemble() {
    shape_->switches = std::accumulate(shape_->dims.begin(), shape_->dims.end(), 1U, std::multiplies<>());
    const std::uint32_t slab = shape_->switches / shape_->dims.back();
    for (std::uint32_t i = 0; i < hosts(); ++i) topology_.graph.add_host(i / shape_->terminals / slab);
    for (std::uint32_t i = 0; i < shape_->switches; ++i) topology_.graph.add_switch(1, i / slab);
    topology_.graph.set_roles(std::make_shared<GridRoles>(hosts(), shape_->dims));
    const std::uint8_t host_class = topology_.add_class("host");
    for (std::uint32_t i = 0; i < hosts(); ++i)
      topology_.add(host_class, NodeId(i), NodeId(hosts() + i / shape_->terminals), host_link_.rate, host_link_.delay);
    std::uint32_t step = 1;
    for (std::size_t d = 0; d < shape_->dims.size(); ++d) {
      const std::uint8_t link_class =
          topology_.add_class(shape_->dims.size() == 1 ? std::string("switch") : fmt::format("dimension {}", d));
      add_dimension(d, step, link_class);
      step *= shape_->dims[d];
    }
    topology_.routing = "dimension_order";
    topology_.bisection_bps = bisection();
    topology_.shape = shape_;
    return std::move(topology_);
  }

 private:
  std::uint32_t hosts() const { return shape_->switches * shape_->terminals; }

  void add_dimension(std::size_t d, std::uint32_t step, std::uint8_t link_class) {
    const std::uint32_t size = shape_->dims[d];
    for (std::uint32_t i = 0; i < shape_->switches; ++i) {
      const std::uint32_t from = i / step % size;
      for (std::uint32_t to = from + 1; to < size; ++to)
        for (std::uint32_t k = 0; k < shape_->parallel[d]; ++k)
          topology_.connect(link_class, NodeId(hosts() + i), shape_->first_port(d, from, to) + k,
                            NodeId(hosts() + i + (to - from) * step), shape_->first_port(d, to, from) + k,
                            links_[d].rate, links_[d].delay);
    }
  }

  /// min_d K_d S_d P / 4 over even S_d (Ahn et al. 2009, section 3.1), P the number of switches; none if a size above 1
  /// is odd.
  std::int64_t bisection() const {
    std::int64_t min = std::numeric_limits<std::int64_t>::max();
    for (std::size_t d = 0; d < shape_->dims.size(); ++d) {
      if (shape_->dims[d] == 1) continue;
      if (shape_->dims[d] % 2 != 0) return 0;
      const std::int64_t links = std::int64_t{shape_->parallel[d]} * (shape_->dims[d] / 2) * (shape_->switches / 2);
      min = std::min(min, links * links_[d].rate.bps());
    }
    return min == std::numeric_limits<std::int64_t>::max() ? 0 : min;
  }

  std::shared_ptr<HyperxShape> shape_;
  const std::vector<LinkSpec>& links_;
  LinkSpec host_link_;
  Topology topology_;
};

std::uint32_t read_terminals(const Spec& spec, std::uint32_t otherwise) {
  const auto terminals = spec.find("hosts_per_switch");
  return terminals ? static_cast<std::uint32_t>(terminals->integer(1, ClusterGraph::max_ports)) : otherwise;
}

void check_sizes(const Spec& spec, const HyperxShape& shape) {
  std::uint64_t switches = 1;
  std::uint64_t ports = shape.terminals;
  for (std::size_t d = 0; d < shape.dims.size(); ++d) {
    switches = saturated_product(switches, shape.dims[d]);
    ports += saturated_product(shape.dims[d] - 1, shape.parallel[d]);
  }
  require_nodes(spec, saturated_product(switches, 1 + std::uint64_t{shape.terminals}));
  require_ports(spec, ports);
}

Topology finish(const Spec& spec, const Spec& place, HyperxShape shape) {
  check_sizes(place, shape);
  const auto links = read_links(spec, "link", shape.dims.size());
  const LinkSpec host_link = read_link(spec, "host_link", links.front());
  spec.finish();
  return HyperxAssembler(std::move(shape), links, host_link).assemble();
}

class Hyperx final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    HyperxShape shape;
    const Spec dims = spec.at("dims");
    shape.dims = read_numbers(dims, 1, max_hyperx_dimensions, 1, ClusterGraph::max_ports);
    shape.terminals = read_terminals(spec, 1);
    shape.parallel.assign(shape.dims.size(), 1);
    if (const auto parallel = spec.find("parallel"))
      shape.parallel =
          parallel->is_sequence()
              ? read_numbers(*parallel, shape.dims.size(), shape.dims.size(), 1, ClusterGraph::max_ports)
              : std::vector<std::uint32_t>(shape.dims.size(),
                                           static_cast<std::uint32_t>(parallel->integer(1, ClusterGraph::max_ports)));
    return finish(spec, dims, std::move(shape));
  }
};

/// S_d = 2 in n dimensions.
class Hypercube final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const Spec dimensions = spec.at("dimensions");
    HyperxShape shape;
    shape.dims.assign(static_cast<std::size_t>(dimensions.integer(1, max_hyperx_dimensions - 1)), 2);
    shape.parallel.assign(shape.dims.size(), 1);
    shape.terminals = read_terminals(spec, 1);
    return finish(spec, dimensions, std::move(shape));
  }
};

/// One dimension.
class FullyConnected final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const Spec switches = spec.at("switches");
    HyperxShape shape;
    shape.dims = {static_cast<std::uint32_t>(switches.integer(1, ClusterGraph::max_ports))};
    const auto parallel = spec.find("parallel");
    shape.parallel = {parallel ? static_cast<std::uint32_t>(parallel->integer(1, ClusterGraph::max_ports)) : 1};
    shape.terminals = read_terminals(spec, 1);
    return finish(spec, switches, std::move(shape));
  }
};

const Registration<TopologyBuilder, Hyperx> hyperx(
    "hyperx",
    "grid of switches, those of a line joined pairwise: {dims: [4, 4], link_rate, link_delay, "
    "[hosts_per_switch, parallel, host_link_rate, host_link_delay]}");
const Registration<TopologyBuilder, Hypercube> hypercube(
    "hypercube", "2^n switches: {dimensions: n, link_rate, link_delay, [hosts_per_switch, ...]}");
const Registration<TopologyBuilder, FullyConnected> fully_connected(
    "fully_connected",
    "switches joined pairwise: {switches, link_rate, link_delay, [hosts_per_switch, parallel, ...]}");

}  // namespace
}  // namespace weft
