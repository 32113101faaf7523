// SPDX-License-Identifier: GPL-2.0-only
// Slim Fly against its closed forms, and the finite fields that it is built on.
#include <fmt/format.h>

#include "tests/topologies/properties.hpp"
#include "topologies/families/galois_field.hpp"

namespace weft::slim_fly_test {
namespace {

using test::expect_error;
using test::Histogram;
using test::machine;

TEST(GaloisField, IsAField) {
  for (const std::uint32_t q : {2U, 3U, 4U, 5U, 7U, 8U, 9U, 16U, 25U, 27U}) {
    SCOPED_TRACE(q);
    const auto field = GaloisField::of_size(q);
    ASSERT_TRUE(field);
    for (std::uint32_t a = 0; a < q; ++a) {
      std::set<std::uint32_t> sums;
      std::set<std::uint32_t> products;
      for (std::uint32_t b = 0; b < q; ++b) {
        sums.insert(field->add(a, b));
        products.insert(field->multiply(a, b));
        ASSERT_EQ(field->subtract(field->add(a, b), b), a);
        ASSERT_EQ(field->multiply(a, b), field->multiply(b, a));
        for (std::uint32_t c = 0; c < q; ++c)
          ASSERT_EQ(field->multiply(a, field->add(b, c)), field->add(field->multiply(a, b), field->multiply(a, c)));
      }
      EXPECT_EQ(sums.size(), q);
      EXPECT_EQ(products.size(), a == 0 ? 1 : q);
      EXPECT_EQ(field->multiply(a, 1), a);
    }
    std::set<std::uint32_t> powers;
    std::uint32_t power = 1;
    for (std::uint32_t i = 1; i < q; ++i) powers.insert(power = field->multiply(power, field->primitive_element()));
    EXPECT_EQ(powers.size(), q - 1);
  }
  for (const std::uint32_t q : {0U, 1U, 6U, 12U, 15U, 100U}) EXPECT_FALSE(GaloisField::of_size(q)) << q;
}

TEST(SlimFly, CountsAndDiameterTwo) {
  // q = 4w + delta: degree k' = (3q - delta) / 2, 2q^2 routers, q^2 k' links; from a router k' at one hop, the rest at
  // two.
  for (const std::uint32_t q : {3U, 4U, 5U, 7U, 8U, 9U, 11U, 13U}) {
    SCOPED_TRACE(q);
    const int delta = q % 4 == 1 ? 1 : q % 4 == 3 ? -1 : 0;
    const auto degree = static_cast<std::uint32_t>((3 * static_cast<int>(q) - delta) / 2);
    const Topology topology =
        machine(fmt::format("{{kind: slim_fly, q: {}, p: 1, link_rate: 100 Gb/s, link_delay: 1 us}}", q));
    const std::uint32_t routers = 2 * q * q;
    EXPECT_EQ(topology.graph.switch_count(), routers);
    EXPECT_EQ(test::switch_links(topology), q * q * degree);
    EXPECT_TRUE(test::is_simple(topology.graph));
    for (std::uint32_t i = routers; i < 2 * routers; ++i)
      ASSERT_EQ(topology.graph.ports(NodeId(i)).size(), degree + 1) << i;
    EXPECT_EQ(test::histogram_of(topology), (Histogram{{1, routers * degree}, {2, routers * (routers - 1 - degree)}}));
  }
}

TEST(SlimFly, HoffmanSingletonWithItsHosts) {
  // q = 5 is the Hoffman-Singleton graph of degree 7; p = 4 by default.
  const Topology topology = machine("{kind: slim_fly, q: 5, link_rate: 100 Gb/s, link_delay: 1 us}");
  EXPECT_EQ(topology.graph.host_count(), 200U);
  EXPECT_EQ(test::histogram_of(topology), (Histogram{{0, 600}, {1, 5600}, {2, 33600}}));
}

TEST(SlimFly, ErrorsAtTheirLine) {
  const std::string links = "link_rate: 400 Gb/s\nlink_delay: 500 ns\n";
  expect_error("kind: slim_fly\nq: 6\n" + links, 2, {"found 6", "5 or 7"});
  expect_error("kind: slim_fly\nq: 15\n" + links, 2, {"found 15", "13 or 16"});
  expect_error("kind: slim_fly\nq: 2\n" + links, 2, {"2", "3"});
  expect_error("kind: slim_fly\nq: 5\np: 0\n" + links, 3, {"0"});
}

}  // namespace
}  // namespace weft::slim_fly_test
