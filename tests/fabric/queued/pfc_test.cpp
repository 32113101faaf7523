// SPDX-License-Identifier: GPL-2.0-only
// Priority flow control: headroom to the frame, pause frames on the wire, their time, their class.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/basics/error.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::pfc_test {
namespace {

using test::LeanMachine;
using test::network_of;
using test::Notice;

// Full frames of 980 B, 1000 B on the wire. At 100 Gb/s a byte takes 80 ps, at 1 Gb/s, which is as good as a blocked
// port, 8 ns.
constexpr std::int64_t mtu = 918, frame = 980;
constexpr std::int64_t full = 80'000;     // ps of a packet at 100 Gb/s
constexpr std::int64_t slow = 8'000'000;  // and at 1 Gb/s
constexpr std::int64_t pause_time = 84 * 80;
constexpr std::int64_t control = 86 * 80;
constexpr std::int64_t threshold = 4;  // frames
constexpr std::uint32_t data_lane = 1;

/// `hosts` around a switch, the last one with a slow link.
std::string machine_text(int hosts, std::int64_t delay) {
  std::string links;
  for (int h = 0; h < hosts; ++h)
    links += fmt::format("{{from: host{}, to: switch0, rate: {} Gb/s}}, ", h, h + 1 == hosts ? 1 : 100);
  return fmt::format("{{kind: graph, hosts: {}, switches: 1, link_rate: 100 Gb/s, link_delay: {} ps, links: [{}]}}",
                     hosts, delay, links);
}

/// One ACK per message, so that only data, pauses and the packets of a test are on the links.
NetworkParameters network(const std::string& buffer, const std::string& pfc, std::int64_t latency = 0) {
  return network_of(
      fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, switch_latency: {} ps, "
                  "flow_control: pfc, buffer: {}, pfc: {}}}",
                  mtu, latency, buffer, pfc));
}
const std::string static_buffer = fmt::format("{{size: 100 MB, threshold: {} B}}", threshold* frame);

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The worst case of a static threshold. The queue of host 0 crosses it with the last bit of a frame; its switch has
// begun another frame towards host 0 just before; the pause frame follows, travels, and is obeyed after the frame that
// host 0 has begun just before. Meanwhile the output is blocked by its slow link. Zhu et al. 2015, section 4; IEEE
// 802.1Q-2018 annex O.
struct Worst {
  std::int64_t delay, response, latency;
  // From the crossing to the end of the arrivals, seen at the port of host 0.
  std::int64_t span() const { return full + pause_time + 2 * delay + response + latency; }
  // Frames that begin within it, the reverse frame having begun 1 ps before the crossing.
  std::int64_t frames() const { return up(span() - 1, full); }
  std::uint64_t drops(const std::string& headroom) const {
    LeanMachine machine(machine_text(3, delay),
                        network(static_buffer, fmt::format("{{response: {} ps{}}}", response, headroom), latency));
    const auto back = machine.tap(machine.a_switch(0), 0);
    machine.post({Time(), 0, machine.open(0, 2), 150 * mtu});
    machine.post({Time::from_ps(full - 1), 1, machine.open(1, 0), 100 * mtu});
    machine.run();
    machine.expect_quiet();
    // The scenario is the one described: the frame towards host 0 began 1 ps before the crossing by frame 5, as one was
    // on the slow link and four were within the threshold; the next one waited for the pause frame too.
    const std::int64_t crossing = delay + latency + (threshold + 1) * full;
    std::size_t at = 0;
    while (at < back->entries.size() && back->entries[at].start.ps() < crossing - 1) ++at;
    EXPECT_EQ(back->entries[at].start.ps(), crossing - 1);
    EXPECT_EQ(back->entries[at + 1].start.ps(), crossing - 1 + full + pause_time);
    return machine.class_counters(machine.a_switch(0), data_lane, 2).dropped;
  }
};

TEST(pfc, no_frame_is_lost_with_the_headroom_of_the_worst_case_and_one_is_with_a_frame_less) {
  for (const Worst& worst : {Worst{1'000'000, 0, 0}, Worst{2'000'000, 0, 0}, Worst{500'000, 300'000, 0},
                             Worst{700'000, 123'456, 777'000}, Worst{996'640, 0, 0}}) {
    const std::string exact = fmt::format(", headroom: {} B", worst.frames() * frame);
    const std::string less = fmt::format(", headroom: {} B", (worst.frames() - 1) * frame);
    EXPECT_EQ(worst.drops(exact), 0U) << worst.delay;
    EXPECT_EQ(worst.drops(less), 1U) << worst.delay;
    EXPECT_EQ(worst.drops(""), 0U) << worst.delay;
  }
}

