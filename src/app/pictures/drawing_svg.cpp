// SPDX-License-Identifier: GPL-2.0-only
// Drawings as Scalable Vector Graphics.
#include <fmt/format.h>

#include "app/pictures/drawing.hpp"

namespace weft {
namespace {

std::string colour(const Ink& ink) { return fmt::format("#{:02x}{:02x}{:02x}", ink.red, ink.green, ink.blue); }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

}  // namespace

std::string to_svg(const Drawing& drawing) {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      drawing.width, drawing.height);
  for (const auto& line : drawing.lines) {
    std::string points;
    for (const Point& point : line.points) points += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
    text += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-opacity=\"{:.2f}\" stroke-width=\"{:.2f}\" points=\"{}\"/>\n",
        colour(line.ink), line.ink.opacity, line.width, points);
  }
  for (const auto& disc : drawing.discs)
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.2f}\" fill=\"{}\"/>\n", disc.centre.x,
                        disc.centre.y, disc.radius, colour(disc.ink));
  for (const auto& words : drawing.words)
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-family=\"sans-serif\" font-size=\"{:.1f}\" fill=\"{}\">{}</text>\n",
        words.left.x, words.left.y, words.height * 1.4, colour(words.ink), escaped(words.text));
  return text + "</svg>\n";
}

}  // namespace weft
