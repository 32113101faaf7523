// SPDX-License-Identifier: GPL-2.0-only
// NDP: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM
// 2017. In an incast the last link carries without a pause the payload of each packet once, and the headers of those of
// the first windows that found no space; no later packet is trimmed (their section 3).
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::ndp_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::int64_t mtu = 918, frame = 980;
constexpr std::int64_t packet = 80'000;  // ps of 1000 B at 100 Gb/s
constexpr std::int64_t header = 6'560;   // of 82 B
const std::string star = "{kind: star, hosts: 9, link_rate: 100 Gb/s, link_delay: 1 us}";

NetworkParameters network(std::int64_t first_window, std::int64_t queue) {
  return network_of(
      fmt::format("{{mtu: {} B, buffer: {{queue: {} B}}, trimming: true, selective_repeat: {{timeout: 1 s}}, "
                  "congestion_control: ndp, ndp: {{initial_window: {}}}}}",
                  mtu, queue * frame, first_window));
}

constexpr std::int64_t senders = 8;

/// Each of the senders has a message of so many packets for host 8. What has left the receiver's port, after the run.
auto incast(LeanMachine& machine, std::int64_t packets) {
  const auto tap = machine.tap(machine.a_switch(0), 8);
  for (std::uint32_t h = 0; h < senders; ++h) machine.post({Time(), h, machine.open(h, 8), packets * mtu});
  machine.run();
  machine.expect_quiet();
  return tap;
}

/// When that port is free again if it has no pause: from the first bit at it, 1 us and a packet after the start, it
/// carries each packet once, and the trimmed headers.
std::int64_t end_without_pause(std::int64_t packets, const CongestionTotals& totals) {
  return 1'000'000 + packet + senders * packets * packet + static_cast<std::int64_t>(totals.trimmed) * header;
}

// A round trip is 4 us and some packets, so that a queue of 64 packets keeps the link busy until pulled packets come.
TEST(ndp, an_incast_fills_the_receivers_link_and_loses_nothing_beyond_the_first_windows) {
  constexpr std::int64_t packets = 100, window = 16;
  LeanMachine machine(star, network(window, 64));
  const auto tap = incast(machine, packets);
  const CongestionTotals totals = machine.fabric->results().congestion();
  EXPECT_EQ(totals.dropped, 0U);
  EXPECT_EQ(totals.timeouts, 0U);
  // Of the 8 x 16 packets that arrive in 16 packet times, 16 are sent and 64 wait; headers delay a few of them.
  EXPECT_NEAR(static_cast<double>(totals.trimmed), senders * window - window - 64, 5);
  EXPECT_EQ(totals.repeated, totals.trimmed);
  std::int64_t free = 0;
  for (const auto& entry : tap->entries) {
    if (entry.packet.kind != PacketKind::data) continue;
    const bool trimmed = (entry.packet.flags & packet_trimmed) != 0;
    if (free > 0) {
      EXPECT_EQ(entry.start.ps(), free) << "packet " << entry.packet.psn;
    }
    free = entry.start.ps() + (trimmed ? header : packet);
    if (trimmed) {
      EXPECT_LT(entry.packet.psn, window);
      EXPECT_EQ(entry.packet.flags & packet_again, 0);
    }
  }
  EXPECT_EQ(free, end_without_pause(packets, totals));
}

