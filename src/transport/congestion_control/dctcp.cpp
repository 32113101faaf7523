// SPDX-License-Identifier: GPL-2.0-only
// DCTCP: the window is cut by the share of marked bytes. M. Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192;
// the parts that the paper leaves to TCP follow RFC 8257, RFC 5681 and RFC 3168.
#include <algorithm>

#include "transport/congestion_control/congestion_parameters.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

struct DctcpParameters {
  double gain = 1.0 / 16;  ///< g
  double initial_alpha = 1;
  std::optional<Bytes> initial_window;  ///< payload; the bandwidth-delay product if absent
};

class Dctcp final : public CongestionControl {
 public:
  Dctcp(const DctcpParameters& parameters, const FlowPath& path)
      : gain_(parameters.gain),
        mtu_(static_cast<double>(path.mtu.count())),
        alpha_(parameters.initial_alpha),
        window_(parameters.initial_window ? static_cast<double>(parameters.initial_window->count())
                                          : std::max(wire_bdp(path) * payload_share(path), mtu_)) {}

  Allowance start(Time) override { return allowance(); }
  Allowance on_cnp(Moment) override { return allowance(); }
  Allowance on_timer(Moment) override { return allowance(); }
  Allowance on_bytes_sent(Moment) override { return allowance(); }

  Allowance on_ack(const AckEvent& ack) override {
    const auto acked = static_cast<double>(ack.acked.count());
    acked_ += acked;
    if (ack.ecn) marked_ += acked;
    if (ack.acked_psn >= window_end_) end_window(ack.next_psn);
    if (ack.ecn) {
      // Beyond, not at: the last packet that left before the cut was of the window that was cut for already.
      if (ack.acked_psn > reduced_until_) reduce(ack.next_psn, 1 - alpha_ / 2);
    } else if (static_cast<double>(ack.in_flight.count()) + acked >
               window_ - mtu_) {  // the window was in use (RFC 8257 cites RFC 7661)
      window_ += window_ < slow_start_below_ ? acked : mtu_ * acked / window_;
    }
    return allowance();
  }

  /// As any TCP (RFC 8257, 3.5): half the window for a loss, one packet after a timeout.
  Allowance on_loss(const LossEvent& loss) override {
    if (loss.acked_psn >= reduced_until_) reduce(loss.next_psn, 0.5);  // the packet of this very number is lost
    if (loss.timeout) window_ = mtu_;
    return allowance();
  }

 private:
  Allowance allowance() const {
    Allowance result;
    result.window = to_window(window_);
    return result;
  }
  /// alpha = (1 - g) alpha + g F, once per window of data.
  void end_window(std::uint64_t next_psn) {
    if (acked_ > 0) alpha_ = (1 - gain_) * alpha_ + gain_ * (marked_ / acked_);
    acked_ = 0;
    marked_ = 0;
    window_end_ = next_psn;
  }
  /// Callers make sure that this happens at most once per window of data.
  void reduce(std::uint64_t next_psn, double factor) {
    reduced_until_ = next_psn;
    window_ = std::max(window_ * factor, mtu_);
    slow_start_below_ = window_;
  }

  const double gain_;
  const double mtu_;
  double alpha_;
  double window_;                    ///< payload bytes
  double slow_start_below_ = 1e300;  ///< ssthresh
  double acked_ = 0;                 ///< payload bytes of this window of data
  double marked_ = 0;
  std::uint64_t window_end_ = 0;     ///< alpha changes when all before this number is acknowledged
  std::uint64_t reduced_until_ = 0;  ///< no second cut before all before this number is acknowledged
};

class DctcpKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    const CongestionParameters in(spec);
    in.read("gain", p_.gain, 0x1p-20, 1);
    in.read("initial_alpha", p_.initial_alpha, 0, 1);
    in.read("initial_window", p_.initial_window, Bytes(1), Bytes(std::int64_t{1} << 40));
    in.finish();
    in_ = in;
  }
  void check(const FlowPath& path) const override {
    if (p_.initial_window && *p_.initial_window < path.mtu)
      throw in_->error("initial_window", "found " + to_text(*p_.initial_window) + "; expected at least one packet of " +
                                             to_text(path.mtu) + " (network.mtu)");
  }
  Services services() const override {
    Services result;
    result.ecn = true;
    return result;
  }
  /// A step: 30 kB per 10 Gb/s (Li et al., SIGCOMM 2019, section 5.1), or C RTT / 7 (section 3.4 of the paper) if more.
  EcnMarking default_marking(Bandwidth port, Time base_rtt) const override {
    const auto bursts = static_cast<std::int64_t>(static_cast<__int128>(30'000) * port.bps() / 10'000'000'000);
    const auto product = static_cast<std::int64_t>(wire_bytes(static_cast<double>(port.bps()), base_rtt) / 7) + 1;
    const Bytes step(std::max(bursts, product));
    return {step, step, 1};
  }
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    return std::make_unique<Dctcp>(p_, path);
  }

 private:
  DctcpParameters p_;
  std::optional<CongestionParameters> in_;
};

const Registration<CongestionControlKind, DctcpKind> dctcp_registration(
    "dctcp", "window cut by the share of ECN-marked bytes, of Alizadeh et al. 2010");

}  // namespace
}  // namespace weft
