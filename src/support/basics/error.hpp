// SPDX-License-Identifier: GPL-2.0-only
// The two kinds of failure: the user's input, and our own broken promises.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace weft {

/// Where in a user's file something stands. line is 1-based; 0 means the file as a whole (or the command line).
struct SourceLine {
  std::string file;
  int line = 0;
  std::string text() const { return line > 0 ? file + ":" + std::to_string(line) : file; }
};

/// Process exit codes (docs/concepts/reliability.md, "Exit codes").
enum ExitCode : int { exit_done = 0, exit_input = 2, exit_environment = 3, exit_bug = 70, exit_interrupted = 130 };

/// The user's input is wrong. what() is "file:line: what is wrong, what was found, what was expected". Exit code 2.
class InputError : public std::runtime_error {
 public:
  InputError(const SourceLine& where, const std::string& message);

  /// What is wrong with one of many parts, found by the process that has it: of several processes the one with the
  /// lowest number says it, so that the message does not depend on how parts are shared out.
  InputError(const SourceLine& where, const std::string& message, std::uint32_t part) : InputError(where, message) {
    part_ = part;
  }
  std::uint32_t part() const { return part_; }

 private:
  std::uint32_t part_ = 0;
};

/// The surroundings failed (disk, MPI, memory). Exit code 3.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A run has reached, or would reach, the end of simulated time. Exit code 3.
class TimeLimitError : public EnvironmentError {
 public:
  /// "MESSAGE: simulated time ends after 106 days, ...".
  explicit TimeLimitError(const std::string& message);
};

/// The same as EnvironmentError, and a library is left in a state in which it cannot be shut down in order: the process
/// has to be aborted.
class FatalEnvironmentError : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// An internal contract does not hold. Exit code 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace weft
