// SPDX-License-Identifier: GPL-2.0-only
// When the flows of synthetic traffic start.
#include "workloads/traffic_starts.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/random.hpp"

namespace weft {

TrafficStarts TrafficStarts::read(const Spec& workload, const WorkloadContext& context) {
  TrafficStarts starts;
  starts.seed_ = context.seed;
  starts.rate_bps_ = context.host_rate.bps();
  const auto start = workload.find("start");
  if (!start) return starts;
  if (start->is_map()) {
    starts.read_process(*start);
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

void TrafficStarts::read_process(const Spec& map) {
  process_ = map.at("process").one_of({"poisson", "periodic"}) == "poisson" ? Process::poisson : Process::periodic;
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
  count_ = static_cast<std::uint64_t>(map.at("count").integer(1));
  map.finish();
}

double TrafficStarts::interval_ps(Bytes wire_bytes) const {
  if (interval_ > Time()) return static_cast<double>(interval_.ps());
  if (process_ == Process::times) return 0;
  const double mean = static_cast<double>(wire_bytes.count()) * 8e12 / (static_cast<double>(rate_bps_) * load_);
  return process_ == Process::periodic ? std::round(mean) : mean;
}

Time TrafficStarts::at(std::uint64_t index, Time previous, std::uint32_t source, double interval_ps) const {
  switch (process_) {
    case Process::times:
      return times_[index];
    case Process::periodic:
      return Time::from_ps(static_cast<std::int64_t>(index) * std::llround(interval_ps));
    case Process::poisson:
      break;
  }
  return previous + Time::from_ps(std::llround(random_exponential(interval_ps, seed_, source, index)));
}

void TrafficStarts::require_range(Bytes wire_bytes, const Spec& workload) const {
  // The sum of many exponential gaps stays near its mean, and one gap below 38 means (-log of the smallest draw): half
  // of the range of Time leaves room.
  constexpr double most_ps = 0x1p62 / 38;
  if (process_ != Process::times && interval_ps(wire_bytes) * static_cast<double>(count_) > most_ps)
    throw workload.at("start").error(
        fmt::format("{} starts about {:.3g} s apart run beyond the range of simulated time; "
                    "use fewer or shorter ones",
                    count_, interval_ps(wire_bytes) * 1e-12));
}

}  // namespace weft
