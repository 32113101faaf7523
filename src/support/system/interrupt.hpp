// SPDX-License-Identifier: GPL-2.0-only
// SIGINT and SIGTERM: when a process ends at once, when it is asked to end, and when it is not given longer.
#pragma once

#include <atomic>

namespace weft {

/// Thrown where work that may be long is given up. No std::exception: nobody is to take it for a failure.
struct Interrupted {};

/// From now on a signal ends the process at once with exit code 130: there is nothing that it would leave half done.
void end_at_once_on_interrupts();
/// From now on a signal is remembered: interrupted(). Who has not seen it after a second, and said so by
/// interruption_noticed(), is torn out of what it does where that looks (look_for_interrupt()). After another second
/// the process ends wherever it is, and what it has written stays as it is; while a results file is being written, it
/// has ten seconds more. A third signal ends it at once.
void remember_interrupts();
/// The ordinary way out has been reached: it may take its time.
void interruption_noticed();

/// A folder of files, without folders in it, that is removed when a signal ends the process, whenever that is.
void remove_on_interrupt(const char* folder);
/// Removes it now.
void remove_interrupted_folder();

/// Ends this process at once, also in the middle of what others wait for: mpirun ends them.
[[noreturn]] void end_interrupted();

namespace detail {
extern std::atomic<int> signals;
extern std::atomic<bool> late;
extern std::atomic<int> writers;
}  // namespace detail

/// A signal has come since remember_interrupts().
inline bool interrupted() { return detail::signals.load(std::memory_order_relaxed) > 0; }
/// For loops that may be long: throws Interrupted if a signal has come a second ago.
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
