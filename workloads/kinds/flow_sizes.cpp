// SPDX-License-Identifier: GPL-2.0-only
// Sizes of synthetic flows: one size, or a distribution from which each flow draws.
#include "workloads/kinds/flow_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "workloads/reading/byte_source.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

constexpr double percent = 100;
/// Sizes up to this are exact as double.
constexpr std::int64_t max_bytes = std::int64_t{1} << 52;

/// Throws what `error` makes of a message if the point does not fit behind those before it.
void append(std::vector<FlowSizes::Point>& points, std::int64_t bytes, double percentage,
            const std::function<InputError(const std::string&)>& error) {
  if (bytes < 0 || bytes > max_bytes)
    throw error(fmt::format("found {} B; expected a size from 0 to {} B", bytes, max_bytes));
  if (points.empty() && percentage != 0)
    throw error(
        fmt::format("the first point has {} %; expected 0 %, at the size below which there are no flows", percentage));
  if (!points.empty() && bytes < points.back().bytes)
    throw error(fmt::format("{} B follow {} B; expected sizes in order", bytes, points.back().bytes));
  if (!points.empty() && percentage < points.back().share * percent)
    throw error(
        fmt::format("{} % follow {} %; expected cumulative percentages", percentage, points.back().share * percent));
  points.push_back({bytes, percentage / percent});
}

void require_whole(const std::vector<FlowSizes::Point>& points,
                   const std::function<InputError(const std::string&)>& error) {
  if (points.size() < 2 || points.back().share != 1)
    throw error(fmt::format("found {} points{}; expected two or more, of which the last one has 100 %", points.size(),
                            points.empty() ? "" : fmt::format(", the last one with {} %", points.back().share * 100)));
}

/// Lines of bytes and cumulative percent; `#` begins a comment.
std::vector<FlowSizes::Point> read_file(const std::string& path) {
  ByteSource source(path);
  std::vector<FlowSizes::Point> points;
  int number = 0;
  const auto error = [&](const std::string& message) { return InputError({source.name(), number}, message); };
  while (source.peek() != ByteSource::end) {
    ++number;
    std::string line;
    for (int byte = source.get(); byte != '\n' && byte != ByteSource::end; byte = source.get())
      line += static_cast<char>(byte);
    line.erase(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string first, rest;
    if (!(words >> first)) continue;
    std::getline(words, rest);
    double bytes = 0, share = 0;
    try {
      const Spec pair = Spec::parse(fmt::format("[{}, {}]", first, rest), source.name());
      bytes = pair[0].number(0, static_cast<double>(max_bytes));
      share = pair[1].number(0, percent);
    } catch (const InputError&) {
      throw error(fmt::format("found '{}'; expected bytes and a cumulative percentage, such as '10000 15'", line));
    }
    append(points, std::llround(bytes), share, error);
  }
  require_whole(points, error);
  return points;
}

std::vector<FlowSizes::Point> read_list(const Spec& list) {
  std::vector<FlowSizes::Point> points;
  for (const Spec& pair : list.items()) {
    if (!pair.is_sequence() || pair.size() != 2)
      throw pair.error("a point is [size, percentage of the flows with at most this size], such as [10 kB, 15]");
    append(points, pair[0].bytes().count(), pair[1].number(0, percent),
           [&pair](const std::string& message) { return pair.error(message); });
  }
  require_whole(points, [&list](const std::string& message) { return list.error(message); });
  return points;
}

bool is_one_size(const Spec& value) {
  try {
    static_cast<void>(value.bytes());
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// The integral of ceil(t / m) from 0 to x.
double packets_up_to(double x, double m) {
  const double whole = std::floor(x / m);
  return m * whole * (whole + 1) / 2 + (x - whole * m) * (whole + 1);
}

}  // namespace

FlowSizes::FlowSizes(std::vector<Point> points) : points_(std::move(points)) {
  WEFT_EXPECT(points_.size() >= 2 && points_.front().share == 0 && points_.back().share == 1, "{} points",
              points_.size());
}

FlowSizes FlowSizes::read(const Spec& sizes, const std::string& directory) {
  if (sizes.is_sequence()) return FlowSizes(read_list(sizes));
  if (is_one_size(sizes))
    throw sizes.error(
        fmt::format("'sizes' is a distribution: its name, a file, or a list of points [size, percentage]; "
                    "found '{}', one size: did you mean 'size'?",
                    sizes.text()));
  return FlowSizes(read_file(resolve_file(sizes, directory, "flow_sizes", ".txt")));
}

Bytes FlowSizes::quantile(double u) const {
  if (fixed()) return largest();
  const auto above =
      std::find_if(points_.begin() + 1, points_.end() - 1, [u](const Point& point) { return point.share > u; });
  const Point& high = *above;
  const Point& low = *(above - 1);
  const auto span = static_cast<double>(high.bytes - low.bytes);
  const double part = high.share > low.share ? (u - low.share) / (high.share - low.share) : 1;
  return Bytes(std::max<std::int64_t>(1, low.bytes + static_cast<std::int64_t>(part * span)));
}

double FlowSizes::mean() const {
  double sum = 0;
  for (std::size_t i = 1; i < points_.size(); ++i)
    sum += (points_[i].share - points_[i - 1].share) * static_cast<double>(points_[i].bytes + points_[i - 1].bytes) / 2;
  return sum;
}

double FlowSizes::mean_packets(Bytes mtu) const {
  const auto m = static_cast<double>(mtu.count());
  double sum = 0;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const auto low = static_cast<double>(points_[i - 1].bytes);
    const auto high = static_cast<double>(points_[i].bytes);
    const double packets = high > low ? (packets_up_to(high, m) - packets_up_to(low, m)) / (high - low)
                                      : std::max(1.0, std::ceil(high / m));
    sum += (points_[i].share - points_[i - 1].share) * packets;
  }
  return sum;
}

}  // namespace weft
