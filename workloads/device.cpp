// SPDX-License-Identifier: GPL-2.0-only
// An accelerator: peak arithmetic, memory bandwidth, and the time that work takes on it.
#include "workloads/device.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "support/contract.hpp"

namespace weft {
namespace {

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> precisions{
    {{"bf16", 2}, {"fp16", 2}, {"fp32", 4}, {"fp8", 1}, {"tf32", 4}}};

constexpr std::array<std::pair<std::string_view, double>, 3> flops_units{
    {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};

}  // namespace

std::int64_t element_bytes(const std::string& precision) {
  for (const auto& [name, bytes] : precisions)
    if (name == precision) return bytes;
  WEFT_EXPECT(false, "precision '{}'", precision);
  return 0;
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : precisions) names.emplace_back(name);
  return names;
}

double read_flops(const Spec& value) {
  const std::string text = value.text();
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (failure == std::errc() && std::isfinite(number) && number > 0)
    for (const auto& [name, factor] : flops_units)
      if (unit == name) return number * factor;
  throw value.error(
      fmt::format("'{}' is no arithmetic rate; give a positive number with GFLOP/s, TFLOP/s or PFLOP/s", text));
}

Device read_device(const Spec& spec) {
  Device device;
  device.name = spec.at("name").text();
  const auto names = precision_names();
  const Spec peak = spec.at("peak");
  for (const auto& name : names)
    if (const auto value = peak.find(name)) device.peak[name] = read_flops(*value);
  peak.finish();
  if (device.peak.empty()) throw peak.error("no precision; give at least one, such as 'bf16: 100 TFLOP/s'");
  device.efficiency = spec.at("efficiency").number(1e-6, 1);
  const Spec bandwidth = spec.at("memory_bandwidth");
  device.memory_bandwidth = bandwidth.bandwidth();
  if (device.memory_bandwidth == Bandwidth()) throw bandwidth.error("a bandwidth of 0 moves nothing");
  device.memory = spec.at("memory").bytes();
  spec.finish();
  return device;
}

Time roofline_time(const Device& device, const std::string& precision, double flops, Bytes traffic) {
  const double arithmetic = flops / (device.peak.at(precision) * device.efficiency);
  const double memory = static_cast<double>(traffic.count()) * 8 / static_cast<double>(device.memory_bandwidth.bps());
  return Time::from_ps(std::llround(std::min(std::max(arithmetic, memory) * 1e12, 0x1p62)));
}

}  // namespace weft
