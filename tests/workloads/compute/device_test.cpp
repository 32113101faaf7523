// SPDX-License-Identifier: GPL-2.0-only
// Device files and the roofline.
#include "workloads/reading/device.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"
#include "workloads/compute/operator_times.hpp"

namespace weft::test::device_test {
namespace {

const std::string example =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nefficiency: 0.5\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\n";

TEST(Device, ReadyMadeDevicesAreRead) {
  std::size_t devices = 0;
  for (const auto& file : std::filesystem::directory_iterator(workloads_folder() + "/devices")) {
    const Device device = read_device(Spec::load(file.path().string()));
    ++devices;
    // From a V100 with 32 GB to a B200; none reaches its peak, nor more than 2.5 PFLOP/s in 16 bits.
    EXPECT_GE(device.memory.count(), 32'000'000'000) << file.path();
    EXPECT_GE(device.memory_bandwidth.bps(), 8 * 900'000'000'000) << file.path();
    const double peak = device.peak.contains("bf16") ? device.peak.at("bf16") : device.peak.at("fp16");
    EXPECT_GE(peak, 1e14) << file.path();
    EXPECT_LE(peak, 2.5e15) << file.path();
    EXPECT_LT(device.efficiency, 1) << file.path();
    EXPECT_LT(device.gemm_fraction, 1) << file.path();
  }
  EXPECT_GE(devices, 8U);
}

TEST(Device, RooflineIsTheLargerOfBothTimes) {
  const Device device = read_device(Spec::parse(example, "toy.yaml"));
  // 50e12 FLOP/s and 1e12 B/s: 1e9 FLOP take 20 us, 1e6 B take 1 us; they are equal at 50 FLOP per byte.
  EXPECT_EQ(roofline_time(device, "bf16", 1e9, Bytes(1'000'000)), Time::from_us(20));
  EXPECT_EQ(roofline_time(device, "bf16", 1e9, Bytes(20'000'000)), Time::from_us(20));
  EXPECT_EQ(roofline_time(device, "bf16", 1e9, Bytes(40'000'000)), Time::from_us(40));
  EXPECT_EQ(roofline_time(device, "bf16", 0, Bytes(0)), Time());
  EXPECT_EQ(roofline_time(device, "bf16", 1e40, Bytes(0)), Time::from_ps(std::int64_t{1} << 62));
}

// Collectives that take 24 of 132 units leave 108: what takes 108 waves of tiles alone takes 132 beside them. Single
// kernels are measured without.
TEST(Device, CollectivesTakeUnitsInAStep) {
  const std::string sustained = "sustained: {collective_units: 24, gemms: {units: 132, tiles: [[128, 128, 0.8]]}}\n";
  Device device = read_device(Spec::parse(example + sustained, "toy.yaml"));
  EXPECT_EQ(slowdown_beside_communication(device), 1);
  device.in_a_step = true;
  EXPECT_DOUBLE_EQ(slowdown_beside_communication(device), 132.0 / 108);
  device.slowdown_while_communicating = 1.5;  // the file's value for the whole counts if it is more
  EXPECT_EQ(slowdown_beside_communication(device), 1.5);
  std::string all = sustained;
  all.replace(all.find("24"), 2, "132");
  EXPECT_NE(complaint([&] { read_device(Spec::parse(example + all, "toy.yaml")); }).find("131"), std::string::npos);
}

// A GEMM of 132 tiles of 128 x 128, all of which are worked on at once, k = 4096: alone 2 * 132 * 128^2 * 4096 FLOPs
// at 0.8 of the peak. Beside collectives 108 units have them in 132 / 108 of the time, since units share the work
// evenly. A kernel of memory has what is left of the bandwidth, 2 - 0.4 of 2 TB/s, and no unit makes it slower.
TEST(Device, CollectivesTakeUnitsFromGemmsAndBandwidthFromKernelsOfMemory) {
  const std::string sustained =
      "sustained: {collective_units: 24, collective_bandwidth: 400 GB/s, gemms: {units: 132, even_share: 1, "
      "tiles: [[128, 128, 0.8]]}}\n";
  Device device = read_device(Spec::parse(example + sustained, "toy.yaml"));
  device.memory_bandwidth = Bandwidth::from_gbps(16'000);
  OperatorTimes times{device};
  Kernel gemm, memory;
  gemm.m = 128 * 12;
  gemm.n = 128 * 11;
  gemm.k = 4096;
  memory.kind = Kernel::Kind::memory;
  memory.bytes = 1'600'000'000;
  EXPECT_EQ(times.beside(memory), Time());  // no part of a step: nothing is known
  times.in_a_step();
  const double flops = 2.0 * 132 * 128 * 128 * 4096 / (device.peak.at("bf16") * 0.8);
  EXPECT_NEAR(times.of(gemm).seconds() / flops, 1, 1e-6);
  EXPECT_NEAR(times.beside(gemm).seconds() / flops, 132.0 / 108, 1e-6);
  EXPECT_EQ(times.of(memory), Time::from_us(800));
  EXPECT_EQ(times.beside(memory), Time::from_us(1000));
  device.in_a_step = true;
  EXPECT_DOUBLE_EQ(slowdown_beside_communication(device), 2.0 / 1.6);
  std::string all = sustained;
  all.replace(all.find("400 GB/s"), 8, "900 TB/s");
  EXPECT_NE(complaint([&] { read_device(Spec::parse(example + all, "toy.yaml")); }).find("leave nothing"),
            std::string::npos);
}

// A persistent GEMM starts a block for each of 132 units. Beside collectives 108 of them find a unit, and 24 wait until
// the first are done with all of their tiles: twice the time. With no more tiles than units are left none waits.
TEST(Device, BlocksOfPersistentGemmsWaitForUnits) {
  const std::string sustained =
      "sustained: {collective_units: 24, gemms: {units: 132, persistent: true, even_share: 1, "
      "tiles: [[128, 128, 0.8]]}}\n";
  OperatorTimes times{read_device(Spec::parse(example + sustained, "toy.yaml"))};
  times.in_a_step();
  Kernel gemm;
  gemm.k = 4096;
  const auto slower = [&](std::int64_t rows, std::int64_t columns) {
    gemm.m = 128 * rows;
    gemm.n = 128 * columns;
    return times.beside(gemm).seconds() / times.of(gemm).seconds();
  };
  EXPECT_NEAR(slower(12, 11), 2, 1e-6);  // a tile for each block
  EXPECT_NEAR(slower(48, 11), 2, 1e-6);  // four tiles each
  EXPECT_NEAR(slower(12, 9), 1, 1e-6);   // 108 tiles
  EXPECT_NEAR(slower(109, 1), 2, 1e-6);  // one more
}

// What communication beside a GEMM takes may be said for the GEMM. With 12 units taken, 120 have 132 tiles in 132 / 120
// of the time; blocks of a persistent one wait, unless it leaves the units free at all times, which makes it slower
// with nothing beside, too. Copy engines take bandwidth only.
TEST(Device, CommunicationBesideAGemmHasItsOwnUnits) {
  for (const std::string persistent : {"false", "true"}) {
    OperatorTimes times{read_device(Spec::parse(
        example + "sustained: {collective_units: 24, collective_bandwidth: 100 GB/s, gemms: {units: 132, persistent: " +
            persistent + ", even_share: 1, tiles: [[128, 128, 0.8]]}}\n",
        "toy.yaml"))};
    times.in_a_step();
    Kernel gemm, memory;
    gemm.m = 128 * 12;
    gemm.n = 128 * 11;
    gemm.k = 4096;
    memory.kind = Kernel::Kind::memory;
    memory.bytes = 900'000'000;
    const double alone = times.of(gemm).seconds();
    const auto of = [&](std::int64_t units, bool free) { return times.of(gemm, {units, free}).seconds() / alone; };
    const auto beside = [&](std::int64_t units, bool free) {
      return times.beside(gemm, {units, free}).seconds() / alone;
    };
    EXPECT_NEAR(of(12, false), 1, 1e-6);
    EXPECT_NEAR(beside(12, false), persistent == "true" ? 2 : 132.0 / 120, 1e-6);
    EXPECT_NEAR(of(12, true), 132.0 / 120, 1e-6);
    EXPECT_NEAR(beside(12, true), 132.0 / 120, 1e-6);
    EXPECT_NEAR(beside(0, false), 1, 1e-6);
    EXPECT_EQ(times.of(memory, {12, true}), Time::from_us(900));
    EXPECT_EQ(times.beside(memory, {0, false}), Time::from_us(1000));
  }
}

// Measured on an H100: in a step of FSDP all GEMMs take twice as long beside NCCL, which is on a tenth of the
// multiprocessors (pytorch/pytorch, issue 143988); 2500 x 5120 by 5120 x 5120, 132 blocks, reaches 80 % of the peak
// alone and 47 % beside a gather of 24 blocks, which may end before it (NVIDIA's developer forum, topics 337991 and
// 339078). A GEMM of an A100, whose blocks do one tile each, shares out what is left.
TEST(Device, GemmsOfAnH100TakeTwiceAsLongBesideCollectives) {
  const auto slower = [](const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k) {
    OperatorTimes times{read_device(Spec::load(workloads_folder() + "/devices/" + name))};
    times.in_a_step();
    Kernel gemm;
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    return times.beside(gemm).seconds() / times.of(gemm).seconds();
  };
  constexpr double measured_in_a_step = 2, measured_with_a_gather = 80.0 / 47;
  for (const std::int64_t side : {4096, 8192, 16384})
    EXPECT_NEAR(slower("h100-sxm.yaml", side, side, side), measured_in_a_step, 0.1) << side;
  EXPECT_GT(slower("h100-sxm.yaml", 2500, 5120, 5120), measured_with_a_gather);
  EXPECT_LT(slower("h100-sxm.yaml", 2500, 5120, 5120), 2.1);
  EXPECT_NEAR(slower("a100-sxm.yaml", 8192, 8192, 8192), 108.0 / 84, 0.1);
}

TEST(Device, UnitsOfArithmetic) {
  const auto flops = [](const std::string& text) { return read_flops(Spec::parse("a: " + text, "x.yaml").at("a")); };
  EXPECT_DOUBLE_EQ(flops("989.4 TFLOP/s"), 989.4e12);
  EXPECT_DOUBLE_EQ(flops("1.5PFLOP/s"), 1.5e15);
  EXPECT_DOUBLE_EQ(flops("20 GFLOP/s"), 20e9);
  for (const std::string bad :
       {"989", "1 TFLOPS", "-1 TFLOP/s", "TFLOP/s", "inf TFLOP/s", "1e300 PFLOP/s", "1 TFLOP/s x", "0 TFLOP/s"})
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

// Keys that device files had before: each is unknown, and the error at its line names the new key.
TEST(Device, OlderKeysOfGemmsAreNamed) {
  const auto about = [](const std::string& sustained) {
    return complaint([&] { read_device(Spec::parse(example + "sustained:\n" + sustained, "toy.yaml")); });
  };
  const std::string rates = ": {units: 132, tiles: [[128, 128, 0.8]]}\n";
  EXPECT_EQ(about("  gemms" + rates), "");
  const std::string only = about("  launch: 1 us\n  products" + rates);
  EXPECT_TRUE(only.starts_with("toy.yaml:8:")) << only;
  EXPECT_NE(only.find("unknown key 'products' in 'sustained' (did you mean 'gemms'?)"), std::string::npos) << only;
  for (const std::string prefix : {"fp8", "fp8_block", "grouped"}) {
    const std::string beside = about("  gemms" + rates + "  " + prefix + "_products" + rates);
    EXPECT_TRUE(beside.starts_with("toy.yaml:8:")) << beside;
    EXPECT_NE(beside.find("(did you mean '" + prefix + "_gemms'?)"), std::string::npos) << beside;
  }
  const std::string splits = about("  gemms: {units: 132, most_splits: 4, tiles: [[128, 128, 0.8]]}\n");
  EXPECT_NE(splits.find("unknown key 'most_splits' in 'sustained.gemms' (did you mean 'max_splits'?)"),
            std::string::npos)
      << splits;
  const std::string none = about("  launch: 1 us\n");
  EXPECT_NE(none.find("missing key 'gemms'"), std::string::npos) << none;
}

}  // namespace
}  // namespace weft::test::device_test
