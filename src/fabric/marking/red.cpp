// SPDX-License-Identifier: GPL-2.0-only
// Random early detection by the queue itself, as in RoCE switches: S. Floyd, V. Jacobson, "Random early detection
// gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993, doi:10.1109/90.251892; Y. Zhu et al., SIGCOMM 2015,
// doi:10.1145/2785956.2787484, figure 5.
#include <fmt/format.h>

#include "fabric/marking/queue_marking.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

/// The probability is 0 up to `min`, rises to `probability` at `max`, and is 1 beyond. Without a state.
class RedMarker final : public QueueMarker {
 public:
  RedMarker(const EcnMarking& rule, std::uint64_t draws) : rule_(rule), draws_(draws) {}
  bool marks(const MarkingMoment& moment) override {
    if (moment.queue <= rule_.min) return false;
    if (moment.queue > rule_.max) return true;
    const double probability = rule_.probability * static_cast<double>((moment.queue - rule_.min).count()) /
                               static_cast<double>((rule_.max - rule_.min).count());
    return moment.draw.uniform(draws_) < probability;
  }

 private:
  const EcnMarking rule_;
  const std::uint64_t draws_;
};

class Red final : public MarkingDiscipline {
 public:
  void configure(const Spec& ecn) override {
    const auto queue = [](const Spec& value) {
      constexpr Bytes max = Bytes(std::int64_t{1} << 50);
      if (value.bytes() < Bytes() || value.bytes() > max)
        throw value.error(fmt::format("found {}; expected a queue of {} to {}", to_text(value.bytes()),
                                      to_text(Bytes()), to_text(max)));
      return value.bytes();
    };
    if (const auto value = ecn.find("kmin")) min_ = queue(*value);
    if (const auto value = ecn.find("kmax")) {
      max_ = queue(*value);
      if (!min_) throw value->error("found without kmin, from which on packets are marked");
      if (*max_ < *min_)
        throw value->error(fmt::format("found {}, below kmin; expected at least {}", to_text(*max_), to_text(*min_)));
    } else if (min_) {
      throw ecn.error("kmin is there and kmax is not; expected both or neither (the same value for a step)");
    }
    if (const auto value = ecn.find("pmax")) probability_ = value->number(0, 1);
    if (const auto value = ecn.find("mark")) at_departure_ = value->one_of({"departure", "arrival"}) == "departure";
  }
  bool at_departure() const override { return at_departure_; }
  Bytes floor(const MarkedPort& port) const override { return rule(port).min; }
  std::unique_ptr<QueueMarker> make(const MarkedPort& port) const override {
    return std::make_unique<RedMarker>(rule(port), port.draws);
  }

 private:
  EcnMarking rule(const MarkedPort& port) const {
    return {min_.value_or(port.usual.min), max_.value_or(port.usual.max),
            probability_.value_or(min_ ? 1.0 : port.usual.probability)};
  }

  std::optional<Bytes> min_;
  std::optional<Bytes> max_;
  std::optional<double> probability_;
  bool at_departure_ = true;
};

const Registration<MarkingDiscipline, Red> red_registration(
    "red", "by the length of the queue, from kmin to kmax; with kmin = kmax a step (the default)");

}  // namespace
}  // namespace weft
