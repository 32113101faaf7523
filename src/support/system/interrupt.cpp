// SPDX-License-Identifier: GPL-2.0-only
// SIGINT and SIGTERM: when a process ends at once, when it is asked to end, and when it is not given longer.
#include "support/system/interrupt.hpp"

#include <csignal>
#include <cstring>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include "support/basics/error.hpp"

namespace weft {

namespace detail {
std::atomic<int> signals = 0;
std::atomic<bool> late = false;
std::atomic<int> writers = 0;
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);  // handlers may use them
}  // namespace detail

namespace {

constexpr unsigned patience = 1;        // s, twice
constexpr int patience_for_files = 10;  // s more while a file is being written
constexpr int max_signals = 3;

std::atomic<int> seconds_for_files = 0;

constexpr std::size_t longest_name = 4096;
char folder[longest_name] = "";

std::atomic<pid_t> helper = 0;
static_assert(std::atomic<pid_t>::is_always_lock_free);

// Handlers call only what POSIX allows in them (signal-safety(7)), which is why there is a child: it may look into a
// folder. No one waits for it. A helper has to be gone by then, because it might write into the folder.
[[noreturn]] void end_process() {
  if (const pid_t child = helper; child > 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  if (folder[0] != '\0' && fork() == 0) {
    execl("/bin/rm", "rm", "-rf", "--", folder, static_cast<char*>(nullptr));
    _exit(exit_environment);
  }
  _exit(exit_interrupted);
}

extern "C" void end_now(int /*number*/) { end_process(); }

extern "C" void remember(int /*number*/) {
  const int count = ++detail::signals;
  if (count >= max_signals) end_process();
  if (count == 1) alarm(patience);
}

extern "C" void out_of_patience(int /*number*/) {
  const bool first = !detail::late.exchange(true);
  const bool writing = detail::writers > 0;
  if (!first && (!writing || ++seconds_for_files > patience_for_files)) end_process();
  alarm(patience);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // libraries below us do not expect calls to be cut short
  sigaction(number, &action, nullptr);
}

}  // namespace

void end_at_once_on_interrupts() {
  alarm(0);
  handle(SIGINT, end_now);
  handle(SIGTERM, end_now);
}

void remember_interrupts() {
  handle(SIGALRM, out_of_patience);
  handle(SIGINT, remember);
  handle(SIGTERM, remember);
}

void interruption_noticed() { alarm(0); }

void end_interrupted() { end_process(); }

void end_with_this_process(pid_t child) { helper = child; }

void remove_on_interrupt(const char* path) {
  const std::size_t length = std::strlen(path);
  if (length < longest_name) std::memcpy(folder, path, length + 1);
}

void remove_interrupted_folder() {
  std::error_code none;
  if (folder[0] != '\0') std::filesystem::remove_all(folder, none);
  folder[0] = '\0';
}

}  // namespace weft
