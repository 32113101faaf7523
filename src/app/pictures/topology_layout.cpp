// SPDX-License-Identifier: GPL-2.0-only
// Where the nodes of a machine are drawn.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "app/pictures/topology_picture.hpp"
#include "graph/shapes/dragonfly_shape.hpp"
#include "graph/shapes/hyperx_shape.hpp"
#include "graph/shapes/torus_shape.hpp"

namespace weft {
namespace {

constexpr double tau = 2 * std::numbers::pi;

Point on_circle(Point centre, double radius, double turn) {
  return {centre.x + radius * std::sin(tau * turn), centre.y - radius * std::cos(tau * turn)};
}

/// The first two dimensions are in the plane, the third is drawn obliquely, further ones make copies beside each other.
Point grid_point(std::vector<std::uint32_t> dims, std::uint32_t number) {
  std::vector<double> x;
  std::vector<double> size;
  for (const std::uint32_t k : dims) {
    if (k > 1) {
      x.push_back(number % k);
      size.push_back(k);
    }
    number /= k;
  }
  x.resize(std::max<std::size_t>(x.size(), 3), 0);
  size.resize(std::max<std::size_t>(size.size(), 3), 1);
  Point point = {x[0] + 0.29 * x[2], x[1] - 0.37 * x[2]};
  double across = size[0] + 0.29 * size[2] + 1;
  double down = size[1] + 0.37 * size[2] + 1;
  for (std::size_t d = 3; d < x.size(); ++d) {
    if (d % 2 == 1) {
      point.x += x[d] * across;
      across *= size[d];
    } else {
      point.y += x[d] * down;
      down *= size[d];
    }
  }
  return point;
}

std::size_t long_dimensions(const std::vector<std::uint32_t>& dims) {
  return static_cast<std::size_t>(std::count_if(dims.begin(), dims.end(), [](std::uint32_t k) { return k > 1; }));
}

/// Routers by a formula, hosts beside them.
template <class RouterPoint>
std::vector<Point> routers_and_hosts(const ClusterGraph& graph, const RouterPoint& router_point, Point step) {
  std::vector<Point> points(graph.node_count());
  const std::uint32_t hosts = graph.host_count();
  for (std::uint32_t i = 0; i < graph.switch_count(); ++i) points[hosts + i] = router_point(i);
  for (std::uint32_t i = 0; i < graph.switch_count(); ++i) {
    double place = 1;
    for (const PortEnd& port : graph.ports(NodeId(hosts + i))) {
      if (!graph.is_host(port.peer)) continue;
      const Point& router = points[hosts + i];
      points[port.peer.value()] = {router.x + step.x * (1 + 0.25 * place), router.y + step.y * (2 - 0.5 * place)};
      place += 1;
    }
  }
  return points;
}

/// Switches of one group around a common point; groups around the middle; hosts further out.
Layout circle_of_groups(const ClusterGraph& graph) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;
  for (std::uint32_t i = graph.host_count(); i < graph.node_count(); ++i)
    members[graph.node(NodeId(i)).group].push_back(i);
  const auto groups = static_cast<double>(members.size());
  const double space = groups > 1 ? std::min(0.45, 0.9 * std::sin(std::numbers::pi / groups)) : 0.8;
  Layout layout;
  layout.points.resize(graph.node_count());
  double number = 0;
  for (const auto& [group, nodes] : members) {
    const double turn = number++ / groups;
    const Point centre = groups > 1 ? on_circle({0, 0}, 1, turn) : Point{};
    const auto count = static_cast<double>(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const double own = turn + static_cast<double>(i) / count;
      const Point at = nodes.size() == 1 ? centre : on_circle(centre, space * 0.6, own);
      layout.points[nodes[i]] = at;
      std::vector<std::uint32_t> hosts;
      for (const PortEnd& port : graph.ports(NodeId(nodes[i])))
        if (graph.is_host(port.peer)) hosts.push_back(port.peer.value());
      const bool around = nodes.size() == 1 && members.size() == 1;
      const double spread = around ? 1.0 : 0.8 / count;
      for (std::size_t h = 0; h < hosts.size(); ++h) {
        const auto of = static_cast<double>(hosts.size());
        const double offset =
            around ? static_cast<double>(h) / of : own + spread * ((static_cast<double>(h) + 0.5) / of - 0.5);
        layout.points[hosts[h]] = on_circle(around || nodes.size() > 1 ? centre : at, space, offset);
      }
    }
  }
  return layout;
}

/// One row per tier, hosts at the bottom.
Layout rows_of_tiers(const ClusterGraph& graph) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> rows;
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) rows[graph.node(NodeId(i)).tier].push_back(i);
  Layout layout;
  layout.points.resize(graph.node_count());
  double y = 0;
  for (const auto& [tier, nodes] : rows) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      layout.points[nodes[i]] = {(static_cast<double>(i) + 0.5) / static_cast<double>(nodes.size()),
                                 -0.6 * y / static_cast<double>(rows.size())};
    y += 1;
  }
  return layout;
}

