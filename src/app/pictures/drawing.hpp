// SPDX-License-Identifier: GPL-2.0-only
// A drawing of lines, discs and words, and its two file formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct Point {
  double x = 0;
  double y = 0;
};

/// Red, green, blue, and how much of it covers what lies below (0 to 1).
struct Ink {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  double opacity = 1;
};

/// Things in the order of drawing. Unit: pixels; y grows downwards.
struct Drawing {
  struct Line {
    std::vector<Point> points;
    double width;
    Ink ink;
  };
  struct Disc {
    Point centre;
    double radius;
    Ink ink;
  };
  struct Words {
    Point left;  ///< lower left corner
    double height;
    std::string text;
    Ink ink;
  };
  int width = 0;
  int height = 0;
  std::vector<Line> lines;  ///< all below the discs
  std::vector<Disc> discs;
  std::vector<Words> words;
};

/// Scalable Vector Graphics 1.1.
std::string to_svg(const Drawing& drawing);
/// Portable Network Graphics (ISO/IEC 15948), on white. Throws EnvironmentError if there is no matplotlib.
std::string to_png(const Drawing& drawing);

}  // namespace weft
