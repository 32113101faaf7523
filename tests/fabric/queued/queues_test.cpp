// SPDX-License-Identifier: GPL-2.0-only
// Queues of switches and NICs against an independent model of single packets, and their counters by hand.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/fabric/queued/naive_network.hpp"

namespace weft::queues_test {
namespace {

using test::LeanMachine;
using test::NaiveNetwork;
using test::Transmission;

/// Draws of one seed, in order.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_below(static_cast<std::uint64_t>(n), seed_, 77, count_++));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

constexpr std::uint32_t hosts = 7;

/// Seven hosts on three switches, two links between each two switches; odd rates and delays, so that no two packets
/// come at one time.
std::string odd_machine(Draws& draws) {
  std::string links;
  const auto add = [&](const std::string& from, const std::string& to) {
    links += fmt::format("  - {{from: {}, to: {}, rate: {} b/s, delay: {} ps}}\n", from, to,
                         20'000'000'000 + draws.below(100'000'000'000), 100'000 + draws.below(900'000));
  };
  for (std::uint32_t h = 0; h < hosts; ++h) add(fmt::format("host{}", h), fmt::format("switch{}", h % 3));
  for (int twice = 0; twice < 2; ++twice)
    for (int s = 0; s < 3; ++s) add(fmt::format("switch{}", s), fmt::format("switch{}", (s + 1) % 3));
  return fmt::format("kind: graph\nhosts: {}\nswitches: 3\nlinks:\n{}", hosts, links);
}

NetworkParameters odd_network(Draws& draws, bool acks) {
  NetworkParameters network;
  network.mtu = Bytes(1000 + draws.below(500));
  network.acks = acks;
  network.switch_latency = Time::from_ps(draws.below(2) * 333'333);
  network.window = Bytes(1 + draws.below(6 * network.mtu.count()));
  return network;
}

/// Messages of 0 to 6 packets from every host to random others, over up to 3 queue pairs to each; half of them in
/// bursts.
void post_randomly(LeanMachine& machine, Draws& draws) {
  constexpr int messages_of_a_host = 40;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> pairs;
    std::int64_t time = draws.below(1'000'000);
    for (int i = 0; i < messages_of_a_host; ++i) {
      // Host 0 is a favourite, so that queues grow.
      auto peer = static_cast<std::uint32_t>(draws.below(2) == 0 ? 0 : draws.below(hosts));
      if (peer == host) peer = (peer + 1) % hosts;
      const auto [pair, fresh] = pairs.try_emplace({peer, draws.below(3)}, 0);
      if (fresh) pair->second = machine.open(host, peer);
      machine.post({Time::from_ps(time), host, pair->second, draws.below(6 * machine.parameters.mtu.count() + 1)});
      if (draws.below(2) == 0) time += draws.below(2'000'000);
    }
  }
}

/// Every message, completion and counter of the machine, which has run, is that of the model.
void expect_same(const LeanMachine& machine, const NaiveNetwork& naive) {
  std::map<std::uint64_t, std::int64_t> delivered;
  for (const auto& notice : machine.messages) delivered[notice.what] = notice.at.ps();
  EXPECT_EQ(delivered, naive.delivered);
  std::map<std::uint64_t, std::int64_t> sent;
  for (const auto& notice : machine.sent) sent[notice.what] = notice.at.ps();
  EXPECT_EQ(sent, naive.sent);

  for (const LinkCounters& link : machine.fabric->link_counters()) {
    const auto& log = naive.links[link.directed_link];
    const bool nic = machine.topology.graph.is_host(link.from);
    std::int64_t bytes = 0, payload = 0, busy = 0, peak = 0;
    std::uint64_t data = 0;
    for (const Transmission& t : log) {
      bytes += t.wire;
      payload += t.payload;
      data += t.data ? 1 : 0;
      busy += t.end - t.start;
      peak = std::max(peak, test::backlog(log, t.arrived, true));
      // Packets of a host wait in its queue pairs: the port gets a packet when it is free.
      if (nic) {
        ASSERT_EQ(t.start, t.arrived);
      }
    }
    EXPECT_EQ(link.bytes.count(), bytes) << "link " << link.directed_link;
    EXPECT_EQ(link.payload_bytes.count(), payload);
    EXPECT_EQ(link.packets, log.size());
    EXPECT_EQ(link.data_packets, data);
    EXPECT_EQ(link.busy.ps(), busy);
    EXPECT_EQ(link.peak_queue_bytes.count(), peak * static_cast<__int128>(link.times.rate.bps()) / 8'000'000'000'000);
    EXPECT_DOUBLE_EQ(link.queue_byte_ps, test::waiting_byte_ps(log));
  }
}

class RandomTraffic : public ::testing::TestWithParam<std::tuple<int, bool>> {};
INSTANTIATE_TEST_SUITE_P(queues, RandomTraffic, ::testing::Combine(::testing::Range(0, 12), ::testing::Bool()));

