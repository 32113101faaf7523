// SPDX-License-Identifier: GPL-2.0-only
// Drawings as Portable Network Graphics.
#include <algorithm>
#include <cmath>

#include <zlib.h>

#include "app/pictures/drawing.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

/// Pixels on white. A pixel is covered by how far its centre lies inside a shape, which smooths edges.
class Raster {
 public:
  Raster(int width, int height)
      : width_(width),
        height_(height),
        pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, 255) {}

  void disc(const Point& centre, double radius, const Ink& ink) { segment(centre, centre, radius, ink); }

  /// A line with round ends.
  void segment(const Point& a, const Point& b, double radius, const Ink& ink) {
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double length = dx * dx + dy * dy;
    const int top = std::max(0, static_cast<int>(std::floor(std::min(a.y, b.y) - radius - 1)));
    const int bottom = std::min(height_ - 1, static_cast<int>(std::ceil(std::max(a.y, b.y) + radius + 1)));
    for (int y = top; y <= bottom; ++y) {
      const auto [left, right] = columns(a, b, radius, y);
      for (int x = left; x <= right; ++x) {
        const double px = x + 0.5 - a.x;
        const double py = y + 0.5 - a.y;
        const double along = length > 0 ? std::clamp((px * dx + py * dy) / length, 0.0, 1.0) : 0;
        const double distance = std::hypot(px - along * dx, py - along * dy);
        blend(x, y, ink, std::clamp(radius + 0.5 - distance, 0.0, 1.0));
      }
    }
  }

  std::string png() const;

 private:
  /// The pixels of a row that a line may touch: around where it crosses that row.
  std::pair<int, int> columns(const Point& a, const Point& b, double radius, int y) const {
    double left = std::min(a.x, b.x);
    double right = std::max(a.x, b.x);
    const double dy = b.y - a.y;
    if (std::abs(dy) > 1e-9) {
      const double slope = (b.x - a.x) / dy;
      const double one = a.x + (y - radius - 1 - a.y) * slope;
      const double other = a.x + (y + 1 + radius + 1 - a.y) * slope;
      left = std::max(left, std::min(one, other));
      right = std::min(right, std::max(one, other));
    }
    return {std::max(0, static_cast<int>(std::floor(left - radius - 1))),
            std::min(width_ - 1, static_cast<int>(std::ceil(right + radius + 1)))};
  }

  void blend(int x, int y, const Ink& ink, double cover) {
    if (cover <= 0) return;
    const double share = cover * ink.opacity;
    std::uint8_t* const pixel =
        pixels_.data() +
        (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)) * 3;
    const std::uint8_t colour[] = {ink.red, ink.green, ink.blue};
    for (int i = 0; i < 3; ++i)
      pixel[i] = static_cast<std::uint8_t>(std::lround(pixel[i] + share * (colour[i] - pixel[i])));
  }

  int width_;
  int height_;
  std::vector<std::uint8_t> pixels_;
};

std::string big_endian(std::uint32_t value) {
  std::string result;
  for (int shift = 24; shift >= 0; shift -= 8) result += static_cast<char>(value >> shift & 255);
  return result;
}

/// Length, type, data, and the CRC of type and data.
std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc =
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(crc);
}

std::string Raster::png() const {
  std::string rows;
  const std::size_t stride = static_cast<std::size_t>(width_) * 3;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height_); ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels_.data() + y * stride), stride);
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
               rows.size()) != Z_OK)
    throw EnvironmentError("zlib could not compress a picture");
  packed.resize(size);
  const std::string eight_bit_rgb("\x08\x02\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big_endian(static_cast<std::uint32_t>(width_)) +
                           big_endian(static_cast<std::uint32_t>(height_)) + eight_bit_rgb) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

}  // namespace

std::string to_png(const Drawing& drawing) {
  Raster raster(drawing.width, drawing.height);
  for (const auto& line : drawing.lines)
    for (std::size_t i = 1; i < line.points.size(); ++i)
      raster.segment(line.points[i - 1], line.points[i], line.width / 2, line.ink);
  for (const auto& disc : drawing.discs) raster.disc(disc.centre, disc.radius, disc.ink);
  for (const auto& words : drawing.words) {
    const double unit = words.height / 6;
    double x = words.left.x;
    for (const char character : words.text) {
      for (const auto& stroke : strokes_of(character))
        for (std::size_t i = 1; i < stroke.size(); ++i)
          raster.segment({x + stroke[i - 1].x * unit, words.left.y + (stroke[i - 1].y - 6) * unit},
                         {x + stroke[i].x * unit, words.left.y + (stroke[i].y - 6) * unit}, unit * 0.4, words.ink);
      x += 5.6 * unit;
    }
  }
  return raster.png();
}

}  // namespace weft
