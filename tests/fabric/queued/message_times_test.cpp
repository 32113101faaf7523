// SPDX-License-Identifier: GPL-2.0-only
// Why a message took longer: the time that flow control held it, and the time that a lost packet cost, by hand.
#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"
#include "transport/messages/message_parts.hpp"

namespace weft::message_times_test {
namespace {

using test::LeanMachine;
using test::network_of;

// Full frames of 980 B, 1000 B on the wire: 80 ns at 100 Gb/s, 8 us at 1 Gb/s.
constexpr std::int64_t mtu = 918, frame = 980;
constexpr std::int64_t full = 80'000, slow = 8'000'000;
constexpr std::int64_t pause_time = 84 * 80, control = 86 * 80;

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Host 0 sends to a slow port. Its switch's queue crosses the threshold with the fifth frame that waits, and lets it go
// on when all that has come has left. Host 0 has a frame on the wire when it is stopped, and waits from that frame's
// end until it is allowed to go on.
TEST(message_times, a_paused_sender) {
  constexpr std::int64_t delay = 1'000'000, threshold = 4;
  LeanMachine machine(
      "{kind: graph, hosts: 2, switches: 1, link_delay: 1 us, links: [{from: host0, to: switch0, rate: "
      "100 Gb/s}, {from: host1, to: switch0, rate: 1 Gb/s}]}",
      network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, flow_control: pfc, "
                             "buffer: {{size: 100 MB, threshold: {} B}}, pfc: {{xon: {} B}}}}",
                             mtu, threshold * frame, threshold * frame)));
  const std::int64_t stop = delay + (threshold + 1) * full;
  const std::int64_t before = up(stop + pause_time + delay, full);  // frames until host 0 obeys
  const std::int64_t go = delay + full + (before - 1) * slow;       // the last of them leaves the queue
  const std::int64_t held = go + pause_time + delay - before * full;
  // The first message ends just before the pause, the second is the one that is held, and the third follows it.
  const std::uint32_t pair = machine.open(0, 1);
  for (const std::int64_t packets : {before - 2, std::int64_t{4}, std::int64_t{1}})
    machine.post({Time(), 0, pair, packets * mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(machine.received.size(), 3U);
  EXPECT_EQ(machine.received[0].paused, Time());
  EXPECT_EQ(machine.received[1].paused.ps(), held);
  EXPECT_EQ(machine.received[2].paused, Time());
  for (const Message& message : machine.received) EXPECT_EQ(message.retransmission, Time());
}

// The same with credits: space for two frames at the switch, which gives one back with each frame that the slow port
// begins to send.
TEST(message_times, a_sender_without_credits) {
  constexpr std::int64_t delay = 1'000'000, grant_time = 8 * 80;
  LeanMachine machine(
      "{kind: graph, hosts: 2, switches: 1, link_delay: 1 us, links: [{from: host0, to: switch0, rate: "
      "100 Gb/s}, {from: host1, to: switch0, rate: 1 Gb/s}]}",
      network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, flow_control: credit, "
                             "credit: {{buffer: {} B}}}}",
                             mtu, 2 * frame)));
  machine.post({Time(), 0, machine.open(0, 1), 3 * mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(machine.received.size(), 1U);
  // The third packet might go when the second has left; the switch returns the first packet's credit.
  const std::int64_t back = full + delay + grant_time + delay;
  EXPECT_EQ(machine.received[0].paused.ps(), back - 2 * full);
}

// A packet in the queue of a switch whose next switch is full. The port has others to send before it, so that it is
// silent only while it is stopped; a stop that arrives within a frame counts from its arrival.
TEST(message_times, the_last_packet_in_a_paused_switch) {
  LeanMachine machine(
      "{kind: graph, hosts: 3, switches: 2, link_delay: 1 us, link_rate: 100 Gb/s, links: [{from: host0, "
      "to: switch0}, {from: host2, to: switch0}, {from: switch0, to: switch1}, {from: host1, to: switch1, "
      "rate: 1 Gb/s}]}",
      network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, flow_control: pfc, "
                             "buffer: {{size: 100 MB, threshold: {} B}}}}",
                             mtu, 4 * frame)));
  const NodeId first = machine.a_switch(0);
  const auto port = machine.tap(first, 2);
  ASSERT_EQ(machine.topology.graph.ports(first)[2].peer, machine.a_switch(1));
  machine.post({Time(), 0, machine.open(0, 1), 60 * mtu});
  const Time posted = Time::from_us(100);
  machine.post({posted, 2, machine.open(2, 1), mtu});
  machine.run();
  machine.expect_quiet();
  const auto own = [](const Message& message) { return message.source == NodeId(2); };
  const auto found = std::find_if(machine.received.begin(), machine.received.end(), own);
  ASSERT_NE(found, machine.received.end());
  const std::int64_t came = posted.ps() + full + 1'000'000;
  std::int64_t silent = 0, stops = 0, busy_until = came;
  for (const auto& entry : port->entries) {
    const std::int64_t start = entry.start.ps();
    if (start > busy_until) {
      silent += start - busy_until;
      ++stops;
    }
    busy_until = std::max(busy_until, start + full);
    if (entry.packet.source() == NodeId(2)) break;
  }
  ASSERT_GT(stops, 1);
  EXPECT_GE(found->paused.ps(), silent);
  EXPECT_LE(found->paused.ps(), silent + stops * full);
  EXPECT_LE(found->paused, found->waited);
}

