// SPDX-License-Identifier: GPL-2.0-only
// Measured operators: the keys of a file, look-ups in it, values outside it; kernels in programs.
#include "workloads/compute/operator_times.hpp"

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::operator_times_test {
namespace {

// 50 TFLOP/s in GEMMs, 1 TB/s.
const std::string toy =
    "name: toy\npeak: {bf16: 100 TFLOP/s}\nefficiency: 0.5\nmemory_bandwidth: 1 TB/s\nmemory: 1 GB\n";
const std::string file =
    "# measured on a Tuesday\n"
    "kernel, m, n, k, count, bytes, precision, time\n"
    "\n"
    "gemm, 64, 128, 256, , , bf16, 190 us\n"
    "gemm, 64, 128, 256, 3, , , 0.5 ms\n"
    "memory, , , , , 4096, , 2 us\r\n";

Device device() { return read_device(Spec::parse(toy, "toy.yaml")); }
Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1) {
  return {Kernel::Kind::gemm, m, n, k, count, 0, 0, "bf16"};
}
Kernel pass(std::int64_t bytes) { return {Kernel::Kind::memory, 0, 0, 0, 1, bytes, 0, "bf16"}; }

TEST(OperatorTimes, AreThoseOfTheFileOrOfTheDevice) {
  const OperatorTimes times(device(), MeasuredOperators::parse(file, "ops.csv"));
  EXPECT_EQ(times.of(gemm(64, 128, 256)), Time::from_us(190));
  EXPECT_EQ(times.of(gemm(64, 128, 256, 3)), Time::from_us(500));  // of any precision
  EXPECT_EQ(times.of(pass(4096)), Time::from_us(2));
  EXPECT_TRUE(times.missing().empty());
  EXPECT_EQ(times.of(gemm(128, 64, 256)), kernel_time(device(), gemm(128, 64, 256)));
  EXPECT_EQ(times.of(pass(4097)), kernel_time(device(), pass(4097)));
  EXPECT_EQ(times.of(pass(4097)), kernel_time(device(), pass(4097)));
  EXPECT_EQ(times.missing(), (std::vector<std::string>{"gemm 128 x 64 x 256, bf16", "memory 4097 B, bf16"}));
}

TEST(OperatorTimes, WithoutAFileNothingIsMissing) {
  const OperatorTimes times(device());
  EXPECT_EQ(times.of(pass(4096)), kernel_time(device(), pass(4096)));
  EXPECT_TRUE(times.missing().empty());
}

TEST(OperatorTimes, Complaints) {
  const auto about = [](const std::string& text) {
    return complaint([&] { MeasuredOperators::parse(text, "ops.csv"); });
  };
  const auto expect = [&](const std::string& text, const std::string& place, const std::string& part) {
    EXPECT_TRUE(about(text).starts_with(place)) << about(text);
    EXPECT_NE(about(text).find(part), std::string::npos) << about(text);
  };
  const std::string header = "kernel, m, n, k, bytes, time\n";
  expect("", "ops.csv:", "no measured operators");
  expect("kernel, m, tim\n", "ops.csv:1:", "did you mean 'time'");
  expect("kernel, m, m, time\n", "ops.csv:1:", "two columns are called 'm'");
  expect("m, n, k, time\n", "ops.csv:1:", "lacks the column 'kernel'");
  expect(header + "gemm, 1, 2, 3, 1 us\n", "ops.csv:2:", "5 cells, but the header has 6 columns");
  expect(header + "# x\nconv, 1, 2, 3, , 1 us\n", "ops.csv:3:", "neither 'gemm' nor 'memory'");
  expect(header + "matmul, 1, 2, 3, , 1 us\n",
         "ops.csv:2:", "'matmul' is neither 'gemm', as it is called now, nor 'memory'");
  expect(header + "gemm, 1, 2, , , 1 us\n", "ops.csv:2:", "`k`: '' is no whole number");
  expect(header + "gemm, 1, -2, 3, , 1 us\n", "ops.csv:2:", "`n`: '-2'");
  expect(header + "memory, , , , 64, 5\n", "ops.csv:2:", "`time`: '5' is no time");
  expect(header + "memory, , , , 64, 0 us\n", "ops.csv:2:", "positive");
  expect(header + "memory, , , , 64, 5 us\nmemory, , , , 64, 6 us\n", "ops.csv:3:", "the kernel of line 2 again");
  expect("kernel, bytes, precision, time\nmemory, 64, bf61, 5 us\n", "ops.csv:2:", "did you mean 'bf16'");
  expect(header, "ops.csv:", "no measured operators");
}

// Whatever is in the file, it is read or refused with a line of it.
TEST(OperatorTimes, FilesWithAnythingInThem) {
  const std::string bytes("\0\n\r,#-\"9 Emk\xff%u", 16);
  int refused = 0;
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    std::string text = file;
    const std::uint64_t changes = 1 + random_below(6, 1, round, 0);
    for (std::uint64_t i = 1; i <= changes; ++i) {
      const std::size_t at = random_below(text.size(), 2, round, i);
      const char byte = bytes[random_below(bytes.size(), 3, round, i)];
      if (random_below(3, 4, round, i) == 0) text.erase(at, 1 + random_below(9, 5, round, i));
      if (!text.empty()) text.insert(std::min(at, text.size()), 1, byte);
    }
    const std::string refusal = complaint([&] { MeasuredOperators::parse(text, "ops.csv"); });
    if (refusal.empty()) continue;
    ++refused;
    EXPECT_TRUE(refusal.starts_with("ops.csv:")) << refusal;
  }
  EXPECT_GT(refused, 10'000);
}

Kernel gemm_of_experts(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count) {
  Kernel kernel = gemm(m, n, k, count);
  kernel.grouped = true;
  return kernel;
}

TEST(OperatorTimes, KernelsOfPrograms) {
  // The A100's peak in tf32 is half of that in bf16 (its first); 108 tiles of 128 x 128 are one wave.
  const auto workload = read_workload(
      "kind: program\nranks: 2\ndevice: a100-sxm\noperations:\n"
      "  - {rank: 0, compute: {m: 1536, n: 1152, k: 8192}}\n"
      "  - {rank: 0, compute: {m: 1536, n: 1152, k: 8192, precision: tf32}}\n"
      "  - {rank: all, compute: {bytes: 1 GB}}\n"
      "  - {rank: 1, compute: 7 us}\n",
      context_of(2));
  const auto operations = operations_of(*workload, 0);
  ASSERT_EQ(operations.size(), 3U);
  // 2 * 1536 * 1152 * 8192 FLOP at 312 TFLOP/s * 0.925: 100.456 us.
  EXPECT_NEAR(operations[0].duration.seconds(), 2.0 * 1536 * 1152 * 8192 / (312e12 * 0.925), 1e-12);
  EXPECT_NEAR(operations[1].duration.seconds(), 2 * operations[0].duration.seconds(), 2e-12);
  EXPECT_NEAR(operations[2].duration.seconds(), 1e9 / (2039e9 * 0.66), 1e-12);
  EXPECT_EQ(operations_of(*workload, 1)[1].duration, Time::from_us(7));
}

// Rows of each expert: as a kernel that has them, of the mean, rounded up.
TEST(OperatorTimes, RowsOfExpertsInPrograms) {
  const auto workload = read_workload(
      "kind: program\nranks: 1\ndevice: h100-sxm\nrates: single\noperations:\n"
      "  - {rank: 0, compute: {m: [700, 0, 3, 129], n: 4096, k: 2048, grouped: true, precision: bf16}}\n"
      "  - {rank: 0, compute: {m: 208, n: 4096, k: 2048, count: 4, grouped: true, precision: bf16}}\n",
      context_of(1));
  Device device = read_device(Spec::load(workloads_folder() + "/devices/h100-sxm.yaml"));
  device.in_a_step = device.one_by_one = true;
  Kernel even = gemm_of_experts(208, 4096, 2048, 4);
  const auto operations = operations_of(*workload, 0);
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[0].duration, kernel_time(device, with_rows(even, {700, 0, 3, 129})));
  EXPECT_EQ(operations[1].duration, kernel_time(device, even));
  EXPECT_NE(operations[0].duration, operations[1].duration);
}

