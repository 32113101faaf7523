// SPDX-License-Identifier: GPL-2.0-only
// DCQCN: the rate of a queue pair follows the CNPs of its receiver. Y. Zhu et al., SIGCOMM 2015,
// doi:10.1145/2785956.2787484; parameters of adapters: NVIDIA DOCA documentation, "DCQCN CC Parameters".
#include <algorithm>

#include "transport/congestion_control/congestion_parameters.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

/// One value for each symbol of the paper, and what adapters do beyond it.
struct DcqcnParameters {
  bool connectx = false;                     ///< alpha and target as adapters treat them, see below
  double gain = 1.0 / 256;                   ///< g
  double initial_alpha = 1;                  ///< at the first CNP
  Time alpha_period = Time::from_us(55);     ///< K
  Time increase_period = Time::from_us(55);  ///< T
  Bytes increase_bytes = Bytes(10'000'000);  ///< B
  std::int64_t fast_recovery = 5;            ///< F
  std::optional<Bandwidth> additive;         ///< R_AI
  std::optional<Bandwidth> hyper;            ///< R_HAI
  std::optional<Bandwidth> min_rate;         ///< R_min
  Time cut_period;                           ///< least time between two cuts
  double largest_cut = 1;                    ///< a cut keeps at least 1 - largest_cut of the rate
  Time cnp_interval = Time::from_us(50);     ///< N

