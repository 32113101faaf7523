// SPDX-License-Identifier: GPL-2.0-only
// SIGINT and SIGTERM: when a process ends at once, when it is asked to end, and when it is not given longer.
#pragma once

#include <atomic>

#include <sys/types.h>

namespace weft {

/// Thrown to abandon work that may be long. Not a std::exception, so that no handler takes it for a failure.
struct Interrupted {};

/// From now on a signal ends the process at once with exit code 130: there is no unfinished work that it would leave
/// behind.
void end_at_once_on_interrupts();
/// From now on a signal is remembered: interrupted(). If the program has not called interruption_noticed() after a
/// second, look_for_interrupt() throws. After another second the process ends wherever it is, and files stay as they
/// are; while a results file is being written, the process has ten seconds more. A third signal ends it at once.
void remember_interrupts();
/// The ordinary shutdown has begun, and may take longer.
void interruption_noticed();

/// A child that a signal ends together with this process; 0: there is none any more.
void end_with_this_process(pid_t child);

/// A folder of files, without folders in it, that is removed when a signal ends the process, whenever that is.
void remove_on_interrupt(const char* folder);
/// Removes it now.
void remove_interrupted_folder();

/// Ends this process at once, even if other processes wait for it: mpirun ends them.
[[noreturn]] void end_interrupted();

namespace detail {
extern std::atomic<int> signals;
extern std::atomic<bool> late;
extern std::atomic<int> writers;
}  // namespace detail

/// A signal has arrived since remember_interrupts().
inline bool interrupted() { return detail::signals.load(std::memory_order_relaxed) > 0; }
/// For loops that may be long: throws Interrupted if a signal arrived a second ago or earlier.
inline void look_for_interrupt() {
  if (detail::late.load(std::memory_order_relaxed)) [[unlikely]]
    throw Interrupted();
}

/// While one of these lives, a file would be left unreadable.
class FileIsBeingWritten {
 public:
  FileIsBeingWritten() { ++detail::writers; }
  ~FileIsBeingWritten() { --detail::writers; }
  FileIsBeingWritten(const FileIsBeingWritten&) = delete;
  FileIsBeingWritten& operator=(const FileIsBeingWritten&) = delete;
};

}  // namespace weft
