// SPDX-License-Identifier: GPL-2.0-only
// Pictures of NCCL's channels.
#include "app/pictures/channel_graph_picture.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "app/pictures/drawing.hpp"

namespace weft {
namespace {

constexpr double of_server = 180;  // pixels in both directions, with the space around
constexpr double gpu_circle = 58;
constexpr double panel_margin = 24;
constexpr double panel_heading = 26;
constexpr Ink panel_inside_ink = {0, 114, 178, 1};
constexpr Ink panel_network_ink = {213, 94, 0, 0.8};
constexpr Ink panel_gpu_ink = {60, 60, 60, 1};
constexpr Ink panel_nic_ink = {150, 150, 150, 1};
constexpr Ink panel_word_ink = {20, 20, 20, 1};

class ChannelPainter {
 public:
  explicit ChannelPainter(const ChannelGraph& graph)
      : graph_(graph), servers_(std::min(3U, graph.servers())), several_(graph.servers() > 1) {
    for (std::uint32_t server = 0; server < servers_; ++server) {
      const ServerChannels& kind = graph.kind_of(server);
      for (const auto* all : {&kind.rings, &kind.trees})
        for (const auto& one : *all) nics_ = std::max({nics_, one.nic_in + 1, one.nic_out + 1});
    }
  }

  Drawing paint() {
    const double panel = servers_ * of_server + panel_margin;
    const auto across = std::max(1U, std::min(graph_.found(), static_cast<std::uint32_t>(1440 / panel)));
    const std::uint32_t rows = (graph_.found() + across - 1) / across;
    const double high = of_server + panel_heading + (several_ ? 30 : 0);
    for (const bool rings : {true, false}) {
      for (std::uint32_t channel = 0; channel < graph_.found(); ++channel) {
        const double row = channel / across + (rings ? 0 : rows);
        paint_channel(rings, channel, {panel_margin + channel % across * panel, panel_margin + row * high});
      }
    }
    drawing_.width = static_cast<int>(panel_margin + across * panel);
    drawing_.height = static_cast<int>(2 * panel_margin + 2 * rows * high);
    return std::move(drawing_);
  }

 private:
  Point gpu_at(const Point& corner, std::uint32_t server, std::uint32_t place) const {
    const auto count = static_cast<double>(graph_.kind_of(server).accelerators.size());
    const double angle = (2 * place / count - 0.5) * std::numbers::pi;
    return {corner.x + (server + 0.5) * of_server + gpu_circle * std::cos(angle),
            corner.y + panel_heading + 0.5 * of_server + gpu_circle * std::sin(angle)};
  }
  Point nic_at(const Point& corner, std::uint32_t server, std::uint32_t nic) const {
    const double step = (of_server - 20) / nics_;
    return {corner.x + server * of_server + 10 + (nic + 0.5) * step, corner.y + panel_heading + of_server + 8};
  }

  void line(std::vector<Point> points, double width, Ink ink) {
    drawing_.lines.push_back({std::move(points), width, ink});
  }
  void words(const Point& left, double height, std::string text) {
    drawing_.words.push_back({left, height, std::move(text), panel_word_ink});
  }

  void paint_channel(bool rings, std::uint32_t channel, const Point& corner) {
    words({corner.x + 10, corner.y + 14}, 11, fmt::format("{} {}", rings ? "ring" : "tree", channel));
    for (std::uint32_t server = 0; server < servers_; ++server) {
      const auto& one = rings ? graph_.ring_in(server, channel) : graph_.tree_in(server, channel);
      paint_server(corner, server, one, rings);
      if (!several_ || !rings || server + 1 >= servers_) continue;
      const Point from = nic_at(corner, server, one.nic_out);
      const Point to = nic_at(corner, server + 1, graph_.ring_in(server + 1, channel).nic_in);
      line({from, {from.x, from.y + 12}, {to.x, to.y + 12}, to}, 1.6, panel_network_ink);
    }
  }

  void paint_server(const Point& corner, std::uint32_t server, const ServerChannels::Channel& one, bool ring) {
    std::vector<Point> chain;
    for (const std::uint32_t place : one.places) chain.push_back(gpu_at(corner, server, place));
    if (ring && !several_) chain.push_back(chain.front());
    line(chain, 2.2, panel_inside_ink);
    if (several_) {
      line({nic_at(corner, server, one.nic_in), chain.front()}, 1.6, panel_network_ink);
      line({nic_at(corner, server, one.nic_out), ring ? chain.back() : chain.front()}, 1.6, panel_network_ink);
      for (std::uint32_t nic = 0; nic < nics_; ++nic) {
        drawing_.discs.push_back({nic_at(corner, server, nic), 4, panel_nic_ink});
        words({nic_at(corner, server, nic).x - 3, corner.y + panel_heading + of_server + 26}, 7,
              fmt::format("{}", nic));
      }
    }
    const ServerChannels& kind = graph_.kind_of(server);
    for (std::uint32_t place = 0; place < kind.accelerators.size(); ++place) {
      const Point at = gpu_at(corner, server, place);
      const bool first = place == one.places.front();
      drawing_.discs.push_back({at, first ? 8.0 : 5.0, first ? panel_inside_ink : panel_gpu_ink});
      const Point centre = {corner.x + (server + 0.5) * of_server, corner.y + panel_heading + 0.5 * of_server};
      const Point out = {(at.x - centre.x) / gpu_circle, (at.y - centre.y) / gpu_circle};
      words({at.x + 15 * out.x - 4, at.y + 15 * out.y + 4}, 8, fmt::format("{}", kind.accelerators[place]));
    }
    words({corner.x + (server + 0.5) * of_server - 24, corner.y + panel_heading + 0.5 * of_server + 4}, 8,
          fmt::format("server {}", server));
  }

  const ChannelGraph& graph_;
  std::uint32_t servers_;
  bool several_;
  std::uint32_t nics_ = 1;
  Drawing drawing_;
};

}  // namespace

std::string draw_channel_graph(const ChannelGraph& graph, const std::string& path) {
  const Drawing drawing = ChannelPainter(graph).paint();
  return path.ends_with(".png") ? to_png(drawing) : to_svg(drawing);
}

}  // namespace weft