/// host0, the switches, host1
Layout straight_line(const ClusterGraph& graph) {
  Layout layout;
  layout.points.resize(graph.node_count());
  for (std::uint32_t i = graph.host_count(); i < graph.node_count(); ++i) layout.points[i].x = i - 1.0;
  layout.points[1].x = graph.node_count() - 1.0;
  return layout;
}

void scale_to_unit(std::vector<Point>& points) {
  Point min = points.front();
  Point max = points.front();
  for (const Point& point : points) {
    min = {std::min(min.x, point.x), std::min(min.y, point.y)};
    max = {std::max(max.x, point.x), std::max(max.y, point.y)};
  }
  const double size = std::max({max.x - min.x, max.y - min.y, 1e-9});
  for (Point& point : points)
    point = {(point.x - min.x + (size - (max.x - min.x)) / 2) / size, (point.y - min.y) / size};
}

Layout unscaled(const Topology& topology) {
  const ClusterGraph& graph = topology.graph;
  const auto grid = [&](const std::vector<std::uint32_t>& dims, double bend) {
    Layout layout;
    layout.points = routers_and_hosts(graph, [&](std::uint32_t i) { return grid_point(dims, i); }, {0.12, 0.12});
    layout.bend = bend;
    return layout;
  };
  const auto ring = [&](std::uint32_t count) {
    Layout layout;
    layout.points.resize(graph.node_count());
    for (std::uint32_t i = 0; i < count; ++i)
      layout.points[graph.host_count() + i] = on_circle({}, 1, static_cast<double>(i) / count);
    for (std::uint32_t i = 0; i < graph.host_count(); ++i) {
      const double of = static_cast<double>(count) / graph.host_count();
      layout.points[i] = on_circle({}, 1.15, ((i + 0.5) * of - 0.5) / count);
    }
    return layout;
  };
  if (const auto* torus = shape_of<TorusShape>(topology))
    return long_dimensions(torus->dims) == 1 && torus->wrap[0] ? ring(torus->routers) : grid(torus->dims, 0.07);
  if (const auto* hyperx = shape_of<HyperxShape>(topology))
    return long_dimensions(hyperx->dims) == 1 ? ring(hyperx->switches) : grid(hyperx->dims, 0.07);
  if (shape_of<DragonflyShape>(topology) != nullptr || shape_of<DragonflyPlusShape>(topology) != nullptr)
    return circle_of_groups(graph);
  if (topology.kind == "line") return straight_line(graph);
  std::uint8_t highest = 0;
  for (std::uint32_t i = 0; i < graph.node_count(); ++i) highest = std::max(highest, graph.node(NodeId(i)).tier);
  return highest > 1 ? rows_of_tiers(graph) : circle_of_groups(graph);
}

}  // namespace

Layout lay_out(const Topology& topology) {
  Layout layout = unscaled(topology);
  scale_to_unit(layout.points);
  return layout;
}

}  // namespace weft
