// SPDX-License-Identifier: GPL-2.0-only
#include "transport/ideal_time.hpp"

#include <algorithm>

#include "transport/message.hpp"

namespace weft {

Time ideal_message_time(const std::vector<PathLink>& path, Bytes message, Bytes mtu, Bytes overhead) {
  const auto packets = static_cast<std::int64_t>(packet_count(message.count(), mtu.count()));
  const Bytes last = message - (packets - 1) * mtu + overhead;
  const Bytes full = mtu + overhead;
  Time first_full;  // first full packet at the output of link i
  Time slowest;     // largest serialisation of a full packet so far
  Time last_out;    // last packet at the output of link i
  for (const PathLink& link : path) {
    const Time serialization = serialization_time(full, link.rate);
    slowest = std::max(slowest, serialization);
    first_full += serialization;
    // The last full packet (number packets - 1) leaves link i here; nothing if there is only one packet.
    const Time before_last = packets > 1 ? first_full + (packets - 2) * slowest : Time();
    last_out = std::max(last_out, before_last) + serialization_time(last, link.rate);
    first_full += link.delay;
    last_out += link.delay;
  }
  return last_out;
}

}  // namespace weft
