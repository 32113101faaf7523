// SPDX-License-Identifier: GPL-2.0-only
// Commands in Python: scripts/commands/NAME.py is `weft NAME`. A new one is one file there and nothing else.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// The names of the commands in Python, in alphabetical order.
std::vector<std::string> script_commands();

/// The lines of `weft --help` about them: for each the line of its file that begins with "# weft NAME".
std::string script_commands_help();

/// If `argv[1]` is a command in Python, this process becomes its interpreter and the function does not return. The
/// script finds the path of this program in the environment variable WEFT_PROGRAM. Of several processes under mpirun
/// the first runs the script, and the others end. Throws EnvironmentError if there is no Python.
void become_script(int argc, char** argv);

}  // namespace weft
