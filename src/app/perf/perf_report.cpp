// SPDX-License-Identifier: GPL-2.0-only
#include "app/perf/perf_report.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace weft {
namespace {

bool sums_up(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::reduce_scatter;
}

std::string time_text(double us) { return us < 1e4 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us); }

std::string size_columns(const PerfOptions& options, const PerfRow& row) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.count, row.type,
                     sums_up(options.kind) ? "sum" : "none",
                     has_root(options.kind) ? static_cast<int>(options.root) : -1);
}

std::string choice_of(const PerfRow& row) { return fmt::format("{} {} {}", row.algorithm, row.protocol, row.channels); }

/// Columns of --range, or nothing.
std::string range_columns(const PerfReport& report, const std::string& min, const std::string& max) {
  return report.options->range ? fmt::format(" {:>8} {:>8}", min, max) : "";
}
std::string range_columns(const PerfReport& report, const PerfRow& row) {
  return range_columns(report, time_text(row.min_us), time_text(row.max_us));
}

std::string head_of_several(const PerfReport& report) {
  const std::string blank = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "", "", "", "", "");
  std::string names = blank;
  std::string heads = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  std::string units = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  for (const std::string& name : report.sweep.algorithms) {
    const std::size_t width = std::max<std::size_t>(20, name.size() + 2);
    names += fmt::format("{:>{}}", name, width) + range_columns(report, "", "");
    heads += fmt::format("{:>{}} {:>8}", "time", width - 9, "busbw") + range_columns(report, "min", "max");
    units += fmt::format("{:>{}} {:>8}", "(us)", width - 9, "(GB/s)") + range_columns(report, "(us)", "(us)");
  }
  return names + "\n" + heads + "  algorithm, protocol, channels of the best (*)\n" + units + "\n";
}

std::string alpha_beta_text(const AlphaBetaLine& line) {
  if (!line.known) return "none: expected two sizes of different times";
  return fmt::format(
      "latency {:.3f} us, bandwidth {:.3f} GB/s, of the bus {:.3f} GB/s, residual {:.2f} % (root mean square; most "
      "{:+.2f} % at {} B)",
      line.latency, line.bandwidth, line.bus_bandwidth, 100 * line.residual, 100 * line.largest, line.largest_at);
}

std::string mean_bandwidths(const PerfSweep& sweep) {
  std::string text = "# Avg bus bandwidth    :";
  for (std::size_t a = 0; a < sweep.algorithms.size(); ++a) {
    double sum = 0;
    for (const std::vector<PerfRow>& rows : sweep.sizes) sum += rows[a].bus_bandwidth;
    text += fmt::format("{} {}{:.4f}", a > 0 ? "," : "", sweep.algorithms.size() > 1 ? sweep.algorithms[a] + " " : "",
                        sum / static_cast<double>(sweep.sizes.size()));
  }
  return text + "\n";
}

std::string places_text(const PerfSweep& sweep) {
  if (sweep.algorithms.size() < 2 || sweep.sizes.empty()) return "";
  std::string text = fmt::format("# Fastest              : {} from {} B on\n",
                                 sweep.algorithms[fastest(sweep.sizes.front())], sweep.sizes.front()[0].bytes);
  for (const Crossover& one : crossovers(sweep))
    text += fmt::format("# Crossover            : {} from about {:.0f} B on (between {} B and {} B)\n",
                        sweep.algorithms[one.to], one.bytes, one.below, one.above);
  return text;
}

std::vector<std::string> names_with_kernel(const PerfSweep& sweep, bool with) {
  std::vector<std::string> names;
  for (std::size_t a = 0; a < sweep.algorithms.size() && !sweep.sizes.empty(); ++a)
    if (sweep.sizes.front()[a].with_kernel == with) names.push_back(sweep.algorithms[a]);
  return names;
}

