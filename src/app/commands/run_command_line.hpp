// SPDX-License-Identifier: GPL-2.0-only
// The command that a command line names, and the one place where failures end.
#pragma once

#include <string>

namespace weft {

class ProcessGroup;

/// Does what the words after the program's name say. Gives the exit code. Collective: the same words on all processes
/// of `group`. `failures`: its twin, which no one else uses.
int run_command_line(int argc, const char* const* argv, ProcessGroup& group, ProcessGroup& failures);

/// A line for the user on standard error, in one piece: others may write at the same time.
void say(const std::string& message);

}  // namespace weft
