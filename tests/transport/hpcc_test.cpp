// SPDX-License-Identifier: GPL-2.0-only
// HPCC against algorithm 1 of Y. Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085, step by step and in a closed
// loop.
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::hpcc_test {
namespace {

using namespace literals;

/// 100 Gb/s, 4 us, packets without headers: W_init = 50,000 B. W_AI = 100 B.
const FlowPath path{Bandwidth::from_gbps(100), Time::from_us(4), Bytes(1000), Bytes(0), 2};
constexpr double initial = 50'000;
constexpr double additive = 100;
constexpr Time ns = Time::from_ns(1);

/// A port on the way, at the moment at which a packet leaves it.
struct Hop {
  std::uint32_t link = 0;
  Time time;
  Bytes transmitted;
  Bytes queue;
};

struct Sender {
  explicit Sender(const std::string& yaml = "additive_increase: 100 B")
      : control(congestion_control("hpcc", yaml)->make(path)) {
    allowance = control->start(Time());
  }
  /// An ACK whose packet left hop i after `elapsed` more, in which the hop sent at `load` of its rate.
  double ack(std::uint64_t acked, std::uint64_t next, Time elapsed, std::vector<double> loads,
             std::vector<std::int64_t> queues) {
    hops.resize(loads.size());
    for (std::size_t i = 0; i < loads.size(); ++i) {
      hops[i].link = static_cast<std::uint32_t>(i);
      hops[i].time += elapsed;
      hops[i].transmitted += Bytes(static_cast<std::int64_t>(loads[i] * 0.0125 * static_cast<double>(elapsed.ps())));
      hops[i].queue = Bytes(queues[i]);
    }
    return ack(acked, next);
  }
  /// An ACK with what the hops say.
  double ack(std::uint64_t acked, std::uint64_t next) {
    std::vector<HopTelemetry> telemetry;
    for (const Hop& hop : hops) telemetry.emplace_back(hop.time, hop.transmitted, hop.queue, PortLabel(hop.link, 0));
    AckEvent event;
    event.at.now = hops.front().time + path.base_rtt;
    event.acked = 1000_B;
    event.acked_psn = acked;
    event.next_psn = next;
    event.hops = telemetry;
    event.rates = std::span(&path.nic_rate, 1);
    allowance = control->on_ack(event);
    return static_cast<double>(allowance.window.count());
  }

  std::unique_ptr<CongestionControl> control;
  Allowance allowance;
  std::vector<Hop> hops;
};

TEST(hpcc, starts_with_the_bandwidth_delay_product_at_line_rate) {
  const Sender sender;
  EXPECT_EQ(sender.allowance.window, 50'000_B);
  EXPECT_EQ(sender.allowance.rate, path.nic_rate);
}

TEST(hpcc, the_first_ack_only_stores_telemetry) {
  Sender sender;
  EXPECT_EQ(sender.ack(1, 50, Time(), {0.5}, {40'000}), initial);
}

TEST(hpcc, inflight_bytes_are_averaged_over_a_round_trip) {
  // u = min(q, q_prev) / (B T) + txRate / B; U = (1 - tau / T) U + (tau / T) u with U_0 = 1;
  // W = W_c / (U / eta) + W_AI while U >= eta.
  Sender sender;
  sender.ack(1, 50, 1_ps, {0.5}, {40'000});
  double load = 1;
  const std::int64_t queues[] = {20'000, 60'000, 10'000};
  std::int64_t last = 40'000;
  for (int i = 0; i < 3; ++i) {
    const double u = static_cast<double>(std::min(queues[i], last)) / initial + 1.0;
    load = (1 - 0.1) * load + 0.1 * u;
    last = queues[i];
    const double expected = initial / (load / 0.95) + additive;
    EXPECT_NEAR(sender.ack(static_cast<std::uint64_t>(2 + i), 50, 400 * ns, {1.0}, {queues[i]}), expected, 1);
    EXPECT_NEAR(static_cast<double>(sender.allowance.rate.bps()), expected * 8 / 4e-6, 2e6);  // R = W / T
  }
}

TEST(hpcc, a_longer_gap_than_a_round_trip_counts_as_one) {
  Sender sender;
  sender.ack(1, 50, 1_ps, {0.5}, {0});
  // tau = T: U = u = 1 + 0.5.
  EXPECT_NEAR(sender.ack(2, 50, 40'000 * ns, {1.0}, {25'000}), initial / (1.0 / 0.95) + additive, 1);
  EXPECT_NEAR(sender.ack(3, 50, 40'000 * ns, {1.0}, {25'000}), initial / (1.5 / 0.95) + additive, 1);
}

TEST(hpcc, the_most_loaded_hop_counts) {
  Sender sender;
  sender.ack(1, 50, 1_ps, {0.5, 0.5, 0.5}, {0, 0, 0});
  EXPECT_NEAR(sender.ack(2, 50, 4'000 * ns, {0.5, 1.9, 0.7}, {0, 0, 0}), initial / (1.9 / 0.95) + additive, 1);
}

TEST(hpcc, the_reference_moves_once_per_round_trip) {
  Sender sender;
  sender.ack(1, 50, 1_ps, {1.0}, {0});  // reference until packet 50
  const double once = initial / (1.9 / 0.95) + additive;
  EXPECT_NEAR(sender.ack(2, 52, 4'000 * ns, {1.9}, {0}), once, 1);
  EXPECT_NEAR(sender.ack(50, 75, 4'000 * ns, {1.9}, {0}), once, 1);  // not beyond 50: the same reference again
  EXPECT_NEAR(sender.ack(51, 76, 4'000 * ns, {1.9}, {0}), once, 1);  // commits
  EXPECT_NEAR(sender.ack(52, 77, 4'000 * ns, {1.9}, {0}), once / 2 + additive, 1);
  EXPECT_NEAR(sender.ack(76, 90, 4'000 * ns, {1.9}, {0}), once / 2 + additive, 1);
  EXPECT_NEAR(sender.ack(77, 91, 4'000 * ns, {1.9}, {0}), once / 2 + additive, 1);  // commits
  EXPECT_NEAR(sender.ack(78, 92, 4'000 * ns, {1.9}, {0}), (once / 2 + additive) / 2 + additive, 1);
}

TEST(hpcc, max_stage_additive_steps_then_a_multiplicative_one) {
  Sender sender;
  sender.ack(1, 1, 1_ps, {1.0}, {0});
  double window = initial / (1.9 / 0.95) + additive;
  EXPECT_NEAR(sender.ack(2, 2, 4'000 * ns, {1.9}, {0}), window, 1);  // commits: 2 > 1
  for (std::uint64_t round = 1; round <= 5; ++round) {
    window += additive;
    EXPECT_NEAR(sender.ack(2 + round, 2 + round, 4'000 * ns, {0.76}, {0}), window, 1) << "round " << round;
  }
  window = window / (0.76 / 0.95) + additive;  // incStage >= maxStage = 5
  EXPECT_NEAR(sender.ack(8, 8, 4'000 * ns, {0.76}, {0}), window, 1);
  EXPECT_NEAR(sender.ack(9, 9, 4'000 * ns, {0.76}, {0}), window + additive, 1);
}

TEST(hpcc, a_change_of_path_starts_the_hop_afresh) {
  Sender sender;
  sender.ack(1, 50, 1_ps, {1.0, 1.0}, {0, 0});
  sender.hops[1].link = 9;
  sender.hops[1].transmitted = 5'000'000'000_B;
  sender.hops[0].time += 4'000 * ns;
  sender.hops[0].transmitted += 95'000_B;  // u = 1.9, of the hop that stayed
  EXPECT_NEAR(sender.ack(2, 50), initial / (1.9 / 0.95) + additive, 1);
}

TEST(hpcc, counters_that_overflow_in_the_packet_do_not_matter) {
  // Packets carry 38 bits of the time in ps (0.275 s) and 36 bits of the bytes (69 GB).
  Sender sender;
  sender.hops = {{0, Time::from_ps((std::int64_t{1} << 38) - 1000), Bytes((std::int64_t{1} << 36) - 1000), Bytes()}};
  sender.ack(1, 50);
  EXPECT_NEAR(sender.ack(2, 50, 4'000 * ns, {1.9}, {0}), initial / (1.9 / 0.95) + additive, 1);
}

TEST(hpcc, telemetry_starts_afresh_after_a_longer_time_than_packets_tell) {
  Sender sender;
  sender.ack(1, 50, 1_ps, {1.0}, {0});
  const double window = sender.ack(2, 50, HopTelemetry::max_gap, {1.9}, {0});
  EXPECT_NEAR(window, initial / (1.9 / 0.95) + additive, 1);
  EXPECT_EQ(sender.ack(3, 50, HopTelemetry::max_gap + 1_ps, {0.1}, {0}), window);  // only recorded
  EXPECT_NEAR(sender.ack(4, 50, 4'000 * ns, {1.9}, {0}), initial / (1.9 / 0.95) + additive, 1);
}

TEST(hpcc, default_additive_increase) {
  // The rule of the paper: W_AI = W_init (1 - eta) / N, N the flows that may share a port: 50,000 x 0.05 / 16 = 156 B.
  Sender sender("flows: 16");
  sender.ack(1, 50, 1_ps, {1.0}, {0});
  EXPECT_NEAR(sender.ack(2, 50, 4'000 * ns, {1.9}, {0}), 25'000 + 156.25, 1);
}

TEST(hpcc, closed_loop_settles_at_the_fixed_point_of_the_window_equation) {
  // W = W / (U / eta) + W_AI of each of N flows, whose windows fill U of B T together (they are W_init at U = 1):
  // U = eta + N W_AI / W_init. U is throughput plus standing queue / (B T). The paper asks for N W_AI below
  // (1 - eta) W_init so that it stays below 1.
  for (const int flows : {2, 16}) {
    for (const int expected_flows : {16, 100}) {
      BottleneckLoop::Settings settings;
      for (int i = 0; i < flows; ++i) settings.starts.push_back(Time::from_us(1 + 100 * i));
      settings.measure_from = Time::from_ms(10);
      settings.until = Time::from_ms(20);
      BottleneckLoop loop(*congestion_control("hpcc", "flows: " + std::to_string(expected_flows)), settings);
      loop.run();
      const double product = 100e9 * loop.path().base_rtt.seconds() / 8;
      const double inflight = loop.utilisation() + loop.mean_queue() / product;
      const double predicted = 0.95 + 0.05 * flows / expected_flows;
      std::printf("%d flows, rule for %d: throughput %.4f, mean queue %.0f B, in flight %.4f, predicted %.4f\n", flows,
                  expected_flows, loop.utilisation(), loop.mean_queue(), inflight, predicted);
      EXPECT_NEAR(inflight, predicted, 0.01);
      EXPECT_LT(loop.mean_queue(), 0.05 * product);
    }
  }
}

TEST(hpcc, parameters_beyond_the_paper_are_refused) {
  EXPECT_THROW(congestion_control("hpcc", "target_utilisation: 1.1"), InputError);
  EXPECT_THROW(congestion_control("hpcc", "target_utilisation: 1"), InputError);
  EXPECT_NO_THROW(congestion_control("hpcc", "{target_utilisation: 1, additive_increase: 80 B}"));
  EXPECT_THROW(congestion_control("hpcc", "{flows: 5, additive_increase: 80 B}"), InputError);
  EXPECT_THROW(congestion_control("hpcc", "base_rtt: 3 us")->check(path), InputError);
  EXPECT_THROW(congestion_control("hpcc", "min_rate: 200 Gb/s")->check(path), InputError);
  EXPECT_TRUE(congestion_control("hpcc")->services().telemetry);
}

}  // namespace
}  // namespace weft::hpcc_test