/// Where only some of the algorithms have an accelerator's kernels in their times, none is known to be the fastest.
std::string not_alike_text(const PerfSweep& sweep) {
  const auto with = names_with_kernel(sweep, true);
  const auto without = names_with_kernel(sweep, false);
  if (with.empty() || without.empty()) return "";
  return fmt::format(
      "# Not alike            : times of {} have the accelerators' kernels in them, those of {} the network alone; "
      "--set workload.collective_kernel=NAME (a100, h100, h200, b200, mi300x or none) makes them alike\n",
      fmt::join(with, ", "), fmt::join(without, ", "));
}

std::string sharp_text(const PerfSweep& sweep) {
  for (const std::vector<PerfRow>& rows : sweep.sizes)
    for (const PerfRow& row : rows)
      if (row.without_sharp)
        return "# NVLink SHARP         : not used, as the machine's NVSwitches do not reduce; with nvlink_sharp: true "
               "in "
               "its server NCCL uses it where it is faster\n";
  return "";
}

/// Measured times between the two of --range.
std::size_t within_range(const Comparison& comparison) {
  return static_cast<std::size_t>(
      std::count_if(comparison.rows.begin(), comparison.rows.end(), [](const ComparedRow& row) {
        return row.simulated.min_us <= row.measured_us && row.measured_us <= row.simulated.max_us;
      }));
}

std::string comparison_text(const PerfReport& report, const Comparison& comparison) {
  std::string text = fmt::format("#\n# {} beside {}, simulated\n", comparison.file, comparison.algorithm);
  text += fmt::format("# {:>10}  {:>8}  {:>10} {:>10} {:>9}  {:>10} {:>10}  {}\n", "size", "type", "measured",
                      "simulated", "error", "measured", "simulated", "algorithm, protocol, channels");
  text += fmt::format("# {:>10}  {:>8}  {:>10} {:>10} {:>9}  {:>10} {:>10}\n", "(B)", "", "(us)", "(us)", "(%)",
                      "(GB/s bus)", "(GB/s bus)");
  for (const ComparedRow& row : comparison.rows)
    text += fmt::format("{:>12}  {:>8}  {:>10} {:>10} {:>+9.2f}  {:>10.2f} {:>10.2f}  {}\n", row.measured.bytes,
                        row.measured.type, time_text(row.measured_us), time_text(row.simulated.us), 100 * row.error,
                        row.measured_bus_bandwidth(), row.simulated.bus_bandwidth, choice_of(row.simulated));
  const ComparedRow& largest = comparison.rows[comparison.largest];
  text += fmt::format("# Mean absolute error  : {:.2f} % of {} rows\n", 100 * comparison.mean_absolute,
                      comparison.rows.size());
  text += fmt::format("# Mean error           : {:+.2f} % (above 0: simulated too slow)\n", 100 * comparison.mean);
  text += fmt::format("# Largest error        : {:+.2f} % at {} B\n", 100 * largest.error, largest.measured.bytes);
  if (report.options->range)
    text += fmt::format("# Within the range     : {} of {} measured times lie between the least and the most\n",
                        within_range(comparison), comparison.rows.size());
  if (comparison.order.pairs > 0)
    text += fmt::format("# Order of sizes       : {} of {} pairs have the bandwidths in the order that was measured\n",
                        comparison.order.same, comparison.order.pairs);
  return text;
}

std::string comparisons_text(const PerfReport& report) {
  std::string text;
  for (const Comparison& comparison : report.comparisons) text += comparison_text(report, comparison);
  if (const SameOrder order = order_of_algorithms(report.comparisons); order.pairs > 0)
    text += fmt::format("#\n# Order of algorithms  : {} of {} pairs at the same size are as measured\n", order.same,
                        order.pairs);
  return text;
}

using PerfJson = nlohmann::ordered_json;

PerfJson row_json(const PerfReport& report, const PerfRow& row, bool best) {
  PerfJson json = {{"size_bytes", row.bytes},
                   {"count", row.count},
                   {"type", row.type},
                   {"asked_for", row.asked_for},
                   {"time_us", row.us},
                   {"algbw_GBps", row.algorithm_bandwidth},
                   {"busbw_GBps", row.bus_bandwidth},
                   {"algorithm", row.algorithm},
                   {"protocol", row.protocol},
                   {"channels", row.channels},
                   {"with_kernel", row.with_kernel},
                   {"best", best}};
  if (report.options->range) json["min_us"] = row.min_us, json["max_us"] = row.max_us;
  return json;
}

