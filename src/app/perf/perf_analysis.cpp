// SPDX-License-Identifier: GPL-2.0-only
#include "app/perf/perf_analysis.hpp"

#include <algorithm>
#include <cmath>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

const PerfRow& simulated_row(const PerfSweep& sweep, const MeasuredRow& measured, std::size_t place) {
  const auto found = std::find_if(sweep.sizes.begin(), sweep.sizes.end(), [&](const std::vector<PerfRow>& rows) {
    return rows[place].wanted == measured.bytes && rows[place].type == measured.type;
  });
  WEFT_EXPECT(found != sweep.sizes.end(), "{} B of {} were not simulated", measured.bytes, measured.type);
  return (*found)[place];
}

void sum_up_errors(Comparison& comparison) {
  const auto count = static_cast<double>(comparison.rows.size());
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    const double error = comparison.rows[i].error;
    comparison.mean_absolute += std::abs(error) / count;
    comparison.mean += error / count;
    if (std::abs(error) > std::abs(comparison.rows[comparison.largest].error)) comparison.largest = i;
  }
}

}  // namespace

AlphaBetaLine alpha_beta_line(const PerfSweep& sweep, std::size_t place) {
  // With weights 1 / time^2: sums of 1, x, x^2, y, xy of the normal equations.
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, factor = 0;
  std::vector<const PerfRow*> rows;
  for (const std::vector<PerfRow>& size : sweep.sizes) {
    const PerfRow& row = size[place];
    if (row.us <= 0) continue;
    rows.push_back(&row);
    const double weight = 1 / (row.us * row.us), x = static_cast<double>(row.bytes);
    w += weight, wx += weight * x, wxx += weight * x * x, wy += weight * row.us, wxy += weight * x * row.us;
    if (row.algorithm_bandwidth > 0) factor = row.bus_bandwidth / row.algorithm_bandwidth;
  }
  AlphaBetaLine line;
  const bool several = std::any_of(rows.begin(), rows.end(), [&](auto* row) { return row->bytes != rows[0]->bytes; });
  const double us_per_byte = several ? (w * wxy - wx * wy) / (w * wxx - wx * wx) : 0;
  if (us_per_byte <= 0) return line;
  line.known = true;
  line.latency = (wy - us_per_byte * wx) / w;
  line.bandwidth = 1e-3 / us_per_byte;
  line.bus_bandwidth = line.bandwidth * factor;
  for (const PerfRow* row : rows) {
    const double error = (line.latency + us_per_byte * static_cast<double>(row->bytes)) / row->us - 1;
    line.residual += error * error / static_cast<double>(rows.size());
    if (std::abs(error) > std::abs(line.largest)) line.largest = error, line.largest_at = row->bytes;
  }
  line.residual = std::sqrt(line.residual);
  return line;
}

std::size_t fastest(const std::vector<PerfRow>& rows) {
  const auto best =
      std::min_element(rows.begin(), rows.end(), [](const PerfRow& a, const PerfRow& b) { return a.us < b.us; });
  return static_cast<std::size_t>(best - rows.begin());
}

std::vector<Crossover> crossovers(const PerfSweep& sweep) {
  std::vector<Crossover> result;
  for (std::size_t i = 1; i < sweep.sizes.size(); ++i) {
    const std::vector<PerfRow>&below = sweep.sizes[i - 1], &above = sweep.sizes[i];
    const std::size_t from = fastest(below), to = fastest(above);
    if (from == to) continue;
    const double before = below[to].us - below[from].us, after = above[from].us - above[to].us;
    const double share = before + after > 0 ? before / (before + after) : 1;
    const auto low = static_cast<double>(below[0].bytes), high = static_cast<double>(above[0].bytes);
    result.push_back({from, to, below[0].bytes, above[0].bytes, low + share * (high - low)});
  }
  return result;
}

Comparison compare(const Measurements& measured, const PerfSweep& sweep, std::size_t place) {
  Comparison comparison;
  comparison.file = measured.file;
  comparison.algorithm = sweep.algorithms[place];
  for (const MeasuredRow& row : measured.rows) {
    const PerfRow& simulated = simulated_row(sweep, row, place);
    comparison.rows.push_back({row, row.us, simulated, (simulated.us - row.us) / row.us});
  }
  sum_up_errors(comparison);
  const auto bandwidth = [](std::int64_t bytes, double us) { return static_cast<double>(bytes) / us; };
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const ComparedRow &a = comparison.rows[i], &b = comparison.rows[j];
      if (a.measured.bytes == b.measured.bytes) continue;
      comparison.order.add(bandwidth(a.measured.bytes, a.measured_us) - bandwidth(b.measured.bytes, b.measured_us),
                           bandwidth(a.simulated.bytes, a.simulated.us) - bandwidth(b.simulated.bytes, b.simulated.us));
    }
  return comparison;
}

SameOrder order_of_algorithms(const std::vector<Comparison>& comparisons) {
  SameOrder order;
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (comparisons[i].file == comparisons[j].file || comparisons[i].algorithm == comparisons[j].algorithm) continue;
      for (const ComparedRow& a : comparisons[i].rows)
        for (const ComparedRow& b : comparisons[j].rows)
          if (a.measured.bytes == b.measured.bytes && a.measured.type == b.measured.type)
            order.add(a.measured_us - b.measured_us, a.simulated.us - b.simulated.us);
    }
  return order;
}

}  // namespace weft