TEST_P(RandomTraffic, goes_as_in_a_model_of_single_packets) {
  Draws draws(static_cast<std::uint64_t>(std::get<0>(GetParam())));
  const std::string text = odd_machine(draws);
  LeanMachine machine(text, odd_network(draws, std::get<1>(GetParam())));
  post_randomly(machine, draws);
  machine.run();
  machine.expect_quiet();
  const NaiveNetwork naive(machine);
  EXPECT_EQ(naive.delivered.size(), machine.postings.size());
  expect_same(machine, naive);
  // Otherwise this would test empty queues only.
  double waited = 0;
  for (const auto& link : naive.links) waited += test::waiting_byte_ps(link);
  EXPECT_GT(waited, 0);
}

TEST(queues, do_not_depend_on_how_time_is_cut) {
  const auto run = [](std::int64_t longest_step) {
    Draws draws(5);
    const std::string text = odd_machine(draws);
    auto machine = std::make_unique<LeanMachine>(text, odd_network(draws, true));
    post_randomly(*machine, draws);
    for (Time at; machine->fabric->next_time() != Time::max();) {
      at += Time::from_ps(1 + draws.below(longest_step));
      machine->run_until(at);
      EXPECT_LT(machine->fabric->now(), at);
    }
    return machine;
  };
  const auto one = run(1'000'000'000'000);
  const auto two = run(30'000);
  EXPECT_EQ(one->messages.size(), one->postings.size());
  // At one node in the same order; between nodes by time.
  const auto by_host = [](std::vector<test::Notice> notices) {
    std::stable_sort(notices.begin(), notices.end(), [](const auto& a, const auto& b) { return a.host < b.host; });
    return notices;
  };
  EXPECT_EQ(by_host(one->messages), by_host(two->messages));
  EXPECT_EQ(by_host(one->sent), by_host(two->sent));
}

TEST_P(RandomTraffic, waits_until_the_end_and_no_longer) {
  const auto [seed, acks] = GetParam();
  Draws draws(static_cast<std::uint64_t>(seed));
  const std::string text = odd_machine(draws);
  LeanMachine machine(text, odd_network(draws, acks));
  post_randomly(machine, draws);
  const std::int64_t end = 5'000'000 + draws.below(20'000'000);
  machine.run_until(Time::from_ps(end));
  const std::vector<LinkCounters> before = machine.fabric->link_counters();
  ProcessGroup alone = ProcessGroup::alone();
  machine.fabric->results().settle_waits(alone, Time::from_ps(end));
  const std::vector<LinkCounters> after = machine.fabric->link_counters();
  machine.run();

  const NaiveNetwork naive(machine);
  bool changed = false;
  for (std::size_t l = 0; l < after.size(); ++l) {
    std::vector<Transmission> log = naive.links[after[l].directed_link];
    std::erase_if(log, [end](const Transmission& t) { return t.arrived >= end; });
    for (Transmission& t : log) t.start = std::min(t.start, end);
    EXPECT_DOUBLE_EQ(after[l].queue_byte_ps, test::waiting_byte_ps(log)) << "link " << after[l].directed_link;
    changed |= after[l].queue_byte_ps != before[l].queue_byte_ps;
  }
  EXPECT_TRUE(changed) << "nothing waited at the end";
}

// A plain port counts a wait when the packet comes, one with queues when it leaves.
TEST(queues, what_waits_at_the_end_counts_until_then_by_hand) {
  constexpr std::int64_t packets = 10;
  for (const bool buffered : {false, true}) {
    NetworkParameters network;
    network.acks = false;
    network.fabric.buffered = buffered;
    // Two hosts send to the third. A packet from each reaches the switch every s, which sends one every s: in the k-th
    // of these intervals, from 0, k + 1 packets wait. At 3 s + s / 4 after the first ones that is w (s + 2 s + 3 s + 4
    // s / 4).
    LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}", network);
    const std::int64_t mtu = machine.parameters.mtu.count();
    const std::int64_t w = mtu + machine.parameters.data_overhead().count();
    const std::int64_t s = w * 80;
    for (const std::uint32_t host : {0U, 1U}) machine.post({Time(), host, machine.open(host, 2), packets * mtu});
    const Time end = Time::from_ps(s + 1'000'000 + 3 * s + s / 4) + machine.parameters.switch_latency;
    machine.run_until(end);
    ProcessGroup alone = ProcessGroup::alone();
    machine.fabric->results().settle_waits(alone, end);
    EXPECT_DOUBLE_EQ(machine.counters(machine.a_switch(0), 2).queue_byte_ps, static_cast<double>(w * (6 * s + s)))
        << buffered;
  }
}

