// SPDX-License-Identifier: GPL-2.0-only
#include "app/pictures/picture.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "support/basics/error.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

constexpr double left = 70;
constexpr double top = 50;
constexpr double width = 900;

std::string colour(std::uint32_t channel) {
  static constexpr const char* colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                            "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};
  return colours[channel % 8];
}

std::string text_at(double x, double y, const std::string& anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, words);
}

void write_file(const std::string& path, double height, const std::string& title, const std::string& body) {
  std::ofstream file(path);
  file << fmt::format(
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
              "{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
              "fill=\"white\"/>\n",
              left + width + 40, height)
       << text_at(left, 24, "start", title) << body << "</svg>\n";
  file.close();
  if (!file) throw EnvironmentError(fmt::format("cannot write '{}'", path));
}

}  // namespace

void Picture::write(const std::string& path, const std::string& title) const {
  const std::uint32_t lines = ranks_ + aggregators_;
  const double gap = std::clamp(600.0 / lines, 6.0, 28.0);
  Time end = Time::from_ps(1);
  for (const ModelMessage& message : messages_) end = std::max(end, message.end);
  const auto x = [&](Time at) { return left + width * static_cast<double>(at.ps()) / static_cast<double>(end.ps()); };
  const auto y = [&](std::uint32_t rank) { return top + gap * rank; };
  std::string body =
      "<defs><marker id=\"a\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" "
      "orient=\"auto\"><path d=\"M0 0 L6 3 L0 6 z\" fill=\"context-stroke\"/></marker></defs>\n";
  const std::uint32_t every = std::max(1U, static_cast<std::uint32_t>(std::ceil(14 / gap)));
  for (std::uint32_t rank = 0; rank < lines; ++rank) {
    body += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ccc\"/>\n", left, y(rank),
                        left + width, y(rank));
    if (rank % every == 0)
      body += text_at(left - 8, y(rank) + 4, "end",
                      rank < ranks_ ? fmt::format("rank {}", rank) : fmt::format("switch {}", rank - ranks_));
  }
  for (const ModelMessage& message : messages_)
    body += fmt::format(
        "<line x1=\"{:.2f}\" y1=\"{:.1f}\" x2=\"{:.2f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"0.8\" "
        "marker-end=\"url(#a)\"><title>{} to {}, {} B</title></line>\n",
        x(message.start), y(message.sender), x(message.end), y(message.receiver), colour(message.channel),
        message.sender, message.receiver, message.bytes.count());
  const double bottom = y(lines - 1) + 24;
  body += text_at(left, bottom, "start", "0") + text_at(left + width, bottom, "end", to_text(end));
  write_file(path, bottom + 16, title, body);
}

void write_size_plot(const std::string& path, const std::string& title, const std::string& unit,
                     const std::vector<SizeLine>& lines) {
  constexpr double height = 400;
  double low_x = INFINITY, high_x = 0, low_y = INFINITY, high_y = 0;
  for (const SizeLine& line : lines)
    for (const auto& [size, value] : line.points) {
      if (size <= 0 || value <= 0) continue;
      low_x = std::min(low_x, std::floor(std::log2(size)));
      high_x = std::max(high_x, std::ceil(std::log2(size)));
      low_y = std::min(low_y, std::floor(std::log10(value)));
      high_y = std::max(high_y, std::ceil(std::log10(value)));
    }
  if (!(low_x <= high_x)) throw EnvironmentError(fmt::format("'{}' would show nothing: all sizes are 0", path));
  if (high_x == low_x) ++high_x;
  if (high_y == low_y) ++high_y;
  const auto x = [&](double log2) { return left + width * (log2 - low_x) / (high_x - low_x); };
  const auto y = [&](double log10) { return top + height * (high_y - log10) / (high_y - low_y); };
  std::string body;
  for (double log = low_x; log <= high_x; log += std::max(1.0, std::round((high_x - low_x) / 10))) {
    body += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#eee\"/>\n", x(log), top,
                        top + height);
    body += text_at(x(log), top + height + 18, "middle", to_text(Bytes(static_cast<std::int64_t>(std::exp2(log)))));
  }
  for (double log = low_y; log <= high_y; ++log) {
    body += fmt::format("<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#eee\"/>\n", left, y(log),
                        left + width);
    body += text_at(left - 8, y(log) + 4, "end", fmt::format("{:g}", std::pow(10, log)));
  }
  body += text_at(left, top - 8, "start", unit);
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    body += fmt::format("<polyline fill=\"none\" stroke=\"{}\" points=\"", colour(i));
    for (const auto& [size, value] : lines[i].points)
      if (size > 0 && value > 0) body += fmt::format("{:.1f},{:.1f} ", x(std::log2(size)), y(std::log10(value)));
    body += "\"/>\n";
    if (lines.size() < 2) continue;
    const double at = top + 16.0 * (i + 1);
    body += fmt::format("<line x1=\"{0}\" y1=\"{2:.1f}\" x2=\"{1}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n", left + 10,
                        left + 30, at - 4, colour(i));
    body += text_at(left + 36, at, "start", lines[i].name);
  }
  write_file(path, top + height + 40, title, body);
}

}  // namespace weft
