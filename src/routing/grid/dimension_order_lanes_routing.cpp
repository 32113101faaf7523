// SPDX-License-Identifier: GPL-2.0-only
// Dimension order on a torus with two virtual lanes, which cannot deadlock: a packet starts each dimension in lane 0,
// and goes over the wrap and on in lane 1, so that no ring of lanes closes (W. Dally, C. Seitz, "Deadlock-free message
// routing in multiprocessor interconnection networks", IEEE Trans. Computers C-36(5), 1987,
// doi:10.1109/TC.1987.1676939).
#include "routing/grid/grid_order.hpp"

namespace weft {
namespace {

class DimensionOrderLanesRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    shape_ = require_shape<TorusShape>(topology, "dimension_order_lanes", "torus and mesh");
    if (shape_->is_twisted())
      throw InputError(SourceLine{},
                       "routing 'dimension_order_lanes' knows no twisted wraps; 'shortest_path' routes them");
    order_.emplace(shape_);
    hosts_ = topology.graph.host_count();
    seed_ = seed;
  }

  unsigned lanes() const override { return 2; }
  bool per_packet() const override { return true; }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    for (std::size_t i = 0; i < requests.size(); ++i) ports[i] = port(at, requests[i]);
  }

  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes>) const override {
    RouteChoice choice;
    choice.port = port(at, request.flow);
    if (at.value() < hosts_ || choice.port < shape_->hosts_per_router) return choice;
    const std::uint32_t router = at.value() - hosts_;
    const Step next = step(router, choice.port);
    const bool same_ring = request.in_port >= shape_->hosts_per_router && request.in_port != AdaptiveRequest::no_port &&
                           step(router, request.in_port).dim == next.dim;
    choice.lane = same_ring && request.lane == 1 ? 1 : 0;
    const std::uint32_t x = coordinate(router, next.dim);
    if (x == (next.up ? shape_->dims[next.dim] - 1 : 0)) choice.lane = 1;  // over the wrap
    return choice;
  }

  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    if (at.value() < hosts_) return {0};
    const PortRange range = order_->ports(at.value() - hosts_, destination);
    std::vector<std::uint16_t> ports;
    for (std::uint32_t i = 0; i < range.count; ++i) ports.push_back(static_cast<std::uint16_t>(range.first + i));
    return ports;
  }

 private:
  struct Step {
    std::size_t dim;
    bool up;
  };

  std::uint16_t port(NodeId at, const RouteRequest& flow) const {
    if (at.value() < hosts_) return 0;
    const PortRange range = order_->ports(at.value() - hosts_, flow.destination);
    const std::uint32_t which = range.count == 1 ? 0 : ecmp_choice(ecmp_hash(flow, at, seed_), range.count);
    return static_cast<std::uint16_t>(range.first + which);
  }

  /// The dimension and direction of a port; a ring of two goes up from 0 and down from 1.
  Step step(std::uint32_t router, std::uint16_t port) const {
    for (std::size_t d = 0; d < shape_->dims.size(); ++d) {
      if (shape_->dims[d] == 2 && shape_->port(router, d, true) == port) return {d, coordinate(router, d) == 0};
      if (shape_->port(router, d, false) == port) return {d, false};
      if (shape_->port(router, d, true) == port) return {d, true};
    }
    return {shape_->dims.size(), false};
  }

  std::uint32_t coordinate(std::uint32_t router, std::size_t dim) const {
    for (std::size_t d = 0; d < dim; ++d) router /= shape_->dims[d];
    return router % shape_->dims[dim];
  }

  std::shared_ptr<const TorusShape> shape_;
  std::optional<TorusOrder> order_;
  std::uint32_t hosts_ = 0;
  std::uint64_t seed_ = 0;
};

const Registration<RoutingAlgorithm, DimensionOrderLanesRouting> dimension_order_lanes_routing_registration(
    "dimension_order_lanes", "torus and mesh by formula: dimension order with two virtual lanes, free of deadlock");

}  // namespace
}  // namespace weft
