// SPDX-License-Identifier: GPL-2.0-only
// What the rows of `weft perf` say together: latency and bandwidth, where algorithms change places, and how far they
// are from what was measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/perf/perf_measurements.hpp"
#include "app/perf/perf_sweep.hpp"

namespace weft {

/// time = latency + bytes / bandwidth, by least squares of the relative errors, so that each size counts the same.
struct AlphaBetaLine {
  bool known = false;           ///< there are two sizes or more, and longer ones take longer
  double latency = 0;           ///< us
  double bandwidth = 0;         ///< GB/s, of the algorithm
  double bus_bandwidth = 0;     ///< GB/s
  double residual = 0;          ///< root mean square of (line - time) / time
  double largest = 0;           ///< of these, with its sign
  std::int64_t largest_at = 0;  ///< bytes
};
/// Of the algorithm at `place` in sweep.algorithms.
AlphaBetaLine alpha_beta_line(const PerfSweep& sweep, std::size_t place);

/// The place of the fastest algorithm of a size; of equal ones the first.
std::size_t fastest(const std::vector<PerfRow>& rows);

/// From this size on another algorithm is the fastest.
struct Crossover {
  std::size_t from = 0;  ///< place in sweep.algorithms
  std::size_t to = 0;
  std::int64_t below = 0;  ///< bytes: the last size of the one
  std::int64_t above = 0;  ///< the first of the other
  double bytes = 0;        ///< where straight lines between these two meet
};
std::vector<Crossover> crossovers(const PerfSweep& sweep);

/// A measured row beside the simulated one.
struct ComparedRow {
  MeasuredRow measured;
  double measured_us = 0;
  PerfRow simulated;
  double error = 0;  ///< (simulated - measured) / measured
  /// GB/s, as nccl-tests has it.
  double measured_bus_bandwidth() const {
    return simulated.us > 0 ? simulated.bus_bandwidth * simulated.us / measured_us : 0;
  }
};

/// Pairs of rows, and how many of them stand in the same order in both.
struct SameOrder {
  std::uint64_t pairs = 0;
  std::uint64_t same = 0;
  void add(double measured, double simulated) {
    ++pairs;
    if ((measured < 0) == (simulated < 0) && (measured > 0) == (simulated > 0)) ++same;
  }
};

struct Comparison {
  std::string file;
  std::string algorithm;  ///< as the user named it
  std::vector<ComparedRow> rows;
  double mean_absolute = 0;  ///< of the relative errors
  double mean = 0;           ///< with their signs
  std::size_t largest = 0;   ///< row with the largest absolute error
  SameOrder order;           ///< sizes by bandwidth
};
/// `place`: in sweep.algorithms. The sweep has all sizes of `measured`.
Comparison compare(const Measurements& measured, const PerfSweep& sweep, std::size_t place);

/// Algorithms by time at each size that several logs have, where each log is of another algorithm.
SameOrder order_of_algorithms(const std::vector<Comparison>& comparisons);

}  // namespace weft
