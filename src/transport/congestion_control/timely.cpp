// SPDX-License-Identifier: GPL-2.0-only
// TIMELY: the rate follows the gradient of the round-trip time. R. Mittal et al., SIGCOMM 2015,
// doi:10.1145/2785956.2787510, algorithm 1; `variant: patched` is algorithm 2 of Y. Zhu, M. Ghobadi, V. Misra, J.
// Padhye, "ECN or Delay", CoNEXT 2016, doi:10.1145/2999572.2999593, which has one fixed point, and that one is fair.
#include <algorithm>

#include "transport/congestion_control/congestion_parameters.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

struct TimelyParameters {
  bool patched = false;
  double average = 0.875;             ///< alpha: weight of the newest difference
  std::optional<double> decrease;     ///< beta
  Time low = Time::from_us(50);       ///< T_low
  Time high = Time::from_us(500);     ///< T_high
  Time min_rtt = Time::from_us(20);   ///< the unit of the gradient
  std::int64_t hyper_after = 5;       ///< completions without a rise before the increase is
  double hyper_factor = 5;            ///< ... this many times as large
  Bytes segment = Bytes::kib(16);     ///< a completion
  std::optional<Bandwidth> additive;  ///< delta
  std::optional<Bandwidth> initial_rate;
  std::optional<Bandwidth> min_rate;
};

class Timely final : public CongestionControl {
 public:
  Timely(const TimelyParameters& p, const FlowPath& path)
      : p_(p),
        nic_(path.nic_rate),
        additive_(p.additive ? static_cast<double>(p.additive->bps()) : static_cast<double>(nic_.bps()) / 1'000),
        decrease_(p.decrease.value_or(p.patched ? 0.008 : 0.8)),
        min_(p.min_rate ? static_cast<double>(p.min_rate->bps()) : static_cast<double>(nic_.bps()) / 1'000),
        rate_(static_cast<double>(p.initial_rate.value_or(nic_).bps())) {}

  Allowance start(Time) override { return allowance(); }
  Allowance on_cnp(Moment) override { return allowance(); }
  Allowance on_loss(const LossEvent&) override { return allowance(); }
  Allowance on_timer(Moment) override { return allowance(); }
  Allowance on_bytes_sent(Moment) override { return allowance(); }

  Allowance on_ack(const AckEvent& ack) override {
    acked_ += ack.acked;
    if (ack.rtt <= Time() || acked_ < p_.segment) return allowance();
    acked_ = {};
    complete(static_cast<double>(ack.rtt.ps()));
    return allowance();
  }

 private:
  Allowance allowance() const {
    Allowance result;
    result.rate = to_rate(rate_, nic_);
    return result;
  }

  void complete(double rtt) {
    const bool first = last_rtt_ == 0;
    const double difference = rtt - last_rtt_;
    last_rtt_ = rtt;
    if (first) return;
    rtt_difference_ = (1 - p_.average) * rtt_difference_ + p_.average * difference;
    const double gradient = rtt_difference_ / static_cast<double>(p_.min_rtt.ps());
    const auto low = static_cast<double>(p_.low.ps());
    const auto high = static_cast<double>(p_.high.ps());
    if (rtt < low) {
      rate_ += additive_;
    } else if (rtt > high) {
      rate_ *= 1 - decrease_ * (1 - high / rtt);
    } else if (p_.patched) {
      const double weight = std::clamp(2 * gradient + 0.5, 0.0, 1.0);
      rate_ = additive_ * (1 - weight) + rate_ * (1 - decrease_ * weight * (rtt - low) / low);
    } else if (gradient <= 0) {
      ++falling_;
      rate_ += falling_ >= p_.hyper_after ? p_.hyper_factor * additive_ : additive_;
    } else {
      rate_ *= 1 - decrease_ * std::min(gradient, 1.0);
    }
    if (rtt < low || rtt > high || gradient > 0) falling_ = 0;
    rate_ = std::clamp(rate_, min_, static_cast<double>(nic_.bps()));
  }

  const TimelyParameters p_;
  const Bandwidth nic_;
  const double additive_;
  const double decrease_;
  const double min_;
  double rate_;
  double last_rtt_ = 0;
  double rtt_difference_ = 0;
  std::int64_t falling_ = 0;
  Bytes acked_;
};

class TimelyKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    constexpr Time longest = Time::from_ms(100);
    constexpr Bandwidth slowest = Bandwidth::from_bps(1'000);
    constexpr Bandwidth fastest = Bandwidth::from_gbps(10'000);
    const CongestionParameters in(spec);
    p_.patched = in.read_word("variant", {"original", "patched"}) == "patched";
    in.read("average", p_.average, 0x1p-10, 1);
    in.read<double>("decrease", p_.decrease, 0x1p-20, 1);
    in.read("low", p_.low, Time::from_ns(100), longest);
    in.read("high", p_.high, Time::from_ns(100), longest);
    in.read("min_rtt", p_.min_rtt, Time::from_ns(100), longest);
    in.read("hyper_after", p_.hyper_after, 1, 1'000'000);
    in.read("hyper_factor", p_.hyper_factor, 1, 1'000);
    in.read("segment", p_.segment, Bytes(1), Bytes::mib(16));
    in.read("additive_increase", p_.additive, slowest, fastest);
    in.read("initial_rate", p_.initial_rate, slowest, fastest);
    in.read("min_rate", p_.min_rate, slowest, fastest);
    in.finish();
    if (p_.high <= p_.low)
      throw in.error(in.has("high") ? "high" : "low",
                     "low is " + to_text(p_.low) + " and high " + to_text(p_.high) + "; high has to be above low");
    in_ = in;
  }
  void check(const FlowPath& path) const override {
    for (const auto& [key, rate] : {std::pair("additive_increase", p_.additive),
                                    std::pair("initial_rate", p_.initial_rate), std::pair("min_rate", p_.min_rate)}) {
      if (rate && *rate > path.nic_rate)
        throw in_->error(key, "found " + to_text(*rate) + ", above the " + to_text(path.nic_rate) +
                                  " of a host's port; expected at most that rate");
    }
    if (p_.low <= path.base_rtt && in_ && in_->has("low"))
      throw in_->error("low", "found " + to_text(p_.low) + ", but an idle path takes " + to_text(path.base_rtt) +
                                  "; expected more than that");
  }
  Services services() const override { return {}; }
  EcnMarking default_marking(Bandwidth, Time) const override { return {Bytes::max(), Bytes::max(), 0}; }
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    return std::make_unique<Timely>(p_, path);
  }

 private:
  TimelyParameters p_;
  std::optional<CongestionParameters> in_;
};

const Registration<CongestionControlKind, TimelyKind> timely_registration(
    "timely", "rate by the gradient of the round-trip time, of Mittal et al. 2015; variant: original or patched");

}  // namespace
}  // namespace weft