// Nothing is trimmed in a queue without end. A message's last packet leaves when the 99 before it have been on the wire
// and all waits are over: those are for pulls, which is congestion control, and none is for acknowledgements. Pulls
// leave at the rate of the receiver's link for the eight senders in turn, so that those of one are eight packets apart.
TEST(ndp, waits_for_pulls_are_pacing) {
  constexpr std::int64_t packets = 100, window = 16;
  LeanMachine machine(star, network(window, 10'000));
  incast(machine, packets);
  ASSERT_EQ(machine.received.size(), senders);
  EXPECT_EQ(machine.fabric->results().congestion().trimmed, 0U);
  for (const Message& message : machine.received) {
    EXPECT_EQ(message.at_host.window, Time());
    EXPECT_EQ(message.at_host.pacing.ps(), message.last_sent.ps() - (packets - 1) * packet);
    // The first pull comes after a round trip, the last of 84 after all others.
    EXPECT_GE(message.last_sent.ps(), 4'000'000 + (packets - window - 1) * senders * packet);
  }
}

// The GPU's own link and PCIe are five times as fast as the NIC's port, which is the link that pulls have to fill.
// Pulls at the rate of the GPU's link would have all later packets trimmed.
TEST(ndp, pulls_fill_the_port_of_a_servers_nic) {
  constexpr std::int64_t packets = 100, window = 16;
  LeanMachine machine(
      "{kind: star, hosts: 9, link_rate: 100 Gb/s, link_delay: 1 us, server: {gpus: 1, inside: none, nics: 1, "
      "pcie_rate: 500 Gb/s, pcie_delay: 200 ns}}",
      network(window, 64));
  for (std::uint32_t h = 0; h < senders; ++h) machine.post({Time(), h, machine.open(h, 8), packets * mtu});
  machine.run();
  machine.expect_quiet();
  const CongestionTotals totals = machine.fabric->results().congestion();
  EXPECT_EQ(totals.timeouts, 0U);
  EXPECT_LT(totals.trimmed, senders * window);  // of the first windows alone
  EXPECT_EQ(totals.repeated, totals.trimmed);
}

// Messages shorter than the first window: what they leave of it does not send trimmed packets again, so that a longer
// window changes nothing, and each packet is trimmed once at most.
TEST(ndp, an_unused_first_window_sends_nothing_again) {
  constexpr std::int64_t packets = 30;
  std::vector<std::int64_t> ends;
  for (const std::int64_t window : {packets, 2 * packets, 10 * packets}) {
    LeanMachine machine(star, network(window, 64));
    const auto tap = incast(machine, packets);
    const CongestionTotals totals = machine.fabric->results().congestion();
    EXPECT_GT(totals.trimmed, 0U);
    EXPECT_EQ(totals.repeated, totals.trimmed);
    std::int64_t free = 0;
    for (const auto& entry : tap->entries) {
      if (entry.packet.kind != PacketKind::data) continue;
      const bool trimmed = (entry.packet.flags & packet_trimmed) != 0;
      free = entry.start.ps() + (trimmed ? header : packet);
      if (trimmed) {
        EXPECT_EQ(entry.packet.flags & packet_again, 0);
      }
    }
    // It may pause between the first windows and the first pulled packets: for a round trip of 4 us and a packet at
    // each of its four ports.
    EXPECT_GE(free, end_without_pause(packets, totals));
    EXPECT_LE(free, end_without_pause(packets, totals) + 4'000'000 + 4 * packet);
    ends.push_back(free);
  }
  EXPECT_EQ(ends[1], ends[0]);
  EXPECT_EQ(ends[2], ends[0]);
}

// Round robin of pulls: all senders are served equally, for any order in which they began.
TEST(ndp, senders_share_the_link_packet_by_packet) {
  LeanMachine machine(star, network(16, 64));
  for (std::uint32_t h = 0; h < 8; ++h) machine.post({h * Time::from_ns(300), h, machine.open(h, 8), 300 * mtu});
  machine.run();
  machine.expect_quiet();
  std::vector<std::int64_t> ends;
  for (const auto& message : machine.messages) ends.push_back(message.at.ps());
  // The first window of the first sender had no competitor: it may be ahead by that much in each of the others' turns.
  EXPECT_LE(*std::max_element(ends.begin(), ends.end()) - *std::min_element(ends.begin(), ends.end()), 8 * 16 * packet);
}

// A sender that has nothing to send gets its pulls back: its next message begins with a first window again.
TEST(ndp, a_later_message_begins_with_a_first_window) {
  LeanMachine machine(star, network(16, 64));
  const std::uint32_t pair = machine.open(0, 8);
  for (int i = 0; i < 5; ++i) machine.post({i * Time::from_us(100), 0, pair, 40 * mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(machine.messages.size(), 5U);
  for (int i = 1; i < 5; ++i)
    EXPECT_EQ(machine.messages[static_cast<std::size_t>(i)].at - machine.messages[0].at, i * Time::from_us(100));
}

// Alone, a first window of a bandwidth-delay product and pulls at the packet rate keep the link full: the ideal time.
TEST(ndp, a_flow_alone_is_as_fast_as_the_link) {
  LeanMachine machine(star, network_of(fmt::format("{{mtu: {} B, buffer: {{queue: {} B}}, trimming: true, "
                                                   "congestion_control: ndp}}",
                                                   mtu, 64 * frame)));
  machine.post({Time(), 0, machine.open(0, 8), 1000 * mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(machine.messages.size(), 1U);
  EXPECT_EQ(machine.messages[0].at.ps(), 2 * 1'000'000 + 1001 * packet);
}

}  // namespace
}  // namespace weft::ndp_test
