// SPDX-License-Identifier: GPL-2.0-only
// Parts of the program that are written in Python.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// Runs `script`, a path below the folder of scripts such as "commands/import.py", with these words, and gives its exit
/// code; -1 if a signal has ended it. Throws EnvironmentError if there is no Python.
int run_script(const std::string& script, const std::vector<std::string>& words);

}  // namespace weft
