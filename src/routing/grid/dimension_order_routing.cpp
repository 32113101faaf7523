// SPDX-License-Identifier: GPL-2.0-only
// Dimension order: correct the coordinates one after another, each by the shortest way (W. Dally, B. Towles,
// "Principles and practices of interconnection networks", 2004, section 8.4.1; for HyperX J. Ahn et al., SC 2009). No
// tables but the ports of each router.
#include "routing/grid/grid_order.hpp"

namespace weft {
namespace {

class DimensionOrderRouting final : public RangeRouting<DimensionOrderRouting> {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    hosts_ = topology.graph.host_count();
    seed_ = seed;
    if (auto hyperx = std::dynamic_pointer_cast<const HyperxShape>(topology.shape)) {
      hyperx_.emplace(std::move(hyperx));
      return;
    }
    auto torus =
        require_shape<TorusShape>(topology, "dimension_order", "torus, mesh, hyperx, hypercube and fully_connected");
    if (torus->is_twisted())
      throw InputError(SourceLine{}, "routing 'dimension_order' knows no twisted wraps; 'shortest_path' routes them");
    torus_.emplace(std::move(torus));
  }

  std::uint32_t place(std::uint32_t router) const { return router; }
  PortRange ports(std::uint32_t router, NodeId destination) const {
    return torus_ ? torus_->ports(router, destination) : hyperx_->ports(router, destination);
  }

 private:
  std::optional<TorusOrder> torus_;
  std::optional<HyperxOrder> hyperx_;
};

const Registration<RoutingAlgorithm, DimensionOrderRouting> dimension_order_routing_registration(
    "dimension_order", "torus, mesh and hyperx by formula: dimension by dimension, each by the shortest way");

}  // namespace
}  // namespace weft