  static DcqcnParameters adapters() {
    DcqcnParameters p;
    p.connectx = true;
    p.gain = 5.0 / 1024;                                  // dce_tcp_g 1019: alpha keeps 1019/1024 of itself
    p.initial_alpha = 1023.0 / 1024;                      // initial_alpha_value
    p.alpha_period = Time::from_us(1);                    // dce_tcp_rtt
    p.increase_period = Time::from_us(300);               // rpg_time_reset
    p.increase_bytes = Bytes(std::int64_t{32'767} * 64);  // rpg_byte_reset, in units of 64 B
    p.fast_recovery = 1;                                  // rpg_threshold
    p.cut_period = Time::from_us(4);                      // rate_reduce_monitor_period
    p.largest_cut = 0.5;                                  // rpg_min_dec_fac
    p.cnp_interval = Time::from_us(4);                    // min_time_between_cnps
    return p;
  }
  /// Rates by link speed, where the experiment gives none; see docs/reference/congestion_control.md.
  DcqcnParameters with_rates(Bandwidth nic) const {
    DcqcnParameters p = *this;
    const std::int64_t bps = nic.bps();
    const auto scaled = [bps](std::int64_t rate, std::int64_t of) {
      return Bandwidth::from_bps(
          std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<__int128>(bps) * rate / of), 1));
    };
    if (!p.additive) p.additive = connectx ? scaled(5, 25'000) : scaled(40, 40'000);
    if (!p.hyper) p.hyper = connectx ? scaled(50, 25'000) : Bandwidth::from_bps(10 * p.additive->bps());
    if (!p.min_rate)
      p.min_rate = connectx ? Bandwidth::from_bps(std::min<std::int64_t>(1'000'000, bps)) : scaled(1, 1'000);
    return p;
  }
};

/// The reaction point of one queue pair.
class Dcqcn final : public CongestionControl {
 public:
  Dcqcn(const DcqcnParameters& parameters, const FlowPath& path)
      : p_(parameters.with_rates(path.nic_rate)),
        nic_(path.nic_rate),
        line_(static_cast<double>(nic_.bps())),
        rate_(line_),
        target_(line_) {}

  Allowance start(Time) override { return allowance(); }
  Allowance on_ack(const AckEvent& ack) override { return after(ack.at); }
  Allowance on_loss(const LossEvent& loss) override { return after(loss.at); }
  Allowance on_timer(Moment at) override { return after(at); }

  Allowance on_cnp(Moment at) override {
    catch_up(at);
    if (alpha_at_ == Time::max()) {
      alpha_ = p_.initial_alpha;
      alpha_at_ = at.now;
    } else {
      decay_alpha(at.now);
    }
    cnp_in_period_ = true;
    if (p_.cut_period > Time() && last_cut_ != Time::max() && at.now < last_cut_ + p_.cut_period)
      cut_at_ = last_cut_ + p_.cut_period;
    else
      cut(at.now, at.sent);
    return allowance();
  }

  Allowance on_bytes_sent(Moment at) override {
    catch_up(at);
    while (at.sent >= bytes_at_) {
      bytes_at_ += p_.increase_bytes;
      increase(byte_stage_);
    }
    return allowance();
  }

 private:
  bool limited() const { return rate_ < line_; }

  Allowance after(Moment at) {
    catch_up(at);
    return allowance();
  }
  Allowance allowance() const {
    Allowance result;
    result.rate = to_rate(rate_, nic_);
    result.next_timer = std::min(cut_at_, increase_at_);
    result.next_bytes = bytes_at_;
    return result;
  }

  /// All timers up to `at`, in order.
  void catch_up(Moment at) {
    for (Time next = std::min(cut_at_, increase_at_); next <= at.now; next = std::min(cut_at_, increase_at_)) {
      if (next == cut_at_) {
        decay_alpha(next);
        cut(next, at.sent);
      } else {
        increase_at_ += p_.increase_period;
        increase(time_stage_);
      }
    }
  }

  /// The periods of alpha that have ended. A paper's reaction point counts them from the last CNP, at which alpha grew;
  /// an adapter's from the first, and alpha grows at the end of a period with a CNP.
  void decay_alpha(Time now) {
    const Time period = p_.alpha_period;
    if (p_.connectx && cnp_in_period_ && alpha_at_ + period <= now) {
      alpha_ = (1 - p_.gain) * alpha_ + p_.gain;
      alpha_at_ += period;
      cnp_in_period_ = false;
    }
    // Below the limit a cut does not change any whole rate; without it, an idle year would take a year.
    for (; alpha_at_ + period <= now; alpha_at_ += period) {
      alpha_ *= 1 - p_.gain;
      if (alpha_ < min_alpha) {
        alpha_ = 0;
        alpha_at_ += (now - alpha_at_) / period * period;
        break;
      }
    }
  }

  void cut(Time now, Bytes sent) {
    // The target of an adapter stays where it was if nothing was gained since the last cut (clamp_tgt_rate 0,
    // clamp_tgt_rate_after_time_inc 1).
    if (!p_.connectx || time_stage_ > 0 || byte_stage_ > 0 || last_cut_ == Time::max()) target_ = rate_;
    const double kept = std::max(1 - alpha_ / 2, 1 - p_.largest_cut);
    rate_ = std::max(rate_ * kept, std::min(static_cast<double>(p_.min_rate->bps()), rate_));
    if (!p_.connectx) {
      alpha_ = (1 - p_.gain) * alpha_ + p_.gain;
      alpha_at_ = now;
    }
    last_cut_ = now;
    cut_at_ = Time::max();
    time_stage_ = 0;
    byte_stage_ = 0;
    increase_at_ = now + p_.increase_period;
    bytes_at_ = sent + p_.increase_bytes;
    if (!limited()) release();
  }

  /// One step of recovery; `stage`, of the timer or of the byte counter, goes up.
  void increase(std::int64_t& stage) {
    const std::int64_t later = std::max(time_stage_, byte_stage_);
    const std::int64_t earlier = std::min(time_stage_, byte_stage_);
    if (earlier > p_.fast_recovery)
      target_ += static_cast<double>(p_.hyper->bps()) * static_cast<double>(earlier - p_.fast_recovery);
    else if (later >= p_.fast_recovery)
      target_ += static_cast<double>(p_.additive->bps());
    ++stage;
    target_ = std::min(target_, line_);
    rate_ = (rate_ + target_) / 2;
    if (rate_ > line_ - 1) release();
  }

  /// Back at line rate: nothing to increase until the next CNP.
  void release() {
    rate_ = line_;
    target_ = line_;
    increase_at_ = Time::max();
    bytes_at_ = Bytes::max();
    if (p_.connectx && cut_at_ == Time::max()) {
      alpha_at_ = Time::max();
      last_cut_ = Time::max();
    }
  }

  static constexpr double min_alpha = 1e-15;

  const DcqcnParameters p_;
  const Bandwidth nic_;
  const double line_;
  double rate_;    ///< R_C, bit/s
  double target_;  ///< R_T, bit/s
  double alpha_ = 1;
  Time alpha_at_ = Time::max();  ///< start of the period of alpha; max: no CNP yet
  bool cnp_in_period_ = false;
  Time last_cut_ = Time::max();
  Time cut_at_ = Time::max();  ///< a CNP waits for the end of the cut period
  Time increase_at_ = Time::max();
  Bytes bytes_at_ = Bytes::max();
  std::int64_t time_stage_ = 0;  ///< T of the paper
  std::int64_t byte_stage_ = 0;  ///< BC of the paper
};

constexpr Time min_time = Time::from_us(1);
constexpr Time longest_time = Time::from_us(131'071);  // the adapters' range
constexpr Bandwidth min_bandwidth = Bandwidth::from_bps(1'000);
constexpr Bandwidth max_bandwidth = Bandwidth::from_gbps(10'000);

class DcqcnKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    const CongestionParameters in(spec);
    if (in.read_word("preset", {"paper", "connectx"}) == "connectx") p_ = DcqcnParameters::adapters();
    in.read("gain", p_.gain, 0x1p-20, 1);
    in.read("initial_alpha", p_.initial_alpha, 0x1p-10, 1);
    in.read("alpha_period", p_.alpha_period, min_time, longest_time);
    in.read("increase_period", p_.increase_period, min_time, longest_time);
    in.read("increase_bytes", p_.increase_bytes, Bytes(64), Bytes(std::int64_t{1} << 40));
    in.read("fast_recovery", p_.fast_recovery, 1, 31);
    in.read("additive_increase", p_.additive, min_bandwidth, max_bandwidth);
    in.read("hyper_increase", p_.hyper, min_bandwidth, max_bandwidth);
    in.read("min_rate", p_.min_rate, min_bandwidth, max_bandwidth);
    in.read("cut_period", p_.cut_period, Time(), longest_time);
    in.read("max_cut", p_.largest_cut, 0.01, 1);
    in.read("cnp_interval", p_.cnp_interval, min_time, Time::from_us(4'095));
    in.finish();
    if (!p_.connectx && p_.alpha_period <= p_.cnp_interval) {
      throw in.error(in.has("alpha_period") ? "alpha_period" : "cnp_interval",
                     "alpha_period is " + to_text(p_.alpha_period) + " and cnp_interval " + to_text(p_.cnp_interval) +
                         "; alpha_period has to be longer, or alpha falls between two CNPs of a congested path");
    }
    in_ = in;
  }

  void check(const FlowPath& path) const override {
    for (const auto& [key, rate] : {std::pair("additive_increase", p_.additive), std::pair("hyper_increase", p_.hyper),
                                    std::pair("min_rate", p_.min_rate)}) {
      if (rate && *rate > path.nic_rate)
        throw in_->error(key, "found " + to_text(*rate) + ", above the " + to_text(path.nic_rate) +
                                  " of a host's port; expected at most that rate");
    }
  }

  Services services() const override {
    Services result;
    result.acks = false;
    result.ecn = true;
    result.cnp_interval = p_.cnp_interval;
    return result;
  }

  /// Paper: 5 kB, 200 kB and 1 % at 40 Gb/s. Adapters: Li et al., SIGCOMM 2019, section 5.1: 100 kB, 400 kB and 20 %
  /// per 25 Gb/s.
  EcnMarking default_marking(Bandwidth port, Time) const override {
    const auto scaled = [port](std::int64_t bytes, std::int64_t gbps) {
      return Bytes(
          static_cast<std::int64_t>(static_cast<__int128>(bytes) * port.bps() / (__int128{gbps} * 1'000'000'000)));
    };
    if (p_.connectx) return {scaled(100'000, 25), scaled(400'000, 25), 0.2};
    return {scaled(5'000, 40), scaled(200'000, 40), 0.01};
  }

  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    return std::make_unique<Dcqcn>(p_, path);
  }

 private:
  DcqcnParameters p_;
  std::optional<CongestionParameters> in_;
};

const Registration<CongestionControlKind, DcqcnKind> dcqcn_registration(
    "dcqcn", "rate control by CNPs, of Zhu et al. 2015; preset: paper or connectx");

}  // namespace
}  // namespace weft
