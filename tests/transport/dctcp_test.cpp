// SPDX-License-Identifier: GPL-2.0-only
// DCTCP against the recurrences and the fluid limit of M. Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/literals.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::dctcp_test {
namespace {

using namespace literals;

const FlowPath path{Bandwidth::from_gbps(10), Time::from_us(100), Bytes(1000), Bytes(0), 2};

/// A window of data after the other, each acknowledged packet by packet.
struct Sender {
  explicit Sender(const std::string& yaml) : control(congestion_control("dctcp", yaml)->make(path)) {
    window = control->start(Time()).window;
  }
  void acknowledge(bool marked) {
    AckEvent ack;
    ack.acked = 1000_B;
    ack.acked_psn = ++acked;
    ack.next_psn = acked + packets;
    ack.ecn = marked;
    ack.in_flight = window - 1000_B;  // the window is in use
    window = control->on_ack(ack).window;
  }

  std::unique_ptr<CongestionControl> control;
  Bytes window;
  std::uint64_t packets = 20;  ///< in flight, which makes a window of data
  std::uint64_t acked = 0;
};

TEST(dctcp, starts_with_the_bandwidth_delay_product) {
  EXPECT_EQ(Sender("").window, 125'000_B);  // 10 Gb/s x 100 us
  EXPECT_EQ(Sender("initial_window: 10 kB").window, 10'000_B);
}

TEST(dctcp, slow_start_until_the_first_mark_then_one_packet_per_window) {
  Sender sender("{initial_window: 10 kB, initial_alpha: 1, gain: 0.0625}");
  for (int i = 0; i < 10; ++i) sender.acknowledge(false);
  EXPECT_EQ(sender.window, 20'000_B);
  // RFC 8257, 3.3: the first mark cuts by alpha / 2. Its own window of data started with the second ACK: all of its 9
  // unmarked and 1 marked bytes are still being counted, and alpha is what the first ACK, a window of its own, left.
  sender.acknowledge(true);
  const double alpha = 1 - 0.0625;
  double window = 20'000 * (1 - alpha / 2);
  EXPECT_NEAR(static_cast<double>(sender.window.count()), window, 1);
  for (int i = 0; i < 10; ++i) {
    sender.acknowledge(false);
    window += 1000.0 * 1000 / window;
  }
  EXPECT_NEAR(static_cast<double>(sender.window.count()), window, 1);
}

TEST(dctcp, alpha_is_the_average_share_of_marked_bytes_and_cuts_once_per_window) {
  // Per window of 20 packets, k of them marked: alpha <- (1 - g) alpha + g k / 20 and one cut by alpha / 2.
  Sender sender("{initial_window: 100 MB, initial_alpha: 0, gain: 0.0625}");
  double alpha = 0;
  sender.acknowledge(false);  // ends the empty first window
  for (const int marked : {20, 5, 0, 10, 2, 0, 15, 12}) {
    const Bytes before = sender.window;
    // The marked ones come last, but begin before the end of the window, so the cut happens with the alpha of the
    // windows before, and more than a window of data after the cut before it; growth is below 20 packets of 1000^2 /
    // window bytes.
    for (int i = 0; i < 20; ++i) sender.acknowledge(i >= 20 - marked);
    const double factor = marked > 0 ? 1 - alpha / 2 : 1;
    if (marked > 0 || before < 100'000'000_B) {
      EXPECT_NEAR(static_cast<double>(sender.window.count()), static_cast<double>(before.count()) * factor, 25)
          << marked << " marked";
    }
    alpha = (1 - 0.0625) * alpha + 0.0625 * marked / 20;
  }
}

TEST(dctcp, the_last_packet_before_a_cut_makes_no_second_one) {
  // RFC 3168, 6.1.2: at most one reaction per window of data. A cut with numbers up to 24 sent answers for all of them;
  // the ACK of 24 says that 25 is expected, which is the first number that may cause a second cut.
  const auto control = congestion_control("dctcp", "{initial_window: 20 kB, initial_alpha: 1}")->make(path);
  control->start(Time());
  AckEvent ack;
  ack.acked = 1000_B;
  ack.ecn = true;
  ack.acked_psn = 5;
  ack.next_psn = 25;
  EXPECT_EQ(control->on_ack(ack).window, 10'000_B);
  ack.acked_psn = 25;
  ack.next_psn = 35;
  EXPECT_EQ(control->on_ack(ack).window, 10'000_B);
  ack.acked_psn = 26;
  EXPECT_LT(control->on_ack(ack).window, 10'000_B);
}

TEST(dctcp, marked_acks_do_not_grow_the_window_and_unused_windows_do_not_grow) {
  Sender sender("initial_window: 50 kB");
  AckEvent ack;
  ack.acked = 1000_B;
  ack.next_psn = 100;
  ack.in_flight = 20'000_B;
  EXPECT_EQ(sender.control->on_ack(ack).window, 50'000_B);
  ack.in_flight = 49'000_B;
  EXPECT_EQ(sender.control->on_ack(ack).window, 51'000_B);
}

TEST(dctcp, losses_halve_and_timeouts_leave_one_packet) {
  const auto control = congestion_control("dctcp", "initial_window: 64 kB")->make(path);
  control->start(Time());
  LossEvent loss;
  loss.acked_psn = 10;
  loss.next_psn = 74;
  EXPECT_EQ(control->on_loss(loss).window, 32'000_B);
  loss.acked_psn = 20;  // the same window of data
  EXPECT_EQ(control->on_loss(loss).window, 32'000_B);
  loss.acked_psn = 74;
  loss.next_psn = 80;
  EXPECT_EQ(control->on_loss(loss).window, 16'000_B);
  loss.timeout = true;
  EXPECT_EQ(control->on_loss(loss).window, 1'000_B);
}

TEST(dctcp, queue_swings_as_the_fluid_limit_says) {
  // Section 3.3: N synchronised flows through a port of C packets/s that marks beyond K: the queue swings between
  // K + N - A and K + N, A = sqrt(2 N (C RTT + K)) / 2. The set-up of figure 12: 10 Gb/s, 100 us, K = 40 packets of
  // 1,500 B. The model has whole rounds of fractional packets; here windows admit whole packets and marks come when
  // packets leave, each of which moves the extremes by up to a packet per flow.
  for (const int flows : {2, 10}) {
    BottleneckLoop::Settings settings;
    settings.starts.assign(flows, Time::from_us(1));
    settings.rate = Bandwidth::from_gbps(10);
    settings.mtu = Bytes(1'500);
    settings.overhead = Bytes(0);
    settings.delay = Time::from_ns(24'400);  // with two serialisations of 1.2 us: 100 us
    settings.marking = EcnMarking{Bytes(40 * 1'500), Bytes(40 * 1'500), 1};
    settings.measure_from = Time::from_ms(200);
    settings.until = Time::from_ms(400);
    BottleneckLoop loop(*congestion_control("dctcp"), settings);
    ASSERT_EQ(loop.path().base_rtt, Time::from_us(100));
    loop.run();
    const double product = 10e9 * 100e-6 / 8 / 1'500;
    const double amplitude = std::sqrt(2 * flows * (product + 40)) / 2;
    std::printf("%d flows: queue from %.1f to %.1f packets, mean %.1f; fluid limit %.1f to %.1f\n", flows,
                static_cast<double>(loop.min_queue()) / 1'500, static_cast<double>(loop.largest_queue()) / 1'500,
                loop.mean_queue() / 1'500, 40 + flows - amplitude, 40.0 + flows);
    EXPECT_NEAR(static_cast<double>(loop.largest_queue()) / 1'500, 40 + flows, flows);
    EXPECT_NEAR(static_cast<double>(loop.min_queue()) / 1'500, 40 + flows - amplitude, flows + 1);
    EXPECT_GT(loop.utilisation(), 0.999);
  }
}

TEST(dctcp, marking_step_by_link_rate_or_by_the_product) {
  const auto kind = congestion_control("dctcp");
  EXPECT_EQ(kind->default_marking(Bandwidth::from_gbps(100), Time::from_us(10)),
            (EcnMarking{Bytes(300'000), Bytes(300'000), 1}));
  // C RTT / 7 with 10 Gb/s and 1 ms: 1.25 MB / 7.
  EXPECT_EQ(kind->default_marking(Bandwidth::from_gbps(10), Time::from_ms(1)).min, Bytes(178'572));
}

TEST(dctcp, the_initial_window_holds_a_packet) {
  EXPECT_THROW(congestion_control("dctcp", "initial_window: 500 B")->check(path), InputError);
  EXPECT_THROW(congestion_control("dctcp", "gain: 0"), InputError);
}

}  // namespace
}  // namespace weft::dctcp_test