/// Two hosts and a switch; the link of host 0 is down for 1 ps, in the middle of packet `lost`.
struct OneLoss {
  static constexpr std::int64_t delay = 1000;
  LeanMachine machine;
  OneLoss(const std::string& recovery, std::int64_t lost)
      : machine("{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 ns}",
                network_of(fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, recovery: {}, "
                                       "failures: [{{at: {} ps, until: {} ps, link: [host0, switch0]}}]}}",
                                       mtu, recovery, lost * full + full / 2, lost * full + full / 2 + 1))) {}
};

TEST(message_times, a_lost_packet) {
  constexpr std::int64_t lost = 10, packets = 40;
  // The next packet reaches the destination three packet times after the lost one began, and its answer returns over
  // two links. Then the frame in transmission ends.
  const std::int64_t known = (lost + 3) * full + 4 * OneLoss::delay + 2 * control;
  const std::int64_t cost = up(known, full) * full - lost * full;
  for (const std::string recovery : {"go_back_n", "selective_repeat"}) {
    OneLoss run(recovery, lost);
    run.machine.post({Time(), 0, run.machine.open(0, 1), packets * mtu});
    run.machine.run();
    run.machine.expect_quiet();
    ASSERT_EQ(run.machine.received.size(), 1U);
    const Message& message = run.machine.received[0];
    EXPECT_EQ(message.retransmission.ps(), cost) << recovery;
    EXPECT_EQ(message.paused, Time());
    // Going back starts again with the lost packet; selective repeat has one packet more to send.
    const std::int64_t late = run.machine.messages[0].at.ps() - (message.issued + message.ideal).ps();
    EXPECT_EQ(late, recovery == "go_back_n" ? cost : full) << recovery;
  }
}

TEST(message_times, a_lost_message_of_one_packet_waits_for_the_timer) {
  OneLoss run("go_back_n", 0);
  run.machine.post({Time(), 0, run.machine.open(0, 1), mtu});
  run.machine.run();
  run.machine.expect_quiet();
  // Few packets in flight: 100 us (docs/reference/network.md, timeout_low).
  EXPECT_EQ(run.machine.received.at(0).retransmission.ps(), Time::from_us(100).ps());
}

// A queue pair that has nothing else to send waits for the timer, too: from its packet's end until it sends again. The
// way of the ACK is no such wait.
TEST(message_times, a_queue_pair_with_nothing_else_to_send_waits_for_what_was_lost) {
  for (const std::string recovery : {"go_back_n", "selective_repeat"}) {
    OneLoss run(recovery, 0);
    const std::uint32_t pair = run.machine.open(0, 1);
    run.machine.post({Time(), 0, pair, mtu});
    run.machine.run();
    run.machine.expect_quiet();
    const SendTimes times = run.machine.fabric->send_times(NodeId(0), pair, Time::from_us(1000));
    EXPECT_EQ(times.sent.ps(), full) << recovery;
    EXPECT_EQ(times.repeated.ps(), (Time::from_us(100) - Time::from_ps(full)).ps() + full) << recovery;
    EXPECT_EQ((times.nic + times.window + times.pacing + times.paused).ps(), 0) << recovery;
  }
}

