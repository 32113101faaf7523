// SPDX-License-Identifier: GPL-2.0-only
// Whether the sends and recvs of a trace that is only passed by agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "schedule/program/shared_reading.hpp"
#include "support/basics/random.hpp"
#include "workloads/reading/packed.hpp"

namespace weft {

/// Of each (source, destination, tag): how many messages are sent and received, a hash of their sizes in order, and the
/// largest sent and the smallest received.
class MessageLanes {
 public:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  ///< source, destination, tag
  struct Lane {
    std::uint64_t sends = 0, recvs = 0;
    std::uint64_t sent = 0, received = 0;
    std::int64_t largest_sent = 0, smallest_received = std::numeric_limits<std::int64_t>::max();

    bool differs() const { return sends != recvs || sent != received; }
    /// Each recv is certain to have room for its message.
    bool has_room() const { return sends == recvs && (sent == received || largest_sent <= smallest_received); }
  };
  void send(const Key& key, std::int64_t bytes) {
    Lane& lane = lanes_[key];
    lane.sent = mix64(lane.sent ^ static_cast<std::uint64_t>(bytes)) + ++lane.sends;
    lane.largest_sent = std::max(lane.largest_sent, bytes);
  }
  void recv(const Key& key, std::int64_t bytes) {
    Lane& lane = lanes_[key];
    lane.received = mix64(lane.received ^ static_cast<std::uint64_t>(bytes)) + ++lane.recvs;
    lane.smallest_received = std::min(lane.smallest_received, bytes);
  }
  /// Each process has passed its block of the ranks: the sends go to whoever has passed their destination, so that each
  /// process has the lanes that end at its ranks. Collective.
  void bring_together(const SharedReading& sharing, std::uint32_t ranks) {
    if (sharing.processes() == 1) return;
    std::vector<Packer> parts(sharing.processes());
    std::map<Key, Lane> ending;
    std::uint32_t owner = 0;
    for (const auto& [key, lane] : lanes_) {
      const std::uint32_t destination = std::get<1>(key);
      if (lane.recvs > 0) ending[key] = {0, lane.recvs, 0, lane.received, 0, lane.smallest_received};
      if (lane.sends == 0) continue;
      while (!SharedReading::block(ranks, owner, sharing.processes()).contains(destination))
        owner = (owner + 1) % sharing.processes();
      parts[owner].put(std::get<0>(key));
      parts[owner].put(destination);
      parts[owner].put(std::get<2>(key));
      parts[owner].put(lane.sends);
      parts[owner].put(lane.sent);
      parts[owner].put(lane.largest_sent);
    }
    std::vector<SharedReading::Bytes> bytes;
    for (const Packer& part : parts) bytes.push_back(part.bytes());
    for (const SharedReading::Bytes& given : sharing.exchange(std::move(bytes)))
      for (Unpacker from(given); !from.at_end();) {
        const auto source = from.take<std::uint32_t>(), destination = from.take<std::uint32_t>(),
                   tag = from.take<std::uint32_t>();
        Lane& lane = ending[{source, destination, tag}];
        lane.sends = from.take<std::uint64_t>();
        lane.sent = from.take<std::uint64_t>();
        lane.largest_sent = from.take<std::int64_t>();
      }
    lanes_ = std::move(ending);
  }

  void for_each(const std::function<void(const Key&, const Lane&)>& look) const {
    for (const auto& [key, lane] : lanes_) look(key, lane);
  }
  /// The first lane whose sends and recvs differ in number or size.
  std::optional<Key> mismatch() const {
    for (const auto& [key, lane] : lanes_)
      if (lane.differs()) return key;
    return std::nullopt;
  }

 private:
  std::map<Key, Lane> lanes_;
};

}  // namespace weft
