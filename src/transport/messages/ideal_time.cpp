// SPDX-License-Identifier: GPL-2.0-only
#include "transport/messages/ideal_time.hpp"

#include <algorithm>

#include "transport/messages/message.hpp"

namespace weft {
namespace {

Bytes wire(const PathLink& link, Bytes payload, Bytes overhead) {
  if (link.frame_payload == 0) return payload + overhead;
  const std::int64_t frames = (payload.count() + link.frame_payload - 1) / link.frame_payload;
  return payload + Bytes(std::max<std::int64_t>(1, frames) * link.frame_overhead);
}

Time time_on(const PathLink& link, Bytes payload, Bytes overhead) {
  return serialization_time(wire(link, payload, overhead), link.rate);
}

}  // namespace

Time ideal_message_time(const std::vector<PathLink>& path, Bytes message, Bytes mtu, Bytes overhead) {
  const auto packets = static_cast<std::int64_t>(packet_count(message, mtu));
  const Bytes last = message - (packets - 1) * mtu;
  const auto onward = [](const PathLink& link, Time serialization) {
    return (link.head > Time() ? std::min(link.head, serialization) : serialization) + link.delay;
  };
  Time first_full;  // when the first full packet may begin on the link
  Time last_begin;  // the same of the last packet
  Time slowest;     // largest serialisation of a full packet so far
  Time arrival;
  for (const PathLink& link : path) {
    const Time full_time = time_on(link, mtu, overhead);
    const Time last_time = time_on(link, last, overhead);
    slowest = std::max(slowest, full_time);
    // The last full packet is number packets - 2.
    if (packets > 1)
      last_begin = std::max(last_begin, bounded_sum(first_full + full_time, bounded_product(packets - 2, slowest)));
    arrival = bounded_sum(last_begin, last_time + link.delay);
    first_full += onward(link, full_time);
    last_begin = bounded_sum(last_begin, onward(link, last_time));
  }
  return arrival;
}

SlowestLink::SlowestLink(const std::vector<PathLink>& path, Bytes mtu, Bytes overhead) : full_(mtu) {
  const Time slowest = of_path(path, mtu, overhead);
  if (slowest > time_on(path.front(), mtu, overhead)) full_time_ = slowest;
}

Time SlowestLink::of_path(const std::vector<PathLink>& path, Bytes payload, Bytes overhead) {
  Time slowest;
  for (const PathLink& link : path) slowest = std::max(slowest, time_on(link, payload, overhead));
  return slowest;
}

}  // namespace weft