// The second message is posted while the queue pair waits for the ACK of the first, which has been lost: window for one
// packet. From its posting on it waits for the timer, for the first packet to be sent again, and for its ACK.
TEST(message_times, a_message_posted_while_another_is_lost) {
  constexpr std::int64_t delay = 1000, timer = 100'000'000;
  constexpr std::int64_t ideal = 2 * (full + delay), back = 2 * (control + delay);
  for (const std::string recovery : {"go_back_n", "selective_repeat"}) {
    LeanMachine machine("{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 ns}",
                        network_of(fmt::format("{{mtu: {} B, window: {} B, ack_interval: 1, recovery: {}, "
                                               "failures: [{{at: 1 ps, until: 2 ps, link: [host0, switch0]}}]}}",
                                               mtu, mtu, recovery)));
    const std::uint32_t pair = machine.open(0, 1);
    const Time posted = Time::from_us(30);
    machine.post({Time(), 0, pair, mtu});
    machine.post({posted, 0, pair, mtu});
    machine.run();
    machine.expect_quiet();
    ASSERT_EQ(machine.received.size(), 2U);
    const std::int64_t delivered = timer + ideal + back + ideal;
    EXPECT_EQ(machine.messages[1].at.ps(), delivered);
    TimeParts expected;
    expected[TimePart::retransmission] = timer + full - posted.ps();
    expected[TimePart::window] = ideal + back - full;
    expected[TimePart::transfer] = ideal;
    const TimeParts parts = parts_of(machine.received[1], Time::from_ps(delivered));
    for (std::size_t i = 0; i < time_part_count; ++i)
      EXPECT_EQ(parts[static_cast<TimePart>(i)], expected[static_cast<TimePart>(i)])
          << recovery << ' ' << time_part_texts[i].column;
  }
}

// Packets of 80 ns at the host take 8 us on the link behind the switch. A window of four packets, or space for two at
// the switch, keeps that link busy without a gap, so that both messages take what an idle network takes: the second one
// after the first. Neither was held by anything else.
TEST(message_times, waiting_behind_itself_at_a_slower_link_is_sending) {
  constexpr std::int64_t packets = 40;
  for (const std::string limit : {"window: 3672 B, flow_control: none",
                                  "window: 1 GiB, flow_control: credit, "
                                  "credit: {buffer: 1960 B}"}) {
    LeanMachine machine(
        "{kind: graph, hosts: 2, switches: 1, link_delay: 1 ns, links: [{from: host0, to: switch0, rate: "
        "100 Gb/s}, {from: host1, to: switch0, rate: 1 Gb/s}]}",
        network_of(fmt::format("{{mtu: {} B, ack_interval: 1, {}}}", mtu, limit)));
    const std::uint32_t pair = machine.open(0, 1);
    machine.post({Time(), 0, pair, packets * mtu});
    machine.post({Time(), 0, pair, packets * mtu});
    machine.run();
    machine.expect_quiet();
    ASSERT_EQ(machine.received.size(), 2U);
    const std::int64_t ideal = full + 1000 + packets * slow + 1000;
    for (std::size_t i = 0; i < 2; ++i) {
      const Message& message = machine.received[i];
      ASSERT_EQ(message.ideal.ps(), ideal) << limit;
      const TimeParts parts = parts_of(message, machine.messages[i].at);
      EXPECT_EQ(parts[TimePart::transfer], ideal) << limit;
      // Of the first message's packets some are in the queue of the switch when the second one's begin.
      EXPECT_EQ(parts[TimePart::ahead] + parts[TimePart::queueing], i == 0 ? 0 : packets * slow) << limit;
      EXPECT_LE(parts[TimePart::queueing], i == 0 ? 0 : 3 * slow) << limit;
      EXPECT_EQ(parts.total(), ideal + parts[TimePart::ahead] + parts[TimePart::queueing]) << limit;
    }
  }
}

