// SPDX-License-Identifier: GPL-2.0-only
#include "app/interrupt.hpp"

#include <csignal>

namespace weft {
namespace {

volatile std::sig_atomic_t signals = 0;

extern "C" void remember(int number) {
  signals = signals + 1;
  if (signals < 3) return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

bool interrupted() { return signals > 0; }

}  // namespace weft
