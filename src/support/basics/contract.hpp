// SPDX-License-Identifier: GPL-2.0-only
// Contracts that hold in every build: a broken one names file, line and values, and asks for a report.
#pragma once

#include <string>

#include <fmt/format.h>

#include "support/basics/error.hpp"

namespace weft::detail {
[[noreturn]] void contract_broken(const char* file, int line, const char* condition, const std::string& values);
}

/// Check an internal promise; the further arguments are a fmt format string with the values that matter.
#define WEFT_EXPECT(condition, ...)                                                                \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::weft::detail::contract_broken(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
