// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/compute/compute_noise.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "schedule/program/workload_filter.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

// The kinds of draws; separate from all other draws with the run's seed.
constexpr std::uint64_t jitter_draws = 0x6a69747465720001;
constexpr std::uint64_t straggler_draws = 0x6a69747465720002;
constexpr std::uint64_t spread_draws = 0x6a69747465720003;

constexpr double min_factor = 0.01;
constexpr double max_factor = 1000;

class NoisyProgram : public ProgramFilter {
 public:
  NoisyProgram(std::unique_ptr<RankProgram> inner, Rank rank, const ComputeNoise& noise)
      : ProgramFilter(std::move(inner)), rank_(rank), noise_(noise) {}
  Time compute_time(const Operation& operation, Time now) const override {
    return noise_.stretched(rank_, operation.id, ProgramFilter::compute_time(operation, now), now);
  }

 private:
  Rank rank_;
  const ComputeNoise& noise_;
};

std::map<std::uint32_t, double> read_slow_ranks(const Spec& list, std::uint32_t ranks) {
  std::map<std::uint32_t, double> result;
  for (const Spec& item : list.items()) {
    const double factor = item.at("factor").number(min_factor, max_factor);
    for (const Spec& value : item.at("ranks").items()) {
      const std::int64_t rank = value.integer(0);
      if (rank >= ranks)
        throw value.error(fmt::format("rank {} is out of range: there are ranks 0 to {}", rank, ranks - 1));
      if (!result.emplace(static_cast<std::uint32_t>(rank), factor).second)
        throw value.error(fmt::format("rank {} has a factor already", rank));
    }
    item.finish();
  }
  return result;
}

/// ln Phi(z), also where Phi(z) is nearly 0 or 1.
double log_normal_probability(double z) {
  const double tail = 0.5 * std::erfc(std::abs(z) / std::numbers::sqrt2);
  return z < 0 ? std::log(tail) : std::log1p(-tail);
}

}  // namespace

// Newton's method on ln Phi, which rises and is concave: from below it comes nearer with each step, and stays below.
double largest_of_copies(double z, double copies) {
  static const double log_root = 0.5 * std::log(2 * std::numbers::pi);
  const double wanted = log_normal_probability(z) / copies;
  constexpr int most_steps = 100;
  for (int i = 0; i < most_steps; ++i) {
    const double here = log_normal_probability(z);
    const double slope = std::exp(-z * z / 2 - log_root - here);
    const double step = (wanted - here) / slope;
    if (!(step > 1e-14)) break;
    z += step;
  }
  return z;
}

double read_share(const Spec& value, double max) {
  std::string text = value.text();
  double scale = 1;
  if (text.ends_with('%')) {
    text.pop_back();
    while (text.ends_with(' ')) text.pop_back();
    scale = 0.01;
  }
  double number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  number *= scale;
  if (failure != std::errc() || rest != text.data() + text.size() || !(number >= 0 && number <= max))
    throw value.error(
        fmt::format("'{}' is no share; give a number from 0 to {}, or a percentage such as '2 %'", value.text(), max));
  return number;
}

ComputeNoise::ComputeNoise(const Spec& map, std::uint32_t ranks, std::uint64_t seed, double copies)
    : seed_(seed), copies_(copies) {
  if (const auto value = map.find("jitter")) jitter_ = read_share(*value, 1);
  if (const auto value = map.find("spread")) spread_ = read_share(*value, 1);
  if (const auto value = map.find("distribution"))
    shape_ = value->one_of({"lognormal", "normal"}) == "normal" ? Shape::normal : Shape::lognormal;
  if (const auto list = map.find("slow_ranks")) slow_ranks_ = read_slow_ranks(*list, ranks);
  if (const auto value = map.find("stragglers")) {
    const Spec interval = value->at("interval");
    stragglers_ = {read_share(value->at("probability"), 1), value->at("factor").number(min_factor, max_factor),
                   interval.time()};
    if (stragglers_->interval <= Time()) throw interval.error("an interval is longer than 0");
    value->finish();
  }
  map.finish();
}

double ComputeNoise::factor_of(double z, double deviation) const {
  if (shape_ == Shape::normal) return std::max(0.0, 1 + deviation * std::clamp(z, -3.0, 3.0));
  const double variance = std::log1p(deviation * deviation);
  return std::exp(std::sqrt(variance) * z - variance / 2);
}

double ComputeNoise::factor_of_rank(Rank rank) const {
  double factor = 1;
  if (spread_ != 0) {
    const double z = random_normal(seed_ ^ spread_draws, rank.value(), 0);
    factor = factor_of(copies_ > 1 ? largest_of_copies(z, copies_) : z, spread_);
  }
  if (const auto slow = slow_ranks_.find(rank.value()); slow != slow_ranks_.end()) factor *= slow->second;
  return factor;
}

std::vector<std::pair<std::string, std::string>> ComputeNoise::description(std::uint32_t ranks) const {
  if (spread_ == 0 && slow_ranks_.empty()) return {};
  std::uint32_t slowest = 0;
  double factor = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const double here = factor_of_rank(Rank(rank));
    if (here <= factor) continue;
    factor = here;
    slowest = rank;
  }
  return {{"slowest rank", fmt::format("{}: its computation takes {:.4g} times as long", slowest, factor)}};
}

Time ComputeNoise::stretched(Rank rank, std::uint64_t operation, Time duration, Time now) const {
  double factor = factor_of_rank(rank);
  if (jitter_ != 0) factor *= factor_of(random_normal(seed_ ^ jitter_draws, rank.value(), operation), jitter_);
  if (stragglers_) {
    const auto interval = static_cast<std::uint64_t>(now.ps() / stragglers_->interval.ps());
    if (random_unit(seed_ ^ straggler_draws, rank.value(), interval) < stragglers_->probability)
      factor *= stragglers_->factor;
  }
  if (factor == 1) return duration;
  return Time::from_ps(std::llround(std::min(static_cast<double>(duration.ps()) * factor, 0x1p62)));
}

std::unique_ptr<RankProgram> with_noise(std::unique_ptr<RankProgram> program, Rank rank, const ComputeNoise& noise) {
  if (noise.none()) return program;
  return std::make_unique<NoisyProgram>(std::move(program), rank, noise);
}

}  // namespace weft
