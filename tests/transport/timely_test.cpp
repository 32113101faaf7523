// SPDX-License-Identifier: GPL-2.0-only
// TIMELY against algorithm 1 of R. Mittal et al., SIGCOMM 2015, doi:10.1145/2785956.2787510, and its patched variant
// against algorithm 2 and the fixed point of Y. Zhu et al., CoNEXT 2016, doi:10.1145/2999572.2999593.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::timely_test {
namespace {

using namespace literals;

const FlowPath path{Bandwidth::from_gbps(10), Time::from_us(10), Bytes(1000), Bytes(0), 2};

/// Completions of 16 kB, each with a round-trip time in microseconds.
struct Sender {
  explicit Sender(const std::string& yaml) : control(congestion_control("timely", yaml)->make(path)) {
    rate = static_cast<double>(control->start(Time()).rate.bps());
  }
  double complete(double rtt) {
    AckEvent ack;
    ack.acked = 16'384_B;
    ack.rtt = Time::from_ps(static_cast<std::int64_t>(rtt * 1e6));
    rate = static_cast<double>(control->on_ack(ack).rate.bps());
    return rate;
  }

  std::unique_ptr<CongestionControl> control;
  double rate = 0;
};

TEST(timely, below_t_low_the_rate_grows_by_delta) {
  Sender sender("initial_rate: 1 Gb/s");
  EXPECT_EQ(sender.complete(20), 1e9);                                                   // the first has no predecessor
  for (int i = 1; i <= 7; ++i) EXPECT_NEAR(sender.complete(20 + i), 1e9 + i * 10e6, 1);  // 10 Mb/s at 10 Gb/s
}

TEST(timely, above_t_high_the_rate_falls_whatever_the_gradient) {
  // R <- R (1 - beta (1 - T_high / rtt)), beta = 0.8, T_high = 500 us.
  Sender sender("");
  sender.complete(2'000);
  EXPECT_NEAR(sender.complete(1'000), 10e9 * (1 - 0.8 * 0.5), 1);
  EXPECT_NEAR(sender.complete(800), 6e9 * (1 - 0.8 * (1 - 500.0 / 800)), 1);
}

TEST(timely, between_them_the_gradient_decides) {
  // rtt_diff <- (1 - alpha) rtt_diff + alpha (rtt - last), alpha = 0.875; gradient = rtt_diff / 20 us; R <- R (1 - beta
  // gradient) if it is positive, else R + delta, and R + 5 delta from the fifth in a row.
  Sender sender("initial_rate: 5 Gb/s");
  sender.complete(100);
  double rate = 5e9;
  double difference = 0;
  double last = 100;
  int falling = 0;
  for (const double rtt : {104.0, 108.0, 110.0, 109.0, 108.0, 108.0, 107.5, 107.0, 106.0, 105.0, 112.0, 108.0, 107.0}) {
    difference = 0.125 * difference + 0.875 * (rtt - last);
    last = rtt;
    const double gradient = difference / 20;
    if (gradient <= 0) {
      ++falling;
      rate += (falling >= 5 ? 5 : 1) * 10e6;
    } else {
      falling = 0;
      rate *= 1 - 0.8 * gradient;
    }
    EXPECT_NEAR(sender.complete(rtt), rate, 2) << "rtt " << rtt;
  }
  EXPECT_EQ(falling, 2);
}

TEST(timely, a_completion_is_a_segment) {
  Sender sender("{initial_rate: 1 Gb/s, segment: 3 kB}");
  AckEvent ack;
  ack.acked = 1000_B;
  ack.rtt = 20_us;
  std::int64_t last = 1'000'000'000;
  for (int i = 1; i <= 12; ++i) {
    const std::int64_t rate = sender.control->on_ack(ack).rate.bps();
    EXPECT_EQ(rate, last + (i % 3 == 0 && i > 3 ? 10'000'000 : 0)) << "ACK " << i;
    last = rate;
  }
}

TEST(timely, patched_weighs_the_gradient) {
  // w = 0 below -1/4, 1 above 1/4, linear between; R <- delta (1 - w) + R (1 - beta w (rtt - T_low) / T_low).
  Sender sender("{variant: patched, initial_rate: 5 Gb/s}");
  sender.complete(100);
  double rate = 5e9;
  double difference = 0;
  double last = 100;
  for (const double rtt : {100.0, 101.0, 120.0, 119.0, 100.0, 60.0, 61.0, 63.0}) {
    difference = 0.125 * difference + 0.875 * (rtt - last);
    last = rtt;
    const double weight = std::min(std::max(2 * difference / 20 + 0.5, 0.0), 1.0);
    rate = 10e6 * (1 - weight) + rate * (1 - 0.008 * weight * (rtt - 50) / 50);
    EXPECT_NEAR(sender.complete(rtt), rate, 2) << "rtt " << rtt;
  }
}

TEST(timely, patched_has_the_fixed_point_of_its_analysis) {
  // No gradient means w = 1/2, so delta = beta R (rtt - T_low) / T_low with R = C / N: rtt* = T_low (1 + N delta /
  // (beta C)). The flows start one after the other with a sixteenth of the line.
  for (const int flows : {2, 16}) {
    BottleneckLoop::Settings settings;
    for (int i = 0; i < flows; ++i) settings.starts.push_back(Time::from_ms(1 + i));
    settings.rate = Bandwidth::from_gbps(10);
    settings.measure_from = Time::from_ms(300);
    settings.until = Time::from_ms(400);
    BottleneckLoop loop(*congestion_control("timely", "{variant: patched, initial_rate: 625 Mb/s}"), settings);
    loop.run();
    const double rtt = 50e-6 * (1 + flows * 10e6 / (0.008 * 10e9));
    const double queue = (rtt - loop.path().base_rtt.seconds()) * 10e9 / 8;
    std::printf("%d flows: mean queue %.0f B, predicted %.0f B, fairness %.5f\n", flows, loop.mean_queue(), queue,
                loop.fairness());
    EXPECT_NEAR(loop.mean_queue(), queue, 0.005 * queue);
    EXPECT_GT(loop.fairness(), 0.9999);
    EXPECT_GT(loop.utilisation(), 0.999);
  }
}

TEST(timely, original_keeps_the_round_trip_between_its_thresholds_from_fair_starts) {
  // Algorithm 1 has no unique fixed point (Zhu et al. 2016): but it keeps the port busy, and the queue below the limit
  // of T_high. Two flows that start equal stay equal.
  BottleneckLoop::Settings settings;
  settings.starts.assign(2, Time::from_us(1));
  settings.rate = Bandwidth::from_gbps(10);
  settings.measure_from = Time::from_ms(100);
  settings.until = Time::from_ms(300);
  BottleneckLoop loop(*congestion_control("timely", "initial_rate: 625 Mb/s"), settings);
  loop.run();
  std::printf("throughput %.4f, fairness %.4f, largest queue %ld B\n", loop.utilisation(), loop.fairness(),
              static_cast<long>(loop.largest_queue()));
  EXPECT_GT(loop.utilisation(), 0.9);
  EXPECT_GT(loop.fairness(), 0.99);
  EXPECT_LT(static_cast<double>(loop.largest_queue()), 500e-6 * 10e9 / 8);
}

TEST(timely, wrong_parameters) {
  EXPECT_THROW(congestion_control("timely", "{low: 100 us, high: 100 us}"), InputError);
  EXPECT_THROW(congestion_control("timely", "low: 600 us"), InputError);
  EXPECT_THROW(congestion_control("timely", "variant: pached"), InputError);
  EXPECT_THROW(congestion_control("timely", "low: 5 us")->check(path), InputError);
  EXPECT_THROW(congestion_control("timely", "initial_rate: 11 Gb/s")->check(path), InputError);
}

}  // namespace
}  // namespace weft::timely_test
