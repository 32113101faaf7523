// SPDX-License-Identifier: GPL-2.0-only
// The commands of weft. Each returns the process's exit code, the same on all processes.
#pragma once

#include "app/command_line/command_line.hpp"
#include "engine/process_group.hpp"

namespace weft {

int run_command(const CommandLine& line, ProcessGroup& group);
int describe_command(const CommandLine& line, ProcessGroup& group);
int workload_command(const CommandLine& line, ProcessGroup& group);
int export_command(const CommandLine& line, ProcessGroup& group);
int topology_command(const CommandLine& line, ProcessGroup& group);
int list_command(const CommandLine& line, ProcessGroup& group);
int collective_command(const CommandLine& line, ProcessGroup& group);
int perf_command(const CommandLine& line, ProcessGroup& group);
int goodput_command(const CommandLine& line, ProcessGroup& group);
int bench_command(const CommandLine& line, ProcessGroup& group);
/// Each process runs the command lines that it reads from its pipe (docs/reference/serve.md). `failures`: see
/// run_command_line().
int serve_command(const CommandLine& line, ProcessGroup& group, ProcessGroup& failures);

}  // namespace weft
