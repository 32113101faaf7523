// SPDX-License-Identifier: GPL-2.0-only
// Sends and receives without a peer.
#include "workloads/chakra/open_messages.hpp"

#include <utility>

#include "workloads/reading/packed.hpp"

namespace weft {

void OpenMessages::add(std::uint32_t rank, const Kind& kind, bool sends, std::uint64_t count) {
  Open& open = open_[kind];
  (sends ? open.senders : open.receivers)[rank] += count;
}

void OpenMessages::share(const SharedReading& sharing) {
  if (sharing.processes() == 1) return;
  Packer mine;
  for (const auto& [kind, open] : std::exchange(open_, {}))
    for (const bool sends : {true, false})
      for (const auto& [rank, count] : sends ? open.senders : open.receivers) {
        mine.put(kind);
        mine.put(sends);
        mine.put(rank);
        mine.put(count);
      }
  for (const SharedReading::Bytes& given : sharing.share(mine.bytes()))
    for (Unpacker from(given); !from.at_end();) {
      const auto kind = from.take<Kind>();
      const auto sends = from.take<bool>();
      const auto rank = from.take<std::uint32_t>();
      add(rank, kind, sends, from.take<std::uint64_t>());
    }
}

std::optional<std::uint32_t> OpenMessages::only_other(std::uint32_t rank, const Counts& others) {
  std::optional<std::uint32_t> only;
  for (const auto& [other, count] : others) {
    if (other == rank) continue;
    if (only) return std::nullopt;
    only = other;
  }
  return only;
}

void OpenMessages::pair_up(const Kind& kind, Open open) {
  const auto settle = [&](std::uint32_t sender, std::uint32_t receiver) {
    receiver_of_[kind][sender] = receiver;
    sender_of_[kind][receiver] = sender;
    open.senders.erase(sender);
    open.receivers.erase(receiver);
  };
  // If the two ranks' numbers of messages differ, some of a rank's messages are from or for a third rank.
  for (bool more = true; std::exchange(more, false);) {
    for (const auto& [sender, count] : open.senders)
      if (const auto receiver = only_other(sender, open.receivers); receiver && open.receivers[*receiver] == count) {
        settle(sender, *receiver);
        more = true;
        break;
      }
    if (more) continue;
    for (const auto& [receiver, count] : open.receivers)
      if (const auto sender = only_other(receiver, open.senders); sender && open.senders[*sender] == count) {
        settle(*sender, receiver);
        more = true;
        break;
      }
  }
}

void OpenMessages::find_peers(const SharedReading& sharing) {
  share(sharing);
  for (auto& [kind, open] : std::exchange(open_, {})) pair_up(kind, std::move(open));
}

std::optional<std::uint32_t> OpenMessages::peer(std::uint32_t rank, const Kind& kind, bool sends) const {
  const auto& of_kind = sends ? receiver_of_ : sender_of_;
  const auto found = of_kind.find(kind);
  if (found == of_kind.end()) return std::nullopt;
  const auto at = found->second.find(rank);
  return at == found->second.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace weft
