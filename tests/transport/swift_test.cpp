// SPDX-License-Identifier: GPL-2.0-only
// Swift against algorithm 1 and the target of section 3.5 of G. Kumar et al., SIGCOMM 2020,
// doi:10.1145/3387514.3406591.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::swift_test {
namespace {

using namespace literals;

const FlowPath path{Bandwidth::from_gbps(100), Time::from_us(10), Bytes(1000), Bytes(0), 4};
constexpr Time us = Time::from_us(1);

/// base 20 us, 1 us a hop, scaling range 40 us from 0.1 to 100 packets.
const std::string parameters = "base_target: 20 us, hop_target: 1 us, scaling_range: 40 us";

/// Target delay in us: base + hops h + clamp(a / sqrt(w) + b, 0, range), a = range / (1/sqrt(w_min) - 1/sqrt(w_max)),
/// b = -a / sqrt(w_max).
double target(double window) {
  const double a = 40 / (1 / std::sqrt(0.1) - 1 / std::sqrt(100));
  return 20 + 4 + std::min(std::max(a / std::sqrt(window) - a / std::sqrt(100), 0.0), 40.0);
}

struct Sender {
  Sender(double window, const std::string& more = "")
      : control(
            congestion_control("swift", "{" + parameters + ", initial_window: " + std::to_string(window) + more + "}")
                ->make(path)) {
    allowance = control->start(Time());
  }
  const Allowance& ack(Time now, double rtt_us) {
    AckEvent event;
    event.at.now = now;
    event.acked = 1000_B;
    event.rtt = Time::from_ps(static_cast<std::int64_t>(rtt_us * 1e6));
    return allowance = control->on_ack(event);
  }

