// SPDX-License-Identifier: GPL-2.0-only
// Device files and the roofline.
#include "workloads/device.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test {
namespace {

const std::string example =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nefficiency: 0.5\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\n";

TEST(Device, ReadyMadeDevicesAreRead) {
  for (const std::string name : {"h100-sxm", "a100-sxm"}) {
    const Device device = read_device(Spec::load(workloads_folder() + "/devices/" + name + ".yaml"));
    EXPECT_EQ(device.memory.count(), 80'000'000'000);
    EXPECT_GT(device.peak.at("bf16"), 3e14);
    EXPECT_GT(device.memory_bandwidth.bps(), 8 * 2'000'000'000'000);
  }
}

TEST(Device, RooflineIsTheLargerOfBothTimes) {
  const Device device = read_device(Spec::parse(example, "toy.yaml"));
  // 50e12 FLOP/s and 1e12 B/s: 1e9 FLOP take 20 us, 1e6 B take 1 us; they meet at 50 FLOP per byte.
  EXPECT_EQ(roofline_time(device, "bf16", 1e9, Bytes(1'000'000)), Time::from_us(20));
  EXPECT_EQ(roofline_time(device, "bf16", 1e9, Bytes(20'000'000)), Time::from_us(20));
  EXPECT_EQ(roofline_time(device, "bf16", 1e9, Bytes(40'000'000)), Time::from_us(40));
  EXPECT_EQ(roofline_time(device, "bf16", 0, Bytes(0)), Time());
  EXPECT_EQ(roofline_time(device, "bf16", 1e40, Bytes(0)), Time::from_ps(std::int64_t{1} << 62));
}

TEST(Device, UnitsOfArithmetic) {
  const auto flops = [](const std::string& text) { return read_flops(Spec::parse("a: " + text, "x.yaml").at("a")); };
  EXPECT_DOUBLE_EQ(flops("989.4 TFLOP/s"), 989.4e12);
  EXPECT_DOUBLE_EQ(flops("1.5PFLOP/s"), 1.5e15);
  EXPECT_DOUBLE_EQ(flops("20 GFLOP/s"), 20e9);
  for (const std::string bad : {"989", "1 TFLOPS", "-1 TFLOP/s", "TFLOP/s", "inf TFLOP/s", "1 TFLOP/s x", "0 TFLOP/s"})
    EXPECT_NE(complaint([&] { flops(bad); }).find("PFLOP/s"), std::string::npos) << bad;
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = example;
  return text.replace(text.find(from), from.size(), to);
}

TEST(Device, Complaints) {
  const auto about = [](const std::string& text) {
    return complaint([&] { read_device(Spec::parse(text, "toy.yaml")); });
  };
  EXPECT_TRUE(about(replaced("bf16", "bf61")).starts_with("toy.yaml:2:")) << about(replaced("bf16", "bf61"));
  EXPECT_NE(about(replaced("bf16", "bf61")).find("did you mean 'bf16'"), std::string::npos);
  EXPECT_TRUE(about(replaced("0.5", "1.5")).starts_with("toy.yaml:3:"));
  EXPECT_TRUE(about(replaced("1 TB/s", "0 TB/s")).starts_with("toy.yaml:4:"));
  EXPECT_TRUE(about(replaced("memory:", "memry:")).starts_with("toy.yaml:"));
}

}  // namespace
}  // namespace weft::test
