// SPDX-License-Identifier: GPL-2.0-only
// Sends and receives without a peer.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "schedule/program/shared_reading.hpp"

namespace weft {

/// Messages of a process group without a peer, by tag and size. What is sent has to be received by another member, so
/// that the peer is certain where only one is left: a rank all of whose sends can go to no other rank, or all of whose
/// receives can come from no other one, has that peer; both are left out then, and so on. Messages of two ranks are
/// matched in the order of their nodes.
class OpenMessages {
 public:
  /// Whose messages: of a rank, within a communicator.
  struct Kind {
    std::uint32_t communicator = 0;
    std::int64_t tag = 0;
    std::int64_t bytes = 0;
    auto operator<=>(const Kind&) const = default;
  };
  void add(std::uint32_t rank, const Kind& kind, bool sends, std::uint64_t count);
  /// Collective: each process has added those of its ranks, and knows all peers then.
  void find_peers(const SharedReading& sharing);
  /// None if it is not certain.
  std::optional<std::uint32_t> peer(std::uint32_t rank, const Kind& kind, bool sends) const;

 private:
  using Counts = std::map<std::uint32_t, std::uint64_t>;  ///< rank -> messages
  struct Open {
    Counts senders, receivers;
  };
  /// The only one of `others` but `rank`, if there is just one.
  static std::optional<std::uint32_t> only_other(std::uint32_t rank, const Counts& others);
  void share(const SharedReading& sharing);
  void pair_up(const Kind& kind, Open open);

  std::map<Kind, Open> open_;
  std::map<Kind, std::map<std::uint32_t, std::uint32_t>> receiver_of_, sender_of_;
};

}  // namespace weft
