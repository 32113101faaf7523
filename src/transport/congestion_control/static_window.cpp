// SPDX-License-Identifier: GPL-2.0-only
// No congestion control: the static window of the queue pair is the only limit.
#include <algorithm>

#include "transport/congestion_control/congestion_parameters.hpp"

namespace weft {
namespace {

class StaticWindow final : public CongestionControl {
 public:
  explicit StaticWindow(Bytes window) : allowance_{.window = window} {}
  Allowance start(Time) override { return allowance_; }
  Allowance on_ack(const AckEvent&) override { return allowance_; }
  Allowance on_cnp(Moment) override { return allowance_; }
  Allowance on_loss(const LossEvent&) override { return allowance_; }
  Allowance on_timer(Moment) override { return allowance_; }
  Allowance on_bytes_sent(Moment) override { return allowance_; }

 private:
  Allowance allowance_;
};

class StaticWindowKind final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    const CongestionParameters parameters(spec);
    parameters.read("window", window_, Bytes(1), Bytes(std::int64_t{1} << 50));
    parameters.finish();
  }
  void check(const FlowPath&) const override {}
  Services services() const override { return {.acks = false}; }
  EcnMarking default_marking(Bandwidth, Time) const override { return {Bytes::max(), Bytes::max(), 0}; }
  std::unique_ptr<CongestionControl> make(const FlowPath&) const override {
    return std::make_unique<StaticWindow>(window_.value_or(Bytes::max()));
  }

 private:
  std::optional<Bytes> window_;
};

const Registration<CongestionControlKind, StaticWindowKind> static_window_registration(
    "none", "only the static window of a queue pair");

}  // namespace
}  // namespace weft