  std::unique_ptr<CongestionControl> control;
  Allowance allowance;
};

TEST(swift, the_target_scales_with_the_window) {
  for (const double window : {1.0, 2.0, 5.0, 30.0, 100.0, 150.0}) {
    // Below the target the window grows by ai / w; above it, it falls by beta of the excess.
    const double t = target(window);
    EXPECT_NEAR(static_cast<double>(Sender(window).ack(us, t - 0.001).window.count()), (window + 1 / window) * 1000, 1);
    EXPECT_NEAR(static_cast<double>(Sender(window).ack(us, t + 0.001).window.count()),
                std::max(window * (1 - 0.8 * 0.001 / t), 1.0) * 1000, 1);
  }
  EXPECT_DOUBLE_EQ(target(100), 24);
  EXPECT_DOUBLE_EQ(target(0.1), 64);
  EXPECT_DOUBLE_EQ(target(0.001), 64);
}

TEST(swift, the_cut_is_proportional_to_the_excess_and_bounded) {
  // w <- w max(1 - beta (d - t) / d, 1 - max_mdf), beta = 0.8, max_mdf = 0.5.
  const double t = target(50);
  for (const double delay : {t * 1.1, t * 1.5, t * 2, t * 10}) {
    const double factor = std::max(1 - 0.8 * (delay - t) / delay, 0.5);
    EXPECT_NEAR(static_cast<double>(Sender(50).ack(us, delay).window.count()), 50'000 * factor, 1);
  }
}

TEST(swift, one_cut_per_round_trip) {
  Sender sender(50);
  const Bytes first = sender.ack(100 * us, 500).window;
  EXPECT_EQ(first, 25'000_B);
  EXPECT_EQ(sender.ack(599 * us, 500).window, first);
  EXPECT_EQ(sender.ack(600 * us, 500).window, first / 2);
}

TEST(swift, additive_increase_is_one_packet_per_window) {
  Sender sender(10);
  double window = 10;
  for (int i = 0; i < 100; ++i) window += 1 / window;
  for (int i = 0; i < 100; ++i) sender.ack(i * us, 20);
  EXPECT_NEAR(static_cast<double>(sender.allowance.window.count()), window * 1000, 1);
}

TEST(swift, windows_below_a_packet_are_paced) {
  // One packet per rtt / w; here below one packet the window grows by ai for each acknowledged packet.
  Sender sender(0.25);
  EXPECT_EQ(sender.allowance.window, 1000_B);
  EXPECT_NEAR(static_cast<double>(sender.allowance.rate.bps()), 8000 * 0.25 / 10e-6, 1);  // base_rtt of the path
  sender.ack(us, 200);                                                                    // beyond the target: half
  EXPECT_NEAR(static_cast<double>(sender.allowance.rate.bps()), 8000 * 0.125 / 200e-6, 1);
  sender.ack(2 * us, 20);
  EXPECT_EQ(sender.allowance.window, 1125_B);
  EXPECT_EQ(sender.allowance.rate, Bandwidth());
}

TEST(swift, windows_stay_within_their_bounds) {
  Sender sender(1, ", min_window: 0.01, max_window: 3");
  for (int i = 0; i < 40; ++i) sender.ack(i * 1000 * us, 900);
  EXPECT_NEAR(static_cast<double>(sender.allowance.rate.bps()), 8000 * 0.01 / 900e-6, 1);
  for (int i = 0; i < 40; ++i) sender.ack((40 + i) * 1000 * us, 20);
  EXPECT_EQ(sender.allowance.window, 3000_B);
}

TEST(swift, losses_cut_and_many_timeouts_reset) {
  Sender sender(64);
  LossEvent loss;
  loss.at.now = 100 * us;
  EXPECT_EQ(sender.control->on_loss(loss).window, 32'000_B);
  loss.at.now += us;  // within a round trip
  EXPECT_EQ(sender.control->on_loss(loss).window, 32'000_B);
  loss.timeout = true;
  for (int i = 1; i <= 4; ++i) {
    loss.at.now += 1000 * us;
    EXPECT_EQ(sender.control->on_loss(loss).window, Bytes(32'000 >> i));
  }
  loss.at.now += 1000 * us;
  EXPECT_NEAR(static_cast<double>(sender.control->on_loss(loss).rate.bps()), 8000 * 0.001 / 10e-6, 1);
}

TEST(swift, acks_of_retransmitted_packets_carry_no_delay) {
  Sender sender(10);
  const Allowance before = sender.allowance;
  EXPECT_EQ(sender.ack(us, 0), before);
}

TEST(swift, closed_loop_keeps_the_delay_at_the_target_of_the_fair_window) {
  // N windows of w packets fill the round trip: N w = C rtt, rtt = target(w). Windows admit whole packets and grow by
  // one before they see the target passed, so the queue lies within one packet per flow of that.
  for (const int flows : {2, 16}) {
    BottleneckLoop::Settings settings;
    for (int i = 0; i < flows; ++i) settings.starts.push_back(Time::from_us(1 + 100 * i));
    settings.mtu = Bytes(4000);
    settings.overhead = Bytes(0);
    settings.measure_from = Time::from_ms(20);
    settings.until = Time::from_ms(40);
    const auto kind = congestion_control("swift", "{base_target: 20 us, hop_target: 2 us, scaling_range: 40 us}");
    BottleneckLoop loop(*kind, settings);
    loop.run();
    double rtt = 24;
    for (int i = 0; i < 100; ++i) rtt = target(100e9 * rtt * 1e-6 / 8 / 4000 / flows);
    const double queue = (rtt * 1e-6 - loop.path().base_rtt.seconds()) * 100e9 / 8;
    std::printf("%d flows: mean queue %.0f B, predicted %.0f B, fairness %.5f\n", flows, loop.mean_queue(), queue,
                loop.fairness());
    EXPECT_NEAR(loop.mean_queue(), queue, 4000 * flows);
    EXPECT_GT(loop.fairness(), 0.999);
    EXPECT_GT(loop.utilisation(), 0.999);
  }
}

TEST(swift, fractional_windows_share_a_slow_port) {
  // 200 senders at 10 Gb/s, base 30 us: a fair share is 0.19 packets of 1,000 B, which only pacing can give.
  BottleneckLoop::Settings settings;
  for (int i = 0; i < 200; ++i) settings.starts.push_back(Time::from_ns(1'000 + 137 * i));
  settings.rate = Bandwidth::from_gbps(10);
  settings.overhead = Bytes(0);
  settings.measure_from = Time::from_ms(40);
  settings.until = Time::from_ms(80);
  const auto kind = congestion_control("swift", "{base_target: 10 us, hop_target: 1 us, scaling_range: 20 us}");
  BottleneckLoop loop(*kind, settings);
  loop.run();
  std::printf("200 flows: throughput %.4f, mean queue %.0f B, fairness %.4f\n", loop.utilisation(), loop.mean_queue(),
              loop.fairness());
  // Without pacing each sender has a packet in flight at all times: a queue of 200 packets less the path's.
  EXPECT_LT(loop.mean_queue(), 60'000);
  EXPECT_GT(loop.utilisation(), 0.9);
  EXPECT_GT(loop.fairness(), 0.9);
}

TEST(swift, targets_below_an_idle_round_trip_are_refused) {
  EXPECT_THROW(congestion_control("swift", "{base_target: 9 us, hop_target: 0 us}")->check(path), InputError);
  EXPECT_NO_THROW(congestion_control("swift", "{base_target: 9 us, hop_target: 1 us}")->check(path));
  EXPECT_NO_THROW(congestion_control("swift")->check({path.nic_rate, Time::from_ms(10), path.mtu, Bytes(0), 1}));
  EXPECT_THROW(congestion_control("swift", "{scaling_min_window: 5, scaling_max_window: 5}"), InputError);
}

}  // namespace
}  // namespace weft::swift_test