// The host sends 4,000 packets in a moment, of which each takes the last link an hour: longer than time can tell.
TEST(message_times, packets_that_a_slower_link_never_sends) {
  SendWaits waits;
  SharedLink link;
  const std::vector<PathLink> path{{Bandwidth::from_gbps(100), Time()}, {Bandwidth::from_bps(8), Time()}};
  waits.follow(SlowestLink(path, Bytes(3600), Bytes()), &link);  // 8 b/s: an hour
  for (std::int64_t i = 0; i < 4000; ++i) {
    waits.occupy_slower_link(Time::from_us(i), Bytes(3600), path, Bytes());
    waits.put_on_wire(Time::from_us(i), Time::from_us(i + 1), false);
  }
  waits.wait_for(SendWaits::Reason::window, Time::from_us(4000));
  const Time later = Time::from_s(100 * 24 * 3600LL);
  const SendTimes times = waits.until(later);
  EXPECT_EQ(times.sent, later);
  EXPECT_EQ(times.window + times.nic, Time());
}

// With one packet in flight the slow link is idle for the rest of each round trip.
TEST(message_times, a_window_that_leaves_a_slower_link_idle) {
  constexpr std::int64_t packets = 40, delay = 1'000'000;
  LeanMachine machine(
      "{kind: graph, hosts: 2, switches: 1, link_delay: 1 us, links: [{from: host0, to: switch0, rate: "
      "100 Gb/s}, {from: host1, to: switch0, rate: 1 Gb/s}]}",
      network_of(fmt::format("{{mtu: {} B, ack_interval: 1, window: {} B}}", mtu, mtu)));
  machine.post({Time(), 0, machine.open(0, 1), packets * mtu});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(machine.received.size(), 1U);
  constexpr std::int64_t round_trip = full + slow + control + 100 * control + 4 * delay;
  const TimeParts parts = parts_of(machine.received[0], machine.messages[0].at);
  EXPECT_EQ(parts[TimePart::transfer], machine.received[0].ideal.ps());
  EXPECT_EQ(parts[TimePart::window], (packets - 1) * (round_trip - slow));
  EXPECT_EQ(parts.total(), parts[TimePart::transfer] + parts[TimePart::window]);
}

// A GPU of a server sends to two others through its NIC, whose link is an eighth of its own. Credits inside the server
// stop both queue pairs all the time. What holds each of them is that the NIC sends the other one's packets.
TEST(message_times, queue_pairs_of_a_gpu_share_its_nic) {
  LeanMachine machine(
      "{kind: leaf_spine, leaves: 8, hosts_per_leaf: 3, spines: 1, link_rate: 400 Gb/s, link_delay: 500 ns, server: "
      "{design: hgx_h100, wiring: rail}}",
      network_of("{mtu: 4096 B, flow_control: pfc, window: 1 GiB, buffer: {size: 64 MiB}}"));
  constexpr std::int64_t bytes = 1 << 22;
  machine.post({Time(), 0, machine.open(0, 8), bytes});
  machine.post({Time(), 0, machine.open(0, 16), bytes});
  machine.run();
  machine.expect_quiet();
  ASSERT_EQ(machine.received.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Message& message = machine.received[i];
    const TimeParts parts = parts_of(message, machine.messages[i].at);
    const auto ideal = static_cast<double>(message.ideal.ps());
    EXPECT_GT(message.paused.ps(), 0.8 * ideal);
    EXPECT_NEAR(static_cast<double>(parts.total()), 2 * ideal, 0.05 * ideal);
    EXPECT_NEAR(static_cast<double>(parts[TimePart::transfer]), ideal, 0.01 * ideal);
    EXPECT_NEAR(static_cast<double>(parts[TimePart::nic] + parts[TimePart::queueing]), ideal, 0.05 * ideal);
  }
}

}  // namespace
}  // namespace weft::message_times_test
