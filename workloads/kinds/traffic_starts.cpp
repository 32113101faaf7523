// SPDX-License-Identifier: GPL-2.0-only
// When the flows of synthetic traffic start.
#include "workloads/kinds/traffic_starts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "support/basics/random.hpp"

namespace weft {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
/// Entities of random numbers of on and off periods: source + this. Gaps between starts have those below.
constexpr std::uint64_t period_entity = std::uint64_t{1} << 36;

Time gap_of(double ps) { return Time::from_ps(std::llround(std::min(ps, static_cast<double>(Time::limit().ps())))); }

}  // namespace

TrafficStarts TrafficStarts::read(const Spec& workload, const WorkloadContext& context) {
  TrafficStarts starts;
  starts.seed_ = context.seed;
  starts.rate_bps_ = context.host_rate.bps();
  const auto start = workload.find("start");
  if (!start) return starts;
  if (start->is_map()) {
    starts.read_process(*start, context.endless);
    return starts;
  }
  starts.times_.clear();
  if (start->is_sequence()) {
    for (const Spec& item : start->items()) starts.times_.push_back(item.time());
    if (starts.times_.empty()) throw start->error("no starting times; give at least one, such as [0 ns]");
    std::sort(starts.times_.begin(), starts.times_.end());
  } else {
    starts.times_.push_back(start->time());
  }
  starts.count_ = starts.times_.size();
  return starts;
}

void TrafficStarts::read_process(const Spec& map, bool endless) {
  const std::string name = map.at("process").one_of({"poisson", "periodic", "on_off"});
  process_ = name == "poisson" ? Process::poisson : name == "periodic" ? Process::periodic : Process::on_off;
  const auto interval = map.find("interval");
  const auto load = map.find("load");
  if (interval && load) throw load->error("both 'load' and 'interval' are given; give one of them");
  if (!interval && !load) throw map.error("neither 'load' nor 'interval' is given; give one, such as 'load: 0.8'");
  if (interval) {
    interval_ = interval->time();
    if (interval_ == Time()) throw interval->error("an interval of 0; give a longer one, such as 1 us");
  } else {
    load_ = load->number(1e-9, 1e9);
  }
  const auto count = map.find("count");
  const auto stop = map.find("stop");
  if (!count && !stop && !endless)
    throw map.error(
        "neither 'count' nor 'stop' is given; say how many starts there are, or when they stop (only the "
        "traffic of a background job may go on)");
  count_ = count ? static_cast<std::uint64_t>(count->integer(1)) : no_limit;
  if (stop) stop_ = stop->time();
  if (process_ == Process::on_off) read_periods(map);
  map.finish();
}

void TrafficStarts::read_periods(const Spec& map) {
  const auto positive = [&map](const char* key) {
    const Spec value = map.at(key);
    if (value.time() == Time()) throw value.error("found 0; expected a time above 0, such as 100 us");
    return value.time();
  };
  on_ = positive("on");
  off_ = positive("off");
  if (const auto law = map.find("law")) {
    const std::string name = law->one_of({"exponential", "pareto", "constant"});
    law_ = name == "pareto" ? Law::pareto : name == "constant" ? Law::constant : Law::exponential;
  }
  const auto shape = map.find("shape");
  if (!shape) return;
  if (law_ != Law::pareto) throw shape->error("only 'law: pareto' has a shape");
  shape_ = shape->number(1.001, 100);  // from 1 down there is no mean
}

double TrafficStarts::interval_ps(Bytes wire_bytes) const {
  if (interval_ > Time()) return static_cast<double>(interval_.ps());
  if (process_ == Process::times) return 0;
  const double mean = static_cast<double>(wire_bytes.count()) * 8e12 / (static_cast<double>(rate_bps_) * load_);
  return process_ == Process::poisson ? mean : std::max(1.0, std::round(mean));
}

