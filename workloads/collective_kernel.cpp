// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collective_kernel.hpp"

#include <array>

#include <fmt/format.h>

#include "workloads/device.hpp"
#include "workloads/reading.hpp"

namespace weft {

void read_kernel_device(const Spec& spec, const std::string& directory, CollectiveTuning& tuning) {
  const auto value = spec.find("kernel_device");
  if (!value) return;
  const Device device = read_device(Spec::load(resolve_file(*value, directory, "devices", ".yaml")));
  const double rate = static_cast<double>(device.memory_bandwidth.bps()) * device.memory_fraction;
  tuning.reduce_rate = Bandwidth::from_bps(-static_cast<std::int64_t>(rate / 3));
  tuning.copy_rate = Bandwidth::from_bps(-static_cast<std::int64_t>(rate / 2));
  tuning.launch = device.launch;
}

void read_latencies(const Spec& spec, CollectiveTuning& tuning) {
  const auto value = spec.find("latencies");
  if (value && value->one_of({"none", "nccl"}) == "nccl") tuning.step_latency = Time::from_ps(-1);
}

void settle_kernel(const Spec& where, CollectiveCall& call) {
  CollectiveTuning& tuning = call.tuning;
  for (Bandwidth* rate : {&tuning.reduce_rate, &tuning.copy_rate})
    if (rate->bps() < 0) *rate = Bandwidth::from_bps(-rate->bps() / tuning.channels);
  if (tuning.step_latency >= Time()) return;
  const auto latencies = nccl_latencies(call.algorithm, tuning.protocol);
  if (!latencies)
    throw where.error(
        fmt::format("latencies: nccl, but NCCL knows none of '{}'; ring, double_binary_tree, pat, nvls and "
                    "nvls_tree have such, and step_latency and launch_latency give any",
                    call.algorithm));
  tuning.step_latency = latencies->step;
  tuning.launch += latencies->launch;
}

std::optional<KernelLatencies> nccl_latencies(const std::string& algorithm, Protocol protocol) {
  struct Row {
    const char* algorithm;
    std::array<double, 3> base;   // us: LL, LL128, Simple
    std::array<double, 3> steps;  // us
  };
  static constexpr std::array<Row, 3> rows = {{{"double_binary_tree", {6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}},
                                               {"ring", {6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}},
                                               {"pat", {8.0, 8.0, 8.0}, {0, 0, 4.0}}}};
  const auto microseconds = [](double us) { return Time::from_ps(static_cast<std::int64_t>(us * 1e6 + 0.5)); };
  if (algorithm == "nvls" || algorithm == "nvls_tree") return KernelLatencies{Time::from_us(25), Time()};
  const std::size_t at = protocol == Protocol::ll ? 0 : protocol == Protocol::ll128 ? 1 : 2;
  for (const Row& row : rows)
    if (algorithm == row.algorithm) return KernelLatencies{microseconds(row.base[at]), microseconds(row.steps[at])};
  return std::nullopt;
}

}  // namespace weft
