// SPDX-License-Identifier: GPL-2.0-only
// Building any torus or mesh.
#include "topologies/families/torus_assembly.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

namespace weft {
namespace {

class TorusAssembler {
 public:
  TorusAssembler(TorusShape shape, const std::vector<LinkSpec>& links, const LinkSpec& host_link)
      : shape_(std::make_shared<TorusShape>(std::move(shape))), links_(links), host_link_(host_link) {}

  Topology assemble() {
    number_ports();
    add_nodes();
    add_links();
    topology_.routing = shape_->is_twisted() ? "shortest_path" : "dimension_order";
    topology_.bisection_bps = bisection();
    topology_.shape = shape_;
    return std::move(topology_);
  }

 private:
  std::size_t dimensions() const { return shape_->dims.size(); }
  NodeId router(std::uint32_t i) const { return NodeId(shape_->routers * shape_->hosts_per_router + i); }

  /// Calls visit(lower, upper) for the neighbours in a dimension, where `upper` is one step up from `lower`.
  void for_each_link(std::size_t d, const std::function<void(std::uint32_t, std::uint32_t)>& visit) const {
    const std::uint32_t k = shape_->dims[d];
    const bool wraps = shape_->wrap[d] && (k > 2 || (k == 2 && shape_->twisted(d)));
    for (std::uint32_t i = 0; i < shape_->routers; ++i) {
      auto x = shape_->coordinates(i);
      if (x[d] + 1 < k) {
        ++x[d];
        visit(i, shape_->router_at(x));
      } else if (wraps) {
        x[d] = 0;
        if (shape_->twisted(d))
          for (std::size_t e = 0; e < dimensions(); ++e) x[e] = (x[e] + shape_->twist[d][e]) % shape_->dims[e];
        visit(i, shape_->router_at(x));
      }
    }
  }

  /// Ports of a router: its hosts, then for each dimension downwards and upwards, as far as there are such.
  void number_ports() {
    shape_->routers = std::accumulate(shape_->dims.begin(), shape_->dims.end(), 1U, std::multiplies<>());
    shape_->port_of.assign(shape_->routers * dimensions() * 2, TorusShape::no_port);
    std::vector<std::uint16_t> next(shape_->routers, static_cast<std::uint16_t>(shape_->hosts_per_router));
    for (std::size_t d = 0; d < dimensions(); ++d) {
      constexpr std::uint16_t wanted = 0;
      for_each_link(d, [&](std::uint32_t lower, std::uint32_t upper) {
        slot(lower, d, true) = wanted;
        slot(upper, d, false) = wanted;
      });
      for (std::uint32_t i = 0; i < shape_->routers; ++i)
        for (const bool up : {false, true})
          if (slot(i, d, up) == wanted) slot(i, d, up) = next[i]++;
      // The one link of a dimension of size 2 leads both upwards and downwards.
      if (shape_->dims[d] == 2 && shape_->wrap[d] && !shape_->twisted(d))
        for (std::uint32_t i = 0; i < shape_->routers; ++i)
          for (const bool up : {false, true})
            if (slot(i, d, up) == TorusShape::no_port) slot(i, d, up) = slot(i, d, !up);
    }
  }

  std::uint16_t& slot(std::uint32_t i, std::size_t d, bool up) {
    return shape_->port_of[(i * dimensions() + d) * 2 + (up ? 1 : 0)];
  }

  void add_nodes() {
    const auto longest =
        static_cast<std::size_t>(std::max_element(shape_->dims.begin(), shape_->dims.end()) - shape_->dims.begin());
    for (std::uint32_t i = 0; i < shape_->routers; ++i)
      for (std::uint32_t j = 0; j < shape_->hosts_per_router; ++j)
        topology_.graph.add_host(shape_->coordinates(i)[longest]);
    for (std::uint32_t i = 0; i < shape_->routers; ++i) topology_.graph.add_switch(1, shape_->coordinates(i)[longest]);
    topology_.graph.set_roles(std::make_shared<GridRoles>(shape_->routers * shape_->hosts_per_router, shape_->dims));
  }

  void add_links() {
    const std::uint8_t host_class = topology_.add_class("host");
    const std::uint32_t per_router = shape_->hosts_per_router;
    for (std::uint32_t i = 0; i < topology_.graph.host_count(); ++i)
      topology_.connect(host_class, NodeId(i), 0, router(i / per_router), i % per_router, host_link_.rate,
                        host_link_.delay);
    for (std::size_t d = 0; d < dimensions(); ++d) {
      const std::uint8_t link_class = topology_.add_class(fmt::format("dimension {}", d));
      for_each_link(d, [&](std::uint32_t lower, std::uint32_t upper) {
        topology_.connect(link_class, router(lower), slot(lower, d, true), router(upper), slot(upper, d, false),
                          links_[d].rate, links_[d].delay);
      });
    }
  }

  /// The cheapest cut of an even dimension through its middle (W. Dally, B. Towles, "Principles and practices of
  /// interconnection networks", 2004, section 5.2.2): 2 N/k links of a torus, N/k of a mesh. None if all are odd or
  /// twisted.
  std::int64_t bisection() const {
    std::int64_t min = 0;
    for (std::size_t d = 0; d < dimensions(); ++d) {
      const std::uint32_t k = shape_->dims[d];
      if (k % 2 != 0 || shape_->is_twisted()) continue;
      const std::int64_t links = std::int64_t{shape_->wrap[d] && k > 2 ? 2 : 1} * (shape_->routers / k);
      const std::int64_t rate = links * links_[d].rate.bps();
      if (min == 0 || rate < min) min = rate;
    }
    return min;
  }

  std::shared_ptr<TorusShape> shape_;
  const std::vector<LinkSpec>& links_;
  LinkSpec host_link_;
  Topology topology_;
};

}  // namespace

Topology assemble_torus(TorusShape shape, const std::vector<LinkSpec>& links, const LinkSpec& host_link) {
  return TorusAssembler(std::move(shape), links, host_link).assemble();
}

LinkSpec injection_link(const TorusShape& shape, const std::vector<LinkSpec>& links) {
  LinkSpec result{Bandwidth(), links.front().delay};
  std::int64_t rate = 0;
  for (std::size_t d = 0; d < shape.dims.size(); ++d) {
    rate += links[d].rate.bps() * (shape.dims[d] > 2 ? 2 : shape.dims[d] > 1 ? 1 : 0);
    result.delay = std::min(result.delay, links[d].delay);
  }
  result.rate = rate > 0 ? Bandwidth::from_bps(rate) : links.front().rate;
  return result;
}

}  // namespace weft
