// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/program.hpp"

#include <array>

namespace weft {
namespace {

constexpr std::array<std::string_view, stream_count> names{
    "none", "compute", "communication", "parameters", "tensor", "context", "expert", "storage", "host"};

}  // namespace

std::string_view to_text(Stream stream) { return names.at(static_cast<std::size_t>(stream)); }

std::vector<std::string> stream_names() { return {names.begin(), names.end()}; }

}  // namespace weft
