// SPDX-License-Identifier: GPL-2.0-only
// Processes that read an experiment together.
#pragma once

#include <memory>
#include <vector>

#include "engine/process_group.hpp"
#include "schedule/program/shared_reading.hpp"

namespace weft {

/// For use within prepare(): if a process fails there, the others do not wait for it in an exchange, but throw what
/// prepare() throws.
class GroupReading final : public SharedReading {
 public:
  explicit GroupReading(ProcessGroup& group) : group_(group) {}
  std::uint32_t processes() const override { return static_cast<std::uint32_t>(group_.size()); }
  std::uint32_t process() const override { return static_cast<std::uint32_t>(group_.rank()); }
  std::vector<Bytes> exchange(std::vector<Bytes> parts) const override;

 private:
  ProcessGroup& group_;
};

inline std::shared_ptr<const SharedReading> reading_together(ProcessGroup& group) {
  return std::make_shared<GroupReading>(group);
}

}  // namespace weft
