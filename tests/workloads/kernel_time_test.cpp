// SPDX-License-Identifier: GPL-2.0-only
// Times of kernels: waves of tiles, memory traffic, launches, and what device files say about them.
#include "workloads/compute/kernel_time.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test {
namespace {

/// 100 TFLOP/s and 1 TB/s at fractions of 0.5: 50 TFLOP/s, and 0.5 TB/s in products; 0.25 TB/s in other kernels.
const std::string plain =
    "name: toy\npeak: {bf16: 100 TFLOP/s, fp32: 10 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\n"
    "memory_kernels: {bandwidth_fraction: 0.25}\nfused_kernels: {peak_fraction: 0.4}\n";
const std::string constant = plain + "matmul: {peak_fraction: 0.5, bandwidth_fraction: 0.5}\n";
/// The same in tiles of 100 x 50, ten at once, and with so much memory bandwidth that it never counts.
const std::string tiled =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nmemory_bandwidth: 1000 TB/s\nmemory: 10 GB\n"
    "matmul: {peak_fraction: 0.5, units: 10, tile: [100, 50]}\n";

Device device(const std::string& text) { return read_device(Spec::parse(text, "toy.yaml")); }

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1) {
  return {Kernel::Kind::matmul, m, n, k, count, 0, 0, "bf16"};
}

TEST(KernelTime, ProductsWithoutTiles) {
  // 2e9 FLOP at 50 TFLOP/s take 40 us; 3 million elements of 2 B at 0.5 TB/s take 12 us.
  EXPECT_EQ(kernel_time(device(constant), product(1000, 1000, 1000)), Time::from_us(40));
  EXPECT_EQ(kernel_time(device(constant), product(1000, 1000, 1000, 7)), Time::from_us(280));
  // 2e6 FLOP: 40 ns; 1,000,000 + 2,000 elements of 2 B at 0.5 TB/s: 4.008 us.
  EXPECT_EQ(kernel_time(device(constant), product(1000, 1000, 1)), Time::from_ns(4008));
  // In 32 bits a tenth of the rate.
  Kernel kernel = product(1000, 1000, 1000);
  kernel.precision = "fp32";
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_us(400));
  // Traffic that is given takes the place of the matrices': 40 MB at 0.5 TB/s.
  kernel = product(1000, 1000, 1000);
  kernel.bytes = 40'000'000;
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_us(80));
}