// A dynamic threshold can fall while no frame of the queue arrives, so that the frame that crosses it needs headroom
// too; and frames need not be full. Ten other hosts take the free memory between two frames of host 0; a short packet
// behind the crossing one shifts the others so that the last one begins just before the pause is obeyed.
std::uint64_t dynamic_drops(const std::string& headroom_key, std::int64_t headroom) {
  constexpr std::int64_t delay = 996'640;  // full + pause_time + 2 delay is 26 packet times
  constexpr int hosts = 13;
  const std::int64_t held = 10;
  const std::int64_t shared = 22;  // frames: host 0 holds 10 of at most 11 until the others come
  LeanMachine machine(machine_text(hosts, delay),
                      network(fmt::format("{{size: {} B, alpha: 1}}", hosts * headroom + shared * frame),
                              fmt::format("{{{}}}", headroom_key)));
  const std::uint32_t pair = machine.open(0, hosts - 1);
  machine.post({Time(), 0, pair, (held + 2) * mtu});  // one on the slow link, ten that wait, the crossing one
  machine.post({Time(), 0, pair, 1});
  machine.post({Time(), 0, pair, 100 * mtu});
  for (std::uint32_t h = 1; h <= 10; ++h)
    machine.post({Time::from_ps(held * full + full / 2), h, machine.open(h, hosts - 1), mtu});
  machine.post({Time::from_ps(full - 1), 11, machine.open(11, 0), 100 * mtu});
  machine.run();
  machine.expect_quiet();
  return machine.class_counters(machine.a_switch(0), data_lane, hosts - 1).dropped;
}

TEST(pfc, the_crossing_frame_and_short_packets_count_in_the_headroom) {
  const std::int64_t span_frames = 26;
  const std::int64_t short_frame = 63;
  // The crossing frame, the short one, and those that begin within the span.
  const std::int64_t exact = (1 + span_frames) * frame + short_frame;
  EXPECT_EQ(dynamic_drops(fmt::format("headroom: {} B", exact), exact), 0U);
  EXPECT_GE(dynamic_drops(fmt::format("headroom: {} B", exact - 1), exact - 1), 1U);
}

// docs/reference/network.md: C (MTU/C + pause/C + 2 delay + response + latency) + 2 MTU, in whole frames. At a port of
// 1 Gb/s, the same with its rate. A packet memory holds the headroom of all ports, or the experiment is refused.
TEST(pfc, the_headroom_by_itself_is_that_of_the_documentation) {
  const std::int64_t delay = 1'000'000, response = 200'000, latency = 300'000;
  const auto needed = [&](std::int64_t byte_time) {
    const std::int64_t span = (1000 + 84) * byte_time + 2 * delay + response + latency;
    return (up(up(span, byte_time), 1000) + 2) * frame;
  };
  const std::int64_t sum = 2 * needed(80) + needed(8000);
  const auto make = [&](std::int64_t size) {
    LeanMachine machine(machine_text(3, delay), network(fmt::format("{{size: {} B}}", size),
                                                        fmt::format("{{response: {} ps}}", response), latency));
  };
  EXPECT_NO_THROW(make(sum));
  EXPECT_THROW(make(sum - 1), InputError);
}

// One stop: host 0 sends until it is paused, and three frames more. `xon` as large as the threshold: it may go on when
// the queue is empty.
struct OneStop {
  static constexpr std::int64_t delay = 1'000'000;
  static constexpr std::int64_t quanta = 1000;
  static constexpr std::int64_t pause_length = quanta * 512 * 10;   // 10 ps per bit
  const std::int64_t stop = delay + (threshold + 1) * full;         // frame 5 crosses
  const std::int64_t before = up(stop + pause_time + delay, full);  // frames until host 0 obeys
  const std::int64_t go = delay + full + (before - 1) * slow;       // the last of them leaves the queue
  const std::int64_t refreshes = (go - stop) / (pause_length / 2);  // each half pause
  LeanMachine machine;
  std::shared_ptr<test::TapLog> tap = machine.tap(NodeId(0));

