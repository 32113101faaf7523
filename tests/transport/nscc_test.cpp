// SPDX-License-Identifier: GPL-2.0-only
// NSCC against the four cases and the constants of the Ultra Ethernet Specification 1.0, section 3.6.13.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::nscc_test {
namespace {

using namespace literals;

/// The specification's reference network, 100 Gb/s and 12 us, with packets of 4,000 B without headers: BDP 150,000 B.
const FlowPath path{Bandwidth::from_gbps(100), Time::from_us(12), Bytes(4000), Bytes(0), 6};
constexpr double mtu = 4000;
constexpr double product = 150'000;
constexpr Time us = Time::from_us(1);

struct Sender {
  explicit Sender(const std::string& yaml = "quick_adapt: false")
      : control(congestion_control("nscc", yaml)->make(path)) {
    window = control->start(Time()).window;
  }
  double ack(Time now, double delay_us, bool ecn, Bytes bytes = 4000_B) {
    AckEvent event;
    event.at.now = now;
    event.acked = bytes;
    event.rtt = Time::from_ps(static_cast<std::int64_t>((12 + delay_us) * 1e6));
    event.ecn = ecn;
    event.in_flight = window;
    window = control->on_ack(event).window;
    return static_cast<double>(window.count());
  }
  /// Marked and very late, until the window is about `wanted`: each cut halves it at most.
  void shrink(double wanted) {
    // The mean of delays needs many samples (weight 0.0125) to pass the target.
    while (static_cast<double>(window.count()) > wanted) {
      clock += 13 * us;
      ack(clock, 2'000, true);
    }
    // Samples without effect (marked, below the target) bring the mean of delays down again.
    for (int i = 0; i < 2'000; ++i) ack(clock, 2, true);
  }

  std::unique_ptr<CongestionControl> control;
  Bytes window;
  Time clock;
};

TEST(nscc, starts_with_one_and_a_half_products) { EXPECT_EQ(Sender().window, 225'000_B); }

TEST(nscc, no_mark_and_late_is_a_fair_increase) {
  // inc += fi bytes, fi = 5 MTU a, a = BDP / BDP_ref = 1; every 8 MTU or base RTT: cwnd += inc / cwnd, and eta = 0.15
  // MTU a more if a base RTT has passed.
  Sender sender;
  sender.shrink(60'000);
  const double before = static_cast<double>(sender.window.count());
  sender.clock += 12 * us;
  const double after = sender.ack(sender.clock, 20, false);
  EXPECT_NEAR(after, before + 5 * mtu * mtu / before + 0.15 * mtu, 1);
  // Within the round trip the next increase waits for more than 8 packets: those that came since.
  for (int i = 1; i <= 8; ++i) EXPECT_EQ(sender.ack(sender.clock + i * 1_ps, 20, false), after);
  EXPECT_NEAR(sender.ack(sender.clock + 9_ps, 20, false), after + 9 * 5 * mtu * mtu / after, 1);
}

TEST(nscc, no_mark_and_early_is_a_proportional_increase) {
  // inc += alpha bytes (target - delay), alpha = 4 MTU a b / target, b = target / 12 us; without trimming the target is
  // the base RTT of 12 us.
  for (const double delay : {2.0, 6.0, 11.0}) {
    Sender sender;
    sender.shrink(60'000);
    const double before = static_cast<double>(sender.window.count());
    sender.clock += 12 * us;
    EXPECT_NEAR(sender.ack(sender.clock, delay, false),
                before + 4 * mtu / 12 * mtu * (12 - delay) / before + 0.15 * mtu, 1)
        << delay << " us";
  }
}

TEST(nscc, a_window_without_delay_turns_the_increase_exponential) {
  // fi_scale = 0.25 a of the acknowledged bytes at once, as soon as more than a window came with hardly any delay.
  Sender sender;
  sender.shrink(40'000);
  sender.clock += 12 * us;
  double window = sender.ack(sender.clock, 2, false);
  int packets = 0;
  while (static_cast<double>(packets + 1) * mtu <= window) {
    ++packets;
    window = sender.ack(sender.clock + packets * 1_ps, 0.5, false);
  }
  EXPECT_NEAR(sender.ack(sender.clock + (packets + 1) * 1_ps, 0.5, false), window + 0.25 * mtu, 1);
  EXPECT_NEAR(sender.ack(sender.clock + (packets + 2) * 1_ps, 0.5, false), window + 0.5 * mtu, 1);
  EXPECT_NEAR(sender.ack(sender.clock + (packets + 3) * 1_ps, 5, false), window + 0.5 * mtu,
              1000);  // ended by any delay
}

TEST(nscc, a_mark_and_early_changes_nothing) {
  Sender sender;
  sender.shrink(60'000);
  const double before = static_cast<double>(sender.window.count());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(sender.ack(sender.clock + i * 1_ps, 11.9, true), before);
}

TEST(nscc, a_mark_and_late_cuts_by_the_excess_of_the_mean_delay_once_per_round_trip) {
  // cwnd *= max(1 - gamma (mean - target) / mean, 0.5), gamma = 0.8; eta comes on top once per base RTT in any case.
  // The mean has weight 0.0125 by default, here 1.
  Sender sender("{quick_adapt: false, average: 1}");
  const double once = 225'000 * (1 - 0.8 * 3 / 15) + 0.15 * mtu;
  EXPECT_NEAR(sender.ack(13 * us, 15, true), once, 1);
  EXPECT_NEAR(sender.ack(24 * us, 15, true), once, 1);
  EXPECT_NEAR(sender.ack(26 * us, 100, true), once * 0.5 + 0.15 * mtu, 1);
}

TEST(nscc, the_mean_of_delays_has_its_weight) {
  // After n samples of 100 us from 0: 100 (1 - 0.9875^n) us; the target of 12 us is passed at n = 11.
  Sender sender;
  int samples = 0;
  while (sender.window == 225'000_B) {
    ++samples;
    sender.ack(13 * us, 100, true);
    ASSERT_LT(samples, 100);
  }
  EXPECT_EQ(samples, static_cast<int>(std::ceil(std::log(1 - 0.12) / std::log(0.9875))));
}

TEST(nscc, quick_adapt_sets_the_window_to_what_came_through) {
  // Checked every base RTT + target, 24 us: a delay above 4 targets, and less than maxwnd / 8 = 28,125 B came through.
  Sender sender("");
  sender.ack(1 * us, 3, true);  // the first check only starts the clock
  sender.ack(10 * us, 50, true, 8000_B);
  sender.ack(20 * us, 50, true, 8000_B);
  EXPECT_EQ(sender.ack(25 * us, 50, true), 20'000);
  // Marked packets that were in flight then are ignored.
  EXPECT_EQ(sender.ack(40 * us, 50, true), 20'000);
  EXPECT_EQ(sender.ack(50 * us, 50, true), 20'000);
}

TEST(nscc, quick_adapt_leaves_busy_flows_alone) {
  Sender sender("");
  sender.ack(1 * us, 3, true);
  sender.ack(10 * us, 50, true, 30'000_B);  // more than 28,125 B
  EXPECT_GT(sender.ack(25 * us, 50, true), 100'000);
}

TEST(nscc, trimmed_packets_leave_the_window_or_set_it) {
  Sender sender("trimming: true");
  LossEvent loss;
  loss.at.now = 2 * us;
  loss.lost = 4000_B;
  EXPECT_EQ(sender.control->on_loss(loss).window, 221'000_B);  // starts the clock; the window loses the packet
  sender.ack(10 * us, 3, true, 12'000_B);
  loss.at.now = 24 * us;  // base RTT + target, 12 + 9 us, after the first
  EXPECT_EQ(sender.control->on_loss(loss).window, 12'000_B);
}

TEST(nscc, timeouts_take_the_packet_out_of_the_window) {
  Sender sender("");
  LossEvent loss;
  loss.timeout = true;
  loss.lost = 10'000_B;
  EXPECT_EQ(sender.control->on_loss(loss).window, 215'000_B);
  for (int i = 0; i < 50; ++i) sender.control->on_loss(loss);
  EXPECT_EQ(sender.control->on_loss(loss).window, 4'000_B);
}

TEST(nscc, closed_loop_holds_the_queue_between_the_marks_and_the_target) {
  // Increase needs no mark or less delay than the target, decrease both: the queue stays below the target delay's bytes
  // plus a packet per flow, and above the lowest mark.
  for (const int flows : {2, 16}) {
    BottleneckLoop::Settings settings;
    for (int i = 0; i < flows; ++i) settings.starts.push_back(Time::from_us(1 + 100 * i));
    settings.measure_from = Time::from_ms(10);
    settings.until = Time::from_ms(20);
    BottleneckLoop loop(*congestion_control("nscc"), settings);
    loop.run();
    const double bdp = 100e9 * loop.path().base_rtt.seconds() / 8;
    std::printf("%d flows: queue %.0f to %.0f B, mean %.0f; product %.0f B; fairness %.4f\n", flows,
                static_cast<double>(loop.min_queue()), static_cast<double>(loop.largest_queue()), loop.mean_queue(),
                bdp, loop.fairness());
    EXPECT_GT(loop.utilisation(), 0.999);
    EXPECT_GT(loop.fairness(), 0.99);
    EXPECT_GT(static_cast<double>(loop.min_queue()), 0.2 * bdp);
    EXPECT_LT(static_cast<double>(loop.largest_queue()), bdp + 1048.0 * flows);
  }
}

TEST(nscc, marking_and_parameters) {
  EXPECT_EQ(congestion_control("nscc")->default_marking(path.nic_rate, path.base_rtt),
            (EcnMarking{Bytes(static_cast<std::int64_t>(0.2 * product)),
                        Bytes(static_cast<std::int64_t>(0.8 * product)), 1}));
  EXPECT_THROW(congestion_control("nscc", "base_rtt: 11 us")->check(path), InputError);
  EXPECT_THROW(congestion_control("nscc", "max_decrease: 1"), InputError);
}

}  // namespace
}  // namespace weft::nscc_test
