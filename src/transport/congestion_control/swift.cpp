// SPDX-License-Identifier: GPL-2.0-only
// Swift: the window keeps the round-trip time at a target; windows below one packet are paced. G. Kumar et al., SIGCOMM
// 2020, doi:10.1145/3387514.3406591, algorithm 1 and section 3.5. Hosts take no time here, so only the fabric's window
// is modelled.
#include <algorithm>
#include <cmath>

#include "transport/congestion_control/congestion_parameters.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

struct SwiftParameters {
  double additive = 1;            ///< ai, packets per round trip
  double decrease = 0.8;          ///< beta
  double largest_decrease = 0.5;  ///< max_mdf
  std::optional<Time> base_target;
  std::optional<Time> hop_target;     ///< h-bar, per hop
  std::optional<Time> scaling_range;  ///< fs_range
  double scaling_min = 0.1;           ///< fs_min_cwnd, packets
  double scaling_max = 100;           ///< fs_max_cwnd, packets
  double min_window = 0.001;          ///< packets
  std::optional<double> max_window;   ///< packets
  std::optional<double> initial_window;
  std::int64_t timeouts_before_reset = 5;  ///< RETX_RESET_THRESHOLD

  /// 20 us, more on paths that are that long when idle.
  Time base(const FlowPath& path) const {
    if (base_target) return *base_target;
    return std::max(Time::from_us(20), Time::from_ps(path.base_rtt.ps() / 2 * 3));
  }
  Time hop(const FlowPath& path) const { return hop_target.value_or(Time::from_ps(base(path).ps() * 100 / 655)); }
  Time range(const FlowPath& path) const { return scaling_range.value_or(5 * base(path)); }
};

class Swift final : public CongestionControl {
 public:
  Swift(const SwiftParameters& p, const FlowPath& path)
      : additive_(p.additive),
        decrease_(p.decrease),
        keep_(1 - p.largest_decrease),
        nic_(path.nic_rate),
        mtu_(static_cast<double>(path.mtu.count())),
        packet_bits_(static_cast<double>(path.wire_packet().count()) * 8),
        base_(static_cast<double>((p.base(path) + path.hops * p.hop(path)).ps())),
        range_(static_cast<double>(p.range(path).ps())),
        slope_(range_ / (1 / std::sqrt(p.scaling_min) - 1 / std::sqrt(p.scaling_max))),
        offset_(-slope_ / std::sqrt(p.scaling_max)),
        min_(p.min_window),
        max_(p.max_window.value_or(std::max(
            1.0, wire_bytes(static_cast<double>(nic_.bps()), Time::from_ps(static_cast<std::int64_t>(base_ + range_))) *
                     8 / packet_bits_))),
        timeouts_before_reset_(p.timeouts_before_reset),
        rtt_(static_cast<double>(path.base_rtt.ps())),
        window_(std::clamp(p.initial_window.value_or(wire_bdp(path) * 8 / packet_bits_), min_, max_)) {}

  Allowance start(Time) override { return allowance(); }
  Allowance on_cnp(Moment) override { return allowance(); }
  Allowance on_timer(Moment) override { return allowance(); }
  Allowance on_bytes_sent(Moment) override { return allowance(); }

  Allowance on_ack(const AckEvent& ack) override {
    timeouts_ = 0;
    if (ack.rtt <= Time()) return allowance();
    rtt_ = static_cast<double>(ack.rtt.ps());
    const double target = target_delay();
    if (rtt_ < target) {
      const double packets = static_cast<double>(ack.acked.count()) / mtu_;
      window_ += window_ >= 1 ? additive_ / window_ * packets : additive_ * packets;
    } else {
      reduce(ack.at.now, std::max(1 - decrease_ * (rtt_ - target) / rtt_, keep_));
    }
    window_ = std::clamp(window_, min_, max_);
    return allowance();
  }

  Allowance on_loss(const LossEvent& loss) override {
    timeouts_ = loss.timeout ? timeouts_ + 1 : 0;
    if (timeouts_ >= timeouts_before_reset_) {
      window_ = min_;
      reduced_at_ = loss.at.now;
    } else {
      reduce(loss.at.now, keep_);
    }
    return allowance();
  }

 private:
  Allowance allowance() const {
    Allowance result;
    result.window = to_window(std::max(window_, 1.0) * mtu_);
    if (window_ < 1) result.rate = to_rate(packet_bits_ * window_ / rtt_ * 1e12, nic_);
    return result;
  }
  /// base + hops h + clamp(a / sqrt(w) + b, 0, range): longer for small windows, which many senders have.
  double target_delay() const { return base_ + std::clamp(slope_ / std::sqrt(window_) + offset_, 0.0, range_); }
  /// At most once per round trip.
  void reduce(Time now, double factor) {
    if (reduced_at_ != Time::max() && static_cast<double>((now - reduced_at_).ps()) < rtt_) return;
    window_ = std::max(window_ * factor, min_);
    reduced_at_ = now;
  }

  const double additive_;
  const double decrease_;
  const double keep_;
  const Bandwidth nic_;
  const double mtu_;
  const double packet_bits_;
  const double base_;   ///< ps, hops included
  const double range_;  ///< ps
  const double slope_;
  const double offset_;
  const double min_;
  const double max_;
  const std::int64_t timeouts_before_reset_;
  double rtt_;     ///< ps, the newest
  double window_;  ///< packets
  std::int64_t timeouts_ = 0;
  Time reduced_at_ = Time::max();  ///< max: not yet
};

class SwiftKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    constexpr Time longest = Time::from_ms(100);
    const CongestionParameters in(spec);
    in.read("additive_increase", p_.additive, 0.001, 1'000);
    in.read("decrease", p_.decrease, 0x1p-10, 1);
    in.read("max_decrease", p_.largest_decrease, 0x1p-10, 0.99);
    in.read("base_target", p_.base_target, Time::from_ns(100), longest);
    in.read("hop_target", p_.hop_target, Time(), longest);
    in.read("scaling_range", p_.scaling_range, Time(), longest);
    in.read("scaling_min_window", p_.scaling_min, 0.001, 1e6);
    in.read("scaling_max_window", p_.scaling_max, 0.001, 1e6);
    in.read("min_window", p_.min_window, 1e-6, 1);
    in.read<double>("max_window", p_.max_window, 1, 1e9);
    in.read<double>("initial_window", p_.initial_window, 1e-6, 1e9);
    in.read("timeouts_before_reset", p_.timeouts_before_reset, 1, 1'000);
    in.finish();
    if (p_.scaling_max <= p_.scaling_min)
      throw in.error(in.has("scaling_max_window") ? "scaling_max_window" : "scaling_min_window",
                     "scaling_max_window has to be above scaling_min_window");
    in_ = in;
  }
  void check(const FlowPath& path) const override {
    const Time target = p_.base(path) + path.hops * p_.hop(path);
    if (target <= path.base_rtt)
      throw in_->error(in_->has("base_target") ? "base_target" : "hop_target",
                       "the target is " + to_text(target) + ", but an idle path of " + std::to_string(path.hops) +
                           " links takes " + to_text(path.base_rtt) + "; expected a longer target");
  }
  Services services() const override { return {}; }
  EcnMarking default_marking(Bandwidth, Time) const override { return {Bytes::max(), Bytes::max(), 0}; }
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    return std::make_unique<Swift>(p_, path);
  }

 private:
  SwiftParameters p_;
  std::optional<CongestionParameters> in_;
};

const Registration<CongestionControlKind, SwiftKind> swift_registration(
    "swift", "window by a target delay, paced below one packet, of Kumar et al. 2020");

}  // namespace
}  // namespace weft
