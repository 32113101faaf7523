// SPDX-License-Identifier: GPL-2.0-only
// Whether two result files say the same.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft {

/// Differences between the tables of two result files, cell by cell, at most `max`, such as "/messages/delivered row
/// 17: 1200 and 1300". Empty: every row of every table is the same, those below /manifest excepted. Throws
/// EnvironmentError if a file cannot be read. Holds a few megabytes at a time.
std::vector<std::string> compare_result_files(const std::string& first, const std::string& second, std::size_t max);

}  // namespace weft
