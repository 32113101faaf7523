// SPDX-License-Identifier: GPL-2.0-only
// The common parts of both forms of GOAL schedules.
#include "workloads/importers/goal_file.hpp"

namespace weft {

std::unique_ptr<GoalFile> open_goal(const GoalContent& content) {
  // Magic numbers of the binary form: 4223, and 2342 for one that a simulator has used up.
  ByteSource source = content();
  const int low = source.peek(0), high = source.peek(1);
  bool zeros = true;
  for (std::size_t i = 2; i < 8; ++i) zeros = zeros && source.peek(i) == 0;
  const bool binary = zeros && ((low == 0x7f && high == 0x10) || (low == 0x26 && high == 0x09));
  return binary ? open_goal_binary(content) : open_goal_text(content);
}

}  // namespace weft
