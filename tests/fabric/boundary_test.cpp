// SPDX-License-Identifier: GPL-2.0-only
// The packets that cross the boundary between two processes, and their announcement before the end of an epoch.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::boundary_test {
namespace {

using test::LeanMachine;
using test::Notice;

const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 100 Gb/s, link_delay: 500 ns}";
constexpr std::uint32_t hosts = 16;
constexpr std::int64_t bytes = 200'000;
constexpr Time end_of_time = Time::from_ps(INT64_MAX / 8 * 7);

// Every host sends to one of its own half, and to one of the other half.
void post_all(LeanMachine& machine, std::uint32_t first, std::uint32_t last, Time start = Time()) {
  for (std::uint32_t host = first; host < last; ++host) {
    for (const std::uint32_t shift : {3U, 8U}) {
      const std::uint32_t queue_pair = machine.open(host, (host + shift) % hosts);
      machine.post({start + Time::from_ns(10 * host), host, queue_pair, bytes});
    }
  }
}

void hand_over(LeanMachine& from, LeanMachine& to) {
  Batch& batch = from.fabric->outgoing()[0];
  to.fabric->incoming(0, batch.bytes());
  batch.clear();
}

// All messages of both halves have arrived as in the machine as a whole.
void expect_same(const LeanMachine& low, const LeanMachine& high, std::vector<Notice> whole) {
  std::vector<Notice> both = low.messages;
  both.insert(both.end(), high.messages.begin(), high.messages.end());
  const auto by_host = [](const Notice& a, const Notice& b) {
    return std::pair(a.host, a.at) < std::pair(b.host, b.at);
  };
  std::sort(both.begin(), both.end(), by_host);
  std::sort(whole.begin(), whole.end(), by_host);
  ASSERT_EQ(both.size(), std::size_t{2} * hosts);
  EXPECT_EQ(both, whole);
}

/// The values that must not change after they have been sent.
struct Said {
  bool early = false;
  std::size_t outgoing = 0;
  Time next;
};

TEST(Boundary, WhatIsSaidEarlyIsFinal) {
  LeanMachine whole(fat_tree);
  post_all(whole, 0, hosts);
  whole.run();

  LeanMachine low(fat_tree, {}, 1, 0, 2);
  LeanMachine high(fat_tree, {}, 1, 1, 2);
  const std::array<LeanMachine*, 2> halves{&low, &high};
  post_all(low, 0, hosts / 2);
  post_all(high, hosts / 2, hosts);
  std::array<Said, 2> said;
  for (std::size_t half = 0; half < 2; ++half) {
    Fabric& fabric = *halves[half]->fabric;
    ASSERT_EQ(fabric.outgoing().size(), 1U);
    fabric.set_boundary_done([&fabric, &now = said[half]] {
      EXPECT_FALSE(now.early);  // once per epoch
      now = {true, fabric.outgoing()[0].size(), fabric.next_time()};
    });
  }
  int epochs = 0;
  int early = 0;
  for (;; ++epochs) {
    const Time begin = std::min(low.fabric->next_time(), high.fabric->next_time());
    if (begin == Time::max()) break;
    for (std::size_t half = 0; half < 2; ++half) {
      Fabric& fabric = *halves[half]->fabric;
      said[half] = {};
      fabric.advance(begin + fabric.lookahead());
      if (!said[half].early) continue;
      ++early;
      EXPECT_EQ(fabric.outgoing()[0].size(), said[half].outgoing);
      EXPECT_EQ(fabric.next_time(), said[half].next);
    }
    hand_over(low, high);
    hand_over(high, low);
  }
  EXPECT_GT(early, epochs);  // of both halves: most epochs of both
  EXPECT_LT(early, 2 * epochs);
  expect_same(low, high, whole.messages);
}

// A record of a packet that crosses has space for the bits of its time that the number of the link leaves. These times
// need more, seen from 0, because the run is late or ports of the last core switch have work for weeks: what is sent
// after what waits there arrives before it.
void run_in_halves(Time start, Bandwidth slowest) {
  const auto slow_down = [slowest](LeanMachine& machine) {
    const ClusterGraph& graph = machine.topology.graph;
    for (const PortEnd& end : graph.ports(NodeId(graph.node_count() - 1))) {
      const std::uint32_t link = directed(end.link, end.direction);
      machine.fabric->set_link_times(link, {slowest, machine.fabric->link_times(link).delay});
    }
  };
  LeanMachine whole(fat_tree);
  slow_down(whole);
  post_all(whole, 0, hosts, start);
  whole.run_until(end_of_time);

  LeanMachine low(fat_tree, {}, 1, 0, 2);
  LeanMachine high(fat_tree, {}, 1, 1, 2);
  slow_down(low);
  slow_down(high);
  post_all(low, 0, hosts / 2, start);
  post_all(high, hosts / 2, hosts, start);
  for (;;) {
    const Time begin = std::min(low.fabric->next_time(), high.fabric->next_time());
    if (begin == Time::max()) break;
    low.fabric->advance(begin + low.fabric->lookahead());
    high.fabric->advance(begin + high.fabric->lookahead());
    hand_over(low, high);
    hand_over(high, low);
  }
  expect_same(low, high, whole.messages);
}

TEST(Boundary, PacketsCrossLate) {
  run_in_halves(Time::from_ps(std::int64_t{1} << 61), Bandwidth::from_bps(100'000'000'000));
}

TEST(Boundary, PacketsCrossWithTimesFarApart) { run_in_halves(Time(), Bandwidth::from_bps(1)); }

}  // namespace
}  // namespace weft::boundary_test
