// SPDX-License-Identifier: GPL-2.0-only
// Times of kernels: waves of tiles, memory traffic, launches, and their keys in device files.
#include "workloads/compute/kernel_time.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::kernel_time_test {
namespace {

/// 100 TFLOP/s and 1 TB/s at fractions of 0.5: 50 TFLOP/s, and 0.5 TB/s in GEMMs; 0.25 TB/s in other kernels.
const std::string plain =
    "name: toy\npeak: {bf16: 100 TFLOP/s, fp32: 10 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\n"
    "memory_kernels: {bandwidth_fraction: 0.25}\nfused_kernels: {peak_fraction: 0.4}\n";
const std::string constant = plain + "gemms: {peak_fraction: 0.5, bandwidth_fraction: 0.5}\n";
/// The same in tiles of 100 x 50, ten at once, and with so much memory bandwidth that it never counts.
const std::string tiled =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nmemory_bandwidth: 1000 TB/s\nmemory: 10 GB\n"
    "gemms: {peak_fraction: 0.5, units: 10, tile: [100, 50]}\n";

Device device(const std::string& text) { return read_device(Spec::parse(text, "toy.yaml")); }

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1) {
  return {Kernel::Kind::gemm, m, n, k, count, 0, 0, "bf16"};
}

TEST(KernelTime, GemmsWithoutTiles) {
  // 2e9 FLOP at 50 TFLOP/s take 40 us; 3 million elements of 2 B at 0.5 TB/s take 12 us.
  EXPECT_EQ(kernel_time(device(constant), gemm(1000, 1000, 1000)), Time::from_us(40));
  EXPECT_EQ(kernel_time(device(constant), gemm(1000, 1000, 1000, 7)), Time::from_us(280));
  // 2e6 FLOP: 40 ns; 1,000,000 + 2,000 elements of 2 B at 0.5 TB/s: 4.008 us.
  EXPECT_EQ(kernel_time(device(constant), gemm(1000, 1000, 1)), Time::from_ns(4008));
  // In 32 bits a tenth of the rate.
  Kernel kernel = gemm(1000, 1000, 1000);
  kernel.precision = "fp32";
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_us(400));
  // Traffic that is given takes the place of the matrices': 40 MB at 0.5 TB/s.
  kernel = gemm(1000, 1000, 1000);
  kernel.bytes = 40'000'000;
  EXPECT_EQ(kernel_time(device(constant), kernel), Time::from_us(80));
}

