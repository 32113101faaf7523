// SPDX-License-Identifier: GPL-2.0-only
// Which recv of a rank takes which message.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "schedule/program/program.hpp"
#include "transport/messages/message.hpp"

namespace weft {

/// Of one (source, tag), the n-th recv takes the message of the n-th send, both in program order, however queue pairs
/// and dependencies let them overtake each other. If recvs may take messages of any rank or tag, a message goes to the
/// first matching recv that has started, and a recv takes the first matching message that has arrived.
class MessageMatching {
 public:
  /// `any`: recvs may take messages of any rank or tag.
  explicit MessageMatching(bool any) {
    if (any) any_ = std::make_unique<AnyMatching>();
  }
  bool any() const { return any_ != nullptr; }

  /// Number of a send among those to its peer with its tag.
  std::uint32_t number_send(const Operation& send) { return sends_[key(send.peer.value(), send.tag)]++; }
  /// Of a recv among those of its peer and tag; 0 if recvs may take messages of any.
  std::uint32_t number_recv(const Operation& recv) {
    return any_ ? 0 : lanes_[key(recv.peer.value(), recv.tag)].recvs++;
  }

  struct Arrived {
    Bytes bytes;
    std::uint64_t message = 0;
  };
  /// A recv starts, with its number: returns the message that it takes, or nothing if no such message has arrived yet.
  std::optional<Arrived> post(const Operation& recv, std::uint32_t number);

  /// A message, or one of its parts, has arrived: returns the bytes of the message if it is complete now.
  std::optional<Bytes> gather(const Message& message);
  /// A complete message has arrived: returns the recv that takes it, if it has started. Not if recvs may take messages
  /// of any.
  std::optional<std::uint64_t> arrive(const Message& message, Bytes bytes);
  /// The same if they may: calls match(recv, message) for each pair, of this message and of those of its (source, tag)
  /// that have waited for it.
  template <class Match>
  void arrive_any(const Message& message, Bytes bytes, const Match& match) {
    const std::uint64_t lane = key(message.source_rank, message.tag);
    auto& early = lanes_[lane].arrived;
    early.emplace(message.sequence, Arrived{bytes, message.id});
    std::uint32_t& next = any_->taken[lane];
    for (auto at = early.begin(); at != early.end() && at->first == next; at = early.erase(at), ++next)
      if (const auto recv = deliver_any({message.source_rank, message.tag, at->second}))
        match(*recv, at->second.message);
  }

  /// True if all messages that have arrived were taken.
  bool empty() const;

 private:
  struct Lane {
    std::uint32_t recvs = 0;                        // admitted so far
    std::map<std::uint32_t, Arrived> arrived;       // messages without a recv, by number
    std::map<std::uint32_t, std::uint64_t> posted;  // recv operations without a message, by number
    struct Part {
      Bytes bytes;
      std::uint32_t count = 0;
    };
    std::map<std::uint32_t, Part> parts;  // what has come of messages of several, by number
  };
  struct AnyMatching {
    struct Envelope {
      std::uint32_t source = 0, tag = 0;
      Arrived message;
    };
    struct Posted {
      std::uint64_t recv = 0;
      std::uint32_t source = 0, tag = 0;
      bool any_source = false, any_tag = false;
      bool suits(const Envelope& one) const {
        return (any_source || source == one.source) && (any_tag || tag == one.tag);
      }
    };
    std::list<Envelope> arrived;                             // that no recv has taken, in the order in which they came
    std::list<Posted> posted;                                // recvs without a message, in the order of their start
    std::unordered_map<std::uint64_t, std::uint32_t> taken;  // (source, tag) -> messages that have come in order
  };
  static constexpr std::uint64_t key(std::uint32_t rank, std::uint32_t tag) {
    return static_cast<std::uint64_t>(rank) << 32 | tag;
  }
  std::optional<Arrived> post_any(const Operation& recv);
  std::optional<std::uint64_t> deliver_any(const AnyMatching::Envelope& envelope);

  std::unordered_map<std::uint64_t, Lane> lanes_;           // (source, tag); looked up, never iterated in order
  std::unordered_map<std::uint64_t, std::uint32_t> sends_;  // (peer, tag) -> sends admitted so far
  std::unique_ptr<AnyMatching> any_;                        // instead of the recvs in lanes_
};

}  // namespace weft
