// SPDX-License-Identifier: GPL-2.0-only
// SIGINT and SIGTERM as a question.
#pragma once

namespace weft {

/// From now on both signals are remembered instead of ending the process; a third one ends it.
void catch_interrupts();
/// A signal has come.
bool interrupted();

}  // namespace weft
