// SPDX-License-Identifier: GPL-2.0-only
// Named implementations that register themselves: one new file adds a kind, no list is edited.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/basics/contract.hpp"

namespace weft {

/// All implementations of `Interface` by name, in alphabetical order. Filled before main() by `Registration` objects.
template <class Interface>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Interface>()>;
  struct Entry {
    std::string summary;  ///< one line for `weft list`
    Factory make;
  };

  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  /// A second implementation of one name would make the result depend on link order: that breaks a contract.
  void add(const std::string& name, Entry entry) {
    const bool added = entries_.emplace(name, std::move(entry)).second;
    WEFT_EXPECT(added, "two implementations call themselves '{}'", name);
  }
  const Entry* find(const std::string& name) const {
    const auto at = entries_.find(name);
    return at == entries_.end() ? nullptr : &at->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : entries_) result.push_back(name);
    return result;
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

/// Put one at namespace scope of the implementation's file, named after it, as files of a room are compiled together:
///   const Registration<CollectiveAlgorithm, Ring> ring_registration("ring", "NCCL's ring, chunked and sliced");
template <class Interface, class Implementation>
struct Registration {
  Registration(const std::string& name, const std::string& summary) {
    Registry<Interface>::instance().add(name, {summary, [] { return std::make_unique<Implementation>(); }});
  }
};

}  // namespace weft
