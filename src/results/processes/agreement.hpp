// SPDX-License-Identifier: GPL-2.0-only
// One failure, one message: what fails on one process throws the same on all of them.
#pragma once

#include <exception>
#include <string>

#include <mpi.h>

#include "support/basics/error.hpp"

namespace weft {

/// How a step ended on this process.
struct StepOutcome {
  bool failed = false;
  int exit_code = exit_bug;
  std::string message;
};

/// Collective: if any process of `comm` failed, throw on all of them what the lowest of these says, as EnvironmentError
/// or InternalError by its exit code.
void throw_if_any_failed(MPI_Comm comm, const StepOutcome& mine);

/// Collective: run `step` on this process, then throw_if_any_failed(). A step may contain collective calls only if
/// these fail everywhere or nowhere.
template <class Step>
void collectively(MPI_Comm comm, Step&& step) {
  StepOutcome outcome;
  try {
    step();
  } catch (const EnvironmentError& failure) {
    outcome = {true, exit_environment, failure.what()};
  } catch (const std::bad_alloc&) {
    outcome = {true, exit_environment, "out of memory"};
  } catch (const std::exception& failure) {
    outcome = {true, exit_bug, failure.what()};
  }
  throw_if_any_failed(comm, outcome);
}

/// Collective: the text of process 0 on all processes.
std::string broadcast_text(MPI_Comm comm, std::string text);

}  // namespace weft
