// SPDX-License-Identifier: GPL-2.0-only
// Pictures of machines.
#include "app/pictures/topology_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "units/text.hpp"

namespace weft {
namespace {

constexpr int side = 1200;
constexpr double margin = 110;
constexpr double legend = 150;

/// Colours that people with colour blindness can also distinguish (M. Okabe, K. Ito, "Color universal design", 2008).
constexpr std::array<Ink, 7> palette = {{{150, 150, 150, 1},
                                         {0, 114, 178, 1},
                                         {213, 94, 0, 1},
                                         {0, 158, 115, 1},
                                         {204, 121, 167, 1},
                                         {230, 159, 0, 1},
                                         {86, 180, 233, 1}}};
constexpr Ink host_ink = {120, 120, 120, 1};
constexpr Ink storage_ink = {213, 94, 0, 1};
constexpr Ink switch_ink = {30, 30, 30, 1};
constexpr Ink word_ink = {20, 20, 20, 1};

class Painter {
 public:
  explicit Painter(const Topology& topology) : topology_(topology), graph_(topology.graph), layout_(lay_out(topology)) {
    for (Point& point : layout_.points)
      point = {margin + point.x * (side - 2 * margin), legend + point.y * (side - 2 * margin)};
  }

  Drawing paint() {
    drawing_.width = side;
    drawing_.height = static_cast<int>(lowest() + margin);
    const double density = std::sqrt(std::max(1.0, graph_.link_count() / 150.0));
    width_ = std::clamp(2.4 / density, 0.25, 2.4);
    opacity_ = std::clamp(1.6 / density, 0.12, 0.9);
    measure_links();
    for (std::uint32_t i = 0; i < graph_.link_count(); ++i) add_link(i);
    for (std::uint32_t i = 0; i < graph_.node_count(); ++i) add_node(i);
    add_legend();
    return std::move(drawing_);
  }

 private:
  double lowest() const {
    double y = 0;
    for (const Point& point : layout_.points) y = std::max(y, point.y);
    return y;
  }

  void add_link(std::uint32_t i) {
    const LinkProperties& link = graph_.link(LinkId(i));
    const Point& a = layout_.points[link.ends[0].value()];
    const Point& b = layout_.points[link.ends[1].value()];
    Ink ink = palette[topology_.link_class[i] % palette.size()];
    ink.opacity = opacity_;
    std::vector<Point> points = {a, b};
    if (passes_over_others(i, length(link))) points = bent(a, b);
    drawing_.lines.push_back({points, width_, ink});
  }

  double length(const LinkProperties& link) const {
    const Point& a = layout_.points[link.ends[0].value()];
    const Point& b = layout_.points[link.ends[1].value()];
    return std::hypot(b.x - a.x, b.y - a.y);
  }

  /// On a grid: a link that is longer than the steps of its dimension, or than those of others.
  bool passes_over_others(std::uint32_t i, double length_of_link) {
    const LinkProperties& link = graph_.link(LinkId(i));
    if (layout_.bend == 0 || graph_.is_host(link.ends[0]) || graph_.is_host(link.ends[1])) return false;
    return length_of_link > 1.3 * shortest_[topology_.link_class[i]] || length_of_link > 4 * shortest_of_all_;
  }

  void measure_links() {
    shortest_.assign(topology_.link_classes.size(), side);
    for (std::uint32_t i = 0; i < graph_.link_count(); ++i) {
      const LinkProperties& link = graph_.link(LinkId(i));
      if (graph_.is_host(link.ends[0]) || graph_.is_host(link.ends[1])) continue;
      double& shortest = shortest_[topology_.link_class[i]];
      shortest = std::min(shortest, length(link));
      shortest_of_all_ = std::min(shortest_of_all_, shortest);
    }
  }

  std::vector<Point> bent(const Point& a, const Point& b) const {
    std::vector<Point> points;
    constexpr int pieces = 16;
    for (int i = 0; i <= pieces; ++i) {
      const double t = static_cast<double>(i) / pieces;
      const double height = 4 * t * (1 - t) * layout_.bend;
      points.push_back({a.x + t * (b.x - a.x) - height * (b.y - a.y), a.y + t * (b.y - a.y) + height * (b.x - a.x)});
    }
    return points;
  }

  void add_node(std::uint32_t i) {
    const double size = std::clamp(140.0 / std::sqrt(static_cast<double>(graph_.node_count())), 1.2, 10.0);
    const bool host = graph_.is_host(NodeId(i));
    const auto& storage = topology_.storage_hosts();
    const bool stores = std::binary_search(storage.begin(), storage.end(), i);
    drawing_.discs.push_back({layout_.points[i], host && !stores ? 0.55 * size : size,
                              stores ? storage_ink
                              : host ? host_ink
                                     : switch_ink});
  }

  void add_legend() {
    constexpr double height = 15;
    const std::size_t stores = topology_.storage_hosts().size();
    drawing_.words.push_back({{margin, 36},
                              18,
                              fmt::format("{}: {} hosts{}, {} switches, {} links", topology_.kind, graph_.host_count(),
                                          stores > 0 ? fmt::format(" ({} storage)", stores) : "", graph_.switch_count(),
                                          graph_.link_count()),
                              word_ink});
    std::vector<std::uint32_t> counts(topology_.link_classes.size(), 0);
    for (const std::uint8_t link_class : topology_.link_class) ++counts[link_class];
    double x = margin;
    double y = 70;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::string text = fmt::format("{} ({})", topology_.link_classes[i], counts[i]);
      const double width = 60 + static_cast<double>(text.size()) * height * 0.95;
      if (x + width > side - margin && x > margin) {
        x = margin;
        y += 26;
      }
      drawing_.lines.push_back({{{x, y - 6}, {x + 34, y - 6}}, 4, palette[i % palette.size()]});
      drawing_.words.push_back({{x + 42, y}, height, text, word_ink});
      x += width;
    }
  }

  const Topology& topology_;
  const ClusterGraph& graph_;
  Layout layout_;
  Drawing drawing_;
  double width_ = 1;
  double opacity_ = 1;
  std::vector<double> shortest_;  ///< [link classes] between switches
  double shortest_of_all_ = side;
};

}  // namespace

std::string draw_topology(const Topology& topology, const std::string& path) {
  const Drawing drawing = Painter(topology).paint();
  return path.ends_with(".svg") ? to_svg(drawing) : to_png(drawing);
}

}  // namespace weft
