// SPDX-License-Identifier: GPL-2.0-only
// What a process says before it has done all of a window is final: nothing more crosses, and nothing comes sooner.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft {
namespace {

using test::LeanMachine;
using test::Notice;

const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 100 Gb/s, link_delay: 500 ns}";
constexpr std::uint32_t hosts = 16;
constexpr std::int64_t bytes = 200'000;

// Every host sends to one of its own half, and to one of the other half.
void post_all(LeanMachine& machine, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t host = first; host < last; ++host) {
    for (const std::uint32_t shift : {3U, 8U}) {
      const std::uint32_t queue_pair = machine.open(host, (host + shift) % hosts);
      machine.post({Time::from_ns(10 * host), host, queue_pair, bytes});
    }
  }
}

/// What may no longer change once it has been said.
struct Said {
  bool early = false;
  std::size_t outgoing = 0;
  Time next;
};

TEST(Border, WhatIsSaidEarlyIsFinal) {
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
    fabric.set_border_done([&fabric, &now = said[half]] {
      EXPECT_FALSE(now.early);  // once per window
      now = {true, fabric.outgoing()[0].size(), fabric.next_time()};
    });
  }
  int windows = 0;
  int early = 0;
  for (;; ++windows) {
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
    for (std::size_t half = 0; half < 2; ++half) {
      Batch& batch = halves[half]->fabric->outgoing()[0];
      halves[1 - half]->fabric->incoming(0, batch.bytes());
      batch.clear();
    }
  }
  EXPECT_GT(early, windows);  // of both halves: most windows of both
  EXPECT_LT(early, 2 * windows);

  std::vector<Notice> both = low.messages;
  both.insert(both.end(), high.messages.begin(), high.messages.end());
  const auto by_host = [](const Notice& a, const Notice& b) {
    return std::pair(a.host, a.at) < std::pair(b.host, b.at);
  };
  std::sort(both.begin(), both.end(), by_host);
  std::sort(whole.messages.begin(), whole.messages.end(), by_host);
  ASSERT_EQ(both.size(), std::size_t{2} * hosts);
  EXPECT_EQ(both, whole.messages);
}

}  // namespace
}  // namespace weft
