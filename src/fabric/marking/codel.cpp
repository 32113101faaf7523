// SPDX-License-Identifier: GPL-2.0-only
// Controlled delay: K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, RFC 8289, 2018. It marks where the RFC drops, as
// its section 3 allows for packets that are ECN-capable.
#include <cmath>

#include <fmt/format.h>

#include "fabric/marking/queue_marking.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

struct CodelTimes {
  Time target;    ///< TARGET: a wait that is no congestion
  Time interval;  ///< INTERVAL: how long waits may be longer
};

/// The algorithm of section 5, in its words: once the wait of each packet in an interval was above the target, marks
/// follow at intervals that shrink with the square root of their number, until a packet has waited less.
class CodelMarker final : public QueueMarker {
 public:
  CodelMarker(const CodelTimes& times, Bytes largest_frame) : times_(times), largest_frame_(largest_frame) {}

  bool marks(const MarkingMoment& moment) override {
    const bool above = stays_above(moment);
    if (!above) marking_ = false;
    if (!above || (marking_ && moment.now < mark_next_)) return false;
    if (marking_)
      mark_next_ = control_law(mark_next_, ++count_);
    else
      begin(moment.now);
    return true;
  }

 private:
  /// dodequeue(): waits have been above the target for an interval. A queue of a frame cannot be shorter.
  bool stays_above(const MarkingMoment& moment) {
    if (moment.waited < times_.target || moment.queue <= largest_frame_) {
      first_above_ = Time::max();
      return false;
    }
    if (first_above_ == Time::max()) {
      first_above_ = bounded_sum(moment.now, times_.interval);
      return false;
    }
    return moment.now >= first_above_;
  }
  /// The rate that was right a short time ago is where it begins.
  void begin(Time now) {
    marking_ = true;
    const std::int64_t since = count_ - last_count_;
    const bool recent = mark_next_ != Time::max() && now - mark_next_ < 16 * times_.interval;
    count_ = recent && since > 1 ? since : 1;
    last_count_ = count_;
    mark_next_ = control_law(now, count_);
  }
  Time control_law(Time from, std::int64_t count) const {
    const double step = static_cast<double>(times_.interval.ps()) / std::sqrt(static_cast<double>(count));
    return bounded_sum(from, Time::from_ps(static_cast<std::int64_t>(step)));
  }

  const CodelTimes times_;
  const Bytes largest_frame_;
  bool marking_ = false;            // "dropping" of the RFC
  Time first_above_ = Time::max();  // max: the last packet was below
  Time mark_next_ = Time::max();
  std::int64_t count_ = 0;
  std::int64_t last_count_ = 0;
};

class Codel final : public MarkingDiscipline {
 public:
  void configure(const Spec& ecn) override {
    const auto read = [&ecn](const char* key, std::optional<Time>& time) {
      const auto value = ecn.find(key);
      if (!value) return;
      time = value->wait();
      if (*time <= Time()) throw value->error("found 0; expected a time above 0");
    };
    read("target", target_);
    read("interval", interval_);
  }
  /// It has to be called for each packet that has not waited.
  Bytes floor(const MarkedPort&) const override { return Bytes(-1); }
  std::unique_ptr<QueueMarker> make(const MarkedPort& port) const override {
    return std::make_unique<CodelMarker>(times(port), port.largest_frame);
  }

 private:
  /// Section 4.3: the longest round trip, and 5 % of it.
  CodelTimes times(const MarkedPort& port) const {
    const Time interval = interval_.value_or(port.longest_round_trip);
    return {target_.value_or(Time::from_ps(interval.ps() / 20)), interval};
  }

  std::optional<Time> target_;
  std::optional<Time> interval_;
};

const Registration<MarkingDiscipline, Codel> codel_registration(
    "codel", "by how long packets wait: target and interval of RFC 8289");

}  // namespace
}  // namespace weft
