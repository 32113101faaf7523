// SPDX-License-Identifier: GPL-2.0-only
// The life of every packet of random traffic on a fat-tree: nothing is lost, doubled, early or astray.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/fabric/lean_machine.hpp"
#include "tests/topologies/machine.hpp"
#include "transport/messages/ideal_time.hpp"

namespace weft::conservation_test {
namespace {

using test::LeanMachine;

const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 100 Gb/s, link_delay: 500 ns}";

/// A packet's name in the whole run, and where it was seen.
using Name = std::tuple<PacketKind, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
struct Sight {
  Time start;
  std::uint32_t directed_link;
  std::uint16_t payload;
  friend auto operator<=>(const Sight&, const Sight&) = default;
};

/// Random messages between all hosts, many at once and many to host 5, and everything that leaves any port.
struct RandomRun {
  explicit RandomRun(bool acks, std::uint64_t seed = 1) : machine(fat_tree, network(acks), seed) {
    const ClusterGraph& graph = machine.topology.graph;
    for (std::uint32_t n = 0; n < graph.node_count(); ++n) {
      for (std::uint32_t p = 0; p < graph.ports(NodeId(n)).size(); ++p) {
        const PortEnd& end = graph.ports(NodeId(n))[p];
        taps[directed(end.link, end.direction)] = machine.tap(NodeId(n), p);
      }
    }
    for (std::uint32_t host = 0; host < graph.host_count(); ++host) {
      for (std::uint64_t i = 0; i < 30; ++i) {
        const auto draw = [&](std::uint64_t n, std::uint64_t what) {
          return random_below(n, seed, 100 * host + what, i);
        };
        auto peer = static_cast<std::uint32_t>(draw(3, 0) == 0 ? 5 : draw(graph.host_count(), 1));
        if (peer == host) peer = (peer + 1) % graph.host_count();
        const auto bytes = static_cast<std::int64_t>(draw(4, 2) == 0 ? draw(2, 3) : draw(20'000, 4));
        machine.post(
            {Time::from_ns(100 * static_cast<std::int64_t>(draw(50, 5))), host, machine.open(host, peer), bytes});
      }
    }
    machine.run();
    for (const auto& [link, tap] : taps)
      for (const auto& entry : tap->entries) {
        const Packet& p = entry.packet;
        packets[{p.kind, p.source().value(), p.destination().value(), p.queue_pair, p.psn}].push_back(
            {entry.start, link, p.payload});
      }
    for (auto& [name, sights] : packets) std::sort(sights.begin(), sights.end());
  }
  static NetworkParameters network(bool acks) {
    NetworkParameters result;
    result.acks = acks;
    result.mtu = Bytes(1000);
    result.window = Bytes(8000);
    return result;
  }
  Bytes wire(PacketKind kind, std::int64_t payload) const {
    return kind == PacketKind::data ? Bytes(payload) + machine.parameters.data_overhead()
                                    : machine.parameters.control_wire();
  }

  LeanMachine machine;
  std::map<std::uint32_t, std::shared_ptr<test::TapLog>> taps;  ///< by directed link
  std::map<Name, std::vector<Sight>> packets;                   ///< in the order of time
};

class Conservation : public ::testing::TestWithParam<bool> {
 protected:
  RandomRun run{GetParam()};
  const ClusterGraph& graph = run.machine.topology.graph;
};
INSTANTIATE_TEST_SUITE_P(conservation, Conservation, ::testing::Bool(),
                         [](const auto& name) { return name.param ? "with_acks" : "without_acks"; });

TEST_P(Conservation, every_packet_takes_its_path_once_and_no_hop_too_early) {
  run.machine.expect_quiet();
  for (const auto& [name, sights] : run.packets) {
    const auto& [kind, source, destination, queue_pair, psn] = name;
    const auto path = trace_path(run.machine.topology, *run.machine.routing,
                                 RouteRequest{NodeId(source), NodeId(destination), queue_pair});
    ASSERT_EQ(sights.size(), path.size()) << source << " to " << destination;
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      ASSERT_EQ(sights[hop].directed_link, path[hop].directed_link);
      ASSERT_EQ(sights[hop].payload, sights[0].payload);
      if (hop == 0) continue;
      const LinkProperties& before = graph.link(LinkId(path[hop - 1].directed_link / 2));
      ASSERT_GE(
          sights[hop].start,
          sights[hop - 1].start + serialization_time(run.wire(kind, sights[0].payload), before.rate) + before.delay);
    }
  }
}

TEST_P(Conservation, links_carry_one_packet_at_a_time_and_count_all) {
  for (const LinkCounters& link : run.machine.fabric->link_counters()) {
    std::int64_t bytes = 0, payload = 0;
    std::uint64_t data = 0;
    Time free;
    const auto& entries = run.taps.at(link.directed_link)->entries;
    for (const auto& [start, packet] : entries) {
      ASSERT_GE(start, free);
      const Bytes wire = run.wire(packet.kind, packet.payload);
      free = start + serialization_time(wire, link.times.rate);
      bytes += wire.count();
      payload += packet.payload;
      data += packet.kind == PacketKind::data ? 1 : 0;
    }
    EXPECT_EQ(link.packets, entries.size());
    EXPECT_EQ(link.data_packets, data);
    EXPECT_EQ(link.bytes.count(), bytes);
    EXPECT_EQ(link.payload_bytes.count(), payload);
    EXPECT_EQ(link.busy.ps(), bytes * 80);
  }
}

TEST_P(Conservation, switches_keep_nothing_and_hosts_get_what_was_sent_to_them) {
  const std::uint32_t nodes = graph.node_count();
  std::vector<std::int64_t> in(nodes), out(nodes), payload_in(nodes), payload_out(nodes);
  for (const LinkCounters& link : run.machine.fabric->link_counters()) {
    out[link.from.value()] += link.bytes.count();
    in[link.to.value()] += link.bytes.count();
    payload_out[link.from.value()] += link.payload_bytes.count();
    payload_in[link.to.value()] += link.payload_bytes.count();
  }
  for (std::uint32_t n = graph.host_count(); n < nodes; ++n) {
    EXPECT_EQ(in[n], out[n]) << graph.name(NodeId(n));
    EXPECT_EQ(payload_in[n], payload_out[n]);
  }
  std::vector<std::int64_t> sent(nodes), received(nodes);
  for (const test::Posting& posting : run.machine.postings) {
    sent[posting.host] += posting.bytes;
    received[run.machine.destinations.at({posting.host, posting.queue_pair})] += posting.bytes;
  }
  for (std::uint32_t host = 0; host < graph.host_count(); ++host) {
    EXPECT_EQ(payload_out[host], sent[host]) << host;
    EXPECT_EQ(payload_in[host], received[host]) << host;
  }
}

TEST_P(Conservation, sums_over_links_are_messages_times_hops) {
  const bool acks = GetParam();
  std::int64_t payload = 0, bytes = 0;
  std::uint64_t packets = 0;
  for (const test::Posting& posting : run.machine.postings) {
    const std::uint32_t to = run.machine.destinations.at({posting.host, posting.queue_pair});
    const std::uint32_t hops = test::distances_from(graph, NodeId(posting.host)).hops[to];
    const auto count = static_cast<std::int64_t>(packet_count(Bytes(posting.bytes), run.machine.parameters.mtu));
    payload += posting.bytes * hops;
    bytes += (posting.bytes + count * run.wire(PacketKind::data, 0).count()) * hops;
    if (acks) bytes += count * run.wire(PacketKind::ack, 0).count() * hops;
    packets += static_cast<std::uint64_t>(count) * hops * (acks ? 2 : 1);
  }
  std::int64_t payload_of_links = 0, bytes_of_links = 0;
  for (const LinkCounters& link : run.machine.fabric->link_counters()) {
    payload_of_links += link.payload_bytes.count();
    bytes_of_links += link.bytes.count();
  }
  EXPECT_EQ(payload_of_links, payload);
  EXPECT_EQ(bytes_of_links, bytes);
  EXPECT_EQ(run.machine.fabric->packet_hops(), packets);
}

TEST_P(Conservation, no_message_is_faster_than_alone) {
  bool some_waited = false;
  for (std::size_t i = 0; i < run.machine.received.size(); ++i) {
    const Message& message = run.machine.received[i];
    const auto path = trace_path(run.machine.topology, *run.machine.routing,
                                 RouteRequest{message.source, message.destination, message.queue_pair});
    std::vector<PathLink> links;
    for (const PathHop& hop : path) {
      const LinkProperties& link = graph.link(LinkId(hop.directed_link / 2));
      links.push_back({link.rate, link.delay});
    }
    const Time ideal =
        ideal_message_time(links, message.bytes, run.machine.parameters.mtu, run.machine.parameters.data_overhead());
    EXPECT_EQ(message.ideal, ideal);
    EXPECT_EQ(message.packets, packet_count(message.bytes, run.machine.parameters.mtu));
    EXPECT_GE(run.machine.messages[i].at - message.issued, ideal);
    some_waited |= run.machine.messages[i].at - message.issued > 2 * ideal;
  }
  EXPECT_TRUE(some_waited) << "too little traffic to test anything";
}

}  // namespace
}  // namespace weft::conservation_test
