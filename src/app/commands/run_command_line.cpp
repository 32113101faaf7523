// SPDX-License-Identifier: GPL-2.0-only
// The command that a command line names, and the one place where failures end.
#include "app/commands/run_command_line.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <new>
#include <thread>

#include "app/command_line/help.hpp"
#include "app/commands/commands.hpp"
#include "app/processes/prepare.hpp"
#include "app/running/version.hpp"
#include "engine/process_group.hpp"
#include "support/basics/error.hpp"
#include "support/basics/kept_for_command.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

int dispatch(const CommandLine& line, ProcessGroup& group, ProcessGroup& failures) {
  if (line.command == "run") return run_command(line, group);
  if (line.command == "describe") return describe_command(line, group);
  if (line.command == "workload") return workload_command(line, group);
  if (line.command == "export") return export_command(line, group);
  if (line.command == "topology") return topology_command(line, group);
  if (line.command == "list") return list_command(line, group);
  if (line.command == "collective") return collective_command(line, group);
  if (line.command == "perf") return perf_command(line, group);
  if (line.command == "goodput") return goodput_command(line, group);
  if (line.command == "bench") return bench_command(line, group);
  if (line.command == "serve") return serve_command(line, group, failures);
  if (group.rank() == 0) std::cout << (line.command == "help" ? help_text(line.help_of) : version_text()) << std::flush;
  return exit_done;
}

/// True if all processes arrive here within a second of each other: then the failure is on all of them. Blocks for a
/// second at most. `failures` has no other use.
bool all_fail(ProcessGroup& failures) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(failures.communicator(), &request);
  for (int done = 0; Clock::now() < deadline;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// A failure in a run may be on this process only: then it prints it and ends all. If it is on all, one prints it.
int fail(ProcessGroup& group, ProcessGroup& failures, const std::string& message, int code) {
  const bool alone = group.size() == 1;
  const bool all = alone || all_fail(failures);
  if (!all || group.rank() == 0) say(message);
  if (!all) MPI_Abort(MPI_COMM_WORLD, code);
  return code;
}

}  // namespace

void say(const std::string& message) { std::cerr << "weft: " + message + "\n" << std::flush; }

int run_command_line(int argc, const char* const* argv, ProcessGroup& group, ProcessGroup& failures) {
  begin_command();
  try {
    CommandLine line;
    prepare(group, [&] { line = parse_command_line(argc, argv); });
    const int code = dispatch(line, group, failures);
    // A script must not take half an answer for a whole one.
    prepare(group, [] {
      if (!std::cout.flush()) throw EnvironmentError("cannot write to standard output");
    });
    return code;
  } catch (const AgreedFailure& failure) {
    if (!failure.message.empty()) say(failure.message);
    return failure.exit_code;
  } catch (const Interrupted&) {
    end_interrupted();  // the state of the other processes is unknown
  } catch (const FatalEnvironmentError& error) {
    // On all processes, too: the first one prints the message and ends the others, which wait for that.
    if (group.rank() != 0) MPI_Barrier(group.communicator());
    say(error.what());
    if (group.size() > 1) MPI_Abort(MPI_COMM_WORLD, exit_environment);
    std::_Exit(exit_environment);
  } catch (const EnvironmentError& error) {
    return fail(group, failures, error.what(), exit_environment);
  } catch (const std::bad_alloc&) {
    return fail(group, failures, "out of memory", exit_environment);
  } catch (const InputError& error) {
    return fail(group, failures, error.what(), exit_input);
  } catch (const std::exception& error) {
    return fail(group, failures, error.what(), exit_bug);
  }
}

}  // namespace weft
