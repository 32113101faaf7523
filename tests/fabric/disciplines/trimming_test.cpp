// SPDX-License-Identifier: GPL-2.0-only
// Packet trimming: headers of packets for which there is no space are sent on, first, and each makes the sender repeat
// its packet once. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high
// performance", SIGCOMM 2017.
#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/scheduling/headers_first.hpp"
#include "support/basics/error.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::trimming_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::int64_t mtu = 918, frame = 980;
const std::string star = "{kind: star, hosts: 9, link_rate: 100 Gb/s, link_delay: 1 us}";

NetworkParameters network(const std::string& more) {
  return network_of(fmt::format("{{mtu: {} B, window: 20 kB, buffer: {{queue: {} B}}, {}}}", mtu, 10 * frame, more));
}

TEST(trimming, nothing_is_dropped_and_each_trimmed_packet_is_repeated_once) {
  LeanMachine machine(star, network("trimming: true, recovery: selective_repeat, selective_repeat: {timeout: 1 s}"));
  const auto tap = machine.tap(machine.a_switch(0), 8);
  for (std::uint32_t h = 0; h < 8; ++h) machine.post({Time(), h, machine.open(h, 8), 100 * mtu + 7});
  machine.run();
  machine.expect_quiet();
  const CongestionTotals totals = machine.fabric->results().congestion();
  EXPECT_GT(totals.trimmed, 50U);
  EXPECT_EQ(totals.dropped, 0U);
  EXPECT_EQ(totals.timeouts, 0U);
  EXPECT_EQ(totals.repeated, totals.trimmed);
  std::uint64_t headers = 0;
  for (const auto& entry : tap->entries) {
    if ((entry.packet.flags & packet_trimmed) == 0) continue;
    ++headers;
    EXPECT_EQ(entry.packet.payload, 0);
    EXPECT_EQ(entry.packet.lane, 0);  // with the control traffic
  }
  EXPECT_EQ(headers, totals.trimmed);
  EXPECT_LE(machine.class_counters(machine.a_switch(0), 1, 8).peak_queue_bytes.count(), 10 * frame);
  // Every payload passes the last link once: a trimmed header takes only its 82 B.
  EXPECT_EQ(machine.counters(machine.a_switch(0), 8).payload_bytes.count(), 8 * (100 * mtu + 7));
}

// Small packets, a slow way out of each server, and many senders: headers and the answers to them alone are more than a
// link carries, and each header brings another packet that is trimmed. Data have one packet in eleven all the same
// (Handley et al., section 3.1).
TEST(trimming, headers_do_not_keep_data_from_a_link_for_ever) {
  LeanMachine machine(
      "{kind: hyperx, dims: [4], link_rate: 13 Gb/s, link_delay: 52 ns, server: {gpus: 2, inside: mesh, nvlink_rate: "
      "100 "
      "Gb/s, nvlink_delay: 26 ns, nics: 1, pcie_rate: 12 Gb/s, pcie_delay: 1 ps}}",
      network_of(
          "{mtu: 597 B, header: 4 B, wire_overhead: 12 B, buffer: {size: 101 kB}, trimming: true, load_balancing: "
          "reps, selective_repeat: {timeout: 200 ms}, link_classes: {gpu: {flow_control: none}, nvlink: {flow_control: "
          "none}, pcie: {flow_control: none}}}"));
  constexpr std::uint32_t gpus = 8;
  constexpr std::int64_t bytes = 88'728;
  for (std::uint32_t from = 0; from < gpus; ++from)
    for (std::uint32_t to = 0; to < gpus; ++to)
      if (from != to) machine.post({Time(), from, machine.open(from, to), bytes});
  // A server sends 12 messages, 1.1 MB, in 0.65 ms at 13 Gb/s; with a tenth of the link it takes 7 ms.
  machine.run_until(Time::from_ms(10));
  EXPECT_EQ(machine.messages.size(), gpus * (gpus - 1));
}

