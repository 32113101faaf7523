// SPDX-License-Identifier: GPL-2.0-only
// Pictures as SVG: messages between ranks over time, and lines over a logarithmic axis.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedule/collective/collective_cost.hpp"

namespace weft {

/// Ranks are horizontal lines, time runs to the right, and each message is an arrow from its first byte to its last.
class Picture {
 public:
  /// Aggregators stand below the ranks.
  Picture(std::uint32_t ranks, std::uint32_t aggregators) : ranks_(ranks), aggregators_(aggregators) {}
  void add(const ModelMessage& message) { messages_.push_back(message); }
  /// Throws EnvironmentError if the file cannot be written.
  void write(const std::string& path, const std::string& title) const;

 private:
  std::uint32_t ranks_;
  std::uint32_t aggregators_;
  std::vector<ModelMessage> messages_;
};

struct SizeLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< bytes, value
};

/// Lines over message sizes, both axes logarithmic; of several each with its name.
void write_size_plot(const std::string& path, const std::string& title, const std::string& unit,
                     const std::vector<SizeLine>& lines);

}  // namespace weft
