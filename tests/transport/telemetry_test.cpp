// SPDX-License-Identifier: GPL-2.0-only
// What a port writes into a packet: differences of two are exact although each has only the lower bits.
#include "transport/congestion_control/telemetry.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/literals.hpp"

namespace weft::telemetry_test {
namespace {

using namespace literals;

constexpr PortLabel port(7, 3);

HopTelemetry at(std::int64_t ps, std::int64_t transmitted, Bytes queued = Bytes()) {
  return {Time::from_ps(ps), Bytes(transmitted), queued, port};
}

TEST(telemetry, tells_what_has_changed_since_an_earlier_packet) {
  const HopTelemetry before = at(1'000, 5'000, 300_B);
  const HopTelemetry after = at(84'480, 9'242, 120_B);
  EXPECT_EQ(after.elapsed_since(before), 83'480_ps);
  EXPECT_EQ(before.elapsed_since(after), Time() - 83'480_ps);  // packets may overtake each other
  EXPECT_EQ(after.transmitted_since(before), 4'242_B);
  EXPECT_EQ(before.queued(), 300_B);
  EXPECT_EQ(after.queued(), 120_B);
}

// Whatever the lower fields hold, nothing is carried over from them. From every time on, over the longest gap.
TEST(telemetry, differences_are_exact_modulo_a_power_of_two) {
  const std::int64_t gap = 2 * HopTelemetry::max_gap.ps() - 1;
  for (const std::int64_t start : {0LL, 1LL, (1LL << 37) - 1, (1LL << 38) - 1, (1LL << 38) + 12'345, 1LL << 61}) {
    for (const std::int64_t sent : {0LL, 1LL, (1LL << 36) - 1, (1LL << 36) + 5, 1LL << 60}) {
      const HopTelemetry before = at(start, sent, 9_B);
      const HopTelemetry after = at(start + gap, sent + (std::int64_t{1} << 36) - 1, 4_B);
      EXPECT_EQ(after.elapsed_since(before).ps(), gap);
      EXPECT_EQ(before.elapsed_since(after).ps(), -gap);
      EXPECT_EQ(after.transmitted_since(before).count(), (std::int64_t{1} << 36) - 1);
      EXPECT_EQ(before.transmitted_since(before), 0_B);
    }
  }
}

// A port of 8 Tb/s transmits 68.7 GB in that time, which 36 bits hold.
TEST(telemetry, bytes_suffice_for_the_longest_gap) {
  EXPECT_LE(HopTelemetry::max_gap.seconds() * 8e12 / 8, 68.8e9);
  EXPECT_LT(HopTelemetry::max_gap.seconds() * 8e12 / 8, std::pow(2, 36) + 1);
}

TEST(telemetry, a_queue_beyond_64_MiB_counts_as_64_MiB_less_one_byte) {
  EXPECT_EQ(at(0, 0, Bytes((1LL << 26) - 1)).queued().count(), (1LL << 26) - 1);
  EXPECT_EQ(at(0, 0, Bytes(1LL << 40)).queued().count(), (1LL << 26) - 1);
  EXPECT_EQ(at(77, 0, Bytes(1LL << 40)).elapsed_since(at(0, 0)), 77_ps);
}

TEST(telemetry, a_port_keeps_its_name_when_its_rate_changes) {
  HopTelemetry hop = at(5, 6, 7_B);
  EXPECT_EQ(hop.port().rate(), 3U);
  hop.set_rate(255);
  EXPECT_EQ(hop.port().rate(), 255U);
  EXPECT_TRUE(hop.port().is_same_port(port));
  EXPECT_EQ(hop.transmitted_since(at(0, 0)), 6_B);
  EXPECT_FALSE(hop.port().is_same_port(PortLabel(6, 255)));
  EXPECT_FALSE(PortLabel(0, 1).is_same_port(PortLabel((1U << 20) - 1, 1)));
}

}  // namespace
}  // namespace weft::telemetry_test
