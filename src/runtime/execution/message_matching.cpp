// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/execution/message_matching.hpp"

#include <algorithm>

namespace weft {

std::optional<MessageMatching::Arrived> MessageMatching::post(const Operation& recv, std::uint32_t number) {
  if (any_) return post_any(recv);
  Lane& lane = lanes_[key(recv.peer.value(), recv.tag)];
  const auto found = lane.arrived.find(number);
  if (found == lane.arrived.end()) {
    lane.posted.emplace(number, recv.id);
    return std::nullopt;
  }
  const Arrived arrived = found->second;
  lane.arrived.erase(found);
  return arrived;
}

std::optional<MessageMatching::Arrived> MessageMatching::post_any(const Operation& recv) {
  const AnyMatching::Posted posted{recv.id, recv.peer.value(), recv.tag, recv.any_source, recv.any_tag};
  const auto found = std::find_if(any_->arrived.begin(), any_->arrived.end(),
                                  [&](const AnyMatching::Envelope& one) { return posted.suits(one); });
  if (found == any_->arrived.end()) {
    any_->posted.push_back(posted);
    return std::nullopt;
  }
  const Arrived arrived = found->message;
  any_->arrived.erase(found);
  return arrived;
}

std::optional<Bytes> MessageMatching::gather(const Message& message) {
  if (message.parts <= 1) return message.bytes;
  Lane& lane = lanes_[key(message.source_rank, message.tag)];
  Lane::Part& part = lane.parts[message.sequence];
  part.bytes += message.bytes;
  if (++part.count < message.parts) return std::nullopt;
  const Bytes bytes = part.bytes;
  lane.parts.erase(message.sequence);
  return bytes;
}

std::optional<std::uint64_t> MessageMatching::arrive(const Message& message, Bytes bytes) {
  Lane& lane = lanes_[key(message.source_rank, message.tag)];
  const auto posted = lane.posted.find(message.sequence);
  if (posted == lane.posted.end()) {
    lane.arrived.emplace(message.sequence, Arrived{bytes, message.id});
    return std::nullopt;
  }
  const std::uint64_t recv = posted->second;
  lane.posted.erase(posted);
  return recv;
}

std::optional<std::uint64_t> MessageMatching::deliver_any(const AnyMatching::Envelope& envelope) {
  const auto found = std::find_if(any_->posted.begin(), any_->posted.end(),
                                  [&](const AnyMatching::Posted& one) { return one.suits(envelope); });
  if (found == any_->posted.end()) {
    any_->arrived.push_back(envelope);
    return std::nullopt;
  }
  const std::uint64_t recv = found->recv;
  any_->posted.erase(found);
  return recv;
}

bool MessageMatching::empty() const {
  for (const auto& [key, lane] : lanes_)
    if (!lane.arrived.empty()) return false;
  return !any_ || any_->arrived.empty();
}

}  // namespace weft
