// SPDX-License-Identifier: GPL-2.0-only
// The entry: MPI, the command, and the one place where failures end.
#include <iostream>
#include <memory>

#include <mpi.h>
#include <ns3/nstime.h>

#include "app/commands.hpp"
#include "app/prepare.hpp"
#include "app/version.hpp"
#include "engine/mpi_session.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

int dispatch(const CommandLine& line, ProcessGroup& group) {
  if (line.command == "run") return run_command(line, group);
  if (line.command == "describe") return describe_command(line, group);
  if (line.command == "workload") return workload_command(line, group);
  if (line.command == "topology") return topology_command(line, group);
  if (line.command == "list") return list_command(line, group);
  if (line.command == "collective") return collective_command(line, group);
  if (line.command == "perf") return perf_command(line, group);
  if (line.command == "goodput") return goodput_command(line, group);
  if (line.command == "bench") return bench_command(line, group);
  if (group.rank() == 0) std::cout << (line.command == "help" ? help_text() : version_text()) << std::flush;
  return exit_done;
}

// A failure in the middle of a run may be on this process only: say it and end all.
[[noreturn]] void abort_all(const std::string& message, int code) {
  std::cerr << "weft: " << message << std::endl;
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

int guarded(int argc, char** argv, ProcessGroup& group) {
  try {
    CommandLine line;
    prepare(group, [&] { line = parse_command_line(argc, argv); });
    const int code = dispatch(line, group);
    // A script must not take half an answer for a whole one.
    prepare(group, [] {
      if (!std::cout.flush()) throw EnvironmentError("cannot write to standard output");
    });
    return code;
  } catch (const AgreedFailure& failure) {
    if (!failure.message.empty()) std::cerr << "weft: " << failure.message << std::endl;
    return failure.exit_code;
  } catch (const FatalEnvironmentError& error) {
    // On all processes alike, too: the first one speaks, and ends the others, which wait for that.
    if (group.rank() != 0) MPI_Barrier(group.communicator());
    abort_all(error.what(), exit_environment);
  } catch (const EnvironmentError& error) {
    // Thrown on all processes alike (results/agreement.hpp).
    if (group.rank() == 0) std::cerr << "weft: " << error.what() << std::endl;
    return exit_environment;
  } catch (const std::bad_alloc&) {
    abort_all("out of memory", exit_environment);
  } catch (const InputError& error) {
    abort_all(error.what(), exit_input);
  } catch (const std::exception& error) {
    abort_all(error.what(), exit_bug);
  }
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::MpiSession session(argc, argv);
  ns3::Time::SetResolution(ns3::Time::PS);
  weft::ProcessGroup group(MPI_COMM_WORLD);
  return weft::guarded(argc, argv, group);
}
