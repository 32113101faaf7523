// SPDX-License-Identifier: GPL-2.0-only
// Times in which a rank computes nothing and communicates: it transfers data, or it waits for other ranks.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace weft {

/// From one time to another, in ps.
struct TimeSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A span of time of one rank.
struct RankSpan {
  std::uint32_t rank = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  auto operator<=>(const RankSpan&) const = default;
};

/// The facts about one rank at the end of a run that need no other rank.
struct RankTransfers {
  std::uint32_t rank = 0;
  std::int64_t transferring = 0;  ///< it computed nothing, and a send, or a message for a recv, was on its way
  /// Else, and a collective was in flight: whether all had come, others know. Those that have not been taken before.
  std::vector<TimeSpan> undecided;
  std::vector<std::pair<std::uint32_t, std::int64_t>> under_way;  ///< collectives that have not ended: call, start
};

/// To be called for all events in the order of time. Memory: what has been kept and not taken yet, and what happens
/// while a recv waits.
class TransferBook {
 public:
  void start_send() { ++sends_; }
  void end_send() { --sends_; }
  void start_collective() { ++collectives_; }
  void end_collective() { --collectives_; }
  void start_recv(std::int64_t now) { recvs_.insert(now); }
  /// `sent`: when its message was handed to the sender's NIC.
  void end_recv(std::int64_t start, std::int64_t sent);
  /// The rank has computed nothing from `begin` to `end`, and communicated.
  void add(std::int64_t begin, std::int64_t end);

  std::int64_t transferring() const { return transferring_; }
  std::vector<TimeSpan> undecided() const;  ///< in order and apart, without those that have been taken

  bool keeps_many() const { return kept_.size() >= 256; }
  /// The entries of undecided() that will not change; all later ones follow them.
  std::vector<TimeSpan> take_kept() { return std::exchange(kept_, {}); }

 private:
  struct Span : TimeSpan {
    bool collective = false;  ///< one was in flight
  };
  void settle();

  std::uint32_t sends_ = 0;
  std::uint32_t collectives_ = 0;
  std::multiset<std::int64_t> recvs_;  // starts of those in flight
  std::int64_t transferring_ = 0;
  std::vector<Span> open_;      // the last one, and what a recv may still turn out to have transferred
  std::vector<TimeSpan> kept_;  // before these; a collective was in flight
};

}  // namespace weft
