// SPDX-License-Identifier: GPL-2.0-only
// DCQCN's reaction point against the recurrences of Y. Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484,
// section 3.1.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::dcqcn_test {
namespace {

using namespace literals;

const FlowPath path{Bandwidth::from_gbps(40), Time::from_us(8), Bytes(1000), Bytes(82), 2};
constexpr double line = 40e9;
constexpr Time us = Time::from_us(1);

/// A reaction point that sends only on request, with its clock.
struct Point {
  explicit Point(const std::string& yaml) : control(congestion_control("dcqcn", yaml)->make(path)) {
    allowance = control->start(Time());
  }
  double cnp(Time now) {
    run_timers(now);
    allowance = control->on_cnp({now, sent});
    return rate();
  }
  void run_timers(Time until) {
    while (allowance.next_timer <= until) allowance = control->on_timer({allowance.next_timer, sent});
  }
  double timer() {
    allowance = control->on_timer({allowance.next_timer, sent});
    return rate();
  }
  double bytes(Time now) {
    sent = allowance.next_bytes;
    allowance = control->on_bytes_sent({now, sent});
    return rate();
  }
  double rate() const { return static_cast<double>(allowance.rate.bps()); }

  std::unique_ptr<CongestionControl> control;
  Allowance allowance;
  Bytes sent;
};

TEST(dcqcn, a_flow_starts_at_line_rate_without_timers) {
  const Point point("");
  EXPECT_EQ(point.allowance.rate, path.nic_rate);
  EXPECT_EQ(point.allowance.window, Bytes::max());
  EXPECT_EQ(point.allowance.next_timer, Time::max());
  EXPECT_EQ(point.allowance.next_bytes, Bytes::max());
}

TEST(dcqcn, cnps_cut_the_rate_by_half_of_alpha) {
  // Equations 1: R_C <- R_C (1 - a / 2), then a <- (1 - g) a + g, so a_k = 1 - (1 - a_0) (1 - g)^k. The CNPs come every
  // 50 us, before the alpha timer (55 us) and the increase timer run out.
  Point point("{initial_alpha: 0.25, min_rate: 1 kb/s}");
  double expected = line;
  for (int k = 0; k < 20; ++k) {
    const double alpha = 1 - 0.75 * std::pow(255.0 / 256, k);
    expected *= 1 - alpha / 2;
    EXPECT_NEAR(point.cnp(100 * us + k * 50 * us), expected, 1 + 1e-9 * expected) << "CNP " << k;
  }
}

TEST(dcqcn, alpha_falls_while_there_is_no_cnp) {
  // Equation 2: a <- (1 - g) a for every K = 55 us since the last CNP.
  for (const int periods : {0, 1, 2, 10, 100}) {
    Point point("{initial_alpha: 0.5, increase_period: 131071 us, increase_bytes: 1 TB}");
    const double first = point.cnp(Time());
    EXPECT_NEAR(first, line * 0.75, 1);
    const double alpha = (255.0 / 256 * 0.5 + 1.0 / 256) * std::pow(255.0 / 256, periods);
    EXPECT_NEAR(point.cnp(periods * 55 * us + 54 * us), first * (1 - alpha / 2), 2) << periods << " periods";
  }
}

TEST(dcqcn, fast_recovery_halves_the_way_to_the_target) {
  // F = 5 times R_C <- (R_T + R_C) / 2 with R_T the rate before the cut: R_T - (R_T - R_C) / 2^j.
  Point point("increase_bytes: 1 TB");
  const double cut = point.cnp(7 * us);
  EXPECT_NEAR(cut, line / 2, 1);
  for (int j = 1; j <= 5; ++j) {
    EXPECT_EQ(point.allowance.next_timer, 7 * us + j * 55 * us);
    EXPECT_NEAR(point.timer(), line - line / 2 / std::pow(2.0, j), 1) << "step " << j;
  }
}

TEST(dcqcn, additive_increase_moves_the_target_by_r_ai) {
  // After two cuts to 1/4 the target is 1/2 of the line. From step F + 1 on: R_T <- R_T + R_AI, R_C <- (R_T + R_C) / 2.
  Point point("{increase_bytes: 1 TB, additive_increase: 1 Gb/s}");
  point.cnp(Time());
  double rate = point.cnp(50 * us);
  double target = line / 2;
  EXPECT_NEAR(rate, line / 4, 1);
  for (int step = 1; step <= 12; ++step) {
    if (step > 5) target += 1e9;
    rate = (target + rate) / 2;
    EXPECT_NEAR(point.timer(), rate, 2) << "step " << step;
  }
}

// With T and BC both above F the target rises by i R_HAI, i = min(T, BC) - F; with only one of them by R_AI.
void expect_hyper_increase(const std::string& hyper) {
  Point point("{additive_increase: 10 Mb/s, " + hyper + "fast_recovery: 2, initial_alpha: 1}");
  for (int k = 0; k < 4; ++k) point.cnp(k * us);
  double rate = line / 16;
  double target = line / 8;
  int timers = 0;
  int counters = 0;
  for (int step = 0; step < 14; ++step) {
    const int later = std::max(timers, counters);
    const int earlier = std::min(timers, counters);
    if (earlier > 2)
      target += 100e6 * (earlier - 2);
    else if (later >= 2)
      target += 10e6;
    rate = (target + rate) / 2;
    const bool by_timer = step % 2 == 0;
    const double got = by_timer ? point.timer() : point.bytes(point.allowance.next_timer - 1_ps);
    ++(by_timer ? timers : counters);
    EXPECT_NEAR(got, rate, 2) << "step " << step;
  }
}

TEST(dcqcn, hyper_increase_when_timer_and_byte_counter_are_beyond_fast_recovery) {
  expect_hyper_increase("hyper_increase: 100 Mb/s, ");
  expect_hyper_increase("");  // 10 R_AI
}

TEST(dcqcn, the_byte_counter_starts_anew_with_each_cut) {
  Point point("increase_bytes: 100 kB");
  point.sent = 12'345_B;
  point.cnp(Time());
  EXPECT_EQ(point.allowance.next_bytes, 112'345_B);
  point.bytes(1_ps);
  EXPECT_EQ(point.allowance.next_bytes, 212'345_B);
  point.sent = 150'000_B;
  point.cnp(2_ps);
  EXPECT_EQ(point.allowance.next_bytes, 250'000_B);
}

TEST(dcqcn, back_at_line_rate_the_timers_stop) {
  Point point("additive_increase: 20 Gb/s");
  point.cnp(Time());
  int steps = 0;
  while (point.allowance.next_timer != Time::max() && steps < 100) {
    point.timer();
    ++steps;
  }
  EXPECT_EQ(point.allowance.rate, path.nic_rate);
  EXPECT_EQ(point.allowance.next_bytes, Bytes::max());
  EXPECT_LE(steps, 36);  // 40 Gb/s / 2^35 is above 1 bit/s, / 2^36 is below
}

TEST(dcqcn, min_rate_is_the_floor) {
  Point point("min_rate: 1 Gb/s");
  for (int k = 0; k < 50; ++k) point.cnp(k * 50 * us);
  EXPECT_EQ(point.allowance.rate, Bandwidth::from_gbps(1));

  Point other("additive_increase: 1 Gb/s");
  for (int k = 0; k < 200; ++k) other.cnp(k * 50 * us);
  EXPECT_EQ(other.allowance.rate, Bandwidth::from_bps(40'000'000)) << "C / 1000";
}

TEST(dcqcn, queue_of_the_fluid_fixed_point) {
  // Y. Zhu et al., "ECN or Delay", CoNEXT 2016, doi:10.1145/2999572.2999593, on DCQCN: N flows at rate C / N see the
  // marking probability p* ~ (R_AI N^2 / (K C^2) (1 / B + N / (T C))^2)^(1/3), in packets, and RED gives it at the
  // queue Kmin + p* / Pmax (Kmax - Kmin). p* is the leading term for p* << 1 of a fluid without feedback delay; a tenth
  // more or less is what is left of the others.
  for (const int flows : {2, 4, 8}) {
    BottleneckLoop::Settings settings;
    for (int i = 0; i < flows; ++i) settings.starts.push_back(Time::from_us(1 + 100 * i));
    settings.rate = path.nic_rate;
    settings.measure_from = Time::from_ms(100);
    settings.until = Time::from_ms(400);
    BottleneckLoop loop(*congestion_control("dcqcn"), settings);
    loop.run();
    const double packet = static_cast<double>((settings.mtu + settings.overhead).count());
    const double c = line / 8 / packet;
    const double additive = 40e6 / 8 / packet;
    const double both = 1 / (10e6 / packet) + flows / (55e-6 * c);
    const double marked = std::cbrt(additive * flows * flows / (55e-6 * c * c) * both * both);
    const double queue = 5'000 + marked / 0.01 * 195'000;
    std::printf("%d flows: mean queue %.0f B, fluid fixed point %.0f B, throughput %.4f, fairness %.4f\n", flows,
                loop.mean_queue(), queue, loop.utilisation(), loop.fairness());
    EXPECT_NEAR(loop.mean_queue(), queue, 0.1 * queue);
    EXPECT_GT(loop.utilisation(), 0.99);
    EXPECT_GT(loop.fairness(), 0.99);
  }
}

// Adapters: NVIDIA DOCA documentation, "DCQCN CC Parameters".

TEST(dcqcn, adapters_cut_at_most_once_per_monitor_period) {
  // rate_reduce_monitor_period 4 us: a CNP 1 us after a cut takes effect 4 us after it.
  Point point("preset: connectx");
  const double first = point.cnp(10 * us);
  EXPECT_NEAR(first, line * (1 - 1023.0 / 2048), 1);
  EXPECT_EQ(point.cnp(11 * us), first);
  EXPECT_EQ(point.allowance.next_timer, 14 * us);
  // alpha at 14 us, in periods of 1 us from 10 us on, (1 - g) a + g in those that had a CNP: 10 to 11, and 11 to 12.
  const double keep = 1019.0 / 1024;
  double alpha = 1023.0 / 1024;
  for (const bool cnp : {true, true, false, false}) alpha = keep * alpha + (cnp ? 1 - keep : 0);
  EXPECT_NEAR(point.timer(), first * (1 - alpha / 2), 2);
}

TEST(dcqcn, adapters_keep_the_target_through_a_burst_of_cnps) {
  // clamp_tgt_rate 0 and clamp_tgt_rate_after_time_inc 1: only the first cut since an increase moves the target. With
  // rpg_threshold 1 the first step after 300 us goes half of the way to it.
  Point point("preset: connectx");
  double rate = 0;
  for (int k = 0; k < 5; ++k) rate = point.cnp(k * 4 * us);
  EXPECT_EQ(point.allowance.next_timer, 16 * us + 300 * us);
  EXPECT_NEAR(point.timer(), (line + rate) / 2, 2);
  // The next cut follows an increase: its target is the rate before it.
  const double before = point.rate();
  rate = point.cnp(400 * us);
  EXPECT_NEAR(point.timer(), (before + rate) / 2, 2);
}

TEST(dcqcn, rates_scale_with_the_link_and_stay_below_it) {
  const auto kind = congestion_control("dcqcn", "{additive_increase: 50 Gb/s}");
  EXPECT_THROW(kind->check(path), InputError);
  try {
    kind->check(path);
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "dcqcn.yaml:1: `additive_increase`: found 50 Gb/s, above the 40 Gb/s of a host's port; "
                 "expected at most that rate");
  }
}

TEST(dcqcn, alpha_must_not_fall_between_two_cnps) {
  EXPECT_THROW(congestion_control("dcqcn", "cnp_interval: 60 us"), InputError);
  EXPECT_THROW(congestion_control("dcqcn", "alpha_period: 50 us"), InputError);
  EXPECT_NO_THROW(congestion_control("dcqcn", "{cnp_interval: 60 us, alpha_period: 61 us}"));
}

TEST(dcqcn, marking_of_the_paper_and_of_adapters) {
  EXPECT_EQ(congestion_control("dcqcn")->default_marking(path.nic_rate, Time()),
            (EcnMarking{Bytes(5'000), Bytes(200'000), 0.01}));
  EXPECT_EQ(congestion_control("dcqcn", "preset: connectx")->default_marking(Bandwidth::from_gbps(100), Time()),
            (EcnMarking{Bytes(400'000), Bytes(1'600'000), 0.2}));
  EXPECT_EQ(congestion_control("dcqcn")->services().cnp_interval, Time::from_us(50));
}

}  // namespace
}  // namespace weft::dcqcn_test
