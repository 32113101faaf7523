// SPDX-License-Identifier: GPL-2.0-only
#include "transport/messages/message_parts.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

// A network that knows no packets says how long the message would take if there were no others, and how long its queue
// pair and its NIC had others to send.
TimeParts parts_without_packets(const Message& message, std::int64_t delivered) {
  TimeParts parts;
  std::int64_t rest = delivered - message.issued;
  const auto take = [&](TimePart part, std::int64_t ps) {
    parts[part] = std::clamp<std::int64_t>(ps, 0, rest);
    rest -= parts[part];
  };
  take(TimePart::transfer, message.ideal);
  take(TimePart::ahead, message.ahead);
  take(TimePart::nic, message.met.nic);
  parts[TimePart::queueing] = rest;
  return parts;
}

}  // namespace

TimeParts parts_of(const Message& message, std::int64_t delivered) {
  if (message.last_sent < 0) return parts_without_packets(message, delivered);
  TimeParts parts;
  const SendTimes& met = message.met;
  parts[TimePart::ahead] = message.ahead;
  parts[TimePart::window] = met.window;
  parts[TimePart::pacing] = met.pacing;
  parts[TimePart::paused] = met.paused + message.paused_in_network;
  parts[TimePart::retransmission] = met.repeated;
  parts[TimePart::nic] = message.last_sent - message.issued - message.ahead - met.sent - met.window - met.pacing -
                         met.paused - met.repeated;
  const std::int64_t arrived = message.arrived > 0 ? message.arrived : delivered;
  // The message waits behind its own packets at a link that is slower than the host's, also on an idle network.
  const std::int64_t on_its_way = met.sent + arrived - message.last_sent - message.waited;
  const std::int64_t waited = message.waited - message.paused_in_network;
  const std::int64_t behind_itself =
      std::clamp<std::int64_t>(message.ideal - on_its_way, 0, std::max<std::int64_t>(waited, 0));
  parts[TimePart::transfer] = on_its_way + behind_itself;
  parts[TimePart::queueing] = waited - behind_itself;
  parts[message.repaired != 0 ? TimePart::retransmission : TimePart::reordering] += delivered - arrived;
  WEFT_EXPECT(*std::min_element(parts.begin(), parts.end()) >= 0, "message {} from {} to {} ps has a part below 0",
              message.id, message.issued, delivered);
  return parts;
}

}  // namespace weft
