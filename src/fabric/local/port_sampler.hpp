// SPDX-License-Identifier: GPL-2.0-only
// Series of what each port does, interval by interval.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fabric/local/earlier_rates.hpp"
#include "fabric/packet/port.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "units/time.hpp"

namespace weft {

/// A port's state changes when something is sent or comes to wait: before the first change at or after the end of an
/// interval, it is what it was at that end. Queues in bytes.
class PortSampler {
 public:
  explicit PortSampler(const EarlierRates& rates) : rates_(rates) {}
  void start(Time interval) { interval_ = interval; }
  bool on() const { return interval_ > Time(); }
  Time interval() const { return interval_; }

  /// An interval of the port has ended, and the port must be sampled before it changes.
  bool due(const OutputPort& port, Time now) const { return interval_ > Time() && now >= port.next_sample; }
  /// `queued`: bytes of frames that have waited for the port since its last change.
  void flush(OutputPort& port, Time now, Bytes queued);
  /// The last interval ends with the run, and what is sent afterwards is no part of it.
  void close(OutputPort& port, Time end, Bytes queued);

  std::size_t held() const { return samples_.size(); }
  /// Approximate number of samples that the port adds until `end` if its state does not change any more.
  std::uint64_t missing(const OutputPort& port, Time end, Bytes queued) const;
  std::vector<PortSample> take() { return std::exchange(samples_, {}); }
  std::vector<PortSample> take_closed(Time now) { return take_of_intervals_before(samples_, now / interval_); }

 private:
  bool add(OutputPort& port, Time time, Bytes queued);

  const EarlierRates& rates_;
  Time interval_;
  std::vector<PortSample> samples_;
};

}  // namespace weft
