// SPDX-License-Identifier: GPL-2.0-only
#include "transport/messages/message_parts.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

// A network without packets gives the time of the message without any others, and the times for which its queue pair
// and its NIC had others to send.
TimeParts parts_without_packets(const Message& message, Time delivered) {
  TimeParts parts;
  Time rest = delivered - message.issued;
  const auto take = [&](TimePart part, Time time) {
    const Time taken = std::clamp(time, Time(), rest);
    parts[part] = taken.ps();
    rest -= taken;
  };
  take(TimePart::transfer, message.ideal);
  take(TimePart::ahead, message.ahead);
  take(TimePart::nic, message.at_host.nic);
  parts[TimePart::queueing] = rest.ps();
  return parts;
}

}  // namespace

TimeParts parts_of(const Message& message, Time delivered) {
  if (message.last_sent == Message::not_sent) return parts_without_packets(message, delivered);
  TimeParts parts;
  const SendTimes& at_host = message.at_host;
  parts[TimePart::ahead] = message.ahead.ps();
  parts[TimePart::window] = at_host.window.ps();
  parts[TimePart::pacing] = at_host.pacing.ps();
  parts[TimePart::paused] = (at_host.paused + message.paused_in_network).ps();
  parts[TimePart::retransmission] = at_host.repeated.ps();
  parts[TimePart::nic] = (message.last_sent - message.issued - message.ahead - at_host.sent - at_host.window -
                          at_host.pacing - at_host.paused - at_host.repeated)
                             .ps();
  const Time arrived = message.arrived > Time() ? message.arrived : delivered;
  // The message waits behind its own packets at a link that is slower than the host's, also on an idle network.
  const Time on_its_way = at_host.sent + arrived - message.last_sent - message.waited;
  const Time waited = message.waited - message.paused_in_network;
  // Slower links make what is ideal longer, and by no more than this.
  const Time longer = message.slower + std::max(at_host.slowed, message.slower_before);
  const Time behind_itself = std::clamp(message.ideal + longer - on_its_way, Time(), std::max(waited, Time()));
  const Time slowed = std::clamp(on_its_way + behind_itself - message.ideal, Time(), longer);
  parts[TimePart::slowed] = slowed.ps();
  parts[TimePart::transfer] = (on_its_way + behind_itself - slowed).ps();
  parts[TimePart::queueing] = (waited - behind_itself).ps();
  parts[message.repaired != 0 ? TimePart::retransmission : TimePart::reordering] += (delivered - arrived).ps();
  WEFT_EXPECT(*std::min_element(parts.begin(), parts.end()) >= 0, "message {} from {} to {} ps has a part below 0",
              message.id, message.issued.ps(), delivered.ps());
  return parts;
}

}  // namespace weft
