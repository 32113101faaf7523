// SPDX-License-Identifier: GPL-2.0-only
// NSCC: the window follows marks and delay of each packet together. Ultra Ethernet Specification 1.0, section 3.6.13
// (network-signal-based congestion control). Windows here count wire bytes, as the specification's do.
#include <algorithm>

#include "transport/congestion_control/congestion_parameters.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

struct NsccParameters {
  std::optional<Time> base_rtt;      ///< config_base_rtt
  std::optional<Time> target_delay;  ///< target_qdelay
  bool trimming = false;             ///< switches trim instead of dropping
  double decrease = 0.8;             ///< gamma
  double largest_decrease = 0.5;     ///< 1 - max_md_jump
  double proportional = 4;           ///< of alpha
  double fair = 5;                   ///< of fi
  double steady = 0.15;              ///< of eta
  double fast = 0.25;                ///< of fi_scale
  double average = 0.0125;           ///< weight of the newest delay in their mean
  bool quick_adapt = true;
  std::int64_t quick_adapt_gate = 3;  ///< qa_gate

  Time rtt(const FlowPath& path) const { return base_rtt.value_or(path.base_rtt); }
  Time target(const FlowPath& path) const {
    if (target_delay) return *target_delay;
    return trimming ? Time::from_ps(rtt(path).ps() / 4 * 3) : rtt(path);
  }
};

class Nscc final : public CongestionControl {
 public:
  Nscc(const NsccParameters& p, const FlowPath& path)
      : p_(p),
        share_(payload_share(path)),
        nic_bps_(static_cast<double>(path.nic_rate.bps())),
        mtu_(static_cast<double>(path.wire_packet().count())),
        configured_rtt_(static_cast<double>(p.rtt(path).ps())),
        target_(static_cast<double>(p.target(path).ps())),
        full_packet_(path.mtu),
        base_rtt_(configured_rtt_),
        max_(largest_window()) {
    // The reference network of the specification: 100 Gb/s and 12 us.
    const double scale = (nic_bps_ * configured_rtt_) / (100e9 * 12e6);
    const double delay_scale = target_ / 12e6;
    proportional_ = p.proportional * mtu_ * scale * delay_scale / target_;
    fair_ = p.fair * mtu_ * scale;
    steady_ = p.steady * mtu_ * scale;
    fast_ = p.fast * scale;
    window_ = max_;
  }

  Allowance start(Time now) override {
    adjusted_at_ = now;
    decreased_at_ = now;
    return allowance();
  }
  Allowance on_cnp(Moment) override { return allowance(); }
  Allowance on_timer(Moment) override { return allowance(); }
  Allowance on_bytes_sent(Moment) override { return allowance(); }

  Allowance on_ack(const AckEvent& ack) override {
    const double bytes = static_cast<double>(ack.acked.count()) / share_;
    ignored_ += bytes;
    received_ += bytes;
    achieved_ += bytes;
    if (ack.rtt <= Time()) return allowance();
    if (ack.acked >= full_packet_) learn_base_rtt(static_cast<double>(ack.rtt.ps()));  // short ones are faster
    const double delay = static_cast<double>(ack.rtt.ps()) - base_rtt_;
    average_delay(delay);
    if (quick_adapt(ack.at.now, false, ack.ecn, delay, ack.in_flight)) return allowance();
    if (!ack.ecn && delay >= target_)
      increment_ += fair_ * bytes;
    else if (!ack.ecn)
      increase(bytes, delay);
    else if (delay >= target_)
      decrease(ack.at.now);
    if (static_cast<double>((ack.at.now - adjusted_at_).ps()) >= configured_rtt_ || received_ > 8 * mtu_)
      adjust(ack.at.now);
    return allowance();
  }

  /// A trimmed header or another sign of loss takes the packet's bytes out of the window, unless the window is
  /// reset.
  Allowance on_loss(const LossEvent& loss) override {
    const double bytes = std::max(static_cast<double>(loss.lost.count()) / share_, mtu_);
    ignored_ += bytes;
    bool adapted = false;
    if (p_.trimming && !loss.timeout) {
      average_delay(configured_rtt_);
      wanted_ = true;
      adapted = quick_adapt(loss.at.now, true, true, 0, loss.in_flight);
    }
    if (!adapted) window_ = std::max(window_ - bytes, mtu_);
    return allowance();
  }

 private:
  Allowance allowance() const {
    Allowance result;
    result.window = to_window(window_ * share_);
    return result;
  }
  double largest_window() const { return std::max(1.5 * nic_bps_ * base_rtt_ / 8e12, mtu_); }
  void learn_base_rtt(double rtt) {
    if (rtt >= base_rtt_) return;
    base_rtt_ = rtt;
    max_ = largest_window();
  }
  void average_delay(double delay) { mean_delay_ = (1 - p_.average) * mean_delay_ + p_.average * delay; }

  /// No mark and a delay below the target: faster the shorter the delay, and exponentially after a window without any.
  void increase(double bytes, double delay) {
    if (delay < negligible_delay) {
      undelayed_ += bytes;
      if (undelayed_ > window_ || fast_mode_) {
        window_ = std::min(window_ + fast_ * bytes, max_);
        fast_mode_ = true;
        return;
      }
    } else {
      undelayed_ = 0;
    }
    fast_mode_ = false;
    increment_ += proportional_ * bytes * (target_ - delay);
  }

