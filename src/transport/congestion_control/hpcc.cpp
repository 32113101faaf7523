// SPDX-License-Identifier: GPL-2.0-only
// HPCC: the window follows the bytes in flight that telemetry reports for the most loaded hop. Y. Li et al., SIGCOMM
// 2019, doi:10.1145/3341302.3342085, algorithm 1.
#include <algorithm>
#include <array>
#include <utility>

#include "transport/congestion_control/congestion_parameters.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

struct HpccParameters {
  double target = 0.95;           ///< eta
  std::int64_t stages = 5;        ///< maxStage
  std::int64_t flows = 100;       ///< N of W_AI = W_init (1 - eta) / N
  std::optional<Bytes> additive;  ///< W_AI
  std::optional<Time> base_rtt;   ///< T
  std::optional<Bandwidth> min_rate;
};

class Hpcc final : public CongestionControl {
 public:
  Hpcc(const HpccParameters& p, const FlowPath& path)
      : nic_(path.nic_rate),
        payload_share_(payload_share(path)),
        rtt_(static_cast<double>(p.base_rtt.value_or(path.base_rtt).ps())),
        bits_per_ps_(static_cast<double>(nic_.bps()) * 1e-12),
        target_(p.target),
        stages_(p.stages),
        max_(bits_per_ps_ * rtt_ / 8),
        min_(max_ *
             (p.min_rate ? static_cast<double>(p.min_rate->bps()) / static_cast<double>(nic_.bps()) : 1.0 / 1000)),
        additive_(p.additive ? static_cast<double>(p.additive->count())
                             : max_ * (1 - p.target) / static_cast<double>(p.flows)),
        window_(max_),
        reference_(max_) {}

  Allowance start(Time) override { return allowance(); }
  Allowance on_cnp(Moment) override { return allowance(); }
  Allowance on_loss(const LossEvent&) override { return allowance(); }
  Allowance on_timer(Moment) override { return allowance(); }
  Allowance on_bytes_sent(Moment) override { return allowance(); }

  Allowance on_ack(const AckEvent& ack) override {
    const bool measured = measure(ack);
    if (!measured) {
      if (reference_until_ == 0) reference_until_ = ack.next_psn;
      return allowance();
    }
    const bool once_per_rtt = ack.acked_psn > reference_until_;
    compute_window(once_per_rtt);
    if (once_per_rtt) reference_until_ = ack.next_psn;
    return allowance();
  }

 private:
  Allowance allowance() const {
    Allowance result;
    result.window = to_window(window_ * payload_share_);
    result.rate = to_rate(window_ * 8e12 / rtt_, nic_);
    return result;
  }

  /// MeasureInflight: U, and whether there was a measurement. A hop that has no predecessor, after a change of path, or
  /// whose data is older than the known one (packets that overtook each other), is only recorded.
  bool measure(const AckEvent& ack) {
    const std::span<const HopTelemetry> hops = ack.hops;
    const Time gap = ack.at.now - std::exchange(last_ack_, ack.at.now);
    if (hops.size() != known_hops_ || gap > HopTelemetry::max_gap) {
      known_hops_ = std::min(hops.size(), last_.size());
      std::copy_n(hops.begin(), known_hops_, last_.begin());
      return false;
    }
    double largest = -1;
    double span = 0;
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const HopTelemetry hop = hops[i];
      HopTelemetry& last = last_[i];
      if (!hop.port().is_same_port(last.port())) {
        last = hop;
        continue;
      }
      const auto elapsed = static_cast<double>(hop.elapsed_since(last).ps());
      if (elapsed <= 0) continue;
      // (queue / T + sent / elapsed) / rate, over a common denominator: the one division of a hop.
      const auto sent = static_cast<double>(hop.transmitted_since(last).count());
      const auto queue = static_cast<double>(std::min(hop.queued(), last.queued()).count());
      const double load =
          (queue * elapsed + sent * rtt_) * 8e12 / (elapsed * rtt_ * static_cast<double>(ack.rate_of(hop).bps()));
      if (load > largest) {
        largest = load;
        span = elapsed;
      }
      last = hop;
    }
    if (largest < 0) return false;
    const double weight = std::min(span, rtt_) / rtt_;
    load_ = (1 - weight) * load_ + weight * largest;
    return true;
  }

  /// ComputeWind, on the reference window W_c; `commit`: the result becomes the reference.
  void compute_window(bool commit) {
    const bool multiplicative = load_ >= target_ || stage_ >= stages_;
    window_ = multiplicative ? reference_ / (load_ / target_) + additive_ : reference_ + additive_;
    window_ = std::clamp(window_, min_, max_);
    if (!commit) return;
    stage_ = multiplicative ? 0 : stage_ + 1;
    reference_ = window_;
  }

  const Bandwidth nic_;
  const double payload_share_;
  const double rtt_;  ///< T, ps
  const double bits_per_ps_;
  const double target_;
  const std::int64_t stages_;
  const double max_;  ///< W_init, wire bytes
  const double min_;
  const double additive_;
  double window_;     ///< W, wire bytes
  double reference_;  ///< W_c
  double load_ = 1;   ///< U
  std::int64_t stage_ = 0;
  std::uint64_t reference_until_ = 0;
  Time last_ack_;
  std::size_t known_hops_ = 0;
  std::array<HopTelemetry, max_telemetry_hops> last_;  ///< [known_hops_]; in the object, with which it is fetched
};

class HpccKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    const CongestionParameters in(spec);
    in.read("target_utilisation", p_.target, 0.5, 1);
    in.read("max_stage", p_.stages, 0, 1'000);
    in.read("flows", p_.flows, 1, 1'000'000);
    in.read("additive_increase", p_.additive, Bytes(1), Bytes(1'000'000));
    in.read("base_rtt", p_.base_rtt, Time::from_ns(100), Time::from_ms(100));
    in.read("min_rate", p_.min_rate, Bandwidth::from_bps(1'000), Bandwidth::from_gbps(10'000));
    in.finish();
    if (in.has("flows") && in.has("additive_increase"))
      throw in.error("flows",
                     "additive_increase is given too, and replaces what flows would give; expected one of the two");
    if (p_.target == 1 && !p_.additive)
      throw in.error("target_utilisation",
                     "1 leaves no room for an additive increase; below 1, or give additive_increase");
    in_ = in;
  }
  void check(const FlowPath& path) const override {
    if (p_.base_rtt && *p_.base_rtt < path.base_rtt)
      throw in_->error("base_rtt", "found " + to_text(*p_.base_rtt) + ", below the " + to_text(path.base_rtt) +
                                       " of an idle path; expected at least the longest of the network");
    if (p_.min_rate && *p_.min_rate > path.nic_rate)
      throw in_->error("min_rate", "found " + to_text(*p_.min_rate) + ", above the " + to_text(path.nic_rate) +
                                       " of a host's port; expected at most that rate");
  }
  Services services() const override {
    Services result;
    result.telemetry = true;
    return result;
  }
  EcnMarking default_marking(Bandwidth, Time) const override { return {Bytes::max(), Bytes::max(), 0}; }
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    return std::make_unique<Hpcc>(p_, path);
  }

 private:
  HpccParameters p_;
  std::optional<CongestionParameters> in_;
};

const Registration<CongestionControlKind, HpccKind> hpcc_registration(
    "hpcc", "window by in-band telemetry of each hop, of Li et al. 2019");

}  // namespace
}  // namespace weft
