// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/workload_report.hpp"

#include <fmt/format.h>

namespace weft {

std::uint32_t WorkloadReport::fullest() const {
  std::uint32_t max = 0;
  for (std::uint32_t kind = 1; kind < memory.size(); ++kind)
    if (memory[kind].sum > memory[max].sum) max = kind;
  return max;
}

std::string WorkloadReport::verdict() const {
  if (memory.empty()) return "memory: not known";
  const MemoryOfRanks& max = memory[fullest()];
  std::string parts;
  for (const auto& [name, bytes] : max.parts)
    if (bytes > 0)
      parts += fmt::format("{}{} {:.2f}", parts.empty() ? "" : ", ", name, static_cast<double>(bytes) / 1e9);
  const double capacity = static_cast<double>(device_memory.count()) / 1e9;
  return fmt::format("{}: the fullest rank needs {:.2f} GB of {:.2f} GB ({})", fits() ? "it fits" : "OUT OF MEMORY",
                     static_cast<double>(max.sum) / 1e9, capacity, parts);
}

}  // namespace weft
