// SPDX-License-Identifier: GPL-2.0-only
// What receivers answer takes as many paths as data where load balancing chooses one for each packet.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric/lean_machine.hpp"

namespace weft::answers_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::uint32_t packets = 4000;

/// Packets of a kind that leave the leaf `from` of two leaves below four spines, for each spine, while a host of leaf 0
/// sends 4000 packets to one of leaf 1.
std::vector<std::vector<Packet>> leaving(const std::string& load_balancing, std::uint32_t from, PacketKind kind) {
  LeanMachine machine(
      "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 4, link_rate: 400 Gb/s, host_link_rate: 100 Gb/s, "
      "link_delay: 1 us}",
      network_of(fmt::format("{{mtu: 1000 B, window: 64 kB, load_balancing: {}}}", load_balancing)));
  std::vector<std::shared_ptr<test::TapLog>> taps;
  for (std::uint32_t spine = 0; spine < 4; ++spine) taps.push_back(machine.tap(machine.a_switch(from), 2 + spine));
  machine.post({Time(), 0, machine.open(0, 2), std::int64_t{packets} * 1000});
  machine.run();
  machine.expect_quiet();
  std::vector<std::vector<Packet>> result(4);
  for (std::uint32_t spine = 0; spine < 4; ++spine)
    for (const auto& entry : taps[spine]->entries)
      if (entry.packet.kind == kind) result[spine].push_back(entry.packet);
  return result;
}

std::vector<double> counts(const std::vector<std::vector<Packet>>& of_spines) {
  std::vector<double> result;
  for (const auto& of_spine : of_spines) result.push_back(static_cast<double>(of_spine.size()));
  return result;
}

// Each packet, and each ACK, takes each of four spines with probability 1/4: a binomial.
TEST(answers, are_spread_like_data) {
  const double share = 0.25, deviation = std::sqrt(packets * share * (1 - share));
  for (const char* name : {"spray", "adaptive", "reps"})
    for (const auto& [from, kind] : {std::pair(0U, PacketKind::data), std::pair(1U, PacketKind::ack)}) {
      double sum = 0;
      for (const double count : counts(leaving(name, from, kind))) {
        sum += count;
        // Entropies of REPS that are known to be good are used again, so that they are drawn less often.
        if (std::string(name) != "reps") {
          EXPECT_NEAR(count, packets * share, 5 * deviation) << name;
        }
        EXPECT_GT(count, 0) << name;
      }
      EXPECT_EQ(sum, packets) << name;
    }
}

TEST(answers, keep_the_path_of_their_flow_with_one_path_for_each) {
  for (const char* name : {"ecmp", "flowlet"}) {
    auto of_spines = counts(leaving(name, 1, PacketKind::ack));
    std::sort(of_spines.begin(), of_spines.end());
    EXPECT_EQ(of_spines, (std::vector<double>{0, 0, 0, packets})) << name;
  }
}

}  // namespace
}  // namespace weft::answers_test
