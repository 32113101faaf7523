// SPDX-License-Identifier: GPL-2.0-only
// Whether the sends and recvs of a trace that is only passed by agree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "support/random.hpp"

namespace weft {

/// Of each (source, destination, tag): how many messages are sent and received, and a hash of their sizes in order.
class MessageLanes {
 public:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  ///< source, destination, tag
  struct Lane {
    std::uint64_t sends = 0, recvs = 0;
    std::uint64_t sent = 0, received = 0;
  };
  void send(const Key& key, std::int64_t bytes) {
    Lane& lane = lanes_[key];
    lane.sent = mix64(lane.sent ^ static_cast<std::uint64_t>(bytes)) + ++lane.sends;
  }
  void recv(const Key& key, std::int64_t bytes) {
    Lane& lane = lanes_[key];
    lane.received = mix64(lane.received ^ static_cast<std::uint64_t>(bytes)) + ++lane.recvs;
  }
  /// The first lane whose sends and recvs differ in number or size.
  std::optional<Key> mismatch() const {
    for (const auto& [key, lane] : lanes_)
      if (lane.sends != lane.recvs || lane.sent != lane.received) return key;
    return std::nullopt;
  }

 private:
  std::map<Key, Lane> lanes_;
};

}  // namespace weft
