// SPDX-License-Identifier: GPL-2.0-only
// Input that the processes of a run read together: each reads a part, and sends the others what they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

class SharedReading {
 public:
  using Bytes = std::vector<std::byte>;
  virtual ~SharedReading() = default;
  virtual std::uint32_t processes() const = 0;
  virtual std::uint32_t process() const = 0;
  /// Collective: gives parts[p] to process p. Returns the parts for this process, in the order of the senders,
  /// including its own. Throws if a process has failed since the last exchange.
  virtual std::vector<Bytes> exchange(std::vector<Bytes> parts) const = 0;

  /// The same with one part for all.
  std::vector<Bytes> share(const Bytes& part) const { return exchange(std::vector<Bytes>(processes(), part)); }

  /// The items of `count` that belong to a process: they are assigned in blocks.
  struct Block {
    std::uint32_t first = 0, end = 0;
    bool contains(std::uint32_t item) const { return first <= item && item < end; }
  };
  static Block block(std::uint32_t count, std::uint32_t process, std::uint32_t processes) {
    const auto begin = [=](std::uint64_t at) { return static_cast<std::uint32_t>(at * count / processes); };
    return {begin(process), begin(std::uint64_t{process} + 1)};
  }
};

/// A process that reads alone.
class ReadingAlone final : public SharedReading {
 public:
  std::uint32_t processes() const override { return 1; }
  std::uint32_t process() const override { return 0; }
  std::vector<Bytes> exchange(std::vector<Bytes> parts) const override { return parts; }
};

}  // namespace weft
