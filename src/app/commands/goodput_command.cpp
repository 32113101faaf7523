// SPDX-License-Identifier: GPL-2.0-only
// `weft goodput`: the share of a job's time that failures and checkpoints leave.
#include <charconv>
#include <cmath>
#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/analysis/failure_model.hpp"
#include "app/command_line/option_parsing.hpp"
#include "app/command_line/options.hpp"
#include "app/commands/commands.hpp"
#include "app/processes/prepare.hpp"

namespace weft {
namespace {

struct GoodputOptions {
  FailureModel model;
  std::optional<double> interval;
  std::uint64_t segments = 0;  // to be simulated
  std::uint64_t seed = 1;
  bool json = false;
};

/// "90 s", "3h", "400 d": seconds. Years of mean times between failures are beyond simulated time, which counts ps.
double seconds_of(const std::string& option, const std::string& text) {
  const std::pair<const char*, double> units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  if (error == std::errc() && std::isfinite(value) && value >= 0)
    for (const auto& [name, factor] : units) {
      if (unit != name) continue;
      // The formulas keep their digits within this range.
      const double seconds = value * factor;
      if (seconds != 0 && (seconds < 1e-9 || seconds > 1e15))
        refuse(fmt::format("--{}: found '{}'; expected 0, or a time from 1e-6ms to 1e10d", option, text));
      return seconds;
    }
  refuse(fmt::format("--{}: found '{}'; expected a time such as 90s, 30min, 4h or 400d (units: ms, s, min, h, d)",
                     option, text));
}

/// Refuses runs that would hardly end: each interval and each failure takes some 20 ns.
void require_drawable(const GoodputOptions& options) {
  constexpr double most = 1e9;
  const FailureModel& model = options.model;
  const double interval = options.interval.value_or(best_interval(model));
  const double failures = std::expm1((interval + model.checkpoint) / model.mtbf) * std::exp(model.restart / model.mtbf);
  if (static_cast<double>(options.segments) * (1 + failures) <= most) return;
  refuse(fmt::format(
      "--simulate: found {} intervals, with some {:.3g} failures each; expected at most {:.0g} of both together",
      options.segments, failures, most));
}

GoodputOptions parse(const std::vector<std::string>& words) {
  std::vector<std::string> positional;
  const auto map = parse_options(words, goodput_options(), positional);
  if (!positional.empty()) refuse(fmt::format("`weft goodput` takes no '{}'", positional.front()));
  const auto time = [&map](const std::string& name) {
    return map.count(name) == 0 ? std::nullopt : std::optional(seconds_of(name, map[name].as<std::string>()));
  };
  GoodputOptions result;
  if (time("mtbf").has_value() == time("mtbf-each").has_value())
    refuse("`weft goodput` needs --mtbf of the job, or --mtbf-each of a machine and --machines");
  const bool each = time("mtbf-each").has_value();
  if (each != (map.count("machines") != 0)) refuse("--machines belongs to --mtbf-each: the failures of all add up");
  const std::int64_t machines = each ? map["machines"].as<std::int64_t>() : 1;
  if (machines < 1) refuse(fmt::format("--machines: found {}; expected at least 1", machines));
  result.model.mtbf = (each ? *time("mtbf-each") : *time("mtbf")) / static_cast<double>(machines);
  if (!time("checkpoint")) refuse("`weft goodput` needs --checkpoint, the time that one takes");
  result.model.checkpoint = *time("checkpoint");
  result.model.restart = time("restart").value_or(0) + time("detection").value_or(0);
  result.interval = time("interval");
  if (result.model.mtbf <= 0 || result.model.checkpoint <= 0 || (result.interval && *result.interval <= 0))
    refuse("--mtbf, --checkpoint and --interval are above 0");
  if ((result.model.checkpoint + result.model.restart) / result.model.mtbf > 100)
    refuse("the job fails a hundred times on average while it checkpoints or restarts once: it never gets anywhere");
  if (result.interval.value_or(0) / result.model.mtbf > 100)
    refuse("the job fails a hundred times on average in one --interval: it never reaches a checkpoint");
  if (map.count("simulate") != 0) {
    const std::int64_t segments = map["simulate"].as<std::int64_t>();
    if (segments < 1) refuse(fmt::format("--simulate: found {}; expected a number of intervals above 0", segments));
    result.segments = static_cast<std::uint64_t>(segments);
  }
  if (map.count("seed") != 0) {
    const std::string seed = map["seed"].as<std::string>();
    const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), result.seed);
    if (error != std::errc() || end != seed.data() + seed.size())
      refuse(fmt::format("--seed: found '{}'; expected a whole number of 0 or more", seed));
    if (result.segments == 0) refuse("--seed belongs to --simulate: nothing else is drawn");
  }
  require_drawable(result);
  result.json = map["json"].as<bool>();
  return result;
}

nlohmann::ordered_json to_json(const TimeShares& shares) {
  return {{"goodput", shares.useful},
          {"checkpoint", shares.checkpoint},
          {"lost", shares.lost},
          {"restart", shares.restart},
          {"failures_per_day", shares.failures_per_second * 86400}};
}

std::string line(const std::string& name, double interval, const TimeShares& shares) {
  return fmt::format("  {:<22} {:>12.1f} {:>9.3f} {:>11.3f} {:>9.3f} {:>9.3f} {:>14.3f}\n", name, interval,
                     100 * shares.useful, 100 * shares.checkpoint, 100 * shares.lost, 100 * shares.restart,
                     shares.failures_per_second * 86400);
}

}  // namespace

int goodput_command(const CommandLine& command, ProcessGroup& group) {
  GoodputOptions options;
  prepare(group, [&] { options = parse(command.words); });
  if (group.rank() != 0) return exit_done;
  const FailureModel& model = options.model;
  const double best = best_interval(model);
  const double interval = options.interval.value_or(best);
  std::optional<FailureRun> run;
  if (options.segments > 0) run = simulate_failures(model, interval, options.segments, options.seed);
  if (options.json) {
    nlohmann::ordered_json json = {{"mtbf_seconds", model.mtbf},
                                   {"interval_seconds", interval},
                                   {"expected", to_json(expected_shares(model, interval))},
                                   {"best_interval_seconds", best},
                                   {"best", to_json(expected_shares(model, best))},
                                   {"young_interval_seconds", young_interval(model)},
                                   {"daly_interval_seconds", daly_interval(model)}};
    if (run) {
      json["simulated"] = to_json(run->shares);
      json["simulated"]["seconds"] = run->time;
      json["simulated"]["failures"] = run->failures;
    }
    std::cout << json.dump(2) << std::endl;
    return exit_done;
  }
  std::cout << fmt::format("\n  {:<22} {:>12} {:>9} {:>11} {:>9} {:>9} {:>14}\n", "", "interval s", "goodput %",
                           "checkpt %", "lost %", "restart %", "failures a day");
  if (options.interval) std::cout << line("as given", interval, expected_shares(model, interval));
  std::cout << line("best", best, expected_shares(model, best))
            << line("Daly's", daly_interval(model), expected_shares(model, daly_interval(model)))
            << line("Young's", young_interval(model), expected_shares(model, young_interval(model)));
  if (run) std::cout << line(fmt::format("drawn, seed {}", options.seed), interval, run->shares);
  std::cout << std::flush;
  return exit_done;
}

}  // namespace weft
