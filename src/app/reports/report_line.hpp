// SPDX-License-Identifier: GPL-2.0-only
// Lines of the reports that commands print.
#pragma once

#include <string>

#include <fmt/format.h>

namespace weft {

/// "  NAME                     VALUE\n"
inline std::string report_line(const std::string& name, const std::string& value) {
  return fmt::format("  {:<24} {}\n", name, value);
}

}  // namespace weft