PerfJson line_json(const std::string& name, const AlphaBetaLine& line) {
  PerfJson json = {{"algorithm", name}};
  if (!line.known) return json;
  json["latency_us"] = line.latency;
  json["bandwidth_GBps"] = line.bandwidth;
  json["bus_bandwidth_GBps"] = line.bus_bandwidth;
  json["residual_percent"] = 100 * line.residual;
  json["largest_residual_percent"] = 100 * line.largest;
  json["largest_residual_at_bytes"] = line.largest_at;
  return json;
}

PerfJson order_json(const SameOrder& order) { return {{"pairs", order.pairs}, {"same", order.same}}; }

PerfJson comparison_json(const PerfReport& report, const Comparison& comparison) {
  PerfJson json = {{"file", comparison.file}, {"algorithm", comparison.algorithm}, {"rows", PerfJson::array()}};
  const auto or_null = [](const std::optional<double>& time) { return time ? PerfJson(*time) : PerfJson(); };
  for (const ComparedRow& row : comparison.rows)
    json["rows"].push_back({{"line", row.measured.place.line},
                            {"size_bytes", row.measured.bytes},
                            {"type", row.measured.type},
                            {"out_of_place_us", or_null(row.measured.out_of_place)},
                            {"in_place_us", or_null(row.measured.in_place)},
                            {"measured_us", row.measured_us},
                            {"simulated_us", row.simulated.us},
                            {"error_percent", 100 * row.error}});
  json["mean_absolute_error_percent"] = 100 * comparison.mean_absolute;
  json["mean_error_percent"] = 100 * comparison.mean;
  json["largest_error_percent"] = 100 * comparison.rows[comparison.largest].error;
  json["largest_error_at_bytes"] = comparison.rows[comparison.largest].measured.bytes;
  if (report.options->range) json["within_range"] = within_range(comparison);
  json["order_of_sizes"] = order_json(comparison.order);
  return json;
}

}  // namespace

std::string perf_head(const PerfReport& report) {
  const PerfOptions& options = *report.options;
  std::string text = fmt::format(
      "# weft perf {} on {}, algorithm{} {}, {} call{} per size, simulated, fidelity {}\n#\n", to_text(options.kind),
      options.experiment, report.sweep.algorithms.size() == 1 ? "" : "s", fmt::join(report.sweep.algorithms, ", "),
      options.iterations, options.iterations == 1 ? "" : "s", report.fidelity);
  if (report.sweep.algorithms.size() > 1) return text + head_of_several(report);
  return text +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>8} {:>8} {:>8}{}  {}\n", "size", "count", "type",
                     "redop", "root", "time", "algbw", "busbw", range_columns(report, "min", "max"),
                     "algorithm, protocol, channels") +
         fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>8} {:>8} {:>8}{}\n", "(B)", "(elements)", "", "", "",
                     "(us)", "(GB/s)", "(GB/s)", range_columns(report, "(us)", "(us)"));
}

std::string perf_line(const PerfReport& report, const std::vector<PerfRow>& rows) {
  std::string text = size_columns(*report.options, rows.front());
  const std::size_t best = fastest(rows);
  if (rows.size() == 1)
    return text + fmt::format("  {:>8} {:>8.2f} {:>8.2f}{}  {}\n", time_text(rows[0].us), rows[0].algorithm_bandwidth,
                              rows[0].bus_bandwidth, range_columns(report, rows[0]), choice_of(rows[0]));
  for (std::size_t a = 0; a < rows.size(); ++a) {
    const std::size_t width = std::max<std::size_t>(20, report.sweep.algorithms[a].size() + 2);
    text += fmt::format("{:>{}}{}{:>8.2f}{}", time_text(rows[a].us), width - 9, a == best ? '*' : ' ',
                        rows[a].bus_bandwidth, range_columns(report, rows[a]));
  }
  return text + "  " + choice_of(rows[best]) + "\n";
}

