// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/run_records.hpp"

#include "transport/messages/message_parts.hpp"

namespace weft {

TimeParts RunRecords::add_message(Time now, const Message& message) {
  MessageRecord row;
  row.id = message.id;
  row.source = message.source_rank;
  row.destination = message.destination_rank;
  row.bytes = message.bytes.count();
  row.issued = message.issued.ps();
  row.delivered = now.ps();
  row.ideal = message.ideal.ps();
  row.packets = message.packets;
  row.collective = message.collective;
  row.tag = message.tag;
  row.queueing = message.waited.ps();
  row.paused = message.paused.ps();
  row.retransmission = message.retransmission.ps();
  row.cause = message.cause;
  for (std::size_t i = 0; i < message.longest_waits.size(); ++i) {
    row.slowest_links[i] = message.longest_waits[i].link;
    row.slowest_waits[i] = message.longest_waits[i].wait.ps();
  }
  if (explain) row.parts = parts_of(message, now);
  messages.add(row);
  ++messages_delivered;
  bytes_delivered += message.bytes.count();
  return row.parts;
}

}  // namespace weft
