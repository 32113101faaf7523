// SPDX-License-Identifier: GPL-2.0-only
// Tracing paths, also of algorithms that lead astray.
#include "routing/algorithm/path.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/topologies/machine.hpp"

namespace weft::path_test {
namespace {

/// Always the same port.
class FixedPort final : public RoutingAlgorithm {
 public:
  explicit FixedPort(std::uint16_t port) : port_(port) {}
  void prepare(const Topology&, std::uint64_t) override {}
  void route(NodeId, std::span<const RouteRequest> requests, std::uint16_t* ports) const override {
    std::fill_n(ports, requests.size(), port_);
  }
  std::vector<std::uint16_t> candidates(NodeId, NodeId) const override { return {port_}; }

 private:
  std::uint16_t port_;
};

TEST(TracePath, FollowsThePorts) {
  const Topology star = test::machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}");
  const auto path = trace_path(star, FixedPort(0), {NodeId(2), NodeId(0), 0});
  ASSERT_EQ(path.size(), 2U);
  EXPECT_EQ(path[0].node, NodeId(2));
  EXPECT_EQ(path[0].directed_link, 2U * 2 + 0);  // link 2 from the host: direction 0
  EXPECT_EQ(path[1].node, NodeId(3));
  EXPECT_EQ(path[1].port, 0);
  EXPECT_EQ(path[1].directed_link, 2U * 0 + 1);
  EXPECT_TRUE(trace_path(star, FixedPort(0), {NodeId(1), NodeId(1), 0}).empty());
}

TEST(TracePath, ACycleIsAnInternalError) {
  const Topology star = test::machine("{kind: star, hosts: 3, link_rate: 100 Gb/s, link_delay: 1 us}");
  EXPECT_THROW(trace_path(star, FixedPort(0), {NodeId(2), NodeId(1), 0}),
               InternalError);  // switch0 -> host0 -> switch0 -> ...
  EXPECT_THROW(trace_path(star, FixedPort(1), {NodeId(2), NodeId(1), 0}), InternalError);  // a host has no port 1
}

}  // namespace
}  // namespace weft::path_test
