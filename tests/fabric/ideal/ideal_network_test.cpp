// SPDX-License-Identifier: GPL-2.0-only
// The ideal network by hand: one message, messages behind each other, shared ports of sources and destinations,
// credits.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/basics/error.hpp"
#include "support/basics/random.hpp"
#include "tests/fabric/ideal/ideal_machine.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::ideal_network_test {
namespace {

using test::IdealMachine;
using test::LeanMachine;
using test::network_of;
using test::Notice;
using test::packets_ideal_by_id;
using test::Posting;

constexpr std::int64_t per_byte = 80;  // ps at 100 Gb/s
constexpr std::int64_t mtu = 4096, overhead = 82;
constexpr std::int64_t full = (mtu + overhead) * per_byte;
constexpr std::int64_t delay = 1'000'000;
constexpr std::int64_t control = 2 * 86 * per_byte + 2 * delay;  // an ACK or credit over both links of a star

std::string star(int hosts) {
  return fmt::format("{{kind: star, hosts: {}, link_rate: 100 Gb/s, link_delay: 1 us}}", hosts);
}

struct Dice {
  std::uint64_t thrown = 0;
  std::uint64_t below(std::uint64_t n) { return random_below(n, 7, 0, thrown++); }
};

std::vector<std::int64_t> times(const std::vector<Notice>& notices) {
  std::vector<std::int64_t> result;
  for (const Notice& notice : notices) result.push_back(notice.at.ps());
  return result;
}

// Kermani and Kleinrock 1979: P packets over two links take (P + 1) s + 2 d.
TEST(ideal_network, one_message_takes_the_time_of_its_packets_on_both_links) {
  for (const std::int64_t packets : {1, 2, 3, 100}) {
    IdealMachine machine(star(2));
    machine.post({Time(), 0, machine.open(0, 1), packets * mtu});
    machine.run();
    const std::int64_t arrival = (packets + 1) * full + 2 * delay;
    EXPECT_EQ(times(machine.messages), std::vector{arrival});
    EXPECT_EQ(machine.received[0].ideal.ps(), arrival);
    EXPECT_EQ(machine.received[0].packets, static_cast<std::uint64_t>(packets));
    EXPECT_EQ(times(machine.sent), std::vector{arrival + control});
  }
}

TEST(ideal_network, without_acks_a_message_is_sent_when_it_has_left_the_port) {
  IdealMachine machine(star(2), network_of("{ack: none}"));
  machine.post({Time::from_ns(5), 0, machine.open(0, 1), 3 * mtu});
  machine.run();
  EXPECT_EQ(times(machine.sent), std::vector{5'000 + 3 * full});
}

TEST(ideal_network, messages_of_a_queue_pair_follow_each_other) {
  IdealMachine machine(star(2));
  const std::uint32_t pair = machine.open(0, 1);
  for (const std::int64_t packets : {4, 1, 2}) machine.post({Time(), 0, pair, packets * mtu});
  machine.run();
  EXPECT_EQ(times(machine.messages), (std::vector{5 * full + 2 * delay, 6 * full + 2 * delay, 8 * full + 2 * delay}));
}

// Packet by packet in turn, messages of 1, 3 and 6 packets leave as A B C B C B C C C C.
TEST(ideal_network, flows_share_the_port_of_their_source_equally) {
  IdealMachine machine(star(4));
  for (const std::uint32_t to : {1, 2, 3})
    machine.post({Time(), 0, machine.open(0, to), (to == 1 ? 1 : to == 2 ? 3 : 6) * mtu});
  machine.run();
  EXPECT_EQ(times(machine.messages),
            (std::vector{full + full + 2 * delay, 6 * full + full + 2 * delay, 10 * full + full + 2 * delay}));
}

// Messages that begin together on a port of their own. Of equal length: exactly in the turns of their packets. Of
// different length: a last packet leaves when its turn begins, so by less than a round earlier than packets have it,
// and the last of all exactly when they have it.
TEST(ideal_network, messages_that_begin_together_leave_in_the_turns_of_their_packets) {
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const bool equal = trial % 3 == 0;
    const auto flows = static_cast<std::uint32_t>(1 + random_below(7, trial, 1, 0));
    IdealMachine ideal(star(8), network_of("{ack: none}"));
    LeanMachine packets(star(8), network_of("{ack: none}"));
    for (std::uint32_t flow = 1; flow <= flows; ++flow) {
      const auto count = static_cast<std::int64_t>(1 + random_below(30, trial, 2, equal ? 0 : flow));
      const Posting posting{Time(), 0, ideal.open(0, flow), mtu * count};
      packets.open(0, flow);
      ideal.post(posting);
      packets.post(posting);
    }
    ideal.run();
    packets.run();
    std::map<std::uint64_t, std::int64_t> expected;
    for (const Notice& notice : packets.messages) expected[notice.what] = notice.at.ps();
    for (const Notice& notice : ideal.messages) {
      EXPECT_LE(notice.at.ps(), expected[notice.what]) << "trial " << trial;
      EXPECT_GE(notice.at.ps(), expected[notice.what] - (equal ? 0 : (flows - 1) * full)) << "trial " << trial;
    }
    const std::vector<std::int64_t> all = times(packets.messages);
    EXPECT_EQ(ideal.messages.back().at.ps(), *std::max_element(all.begin(), all.end()));
  }
}

TEST(ideal_network, a_flow_that_comes_later_takes_turns_from_then_on) {
  IdealMachine machine(star(3));
  machine.post({Time(), 0, machine.open(0, 1), 10 * mtu});
  machine.post({Time::from_ps(4 * full), 0, machine.open(0, 2), 2 * mtu});
  machine.run();
  // Four of the first are out; then one of each, and the last of the second, behind which the first has the port alone.
  EXPECT_EQ(times(machine.messages),
            (std::vector{7 * full + full + 2 * delay, 10 * full + 2 * full + full + 2 * delay}));
}

// n messages of P packets that arrive at once: the port has n P packets to send, and is never idle. The last one has
// the time of the packet network, which serves them packet by packet in turn.
TEST(ideal_network, the_last_of_an_incast_is_where_packets_have_it) {
  constexpr std::int64_t packets = 20;
  for (const std::uint32_t senders : {1U, 2U, 7U}) {
    IdealMachine ideal(star(8));
    LeanMachine lean(star(8), network_of("{ack: none}"));
    for (std::uint32_t from = 1; from <= senders; ++from) {
      ideal.post({Time(), from, ideal.open(from, 0), packets * mtu});
      lean.post({Time(), from, lean.open(from, 0), packets * mtu});
    }
    ideal.run();
    lean.run();
    std::vector<std::int64_t> expected;
    for (std::int64_t k = 1; k <= senders; ++k) expected.push_back(full + k * packets * full + 2 * delay);
    EXPECT_EQ(times(ideal.messages), expected);
    EXPECT_EQ(lean.messages.back().at.ps(), expected.back());
  }
}

// Host 2 has a tenth of the rate: its 10 packets take the port of host 0 only 10 of 100 packet times.
TEST(ideal_network, a_slow_sender_does_not_hold_the_port_of_the_destination) {
  const std::string machine_text =
      "{kind: graph, hosts: 3, switches: 1, links: [{from: host0, to: switch0, rate: 100 Gb/s, delay: 1 us}, "
      "{from: host1, to: switch0, rate: 100 Gb/s, delay: 1 us}, {from: host2, to: switch0, rate: 10 Gb/s, delay: 1 "
      "us}]}";
  IdealMachine machine(machine_text);
  machine.post({Time(), 2, machine.open(2, 0), 10 * mtu});
  machine.post({Time::from_ps(50 * full), 1, machine.open(1, 0), 20 * mtu});
  machine.run();
  EXPECT_EQ(times(machine.messages), (std::vector{50 * full + 21 * full + 2 * delay, 101 * full + 2 * delay}));
}

TEST(ideal_network, a_credit_takes_its_way_and_no_place) {
  IdealMachine machine(star(2));
  const std::uint32_t pair = machine.open(0, 1);
  machine.post({Time(), 0, pair, 100 * mtu});
  machine.on_own_timer = [&](std::uint32_t host, Time now, std::uint64_t) {
    machine.network->send_credit(NodeId(host), now, NodeId(0), pair, Time());
  };
  machine.network->set_timer(NodeId(1), Time::from_us(3), IdealMachine::own_timer);
  machine.run();
  EXPECT_EQ(machine.credits, (std::vector<Notice>{{Time::from_us(3) + Time::from_ps(control), 0, pair}}));
  EXPECT_EQ(times(machine.messages), std::vector{101 * full + 2 * delay});
}

// Two GPUs behind one NIC: the NIC's link is the slowest of both, and belongs to them alone.
TEST(ideal_network, the_gpus_of_a_nic_share_its_link) {
  const std::string text =
      "{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 us, server: {gpus: 2, inside: nvswitch, nvlink_rate: "
      "1000 Gb/s, nvlink_delay: 10 ns, nics: 1, pcie_rate: 200 Gb/s, pcie_delay: 10 ns}}";
  const auto last_of = [&](const std::vector<std::uint32_t>& senders) {
    IdealMachine machine(text);
    for (const std::uint32_t from : senders) machine.post({Time(), from, machine.open(from, from + 2), 50 * mtu});
    machine.run();
    return machine.messages.back().at.ps();
  };
  EXPECT_EQ(last_of({0, 1}) - last_of({0}), 50 * full);
  // Inside the server NVLink carries another message beside, without any of it being late.
  IdealMachine machine(text);
  machine.post({Time(), 0, machine.open(0, 1), 500 * mtu});
  machine.post({Time(), 0, machine.open(0, 2), 50 * mtu});
  machine.run();
  EXPECT_EQ(times(machine.messages).back(), last_of({0}));
}

// Messages of any sizes at any times on one flow, or one each way, over links of any rates and delays: as packets, to
// the picosecond.
TEST(ideal_network, a_flow_alone_on_its_links_moves_as_its_packets_would) {
  Dice random;
  const std::vector<int> rates = {25, 40, 100, 400};
  std::uint64_t compared = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const bool acks = trial % 3 == 0;
    const std::uint64_t links = 1 + random.below(5);
    const std::uint64_t rate_of_all = random.below(rates.size());
    std::string all_rates, all_delays;
    for (std::uint64_t i = 0; i < links; ++i) {
      all_rates += fmt::format("{}{} Gb/s", i == 0 ? "" : ", ", rates[acks ? rate_of_all : random.below(rates.size())]);
      all_delays += fmt::format("{}{} ps", i == 0 ? "" : ", ", 1 + random.below(2'000'000));
    }
    const std::string line =
        fmt::format("{{kind: line, links: {}, link_rate: [{}], link_delay: [{}]}}", links, all_rates, all_delays);
    const std::int64_t payload = std::vector<std::int64_t>{256, 1000, 4096}[random.below(3)];
    const NetworkParameters network = network_of(fmt::format("{{mtu: {} B, switch_latency: {} ns, {}}}", payload,
                                                             random.below(500), acks ? "window: 1 GiB" : "ack: none"));
    LeanMachine packets(line, network);
    IdealMachine ideal(line, network);
    for (std::uint32_t from = 0; from < (acks ? 1U : 2U); ++from) {
      std::int64_t at = 0;
      packets.open(from, 1 - from);
      const std::uint32_t pair = ideal.open(from, 1 - from);
      for (int i = 0; i < 40; ++i) {
        if (random.below(3) == 0) at += static_cast<std::int64_t>(random.below(20'000'000));
        const auto size = static_cast<std::int64_t>(random.below(random.below(2) == 0 ? 300 : 60'000));
        const std::int64_t tail = size % payload;
        const Posting posting{Time::from_ps(at), from, pair, acks && tail < 4 ? size - tail + 4 : size};
        packets.post(posting);
        ideal.post(posting);
      }
    }
    packets.run();
    ideal.run();
    ASSERT_EQ(ideal.messages.size(), 40U * (acks ? 1 : 2));
    const auto by_host = [](std::vector<Notice> notices) {
      std::stable_sort(notices.begin(), notices.end(),
                       [](const Notice& a, const Notice& b) { return a.host < b.host; });
      return notices;
    };
    ASSERT_EQ(by_host(ideal.messages), by_host(packets.messages)) << line << " trial " << trial;
    ASSERT_EQ(by_host(ideal.sent), by_host(packets.sent)) << line << " trial " << trial;
    for (std::size_t i = 0; i < ideal.received.size(); ++i) compared += ideal.received[i].ideal > Time() ? 1 : 0;
    ASSERT_EQ(ideal.ideal_by_id(), packets_ideal_by_id(packets)) << line;
  }
  EXPECT_GT(compared, 2000U);
}

TEST(ideal_network, cut_through_too) {
  const std::string line = "{kind: line, links: 4, link_rate: 100 Gb/s, link_delay: 1 us}";
  const NetworkParameters network = network_of("{switching: cut_through, window: 1 GiB}");
  LeanMachine packets(line, network);
  IdealMachine ideal(line, network);
  const std::uint32_t pair = packets.open(0, 1);
  ideal.open(0, 1);
  for (const std::int64_t size : {100'000, 5, 4096, 70'000}) {
    packets.post({Time(), 0, pair, size});
    ideal.post({Time(), 0, pair, size});
  }
  packets.run();
  ideal.run();
  EXPECT_EQ(ideal.messages, packets.messages);
  EXPECT_EQ(ideal.ideal_by_id(), packets_ideal_by_id(packets));
}

TEST(ideal_network, from_gpu_to_gpu_as_packets) {
  const std::string text =
      "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 8, spines: 2, link_rate: 400 Gb/s, link_delay: 500 ns, server: "
      "{design: hgx_h100}}";
  const NetworkParameters network = network_of("{ack: none}");
  for (const std::uint32_t destination : {1U, 7U, 8U, 15U}) {
    LeanMachine packets(text, network);
    IdealMachine ideal(text, network);
    packets.open(0, destination);
    const std::uint32_t pair = ideal.open(0, destination);
    for (const std::int64_t size : {1'000'000, 0, 12'345, 4096, 1}) {
      packets.post({Time(), 0, pair, size});
      ideal.post({Time(), 0, pair, size});
    }
    packets.run();
    ideal.run();
    EXPECT_EQ(ideal.messages, packets.messages) << destination;
    EXPECT_EQ(ideal.sent, packets.sent) << destination;
  }
}

TEST(ideal_network, counts_what_passes_each_link) {
  IdealMachine machine(star(3));
  machine.post({Time(), 0, machine.open(0, 1), 10 * mtu + 1});
  machine.post({Time(), 2, machine.open(2, 1), mtu});
  machine.run();
  ProcessGroup group = ProcessGroup::alone();
  machine.network->finish(group, true);
  std::int64_t into_1 = 0, busy = 0;
  for (const LinkCounters& link : machine.network->link_counters()) {
    if (link.to != NodeId(1)) continue;
    into_1 += link.bytes.count();
    busy += link.busy.ps();
    EXPECT_EQ(link.data_packets, 12U);
    EXPECT_EQ(link.payload_bytes.count(), 11 * mtu + 1);
  }
  EXPECT_EQ(into_1, 11 * mtu + 1 + 12 * overhead);
  EXPECT_EQ(busy, into_1 * per_byte);
}

// From a host of one process to one of another: both links of the star. Events at one end count nothing.
TEST(ideal_network, looks_ahead_by_the_shortest_way_between_hosts_of_two_processes) {
  const auto lookahead = [](const std::string& text, std::uint32_t second) {
    const Topology topology = build_topology(Spec::parse(text, "test.yaml"));
    const NetworkParameters network;
    const auto routing = RoutingRegistry::instance().find(topology.routing)->make();
    routing->prepare(topology, 1);
    std::vector<std::uint16_t> owner(topology.graph.node_count(), 0);
    for (std::uint32_t host = second; host < topology.graph.host_count(); ++host) owner[host] = 1;
    const auto owners = owners_of_hosts(topology, owner);
    return ideal_lookahead(topology, IdealPaths(topology, network, *routing), owners);
  };
  EXPECT_EQ(lookahead(star(4), 2), Time::from_us(2));
  EXPECT_EQ(lookahead(star(4), 4), Time::max());
  EXPECT_EQ(lookahead("{kind: torus, dims: [4], link_rate: 100 Gb/s, link_delay: 300 ns, host_link_delay: 5 us}", 2),
            Time::from_ns(300));
  const std::string servers =
      "{kind: star, hosts: 4, link_rate: 100 Gb/s, link_delay: 1 us, server: {gpus: 2, inside: nvswitch, nvlink_rate: "
      "1000 Gb/s, nvlink_delay: 10 ns, nics: 1, pcie_rate: 200 Gb/s, pcie_delay: 10 ns}}";
  EXPECT_EQ(lookahead(servers, 3), Time::from_us(2));  // GPU 3 is where GPU 2 is
}

}  // namespace
}  // namespace weft::ideal_network_test
