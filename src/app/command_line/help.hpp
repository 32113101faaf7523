// SPDX-License-Identifier: GPL-2.0-only
// What `weft --help` and `weft COMMAND --help` print.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// The commands in C++, in the order of `weft --help`. Those in Python answer for themselves.
std::vector<std::string> help_topics();

/// What `weft list` takes.
const std::vector<std::string>& lists_of_names();

/// Of one command of `help_topics()`: usage and options. Without a name: of all, and the exit codes.
std::string help_text(const std::string& command = "");

}  // namespace weft
