// SPDX-License-Identifier: GPL-2.0-only
// What is made once for a command, and not kept for the next one of the same process (`weft serve`).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

namespace weft {

namespace detail {
inline std::atomic<std::uint64_t> commands = 0;
}

/// A command begins: what was kept for the one before is forgotten when it is next asked for.
inline void begin_command() { ++detail::commands; }

/// Values by name, such as what was read from files. The next command may run in another folder, or find other files.
/// References to values are valid until the next command begins.
template <class Key, class Value>
class KeptForCommand {
 public:
  std::map<Key, Value>& values() {
    if (const std::uint64_t now = detail::commands; now != command_) {
      values_.clear();
      command_ = now;
    }
    return values_;
  }

 private:
  std::map<Key, Value> values_;
  std::uint64_t command_ = 0;
};

}  // namespace weft
