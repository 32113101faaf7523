// SPDX-License-Identifier: GPL-2.0-only
// Routing of networks side by side: each is routed as if alone. There is no path from one to another.
#include <array>

#include "graph/shapes/rails_shape.hpp"
#include "routing/algorithm/range_routing.hpp"
#include "routing/algorithm/reciprocal.hpp"

namespace weft {
namespace {

class RailsRouting final : public RoutingAlgorithm {
 public:
  void prepare(const Topology& topology, std::uint64_t seed) override {
    shape_ = require_shape<RailsShape>(topology, "rails", "rails");
    inner_ = RoutingRegistry::instance().find(shape_->rail->routing)->make();
    inner_->prepare(*shape_->rail, seed);
    hosts_ = topology.graph.host_count();
    by_hosts_ = Reciprocal(shape_->rail->graph.host_count());
    by_switches_ = Reciprocal(std::max(1U, shape_->rail->graph.switch_count()));
  }
  unsigned lanes() const override { return inner_->lanes(); }
  bool per_packet() const override { return inner_->per_packet(); }
  bool reorders() const override { return inner_->reorders(); }
  std::uint32_t max_reported() const override { return inner_->max_reported(); }
  QueueReports reports(NodeId at) const override { return inner_->reports(in_rail(at)); }

  void route(NodeId at, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    std::array<RouteRequest, 32> translated;
    for (std::size_t first = 0; first < requests.size(); first += translated.size()) {
      const std::size_t count = std::min(translated.size(), requests.size() - first);
      for (std::size_t i = 0; i < count; ++i) translated[i] = in_rail(requests[first + i]);
      inner_->route(in_rail(at), {translated.data(), count}, ports + first);
    }
  }
  RouteChoice choose(NodeId at, const AdaptiveRequest& request, std::span<const Bytes> queued) const override {
    AdaptiveRequest translated = request;
    translated.flow = in_rail(request.flow);
    return inner_->choose(in_rail(at), translated, queued);
  }
  std::vector<std::uint16_t> candidates(NodeId at, NodeId destination) const override {
    return inner_->candidates(in_rail(at), in_rail(destination));
  }
  std::vector<std::uint16_t> candidates_of(NodeId at, const RouteRequest& flow) const override {
    return inner_->candidates_of(in_rail(at), in_rail(flow));
  }

 private:
  NodeId in_rail(NodeId node) const {
    const ClusterGraph& one = shape_->rail->graph;
    if (node.value() < hosts_) return host_in_rail(node);
    const std::uint32_t number = node.value() - hosts_;
    return NodeId(one.host_count() + number - by_switches_.quotient(number) * one.switch_count());
  }
  NodeId host_in_rail(NodeId host) const {
    return NodeId(host.value() - by_hosts_.quotient(host.value()) * shape_->rail->graph.host_count());
  }
  RouteRequest in_rail(const RouteRequest& flow) const {
    return {host_in_rail(flow.source), host_in_rail(flow.destination), flow.queue_pair};
  }

  std::shared_ptr<const RailsShape> shape_;
  std::unique_ptr<RoutingAlgorithm> inner_;
  std::uint32_t hosts_ = 0;
  Reciprocal by_hosts_;
  Reciprocal by_switches_;
};

const Registration<RoutingAlgorithm, RailsRouting> rails_routing_registration(
    "rails", "networks side by side, each as it is routed alone");

}  // namespace
}  // namespace weft
