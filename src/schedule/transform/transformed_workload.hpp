// SPDX-License-Identifier: GPL-2.0-only
// A workload that was changed, and says so.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/workload_filter.hpp"

namespace weft {

/// What each change is made of: a filter with a line of its own for `weft describe`.
class TransformedWorkload : public WorkloadFilter {
 public:
  TransformedWorkload(std::unique_ptr<Workload> before, std::string line)
      : WorkloadFilter(std::move(before)), line_(std::move(line)) {}
  std::vector<std::pair<std::string, std::string>> description() const override {
    auto lines = inner().description();
    lines.emplace_back("transform", line_);
    return lines;
  }

 private:
  std::string line_;
};

}  // namespace weft
