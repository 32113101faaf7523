// SPDX-License-Identifier: GPL-2.0-only
// Machines whose links are faster or nearer than described, and errors.
#include <set>

#include "tests/topologies/machine.hpp"

namespace weft::what_if_test {
namespace {

using test::expect_error;
using test::machine;

const std::string star = "{kind: star, hosts: 4, link_rate: 100 Gb/s, link_delay: 1 us";
const std::string leaves =
    "{kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 2, link_rate: 100 Gb/s, link_delay: 1 us";

TEST(WhatIf, ChangesAllLinksByDefault) {
  const Topology before = machine(star + "}");
  const Topology after = machine(star + ", what_if: [{rate: 2, delay: 0.5}]}");
  for (std::uint32_t i = 0; i < after.graph.link_count(); ++i) {
    EXPECT_EQ(after.graph.link(LinkId(i)).rate, Bandwidth::from_gbps(200));
    EXPECT_EQ(after.graph.link(LinkId(i)).delay, Time::from_ns(500));
  }
  EXPECT_EQ(after.bisection_bps, 2 * before.bisection_bps);
}

// A class, then one link of it again: 100 Gb/s times 2, times 4 for one.
TEST(WhatIf, ChangesAClassAndThenALink) {
  const Topology topology =
      machine(leaves + ", what_if: [{links: leaf-spine, rate: 2}, {link: [leaf0, spine1], rate: 4}]}");
  std::multiset<std::int64_t> rates;
  for (std::uint32_t i = 0; i < topology.graph.link_count(); ++i)
    rates.insert(topology.graph.link(LinkId(i)).rate.bps() / 1'000'000'000);
  EXPECT_EQ(rates, (std::multiset<std::int64_t>{100, 100, 100, 100, 200, 200, 200, 800}));
  EXPECT_EQ(topology.bisection_bps, 0);
}

// Never below 1 b/s and 1 ps, which a link needs.
TEST(WhatIf, RoundsUpToWhatALinkNeeds) {
  const Topology topology =
      machine("{kind: star, hosts: 2, link_rate: 1 b/s, link_delay: 1 ps, what_if: [{rate: 1e-6, delay: 1e-6}]}");
  EXPECT_EQ(topology.graph.link(LinkId(0)).rate.bps(), 1);
  EXPECT_EQ(topology.graph.link(LinkId(0)).delay, Time::from_ps(1));
}

TEST(WhatIf, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::string& changes, const std::string& text) {
    expect_error(leaves + ", what_if: [" + changes + "]}", 1, {text});
  };
  refused("{links: nvlink, rate: 2}",
          "found 'nvlink'; expected 'all' or a class of this machine's links: host, leaf-spine");
  refused("{links: all}", "expected 'rate' or 'delay'");
  refused("{rate: 0}", "0");
  refused("{link: [leaf0, leaf1], rate: 2}", "leaf0 has no link to leaf1");
  refused("{link: [leaf0], rate: 2}", "the two ends of a link");
  refused("{links: all, link: [leaf0, spine0], rate: 2}", "expected one of the two");
  refused("{rate: 2, rates: 2}", "rates");
}

}  // namespace
}  // namespace weft::what_if_test
