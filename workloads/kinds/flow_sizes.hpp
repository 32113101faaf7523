// SPDX-License-Identifier: GPL-2.0-only
// Sizes of synthetic flows: one size, or a distribution from which each flow draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/documents/spec.hpp"
#include "units/bytes.hpp"

namespace weft {

/// An empirical distribution: points (bytes, share of the flows with at most so many), between which it is linear.
class FlowSizes {
 public:
  struct Point {
    std::int64_t bytes = 0;
    double share = 0;  ///< 0 for the first point, 1 for the last one; never falls
  };

  /// All flows have this size.
  explicit FlowSizes(Bytes size = Bytes()) : points_{{size.count(), 0}, {size.count(), 1}} {}
  /// Requires at least two points in order.
  explicit FlowSizes(std::vector<Point> points);

  /// Reads `sizes`: a list of pairs [size, percent], or the name or the path of a file with lines of bytes and percent
  /// (workloads/flow_sizes). Throws InputError at the pair, or at the line of the file.
  static FlowSizes read(const Spec& sizes, const std::string& directory);

  bool fixed() const { return points_.front().bytes == points_.back().bytes; }
  Bytes largest() const { return Bytes(points_.back().bytes); }
  /// The size below which the share `u` in (0, 1) of the flows is, in whole bytes, at least 1 unless all are empty.
  Bytes quantile(double u) const;
  double mean() const;
  /// Mean number of packets of at most `mtu` bytes; an empty message is one.
  double mean_packets(Bytes mtu) const;

 private:
  std::vector<Point> points_;
};

}  // namespace weft