std::string perf_foot(const PerfReport& report) {
  std::string text = mean_bandwidths(report.sweep);
  if (report.sweep.algorithms.size() > 1 || report.sweep.sizes.size() > 1)
    for (std::size_t a = 0; a < report.sweep.algorithms.size(); ++a)
      text += fmt::format("# Alpha-beta line      : {}: {}\n", report.sweep.algorithms[a],
                          alpha_beta_text(alpha_beta_line(report.sweep, a)));
  return text + places_text(report.sweep) + sharp_text(report.sweep) + not_alike_text(report.sweep) +
         comparisons_text(report);
}

std::string perf_json(const PerfReport& report) {
  PerfJson json = {{"collective", to_text(report.options->kind)},
                   {"experiment", report.options->experiment},
                   {"fidelity", report.fidelity},
                   {"iterations", report.options->iterations},
                   {"rows", PerfJson::array()},
                   {"alpha_beta", PerfJson::array()},
                   {"crossovers", PerfJson::array()},
                   {"comparisons", PerfJson::array()}};
  const PerfSweep& sweep = report.sweep;
  for (const std::vector<PerfRow>& rows : sweep.sizes)
    for (std::size_t a = 0; a < rows.size(); ++a) json["rows"].push_back(row_json(report, rows[a], a == fastest(rows)));
  for (std::size_t a = 0; a < sweep.algorithms.size(); ++a)
    json["alpha_beta"].push_back(line_json(sweep.algorithms[a], alpha_beta_line(sweep, a)));
  for (const Crossover& one : crossovers(sweep))
    json["crossovers"].push_back({{"from", sweep.algorithms[one.from]},
                                  {"to", sweep.algorithms[one.to]},
                                  {"below_bytes", one.below},
                                  {"above_bytes", one.above},
                                  {"bytes", one.bytes}});
  for (const Comparison& one : report.comparisons) json["comparisons"].push_back(comparison_json(report, one));
  if (const SameOrder order = order_of_algorithms(report.comparisons); order.pairs > 0)
    json["order_of_algorithms"] = order_json(order);
  return json.dump(2) + "\n";
}

// A row for each simulated call; beside it the measured times, a column for each log.
void write_perf_csv(const PerfReport& report) {
  std::ofstream file(report.options->csv);
  file << "size_bytes,count,type,time_us,algbw_GBps,busbw_GBps,algorithm,protocol,channels,asked_for,best,log,"
          "measured_us,error_percent"
       << (report.options->range ? ",min_us,max_us" : "") << '\n';
  for (const std::vector<PerfRow>& rows : report.sweep.sizes)
    for (std::size_t a = 0; a < rows.size(); ++a) {
      const PerfRow& row = rows[a];
      const std::string start = fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{},{},{},{},{}", row.bytes, row.count,
                                            row.type, row.us, row.algorithm_bandwidth, row.bus_bandwidth, row.algorithm,
                                            row.protocol, row.channels, row.asked_for, a == fastest(rows) ? 1 : 0);
      const std::string range = report.options->range ? fmt::format(",{:.6f},{:.6f}", row.min_us, row.max_us) : "";
      bool measured = false;
      for (const Comparison& one : report.comparisons)
        for (const ComparedRow& compared : one.rows) {
          if (one.algorithm != row.asked_for || compared.measured.bytes != row.wanted ||
              compared.measured.type != row.type)
            continue;
          file << fmt::format("{},{},{:.6f},{:.6f}{}\n", start, one.file, compared.measured_us, 100 * compared.error,
                              range);
          measured = true;
        }
      if (!measured) file << start << ",,," << range << '\n';
    }
  file.close();
  if (!file) throw EnvironmentError(fmt::format("cannot write '{}'", report.options->csv));
}

}  // namespace weft
