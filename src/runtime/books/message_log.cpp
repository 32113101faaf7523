// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/message_log.hpp"

#include "results/tables/fingerprint.hpp"

namespace weft {

void MessageLog::add(const MessageRecord& row) {
  fingerprint_ += weft::fingerprint(row);
  if (selection_.takes(row.id)) rows_.push_back(row);
}

}  // namespace weft