// A measurement with equal rows for each depends on the sum of the rows.
TEST(OperatorTimes, MeasuredGroupedGemmsGoWithTheirRows) {
  const OperatorTimes times(
      device(), MeasuredOperators::parse("kernel, m, n, k, count, time\ngemm, 64, 128, 256, 3, 500 us\n", "ops.csv"));
  const Kernel even = gemm_of_experts(64, 128, 256, 3);
  EXPECT_EQ(times.of(with_rows(even, {64, 64, 64})), Time::from_us(500));
  EXPECT_EQ(times.of(with_rows(even, {96, 0, 0})), Time::from_us(250));
}

TEST(OperatorTimes, ComplaintsAboutKernelsOfPrograms) {
  const auto with = [](const std::string& device, const std::string& compute) {
    return "kind: program\nranks: 1\n" + device + "operations:\n  - {rank: 0, compute: " + compute + "}\n";
  };
  const WorkloadContext context = context_of(1);
  expect_complaint(with("", "{m: 1, n: 1, k: 1}"), context, "x.yaml:4", {"device"});
  expect_complaint(with("device: a100-sxm\n", "{m: 1, n: 1}"), context, "x.yaml:5", {"k"});
  expect_complaint(with("device: a100-sxm\n", "{bytes: 1 kB, flop: 3}"), context, "x.yaml:5", {"did you mean 'flops'"});
  expect_complaint(with("device: a100-sxm\n", "{bytes: 1 kB, precision: fp8}"), context, "x.yaml:5", {"fp8", "bf16"});
  expect_complaint(with("device: a100\n", "1 us"), context, "x.yaml:3", {"a100-sxm"});
  const auto rows = [&](const std::string& m, const std::string& more) {
    return with("device: a100-sxm\n", "{m: " + m + ", n: 1, k: 1" + more + "}");
  };
  expect_complaint(rows("[1, 2]", ""), context, "x.yaml:5", {"grouped: true"});
  expect_complaint(rows("[1, 2]", ", grouped: true, count: 2"), context, "x.yaml:5", {"leave 'count' out"});
  expect_complaint(rows("[0, 0]", ", grouped: true"), context, "x.yaml:5", {"no rows"});
  expect_complaint(rows("[1, -2]", ", grouped: true"), context, "x.yaml:5", {"-2"});
  expect_complaint(with("compute_slowdown_while_communicating: 0.5\n", "1 us"), context, "x.yaml:3", {"0.5"});
}

}  // namespace
}  // namespace weft::test::operator_times_test