// Pareto's law with mean m and shape a > 1 has the scale m (a - 1) / a, and the value u^(-1/a) times the scale for u
// uniform in (0, 1). Superposed on-off sources of such periods are self-similar with Hurst parameter (3 - a) / 2
// (Willinger, Taqqu, Sherman, Wilson, IEEE/ACM Trans. Networking 5(1), 1997, doi:10.1109/90.554723).
Time TrafficStarts::period(double mean_ps, std::uint32_t source, std::uint64_t number) const {
  double ps = mean_ps;
  if (law_ == Law::exponential) ps = random_exponential(mean_ps, seed_, period_entity + source, number);
  if (law_ == Law::pareto)
    ps = mean_ps * (shape_ - 1) / shape_ *
         std::exp(-std::log(random_unit(seed_, period_entity + source, number)) / shape_);
  return Time::from_ps(std::max<std::int64_t>(1, std::llround(std::min(ps, 0x1p60))));
}

// A source begins within an on period as often as it is on in the long run; if periods are constant, all begin with
// one.
Time TrafficStarts::next_on_off(Clock& clock, std::uint32_t source, double interval_ps) const {
  const auto on = static_cast<double>(on_.ps());
  const auto off = static_cast<double>(off_.ps());
  Time at = bounded_sum(clock.time, gap_of(interval_ps));
  if (clock.periods == 0) {
    const bool begins_on = law_ == Law::constant || random_unit(seed_, period_entity + source, 0) * (on + off) < on;
    at = begins_on ? Time() : period(off, source, 1);
    clock.periods = 2;
    clock.on_until = bounded_sum(at, period(on, source, 2));
  }
  while (at >= clock.on_until && clock.on_until < Time::limit()) {
    at = bounded_sum(clock.on_until, period(off, source, ++clock.periods));
    clock.on_until = bounded_sum(at, period(on, source, ++clock.periods));
  }
  return at;
}

bool TrafficStarts::next(Clock& clock, std::uint32_t source, double interval_ps) const {
  if (clock.starts == count_) return false;
  switch (process_) {
    case Process::times:
      clock.time = times_[clock.starts];
      break;
    case Process::periodic:
      clock.time = bounded_product(static_cast<std::int64_t>(clock.starts), gap_of(interval_ps));
      break;
    case Process::poisson:
      clock.time = bounded_sum(clock.time, gap_of(random_exponential(interval_ps, seed_, source, clock.starts)));
      break;
    case Process::on_off:
      clock.time = next_on_off(clock, source, interval_ps);
      break;
  }
  // A source without an end is silent from then on; where there is more to come, the run finds no time for it.
  const bool endless = count_ == no_limit && stop_ == Time::max();
  if (clock.time >= stop_ || (clock.time >= Time::limit() && endless)) return false;
  ++clock.starts;
  return true;
}

std::uint64_t TrafficStarts::expected_count(double interval_ps) const {
  if (stop_ == Time::max()) return count_ == no_limit ? 0 : count_;
  const auto on = static_cast<double>(on_.ps());
  const double share = process_ == Process::on_off ? on / (on + static_cast<double>(off_.ps())) : 1;
  const double starts = std::ceil(static_cast<double>(stop_.ps()) / interval_ps * share);
  return starts < static_cast<double>(count_) ? static_cast<std::uint64_t>(starts) : count_;
}

void TrafficStarts::require_range(Bytes wire_bytes, const Spec& workload) const {
  // The sum of many exponential gaps stays near its mean, and one gap below 38 means (-log of the smallest draw): half
  // of the range of Time is sufficient.
  constexpr double max_ps = 0x1p62 / 38;
  if (process_ == Process::times || process_ == Process::on_off || count_ == no_limit) return;
  if (interval_ps(wire_bytes) * static_cast<double>(count_) > max_ps)
    throw workload.at("start").error(
        fmt::format("{} starts about {:.3g} s apart run beyond the range of simulated time; "
                    "use fewer or shorter ones",
                    count_, interval_ps(wire_bytes) * 1e-12));
}

}  // namespace weft