TEST(KernelTime, ProductsComeInWavesOfTiles) {
  const Device toy = device(tiled);
  // One wave is 10 tiles of 100 x 50: 2 * 10 * 100 * 50 * k FLOP at 50 TFLOP/s, for k = 10,000 20 us.
  const Time wave = Time::from_us(20);
  EXPECT_EQ(kernel_time(toy, product(100, 50, 10'000)), wave);
  EXPECT_EQ(kernel_time(toy, product(1, 1, 10'000)), wave);
  EXPECT_EQ(kernel_time(toy, product(1000, 50, 10'000)), wave);
  EXPECT_EQ(kernel_time(toy, product(1001, 50, 10'000)), wave * 2);
  EXPECT_EQ(kernel_time(toy, product(500, 101, 10'000)), wave * 2);  // 5 x 3 tiles
  EXPECT_EQ(kernel_time(toy, product(100, 50, 10'000, 20)), wave * 2);
  EXPECT_EQ(kernel_time(toy, product(100, 50, 10'000, 21)), wave * 3);
  // Many waves are as fast as without tiles.
  EXPECT_EQ(kernel_time(toy, product(10'000, 10'000, 1000)),
            kernel_time(device(constant), product(10'000, 10'000, 1000)));
}

TEST(KernelTime, OtherKernelsGoByTrafficOrArithmetic) {
  Kernel kernel{Kernel::Kind::memory, 0, 0, 0, 1, 1'000'000, 0, "bf16"};
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_us(4));  // 1 MB at 0.25 TB/s
  kernel.flops = 4e9;
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_us(100));  // at 40 TFLOP/s
  kernel.flops = 1e40;
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_ps(std::int64_t{1} << 62));
}

TEST(KernelTime, EveryKernelIsLaunched) {
  const Device slow = device(constant + "launch: 3 us\n");
  EXPECT_EQ(kernel_time(slow, product(1000, 1000, 1000)), Time::from_us(43));
  EXPECT_EQ(kernel_time(slow, {Kernel::Kind::memory, 0, 0, 0, 1, 0, 0, "bf16"}), Time::from_us(3));
}

TEST(KernelTime, AFileWithOneEfficiencyIsARoofline) {
  const Device old =
      device("name: toy\npeak: {bf16: 100 TFLOP/s}\nefficiency: 0.5\nmemory_bandwidth: 1 TB/s\nmemory: 1 GB\n");
  EXPECT_FALSE(old.tiles);
  for (const std::int64_t k : {1, 10, 100, 1000})
    EXPECT_EQ(kernel_time(old, product(1000, 1000, k)),
              roofline_time(old, "bf16", 2e6 * static_cast<double>(k), Bytes(2 * (1'000'000 + 2000 * k))));
  EXPECT_EQ(kernel_time(old, {Kernel::Kind::memory, 0, 0, 0, 1, 5'000'000, 1e9, "bf16"}),
            roofline_time(old, "bf16", 1e9, Bytes(5'000'000)));
}

TEST(KernelTime, LongerProductsNeverTakeLess) {
  const Device a100 = read_device(Spec::load(workloads_folder() + "/devices/a100-sxm.yaml"));
  Time last;
  for (std::int64_t m = 16; m < 5000; m += 48) {
    const Time now = kernel_time(a100, product(m, 4096, 4096));
    EXPECT_GE(now, last) << m;
    last = now;
  }
}

TEST(KernelTime, Complaints) {
  const auto about = [](const std::string& matmul) { return complaint([&] { device(plain + matmul); }); };
  EXPECT_NE(about("launch: 1 us\n").find("neither 'efficiency' nor 'matmul'"), std::string::npos);
  EXPECT_NE(about("matmul: {peak_fraction: 0.5, units: 3}\n").find("go together"), std::string::npos);
  EXPECT_NE(about("matmul: {peak_fraction: 0.5, units: 3, tile: [1, 2, 3]}\n").find("two sides"), std::string::npos);
  EXPECT_TRUE(about("matmul: {peak_fraction: 1.5}\n").starts_with("toy.yaml:7:"));
  EXPECT_NE(about("matmul: {peak_fraction: 0.5, tiles: [1, 2]}\n").find("did you mean 'tile'"), std::string::npos);
}

/// 100 TFLOP/s and 1 TB/s; in a step ten tiles at once, of 100 x 50 at 0.5 of the peak or of 50 x 50 at 0.4.
const std::string in_step =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\nefficiency: 0.9\n"
    "sustained:\n  launch: 2 us\n"
    "  products: {units: 10, inner_overhead: 100, most_splits: 4, bandwidth_fraction: 0.5, tiles: [[100, 50, 0.5], "
    "[50, 50, 0.4]]}\n"
    "  memory_kernels: {elementwise: [[1 MB, 0.25], [4 MB, 0.5]], softmax: [[1 MB, 0.1]]}\n";

TEST(KernelTime, InAStepProductsTakeTheBestTile) {
  Device toy = device(in_step);
  // Without a step nothing of it counts: 2e11 FLOP at 90 TFLOP/s.
  EXPECT_EQ(kernel_time(toy, product(10'000, 10'000, 1000)), Time::from_ps(std::llround(2e11 / 90e12 * 1e12)));
  toy.in_a_step = true;
  // 100 x 200 tiles at once 10: 2000 waves of 2 * 10 * 100 * 50 * (1000 + 100) FLOP at 50 TFLOP/s: 2.2 us each.
  EXPECT_EQ(kernel_time(toy, product(10'000, 10'000, 1000)), Time::from_us(2000 * 22 / 10 + 2));
  // One tile of 50 x 50 for a wave: 2 * 10 * 2500 * (40,000 / 4 + 100) / 40 TFLOP/s, cut in four along k; uncut, and in
  // larger tiles, it would take longer. (40,000 * 100 + 2500) * 2 B + 4 * 8 B * 2500 at 0.5 TB/s is 16.2 us: memory
  // counts.
  EXPECT_EQ(kernel_time(toy, product(50, 50, 40'000)), Time::from_ns(16'170 + 2'000));
  // The same tile lies either way round: 50 x 100 for 50 x 1000.
  EXPECT_EQ(kernel_time(toy, product(50, 1000, 100'000)), kernel_time(toy, product(1000, 50, 100'000)));
}

TEST(KernelTime, InAStepBandwidthGoesWithTheSize) {
  Device toy = device(in_step);
  toy.in_a_step = true;
  Kernel kernel{Kernel::Kind::memory, 0, 0, 0, 1, 500'000, 0, "bf16"};
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(2 + 2));  // below the first point: 0.25 TB/s
  kernel.bytes = 2'000'000;                                   // half way over the logarithm: 0.375 TB/s
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_ps(2'000'000 + std::llround(2e6 / 0.375)));
  kernel.bytes = 40'000'000;  // beyond the last: 0.5 TB/s
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(80 + 2));
  kernel.traffic = Traffic::softmax;
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(400 + 2));
  kernel.traffic = Traffic::norm;  // no curve: memory_kernels, here all of the bandwidth
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(40 + 2));
}

TEST(KernelTime, CurvesRise) {
  std::string falling = in_step;
  falling.replace(falling.find("[4 MB"), 5, "[1 MB");
  try {
    device(falling);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("toy.yaml:9"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sizes rise"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::test