TEST(trimming, ten_headers_and_a_packet_take_turns) {
  HeadersFirst scheduler(LaneId(0), nullptr, 0);
  ReadyClasses ready;
  ready.lanes = 0b011;
  const auto next = [&] {
    const LaneId lane = scheduler.choose(ready);
    scheduler.sends(lane, Bytes(100));
    return lane.value();
  };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < HeadersFirst::headers_per_packet; ++i) EXPECT_EQ(next(), 0U);
    EXPECT_EQ(next(), 1U);
  }
  // Headers whose turn is over begin anew.
  for (int i = 0; i < 7; ++i) EXPECT_EQ(next(), 0U);
  scheduler.emptied(0b001);
  for (int i = 0; i < HeadersFirst::headers_per_packet; ++i) EXPECT_EQ(next(), 0U);
  EXPECT_EQ(next(), 1U);
}

TEST(trimming, a_header_goes_before_the_data_that_waits) {
  LeanMachine machine(star,
                      network_of(fmt::format("{{mtu: {} B, window: 1 MB, buffer: {{queue: {} B}}, trimming: true, "
                                             "recovery: selective_repeat, ack_interval: 1024}}",
                                             mtu, 4 * frame)));
  const auto tap = machine.tap(machine.a_switch(0), 8);
  // Seven packets at one moment: one passes, four wait, two are trimmed.
  for (std::uint32_t h = 0; h < 7; ++h) machine.post({Time(), h, machine.open(h, 8), mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(tap->entries.size(), 9U);
  const std::int64_t first = Time::from_us(1).ps() + 80'000;
  for (std::size_t i = 0; i < 7; ++i)
    EXPECT_EQ((tap->entries[i].packet.flags & packet_trimmed) != 0, i == 1 || i == 2) << i;
  EXPECT_EQ(tap->entries[1].start.ps(), first + 80'000);
  EXPECT_EQ(tap->entries[2].start.ps(), first + 80'000 + 82 * 80);
  EXPECT_EQ(tap->entries[3].start.ps(), first + 80'000 + 2 * 82 * 80);
}

TEST(trimming, without_it_the_same_incast_drops) {
  LeanMachine machine(star, network("recovery: selective_repeat"));
  for (std::uint32_t h = 0; h < 8; ++h) machine.post({Time(), h, machine.open(h, 8), 100 * mtu});
  machine.run();
  machine.expect_quiet();
  const CongestionTotals totals = machine.fabric->results().congestion();
  EXPECT_EQ(totals.trimmed, 0U);
  EXPECT_GT(totals.dropped, 50U);
  EXPECT_GE(totals.repeated, totals.dropped);
}

// With go-back-N every header has all packets behind it sent again, which are trimmed in turn.
TEST(trimming, repeats_what_was_trimmed_and_nothing_else) {
  EXPECT_EQ(network("trimming: true").recovery.kind, Recovery::selective_repeat);
  for (const std::string recovery : {"go_back_n", "go_back_0"})
    EXPECT_THROW(network("trimming: true, recovery: " + recovery), InputError) << recovery;
}

// 32 hosts send 20 packets each to one whose link is 100 times slower than theirs. A repeated packet may be trimmed
// again, but each time that the last link is free a payload passes, so that the payloads take 640 frames on it, and
// headers of 82 B in between at least as long as they are more.
TEST(trimming, a_slow_last_link_is_busy_with_payload_until_all_is_there) {
  std::string links;
  for (int h = 0; h < 32; ++h) links += fmt::format("{{from: host{}, to: switch0}}, ", h);
  LeanMachine machine("{kind: graph, hosts: 33, switches: 1, link_rate: 100 Gb/s, link_delay: 1 us, links: [" + links +
                          "{from: host32, to: switch0, rate: 1 Gb/s}]}",
                      network("trimming: true, selective_repeat: {timeout: 1 s}"));
  for (std::uint32_t h = 0; h < 32; ++h) machine.post({Time(), h, machine.open(h, 32), 20 * mtu});
  machine.run();
  machine.expect_quiet();
  const CongestionTotals totals = machine.fabric->results().congestion();
  EXPECT_GT(totals.trimmed, 32U);
  EXPECT_EQ(totals.dropped, 0U);
  const LinkCounters last = machine.counters(machine.a_switch(0), 32);
  EXPECT_EQ(last.payload_bytes.count(), 32 * 20 * mtu);
  EXPECT_GE(machine.fabric->now().ps(), std::int64_t{640} * 1'000 * 8'000);  // 1000 B at 8 ns
}

}  // namespace
}  // namespace weft::trimming_test