TEST(queues, samples_are_those_of_the_model) {
  constexpr std::int64_t interval = 777'777;
  for (const bool acks : {false, true}) {
    Draws draws(9);
    const std::string text = odd_machine(draws);
    LeanMachine machine(text, odd_network(draws, acks));
    machine.fabric->probes().sample_ports(Time::from_ps(interval));
    post_randomly(machine, draws);
    machine.run();
    const NaiveNetwork naive(machine);
    const std::int64_t end = machine.fabric->now().ps();

    using Series = std::map<std::pair<std::uint32_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>>;
    Series expected;  // (link, interval) -> busy, queue
    for (std::uint32_t l = 0; l < naive.links.size(); ++l) {
      const auto& log = naive.links[l];
      const __int128 rate = machine.topology.graph.link(LinkId(l / 2)).rate.bps();
      for (std::int64_t i = 0; i * interval < end; ++i) {
        std::int64_t busy = 0;
        for (const Transmission& t : log)
          busy += std::max<std::int64_t>(0, std::min(t.end, (i + 1) * interval) - std::max(t.start, i * interval));
        const std::int64_t work = test::backlog(log, (i + 1) * interval, false);
        if (busy > 0 || work > 0) expected[{l, i}] = {busy, static_cast<std::int64_t>(work * rate / 8'000'000'000'000)};
      }
    }
    Series found;
    for (const PortSample& sample : machine.fabric->results().take_samples(machine.fabric->now()))
      EXPECT_TRUE(found
                      .emplace(std::pair(sample.directed_link, std::int64_t{sample.interval}),
                               std::pair(sample.busy.ps(), sample.queue_bytes.count()))
                      .second);
    EXPECT_EQ(found, expected);
  }
}

TEST(queues, three_packets_and_their_counters_by_hand) {
  // Star at 100 Gb/s, 80 ps per byte, 1 us of delay. Frames of 1000 B take 80 ns, of 500 B 40 ns, of 100 B 8 ns.
  NetworkParameters network;
  network.acks = false;
  LeanMachine machine("{kind: star, hosts: 4, link_rate: 100 Gb/s, link_delay: 1 us}", network);
  const Bytes overhead = network.data_overhead();
  const auto send = [&](std::uint32_t host, Time at, std::int64_t frame) {
    machine.post({at, host, machine.open(host, 0), frame - overhead.count()});
  };
  // At the switch's port 0: 1000 B at 1080 ns, 500 B at 1100 ns, 100 B at 1110 ns.
  send(1, Time(), 1000);
  send(2, Time::from_ns(60), 500);
  send(3, Time::from_ns(102), 100);
  machine.run();
  machine.expect_quiet();
  // They leave at 1160, 1200 and 1208 ns.
  ASSERT_EQ(machine.messages.size(), 3U);
  EXPECT_EQ(machine.messages[0], (test::Notice{Time::from_ns(2160), 0, std::uint64_t{1} << 32}));
  EXPECT_EQ(machine.messages[1], (test::Notice{Time::from_ns(2200), 0, std::uint64_t{2} << 32}));
  EXPECT_EQ(machine.messages[2], (test::Notice{Time::from_ns(2208), 0, std::uint64_t{3} << 32}));

  const LinkCounters link = machine.counters(machine.a_switch(0), 0);
  EXPECT_EQ(link.to, NodeId(0));
  EXPECT_EQ(link.packets, 3U);
  EXPECT_EQ(link.data_packets, 3U);
  EXPECT_EQ(link.bytes.count(), 1600);
  EXPECT_EQ(link.payload_bytes.count(), 1600 - 3 * overhead.count());
  EXPECT_EQ(link.busy.ps(), Time::from_ns(128).ps());
  // At 1110 ns 30 of the first packet's 80 ns are over: 625 B of it are left, and 500 B and 100 B wait. At 1100 ns it
  // was 750 B + 500 B: more.
  EXPECT_EQ(link.peak_queue_bytes.count(), 1250);
  // 500 B wait for 60 ns and 100 B for 90 ns.
  EXPECT_EQ(link.queue_byte_ps, 500.0 * 60'000 + 100.0 * 90'000);
  // A NIC's port holds its packet alone.
  const LinkCounters nic = machine.counters(NodeId(1));
  EXPECT_EQ(nic.peak_queue_bytes.count(), 1000);
  EXPECT_EQ(nic.queue_byte_ps, 0);
  EXPECT_EQ(machine.counters(machine.a_switch(0), 1).packets, 0U);
  EXPECT_EQ(machine.fabric->packet_hops(), 6U);
}

TEST(queues, switch_latency_passes_before_the_queue) {
  // Two packets of 1000 B, 80 ns each, come 10 ns apart: the latency delays both and the second waits all the same.
  for (const std::int64_t latency : {0, 300}) {
    NetworkParameters network;
    network.acks = false;
    network.switch_latency = Time::from_ns(latency);
    LeanMachine machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}", network);
    for (const std::uint32_t host : {1U, 2U})
      machine.post({Time::from_ns(host * 10), host, machine.open(host, 0), 1000 - network.data_overhead().count()});
    machine.run();
    ASSERT_EQ(machine.messages.size(), 2U);
    EXPECT_EQ(machine.messages[0].at, Time::from_ns(10 + 80 + 1000 + latency + 80 + 1000));
    EXPECT_EQ(machine.messages[1].at, machine.messages[0].at + Time::from_ns(80));
    EXPECT_EQ(machine.counters(machine.a_switch(0), 0).queue_byte_ps, 1000.0 * 70'000);
  }
}

}  // namespace
}  // namespace weft::queues_test
