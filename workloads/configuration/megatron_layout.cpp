// SPDX-License-Identifier: GPL-2.0-only
// Which blocks are on which stage of Megatron-LM's pipelines
// (megatron/core/transformer/pipeline_parallel_layer_layout.py).
#include <cctype>

#include <fmt/format.h>

#include "workloads/configuration/megatron_arguments.hpp"

namespace weft {
namespace {

/// The layout with its repetitions written out, or nothing if it is none. A group is in parentheses; groups hold none.
std::optional<std::string> written_out(const std::string& layout) {
  constexpr std::size_t longest = 1U << 20U;
  std::string result;
  std::string unit;  // the part that a repetition would repeat
  for (std::size_t at = 0; at < layout.size();) {
    const char c = layout[at];
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',') {
      ++at;
    } else if (c == '(') {
      const std::size_t end = layout.find(')', at);
      if (end == std::string::npos) return std::nullopt;
      unit = layout.substr(at + 1, end - at - 1);
      result += unit;
      at = end + 1;
    } else if (c == '*') {
      std::size_t times = 0;
      const std::size_t start = ++at;
      while (at < layout.size() && std::isdigit(static_cast<unsigned char>(layout[at])) != 0 && times < longest)
        times = 10 * times + static_cast<std::size_t>(layout[at++] - '0');
      if (at == start || times == 0 || unit.empty() || result.size() + times * unit.size() > longest)
        return std::nullopt;
      for (std::size_t i = 1; i < times; ++i) result += unit;
      unit.clear();
    } else {
      unit = std::string(1, c);
      result += unit;
      ++at;
    }
  }
  return result;
}

}  // namespace

MegatronLayout pipeline_layout(const MegatronOptions& options) {
  const std::string name = "pipeline-model-parallel-layout";
  const std::string layout = options.text(name);
  const auto written = written_out(layout);
  if (!written || written->find_first_not_of("EtmL|") != std::string::npos)
    throw options.error(name, fmt::format("expected a layout such as Et*3|(tt|)*29m|L, found '{}'", layout));
  MegatronLayout result;
  std::vector<std::int64_t>& stages = result.stage_layers;
  stages = {0};
  for (const char c : *written) {
    if (c == '|') stages.push_back(0);
    if (c == 't') ++stages.back();
    if (c == 'm') result.prediction_stage = static_cast<std::int64_t>(stages.size()) - 1;
  }
  return result;
}

}  // namespace weft
