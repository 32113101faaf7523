// SPDX-License-Identifier: GPL-2.0-only
// The entry: MPI, and the command line.
#include <optional>

#include <ns3/nstime.h>

#include "app/command_line/script_command.hpp"
#include "app/commands/run_command_line.hpp"
#include "engine/mpi_session.hpp"
#include "engine/process_group.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"

int main(int argc, char** argv) {
  weft::end_at_once_on_interrupts();
  std::optional<weft::MpiSession> session;
  try {
    weft::become_script(argc, argv);
    session.emplace();
  } catch (const weft::EnvironmentError& error) {
    weft::say(error.what());
    return weft::exit_environment;
  }
  ns3::Time::SetResolution(ns3::Time::PS);
  weft::ProcessGroup group = session->processes();
  weft::ProcessGroup failures = group.twin();
  return weft::run_command_line(argc, argv, group, failures);
}