TEST(KernelTime, GemmsComeInWavesOfTiles) {
  const Device toy = device(tiled);
  // One wave is 10 tiles of 100 x 50: 2 * 10 * 100 * 50 * k FLOP at 50 TFLOP/s, for k = 10,000 20 us.
  const Time wave = Time::from_us(20);
  EXPECT_EQ(kernel_time(toy, gemm(100, 50, 10'000)), wave);
  EXPECT_EQ(kernel_time(toy, gemm(1, 1, 10'000)), wave);
  EXPECT_EQ(kernel_time(toy, gemm(1000, 50, 10'000)), wave);
  EXPECT_EQ(kernel_time(toy, gemm(1001, 50, 10'000)), wave * 2);
  EXPECT_EQ(kernel_time(toy, gemm(500, 101, 10'000)), wave * 2);  // 5 x 3 tiles
  EXPECT_EQ(kernel_time(toy, gemm(100, 50, 10'000, 20)), wave * 2);
  EXPECT_EQ(kernel_time(toy, gemm(100, 50, 10'000, 21)), wave * 3);
  // Many waves are as fast as without tiles.
  EXPECT_EQ(kernel_time(toy, gemm(10'000, 10'000, 1000)), kernel_time(device(constant), gemm(10'000, 10'000, 1000)));
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
  EXPECT_EQ(kernel_time(slow, gemm(1000, 1000, 1000)), Time::from_us(43));
  EXPECT_EQ(kernel_time(slow, {Kernel::Kind::memory, 0, 0, 0, 1, 0, 0, "bf16"}), Time::from_us(3));
}

TEST(KernelTime, AFileWithOneEfficiencyIsARoofline) {
  const Device old =
      device("name: toy\npeak: {bf16: 100 TFLOP/s}\nefficiency: 0.5\nmemory_bandwidth: 1 TB/s\nmemory: 1 GB\n");
  EXPECT_FALSE(old.tiles);
  for (const std::int64_t k : {1, 10, 100, 1000})
    EXPECT_EQ(kernel_time(old, gemm(1000, 1000, k)),
              roofline_time(old, "bf16", 2e6 * static_cast<double>(k), Bytes(2 * (1'000'000 + 2000 * k))));
  EXPECT_EQ(kernel_time(old, {Kernel::Kind::memory, 0, 0, 0, 1, 5'000'000, 1e9, "bf16"}),
            roofline_time(old, "bf16", 1e9, Bytes(5'000'000)));
}

TEST(KernelTime, LongerGemmsNeverTakeLess) {
  const Device a100 = read_device(Spec::load(workloads_folder() + "/devices/a100-sxm.yaml"));
  Time last;
  for (std::int64_t m = 16; m < 5000; m += 48) {
    const Time now = kernel_time(a100, gemm(m, 4096, 4096));
    EXPECT_GE(now, last) << m;
    last = now;
  }
}

TEST(KernelTime, Complaints) {
  const auto about = [](const std::string& text) { return complaint([&] { device(plain + text); }); };
  EXPECT_NE(about("launch: 1 us\n").find("neither 'efficiency' nor 'gemms'"), std::string::npos);
  EXPECT_NE(about("gemms: {peak_fraction: 0.5, units: 3}\n").find("go together"), std::string::npos);
  EXPECT_NE(about("matmul: {peak_fraction: 0.5}\n").find("unknown key 'matmul' (did you mean 'gemms'?)"),
            std::string::npos);
  EXPECT_NE(about("gemms: {peak_fraction: 0.5, units: 3, tile: [1, 2, 3]}\n").find("two sides"), std::string::npos);
  EXPECT_TRUE(about("gemms: {peak_fraction: 1.5}\n").starts_with("toy.yaml:7:"));
  EXPECT_NE(about("gemms: {peak_fraction: 0.5, tiles: [1, 2]}\n").find("did you mean 'tile'"), std::string::npos);
}

/// 100 TFLOP/s and 1 TB/s; in a step ten tiles at once, of 100 x 50 at 0.5 of the peak or of 50 x 50 at 0.4.
const std::string in_step =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\nefficiency: 0.9\n"
    "sustained:\n  launch: 2 us\n"
    "  gemms: {units: 10, inner_overhead: 100, max_splits: 4, bandwidth_fraction: 0.5, tiles: [[100, 50, 0.5], "
    "[50, 50, 0.4]]}\n"
    "  memory_kernels: {elementwise: [[1 MB, 0.25], [4 MB, 0.5]], softmax: [[1 MB, 0.1]]}\n";

TEST(KernelTime, InAStepGemmsTakeTheBestTile) {
  Device toy = device(in_step);
  // Without a step nothing of it counts: 2e11 FLOP at 90 TFLOP/s.
  EXPECT_EQ(kernel_time(toy, gemm(10'000, 10'000, 1000)), Time::from_ps(std::llround(2e11 / 90e12 * 1e12)));
  toy.in_a_step = true;
  // 100 x 200 tiles at once 10: 2000 waves of 2 * 10 * 100 * 50 * (1000 + 100) FLOP at 50 TFLOP/s: 2.2 us each.
  EXPECT_EQ(kernel_time(toy, gemm(10'000, 10'000, 1000)), Time::from_us(2000 * 22 / 10 + 2));
  // One tile of 50 x 50 for a wave: 2 * 10 * 2500 * (40,000 / 4 + 100) / 40 TFLOP/s, cut in four along k; uncut, and in
  // larger tiles, it would take longer. (40,000 * 100 + 2500) * 2 B + 4 * 8 B * 2500 at 0.5 TB/s is 16.2 us: memory
  // counts.
  EXPECT_EQ(kernel_time(toy, gemm(50, 50, 40'000)), Time::from_ns(16'170 + 2'000));
  // The same tile fits in either orientation: 50 x 100 for 50 x 1000.
  EXPECT_EQ(kernel_time(toy, gemm(50, 1000, 100'000)), kernel_time(toy, gemm(1000, 50, 100'000)));
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

/// 100 TFLOP/s and 1 TB/s as above, with all that a fit may have.
const std::string fitted =
    "name: toy\npeak: {bf16: 100 TFLOP/s, fp8: 200 TFLOP/s, fp8_block: 200 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: "
    "10 GB\n"
    "efficiency: 0.9\n"
    "sustained:\n"
    "  gemms: {units: 10, even_share: 0.5, sharpness: 2, split_time: 3 us, max_splits: 2, tiles: [[100, 100, "
    "0.5]]}\n"
    "  fp8_gemms: {units: 10, slowing: 0.5, tiles: [[100, 100, 0.5]]}\n"
    "  fp8_block_gemms: {units: 10, inner_overhead: [[1000, 500], [100000, 300]], tiles: [[100, 100, 0.25]]}\n"
    "  attention:\n"
    "    - {library: first, launch: 1 us, units: 10, rows: 128, peak_fraction: [[64, 0.25], [256, 0.75]], sharpness: "
    "1, "
    "alone: 2, backward: 0.8, key_overhead: 32, bandwidth_fraction: 0.5}\n"
    "    - {library: second, units: 10, peak_fraction: [[64, 0.5]]}\n";

double microseconds(const Device& device, const Kernel& kernel) {
  return static_cast<double>(kernel_time(device, kernel).ps()) * 1e-6;
}

TEST(KernelTime, InAStepWavesAreSharedOutInPart) {
  Device toy = device(fitted);
  toy.in_a_step = true;
  // 11 tiles on 10 units: between 2 waves and 1.1, half way 1.55; 2 * 15.5 * 1e4 * 100,000 FLOP at 50 TFLOP/s are 620
  // us. The traffic, (1100 + 100) * 1e5 * 2 B + 1100 * 100 * 2 B at 1 TB/s, is 240.22 us. (a^2 + b^2)^(1/2). In two
  // parts 22 tiles in 2.6 waves of half the length: 520 us and 1.76 us more of traffic; and 3 us to sum up.
  const double whole = std::hypot(620, 240.22);
  const double parts = std::hypot(520, 240.22 + 1.76) + 3;
  ASSERT_LT(parts, whole);
  EXPECT_NEAR(microseconds(toy, gemm(1100, 100, 100'000)), parts, 1e-5);
  // Too short to be cut: one tile has a wave to itself even where work is shared out.
  EXPECT_NEAR(microseconds(toy, gemm(100, 100, 100)), std::hypot(0.4, 0.06), 1e-5);
}

TEST(KernelTime, InAStepFp8HasItsOwnRatesAndLongKernelsSlowDown) {
  Device toy = device(fitted);
  toy.in_a_step = true;
  Kernel kernel = gemm(10'000, 10'000, 50'000);
  kernel.precision = "fp8";
  // 1e13 FLOP at 100 TFLOP/s: 100 ms; (1 + 100 / 10)^0.5.
  EXPECT_NEAR(microseconds(toy, kernel), 1e5 * std::sqrt(11), 0.1);
}

TEST(KernelTime, InAStepFp8ScaledInBlocksHasItsOwnRates) {
  Device toy = device(fitted);
  toy.in_a_step = true;
  Kernel kernel = gemm(1000, 1000, 10'000);
  kernel.precision = "fp8_block";
  // 100 tiles on 10 units, each 10,000 along k and 400 more (half way between 1,000 and 100,000 over the logarithm), at
  // a quarter of 200 TFLOP/s. A byte an element: 2e7 + 1e6 B at 1 TB/s are less.
  EXPECT_NEAR(microseconds(toy, kernel), 100 * 2 * 1e4 * 10'400 / 50e6, 1e-3);
  kernel.k = 100;  // the outermost point: 500 more
  EXPECT_NEAR(microseconds(toy, kernel), 100 * 2 * 1e4 * 600 / 50e6, 1e-3);
}

// DeepGEMM's rule on 10 units. 257 x 512: two waves are needed at least, with 3 x 6 tiles of 88 or 96 columns, 3 x 5 of
// 104 to 120, 3 x 4 of 128; those of 80 are 3 x 7, which is one more wave. 18 fill the last one most, and 88 is
// narrower. 64 x 1280: tiles of 64 rows, of which 10 of 128 columns fill one wave.
TEST(KernelTime, InAStepALibraryTakesItsTileByARule) {
  std::string text = fitted;
  const std::string tiles = "inner_overhead: [[1000, 500], [100000, 300]], tiles: [[100, 100, 0.25]]";
  text.replace(text.find(tiles), tiles.size(), "columns: [[88, 0.25], [128, 0.5]], few_rows: 0.8");
  Device toy = device(text);
  toy.in_a_step = true;
  Kernel kernel = gemm(257, 512, 10'000);
  kernel.precision = "fp8_block";
  EXPECT_NEAR(microseconds(toy, kernel), 2 * 10 * 2 * 128 * 88 * 1e4 / 50e6, 1e-6);
  kernel = gemm(64, 1280, 10'000);
  kernel.precision = "fp8_block";
  EXPECT_NEAR(microseconds(toy, kernel), 10 * 2 * 64 * 128 * 1e4 / (100e6 * 0.8), 1e-6);
}

// The last of three rows of tiles has one row of 257 and 127 that are filled up. Its six tiles of 88 columns load these
// for all of k, a byte an element, at 0.5 TB/s: 127 * 6 * 10,000 B take 15.24 us besides the arithmetic above.
TEST(KernelTime, InAStepRowsThatFillTilesUpAreLoaded) {
  std::string text = fitted;
  const std::string tiles = "inner_overhead: [[1000, 500], [100000, 300]], tiles: [[100, 100, 0.25]]";
  text.replace(text.find(tiles), tiles.size(), "columns: [[88, 0.25], [128, 0.5]], padding_bandwidth: 0.5 TB/s");
  Device toy = device(text);
  toy.in_a_step = true;
  Kernel kernel = gemm(257, 512, 10'000);
  kernel.precision = "fp8_block";
  EXPECT_NEAR(microseconds(toy, kernel), 2 * 10 * 2 * 128 * 88 * 1e4 / 50e6 + 15.24, 1e-6);
  // Of two experts the rows of the next one are loaded there: 2 * 3 * 10 tiles of 128 columns in six waves.
  kernel = gemm(257, 1280, 10'000, 2);
  kernel.precision = "fp8_block";
  kernel.grouped = true;
  EXPECT_NEAR(microseconds(toy, kernel), 6 * 10 * 2 * 128 * 128 * 1e4 / 100e6, 1e-6);
  kernel = gemm(256, 640, 10'000);  // nothing to fill: ten tiles of 128 columns in one wave
  kernel.precision = "fp8_block";
  EXPECT_NEAR(microseconds(toy, kernel), 10 * 2 * 128 * 128 * 1e4 / 100e6, 1e-6);
  // 1,025 rows are 9 rows of tiles. In one column of tiles of 128 each is alone; in two columns neighbours share a
  // load.
  kernel = gemm(1025, 128, 10'000);
  kernel.precision = "fp8_block";
  const double load = 127 * 1e4 / 0.5e12 * 1e6;
  EXPECT_NEAR(microseconds(toy, kernel), 10 * 2 * 128 * 128 * 1e4 / 100e6 + load, 1e-6);
  kernel = gemm(1025, 256, 10'000);
  kernel.precision = "fp8_block";
  EXPECT_NEAR(microseconds(toy, kernel), 2 * 10 * 2 * 128 * 128 * 1e4 / 100e6 + load, 1e-6);
}

/// Seven experts with 130 rows each, 200 columns, 1,000 along k: two rows and two columns of tiles of 100 x 100 each,
/// 28 of all of them in 2.8 waves of 10, so that only one last wave is not full. Each tile has 100 more along k.
TEST(KernelTime, InAStepGroupedGemmsHaveTheirOwnRates) {
  std::string text = fitted;
  const std::string fp8 = "  fp8_gemms:";
  text.insert(
      text.find(fp8),
      "  grouped_gemms: {units: 10, inner_overhead: 100, bandwidth_fraction: 0.625, tiles: [[100, 100, 0.8]]}\n");
  Device toy = device(text);
  toy.in_a_step = true;
  Kernel kernel = gemm(130, 200, 1000);
  kernel.count = 7;
  const double single = microseconds(toy, kernel);
  kernel.grouped = true;
  // 3 waves * 10 tiles * 2 * 100 * 100 * 1,100 FLOP at 0.8 of 100 TFLOP/s are 8.25 us; the traffic, 7 * 356,000 * 2 B
  // at 0.625 TB/s, is 7.9744 us.
  EXPECT_NEAR(microseconds(toy, kernel), 8.25, 1e-6);
  // 1 row for each of 5 experts: ten tiles, one wave, 2.75 us of arithmetic. The weights of each are read once:
  // 5 * (1,000 + 200,000 + 200) * 2 B at 0.625 TB/s are 3.2192 us.
  kernel.m = 1;
  kernel.count = 5;
  EXPECT_NEAR(microseconds(toy, kernel), 3.2192, 1e-6);
  // Values that a device does not give, or those of fp8, are as for single ones.
  kernel.m = 130;
  kernel.count = 7;
  Device without = device(fitted);
  without.in_a_step = true;
  EXPECT_DOUBLE_EQ(microseconds(without, kernel), single);
  kernel.precision = "fp8";
  const double grouped = microseconds(toy, kernel);
  kernel.grouped = false;
  EXPECT_DOUBLE_EQ(grouped, microseconds(toy, kernel));
}

Device with_grouped_gemms() {
  std::string text = fitted;
  text.insert(
      text.find("  fp8_gemms:"),
      "  grouped_gemms: {units: 10, inner_overhead: 100, bandwidth_fraction: 0.625, tiles: [[100, 100, 0.8]]}\n");
  Device toy = device(text);
  toy.in_a_step = true;
  return toy;
}

/// One expert is no group: its rows take as long as a single GEMM of as many, forward and for the gradient of its
/// weights, of which rows are the inner length.
TEST(KernelTime, AGroupOfOneExpertIsASingleGemm) {
  const Device toy = with_grouped_gemms();
  for (const bool rows_inner : {false, true}) {
    const Kernel single = gemm(1300, 2000, 1000);
    const Kernel fewer = rows_inner ? gemm(1300, 2000, 700) : gemm(700, 2000, 1000);
    Kernel expert = single;
    expert.grouped = true;
    expert.rows_inner = rows_inner;
    EXPECT_DOUBLE_EQ(microseconds(toy, expert), microseconds(toy, single));
    EXPECT_DOUBLE_EQ(microseconds(toy, with_rows(expert, {700})), microseconds(toy, fewer));
    Kernel two = expert;
    two.count = 2;
    Kernel two_singles = single;
    two_singles.count = 2;
    EXPECT_NE(microseconds(toy, two), microseconds(toy, two_singles));
  }
}

/// A wave of ten tiles of 100 x 100 and 10,000 along k takes 10 * 2 * 100 * 100 * 10,000 FLOP at 50 TFLOP/s, 40 us, and
/// half of that in a grouped GEMM. Six experts with 130 rows each and 200 columns have four tiles each, 24 of all of
/// them.
TEST(KernelTime, InStreamsExpertsAreSingleGemmsThatFillEachOthersWaves) {
  Device toy = device(
      "name: toy\npeak: {bf16: 100 TFLOP/s}\nmemory_bandwidth: 1000 TB/s\nmemory: 10 GB\nefficiency: 0.9\n"
      "sustained:\n  launch: 2 us\n"
      "  gemms: {units: 10, tiles: [[100, 100, 0.5]]}\n  grouped_gemms: {units: 10, tiles: [[100, 100, 1]]}\n");
  toy.in_a_step = true;
  Kernel kernel = gemm(130, 200, 10'000, 6);
  kernel.grouped = true;
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(3 * 20 + 2));
  kernel.streams = 1;  // one after the other
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(6 * (40 + 2)));
  kernel.streams = 2;  // the second one's tiles fill the first one's wave, but a stream has three of the six GEMMs
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(3 * (40 + 2)));
  kernel.streams = 4;  // three full waves
  EXPECT_EQ(kernel_time(toy, kernel), Time::from_us(3 * 40 + 2));
  // With 4 and 26 tiles: 1 and 3 waves one after the other, 3 together. An expert without rows has no GEMM.
  kernel = gemm(477, 200, 10'000, 3);
  kernel.grouped = true;
  kernel.streams = 1;
  EXPECT_EQ(kernel_time(toy, with_rows(kernel, {130, 0, 1300})), Time::from_us(40 + 2 + 120 + 2));
  kernel.streams = 4;
  EXPECT_EQ(kernel_time(toy, with_rows(kernel, {130, 0, 1300})), Time::from_us(120 + 2));
}

/// Bytes that are given are those of all experts: 4 * (1,000 + 200) * 100 * 2 B of inputs and results and 4 * 200,000 *
/// 2 B of weights. One by one each expert reads its weights, and the rest is shared out by rows.
TEST(KernelTime, InStreamsGivenBytesAreSharedOutAmongExperts) {
  Device toy = device(
      "name: toy\npeak: {bf16: 1000000 TFLOP/s}\nmemory_bandwidth: 1 TB/s\nmemory: 10 GB\nefficiency: 0.9\n"
      "sustained:\n  gemms: {units: 10, tiles: [[100, 100, 1]]}\n");
  toy.in_a_step = true;
  Kernel kernel = gemm(100, 200, 1000, 4);
  kernel.grouped = true;
  kernel.streams = 1;
  kernel.bytes = 4 * (1200 * 100 + 200'000) * 2;
  EXPECT_NEAR(microseconds(toy, kernel), 4 * (240'000 + 400'000) / 1e6, 1e-6);
  EXPECT_NEAR(microseconds(toy, with_rows(kernel, {300, 100, 0, 0})), (2 * 400'000 + 4 * 240'000) / 1e6, 1e-6);
}

/// The same device with rates of grouped GEMMs in fp8_block.
TEST(KernelTime, GroupedGemmsOfBlocksHaveTheirOwnRates) {
  std::string text = fitted;
  text.insert(text.find("  fp8_gemms:"),
              "  grouped_fp8_block_gemms: {units: 10, bandwidth_fraction: 0.5, tiles: [[100, 100, 0.5]]}\n");
  Device toy = device(text), without = device(fitted);
  toy.in_a_step = without.in_a_step = true;
  Kernel kernel = gemm(130, 200, 1000, 7);
  kernel.precision = "fp8_block";
  const double single = microseconds(toy, kernel);
  kernel.grouped = true;
  EXPECT_DOUBLE_EQ(microseconds(without, kernel), single);
  // 3 waves * 10 tiles * 2 * 100 * 100 * 1,000 FLOP at half of the peak of the precision.
  const double arithmetic = 30 * 2 * 100 * 100 * 1000 / (0.5 * toy.peak.at("fp8_block")) * 1e6;
  const double traffic = 7 * 356'000 / 0.5e12 * 1e6;  // us
  EXPECT_NEAR(microseconds(toy, kernel), std::max(arithmetic, traffic), 1e-6);
  kernel.precision = "bf16";  // as single ones
  const double grouped = microseconds(toy, kernel);
  kernel.grouped = false;
  EXPECT_DOUBLE_EQ(grouped, microseconds(toy, kernel));
}

/// Rows of each expert fill whole tiles of 100 x 100, all tiles go in waves of 10; weights are read by experts that
/// have rows.
TEST(KernelTime, GroupedGemmsOfUnevenRows) {
  const Device toy = with_grouped_gemms();
  Kernel kernel = gemm(113, 200, 1000, 4);
  kernel.grouped = true;
  // 2 + 0 + 1 + 3 pieces of rows in two columns: two waves of 10 tiles of 2 * 100 * 100 * 1,100 FLOP at 80 TFLOP/s.
  kernel = with_rows(kernel, {130, 0, 20, 300});
  EXPECT_NEAR(microseconds(toy, kernel), 5.5, 1e-6);
  EXPECT_DOUBLE_EQ(traffic_of(kernel), 2 * (450 * 1200 + 3 * 200'000.0));
  // One expert with one row: a wave is 2.75 us of arithmetic.
  kernel.rows = {0, 1, 0, 0};
  EXPECT_NEAR(microseconds(toy, kernel), 2.75, 1e-6);
  kernel.rows = {0, 0, 0, 0};
  EXPECT_NEAR(microseconds(toy, kernel), 0, 1e-9);
  // As many for each are as one number.
  Kernel even = gemm(130, 200, 1000, 7);
  even.grouped = true;
  EXPECT_DOUBLE_EQ(microseconds(toy, with_rows(even, std::vector<std::int64_t>(7, 130))), microseconds(toy, even));
  // Gradients of weights: rows are k. Two experts with one piece by two each, in one wave; 1,100 and 3,100 along k.
  Kernel gradient = gemm(100, 200, 1333, 3);
  gradient.grouped = gradient.rows_inner = true;
  gradient = with_rows(gradient, {1000, 0, 3000});
  EXPECT_NEAR(microseconds(toy, gradient), 10 * 2 * 100 * 100 * 2100 / 80e12 * 1e6, 1e-6);
  EXPECT_DOUBLE_EQ(traffic_of(gradient), 2 * (4000 * 300 + 2 * 20'000.0));
}

// Where the bytes are given, results and factors having other sizes: 1 B read and 2 written; of a gradient 1 and 6.
TEST(KernelTime, BytesOfGroupedGemmsGoWithRows) {
  Kernel kernel = gemm(10, 20, 30, 4);
  kernel.grouped = true;
  kernel.precision = "fp8";
  kernel.bytes = 4 * (10 * 30 + 30 * 20 + 2 * 10 * 20);
  EXPECT_EQ(with_rows(kernel, {10, 10, 10, 10}).bytes, kernel.bytes);
  EXPECT_EQ(with_rows(kernel, {40, 0, 0, 0}).bytes, 40 * 30 + 30 * 20 + 2 * 40 * 20);
  EXPECT_EQ(with_rows(kernel, {5, 0, 0, 2}).bytes, 7 * 30 + 2 * 30 * 20 + 2 * 7 * 20);
  Kernel gradient = gemm(20, 30, 10, 4);
  gradient.grouped = gradient.rows_inner = true;
  gradient.precision = "fp8";
  gradient.bytes = 4 * (10 * (20 + 30) + 6 * 20 * 30);
  EXPECT_EQ(with_rows(gradient, {40, 0, 0, 0}).bytes, 40 * (20 + 30) + 6 * 20 * 30);
}

TEST(KernelTime, AttentionGoesInTilesOfQueries) {
  Device toy = device(fitted);
  Kernel kernel{Kernel::Kind::attention, 1024, 1024, 128, 30, 1'000'000, 0, "bf16"};
  kernel.causal = true;
  kernel.flops = 2.0 * 1024 * 1024 * 128 * 30;  // half of two GEMMs
  // As one fraction of the peak while no step counts: FLOPs at 90 TFLOP/s.
  EXPECT_NEAR(microseconds(toy, kernel), kernel.flops / 90e6, 1e-5);
  toy.in_a_step = true;
  // Eight tiles of 128 queries a head, 240 on 10 units: 24 waves. They see (1024 + 128 + 64) / 2 keys in the mean and
  // take 32 more; 4 * 128 FLOP a score at half of the peak (128 lies half way between 64 and 256 over the logarithm).
  // The traffic of 1 MB at 0.5 TB/s is 2 us more, the launch 1 us.
  const double score = 4 * 128 / 50e6;
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (608 + 32) * score + 2 + 1, 1e-4);
  // Backward five GEMMs for two, at 0.8 of the rate.
  Kernel backward = kernel;
  backward.backward = true;
  backward.flops = 2.5 * kernel.flops;
  EXPECT_NEAR(microseconds(toy, backward), 240 * 128 * (608 + 32) * score * 2.5 / 0.8 + 3, 1e-4);
  // One head of 128 queries: its tile has the device to itself, ten units' time at twice the rate.
  Kernel lonely = kernel;
  lonely.m = lonely.n = 128;
  lonely.count = 1;
  lonely.flops = 2.0 * 128 * 128 * 128;
  EXPECT_NEAR(microseconds(toy, lonely), 128 * (128 + 32) * score * 10 / 2 + 3, 1e-4);
  // Another library: 24 waves of the same at half of the peak, whatever the head size, and without overhead.
  kernel.library = "second";
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * 608 * score, 1e-4);
  // One that the device does not have: its first one.
  kernel.library = "third";
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (608 + 32) * score + 3, 1e-4);
}

TEST(KernelTime, AttentionBackwardHasARateForTheKeysThatAQuerySees) {
  std::string text = fitted;
  const std::string number = "backward: 0.8";
  text.replace(text.find(number), number.size(), "backward: [[256, 0.4], [1024, 0.8]]");
  Device toy = device(text);
  toy.in_a_step = true;
  Kernel kernel{Kernel::Kind::attention, 1024, 1024, 128, 30, 1'000'000, 0, "bf16"};
  kernel.causal = kernel.backward = true;
  kernel.flops = 5.0 * 1024 * 1024 * 128 * 30;  // half of five GEMMs
  const double score = 10 * 128 / 50e6;
  // As above, 24 waves. A query sees 512 of the 1,024 keys in the mean, half way between both points over the
  // logarithm.
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (608 + 32) * score / 0.6 + 3, 1e-4);
  // Without a mask it sees all of them, and as many of 512 keys as of 1,024 with a mask.
  kernel.causal = false;
  kernel.flops *= 2;
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (1024 + 32) * score / 0.8 + 3, 1e-4);
  kernel.n = 512;
  kernel.flops /= 2;
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (512 + 32) * score / 0.6 + 3, 1e-4);
  // The outermost points hold beyond them.
  kernel.n = 128;
  kernel.flops /= 4;
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (128 + 32) * score / 0.4 + 3, 1e-4);
  kernel.n = 4096;
  kernel.flops *= 32;
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (4096 + 32) * score / 0.8 + 3, 1e-4);
  // The forward pass has no part in it.
  kernel.backward = false;
  kernel.flops *= 0.4;
  EXPECT_NEAR(microseconds(toy, kernel), 240 * 128 * (4096 + 32) * score * 0.4 + 3, 1e-4);
}

TEST(KernelTime, FitsComplainWhereTheyAre) {
  const auto about = [](const std::string& from, const std::string& to) {
    std::string text = fitted;
    text.replace(text.find(from), from.size(), to);
    return complaint([&] { device(text); });
  };
  EXPECT_NE(about("even_share: 0.5", "even_share: 1.5").find("toy.yaml:7"), std::string::npos);
  EXPECT_NE(about("even_share: 0.5", "even_shares: 0.5").find("did you mean 'even_share'"), std::string::npos);
  EXPECT_NE(about("sharpness: 2", "sharpness: 0.5").find("sharpness"), std::string::npos);
  EXPECT_NE(about("library: second, ", "").find("library"), std::string::npos);
  EXPECT_NE(about("backward: 0.8", "backward: [[1024, 0.8], [256, 0.4]]").find("sizes rise"), std::string::npos);
  EXPECT_NE(about("backward: 0.8", "backward: []").find("[2048, 0.65]"), std::string::npos);
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
}  // namespace weft::test::kernel_time_test
