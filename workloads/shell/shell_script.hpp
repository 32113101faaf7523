// SPDX-License-Identifier: GPL-2.0-only
// Launch scripts: the variables that they set and the commands that they give, without running anything.
#pragma once

#include <string>
#include <vector>

#include "workloads/shell/shell_expansion.hpp"

namespace weft {

/// The content of a script: assignments of plain variables and arrays, commands with all variables in them expanded,
/// `if` with tests of texts and numbers. Loops, functions, cases and conditions on files or other commands are passed
/// over.
struct ShellScript {
  using Command = std::vector<ShellText>;
  ShellVariables variables;
  std::vector<Command> commands;
  std::vector<std::string> passed_over;  ///< "if (line 70)", for people
};

/// Reads a script. `outside` gives variables that it does not set. Throws InputError with file and line for text that
/// no shell would read (an array without its end) or that grows beyond all measure.
ShellScript read_shell_script(const std::string& text, const std::string& file,
                              std::function<std::optional<std::string>(const std::string&)> outside);

}  // namespace weft