  explicit OneStop(const std::string& more = "") : machine(machine_text(3, delay), parameters(more)) {
    machine.post({Time(), 0, machine.open(0, 2), (before + 3) * mtu});
  }
  static NetworkParameters parameters(const std::string& more) {
    return network_of(
        fmt::format("{{mtu: {} B, window: 1 GiB, ack_interval: 1024, flow_control: pfc, buffer: {}, "
                    "pfc: {{quanta: {}, xon: {} B}}{}}}",
                    mtu, static_buffer, quanta, threshold * frame, more));
  }
  std::int64_t begin_of(std::int64_t packet) const {
    return tap->entries.at(static_cast<std::size_t>(packet)).start.ps();
  }
};

TEST(pfc, pauses_are_told_again_until_the_queue_is_empty_and_then_taken_back) {
  OneStop run;
  ASSERT_NE((run.go - run.stop) % (OneStop::pause_length / 2), 0);
  run.machine.run();
  run.machine.expect_quiet();
  const LinkClassCounters back = run.machine.class_counters(run.machine.a_switch(0), data_lane, 0);
  const LinkClassCounters host = run.machine.class_counters(NodeId(0), data_lane);
  EXPECT_EQ(back.pauses_sent, static_cast<std::uint64_t>(1 + run.refreshes));
  EXPECT_EQ(host.pauses_received, back.pauses_sent);
  EXPECT_EQ(back.stopped.ps(), run.go - run.stop);
  EXPECT_EQ(host.paused.ps(), run.go - run.stop);
  EXPECT_EQ(run.begin_of(run.before - 1), (run.before - 1) * full);
  EXPECT_EQ(run.begin_of(run.before), run.go + pause_time + OneStop::delay);
}

TEST(pfc, a_pause_ends_after_its_quanta_if_nobody_takes_it_back) {
  const OneStop plan;
  // The link is down while the frame that would end the pause is on it.
  OneStop run(
      fmt::format(", failures: [{{at: {} ps, until: {} ps, link: [host0, switch0]}}]", plan.go + 1, plan.go + 10'000));
  run.machine.run();
  run.machine.expect_quiet();
  const std::int64_t last_told = plan.stop + plan.refreshes * (OneStop::pause_length / 2);
  EXPECT_EQ(run.begin_of(run.before), last_told + pause_time + OneStop::delay + OneStop::pause_length);
  EXPECT_EQ(run.machine.fabric->results().congestion().lost, 0U);
}

TEST(pfc, a_pause_stops_one_class_and_control_goes_before_data) {
  OneStop run;
  const std::int64_t moment = run.stop + 20 * full + 100'000'000;  // host 0 is paused, the slow port has a queue
  run.machine.on_own_timer = [&](std::uint32_t host, Time now, std::uint64_t to) {
    run.machine.fabric->send_credit(NodeId(host), now, NodeId(static_cast<std::uint32_t>(to)), 7, Time());
  };
  run.machine.fabric->set_timer(NodeId(0), Time::from_ps(moment), LeanMachine::own_timer + 1);
  run.machine.fabric->set_timer(NodeId(0), Time::from_ps(moment), LeanMachine::own_timer + 2);
  run.machine.run();
  ASSERT_EQ(run.machine.credits.size(), 2U);
  EXPECT_EQ(run.machine.credits[0], (Notice{Time::from_ps(moment + 2 * (control + OneStop::delay)), 1, 7}));
  // The other one waits for the packet that is on the slow link and for no other.
  const std::int64_t there = moment + 2 * control + OneStop::delay;
  const std::int64_t first = OneStop::delay + full;
  const std::int64_t begin = first + up(there - first, slow) * slow;
  EXPECT_EQ(run.machine.credits[1], (Notice{Time::from_ps(begin + 86 * 8000 + OneStop::delay), 2, 7}));
}

TEST(pfc, in_one_queue_control_waits_like_all) {
  OneStop plan;
  OneStop run(", priorities: {scheduling: fifo}");
  const std::uint32_t queue_pair = run.machine.open(2, 1);
  run.machine.on_own_timer = [&](std::uint32_t host, Time now, std::uint64_t to) {
    run.machine.fabric->send_credit(NodeId(host), now, NodeId(static_cast<std::uint32_t>(to)), queue_pair, Time());
  };
  run.machine.fabric->set_timer(NodeId(1), Time::from_ps(plan.stop + 40 * full), LeanMachine::own_timer + 2);
  run.machine.run();
  ASSERT_EQ(run.machine.credits.size(), 1U);
  // Behind all that host 0 had sent when it was paused.
  EXPECT_EQ(run.machine.credits[0].at.ps(), plan.go + slow + 86 * 8000 + OneStop::delay);
}

}  // namespace
}  // namespace weft::pfc_test
