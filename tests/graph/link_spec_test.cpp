// SPDX-License-Identifier: GPL-2.0-only
// Rates and delays of links as topologies read them.
#include "graph/topology/link_spec.hpp"

#include <gtest/gtest.h>

namespace weft::link_spec_test {
namespace {

Spec spec(const std::string& yaml) { return Spec::parse(yaml, "test.yaml"); }

std::string message(const std::string& yaml) {
  try {
    read_link(spec(yaml));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(LinkSpec, ReadsRateAndDelay) {
  const LinkSpec link = read_link(spec("link_rate: 400 Gb/s\nlink_delay: 500 ns\n"));
  EXPECT_EQ(link.rate, Bandwidth::from_gbps(400));
  EXPECT_EQ(link.delay, Time::from_ns(500));
}

TEST(LinkSpec, PartsFallBackOneByOne) {
  const LinkSpec usual{Bandwidth::from_gbps(400), Time::from_ns(500)};
  const LinkSpec slower = read_link(spec("host_link_rate: 100 Gb/s\n"), "host_link", usual);
  EXPECT_EQ(slower.rate, Bandwidth::from_gbps(100));
  EXPECT_EQ(slower.delay, usual.delay);
  const LinkSpec nearer = read_link(spec("host_link_delay: 5 ns\n"), "host_link", usual);
  EXPECT_EQ(nearer.rate, usual.rate);
  EXPECT_EQ(nearer.delay, Time::from_ns(5));
}

TEST(LinkSpec, ZeroAndMissingAreErrorsAtTheirLine) {
  const std::string no_delay = message("link_rate: 400 Gb/s\nlink_delay: 0 ns\n");
  EXPECT_EQ(no_delay.rfind("test.yaml:2:", 0), 0U) << no_delay;
  EXPECT_NE(no_delay.find("zero delay links cannot be simulated in parallel"), std::string::npos) << no_delay;
  EXPECT_NE(no_delay.find("1 ps"), std::string::npos) << no_delay;
  const std::string no_rate = message("link_rate: 0 Gb/s\nlink_delay: 1 ns\n");
  EXPECT_EQ(no_rate.rfind("test.yaml:1:", 0), 0U) << no_rate;
  EXPECT_NE(no_rate.find("rate above 0"), std::string::npos) << no_rate;
  EXPECT_NE(message("link_rate: 1 Gb/s\n").find("link_delay"), std::string::npos);
  EXPECT_NE(message("link_delay: 1 ns\n").find("link_rate"), std::string::npos);
}

TEST(LinkSpec, OnePicosecondIsEnough) {
  EXPECT_EQ(read_link(spec("link_rate: 1 b/s\nlink_delay: 1 ps\n")).delay, Time::from_ps(1));
}

}  // namespace
}  // namespace weft::link_spec_test