  /// Marked and late: by the excess of the mean delay, at most once per round trip.
  void decrease(Time now) {
    fast_mode_ = false;
    undelayed_ = 0;
    if (mean_delay_ <= target_ || static_cast<double>((now - decreased_at_).ps()) <= base_rtt_) return;
    const double factor = 1 - p_.decrease * (mean_delay_ - target_) / mean_delay_;
    window_ = std::max(window_ * std::max(factor, 1 - p_.largest_decrease), mtu_);
    decreased_at_ = now;
  }

  void adjust(Time now) {
    window_ += increment_ / window_;
    if (static_cast<double>((now - adjusted_at_).ps()) >= configured_rtt_) {
      adjusted_at_ = now;
      window_ += steady_;
    }
    window_ = std::min(window_, max_);
    increment_ = 0;
    received_ = 0;
  }

  /// Once per round trip and target: if packets were trimmed or very late, and few bytes arrived, the window becomes
  /// the bytes that arrived. True if so, or while packets in flight at that time still arrive.
  bool quick_adapt(Time now, bool lost, bool marked, double delay, Bytes in_flight) {
    if (!p_.quick_adapt) return false;
    bool done = false;
    if (ignored_ < to_ignore_ && marked) {
      done = true;
    } else if (now >= adapt_at_) {
      const bool bad = wanted_ || lost || (!p_.trimming && delay > 4 * target_);
      const double gate = max_ / static_cast<double>(std::int64_t{1} << p_.quick_adapt_gate);
      if (adapt_at_ != Time() && bad && achieved_ < gate) {
        window_ = std::max(achieved_, mtu_);
        to_ignore_ = static_cast<double>(in_flight.count()) / share_;
        ignored_ = 0;
        wanted_ = false;
        done = true;
      }
      achieved_ = 0;
      adapt_at_ = now + Time::from_ps(static_cast<std::int64_t>(base_rtt_ + target_));
    }
    if (done) {
      increment_ = 0;
      received_ = 0;
    }
    return done;
  }

  static constexpr double negligible_delay = 1e6;  ///< ps

  const NsccParameters p_;
  const double share_;
  const double nic_bps_;
  const double mtu_;             ///< wire bytes of a packet
  const double configured_rtt_;  ///< ps
  const double target_;          ///< ps
  const Bytes full_packet_;      ///< payload
  double proportional_ = 0;      ///< alpha
  double fair_ = 0;              ///< fi
  double steady_ = 0;            ///< eta
  double fast_ = 0;              ///< fi_scale
  double base_rtt_;              ///< ps, the shortest seen
  double max_;                   ///< max_wnd
  double window_ = 0;            ///< cwnd, wire bytes
  double mean_delay_ = 0;
  double increment_ = 0;  ///< inc_bytes
  double received_ = 0;
  double achieved_ = 0;
  double undelayed_ = 0;  ///< fi_count
  double to_ignore_ = 0;
  double ignored_ = 0;
  bool fast_mode_ = false;
  bool wanted_ = false;  ///< trigger_qa
  Time adapt_at_;
  Time adjusted_at_;
  Time decreased_at_;
};

class NsccKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    constexpr Time longest = Time::from_ms(100);
    const CongestionParameters in(spec);
    in.read("base_rtt", p_.base_rtt, Time::from_ns(100), longest);
    in.read("target_delay", p_.target_delay, Time::from_ns(100), longest);
    in.read("trimming", p_.trimming);
    in.read("decrease", p_.decrease, 0x1p-10, 1);
    in.read("max_decrease", p_.largest_decrease, 0x1p-10, 0.99);
    in.read("proportional_increase", p_.proportional, 0.001, 1'000);
    in.read("fair_increase", p_.fair, 0.001, 1'000);
    in.read("steady_increase", p_.steady, 0, 1'000);
    in.read("fast_increase", p_.fast, 0, 100);
    in.read("average", p_.average, 0x1p-20, 1);
    in.read("quick_adapt", p_.quick_adapt);
    in.read("quick_adapt_gate", p_.quick_adapt_gate, 0, 30);
    in.finish();
    in_ = in;
  }
  void check(const FlowPath& path) const override {
    if (p_.base_rtt && *p_.base_rtt < path.base_rtt)
      throw in_->error("base_rtt", "found " + to_text(*p_.base_rtt) + ", below the " + to_text(path.base_rtt) +
                                       " of an idle path; expected at least the longest of the network");
  }
  Services services() const override {
    Services result;
    result.ecn = true;
    return result;
  }
  /// Section 3.6.17: from 0.2 to 0.8 of the bandwidth-delay product.
  EcnMarking default_marking(Bandwidth port, Time base_rtt) const override {
    const double product = wire_bytes(static_cast<double>(port.bps()), base_rtt);
    return {Bytes(static_cast<std::int64_t>(0.2 * product)), Bytes(static_cast<std::int64_t>(0.8 * product)), 1};
  }
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    return std::make_unique<Nscc>(p_, path);
  }

 private:
  NsccParameters p_;
  std::optional<CongestionParameters> in_;
};

const Registration<CongestionControlKind, NsccKind> nscc_registration(
    "nscc", "window by marks and delay together, of the Ultra Ethernet Specification");

}  // namespace
}  // namespace weft
