// SPDX-License-Identifier: GPL-2.0-only
// Steps that may fail on the user's input, the same way on all processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/process_group.hpp"

namespace weft {

/// A failure that has been agreed on: every process throws it, process 0 prints.
struct AgreedFailure {
  int exit_code;
  std::string message;  ///< empty on all processes but the one that prints
};

/// Collective: run `step` on every process. If it throws on any, all throw AgreedFailure, and the lowest failing
/// process has the message, so that one message is printed and no process waits for ever.
void prepare(ProcessGroup& group, const std::function<void()>& step);

/// Collective, within prepare(): throws AgreedFailure if a process has failed there or fails before it arrives here.
void require_agreement(ProcessGroup& group);

/// Collective: the texts of all processes, on process 0.
std::vector<std::string> gather_text(ProcessGroup& group, const std::string& text);

}  // namespace weft
