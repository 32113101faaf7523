// SPDX-License-Identifier: GPL-2.0-only
// Records of the executors of a process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "results/tables/collective_log.hpp"
#include "results/tables/records.hpp"
#include "runtime/books/message_log.hpp"
#include "runtime/books/transfer_book.hpp"
#include "schedule/program/packed_operation.hpp"
#include "support/basics/time_parts.hpp"
#include "support/system/sorted_records.hpp"
#include "transport/messages/message.hpp"
#include "units/time.hpp"

namespace weft {

/// Whose operations have a row in /operations.
struct OperationSelection {
  bool any = false;
  std::vector<std::uint32_t> ranks;  ///< ascending; empty: all
  bool keeps(std::uint32_t rank) const {
    return any && (ranks.empty() || std::binary_search(ranks.begin(), ranks.end(), rank));
  }
};

struct RunRecords {
  MessageLog messages;
  std::uint64_t messages_delivered = 0;
  std::int64_t bytes_delivered = 0;
  CollectiveLog collectives;
  SortedRecords<RankSpan> undecided;  ///< TransferBook::take_kept() of all ranks, so far
  std::vector<OperationRecord> operations;
  std::vector<DependencyRecord> dependencies;  ///< of these
  OperationSelection keep_operations;
  SharedTexts labels;   ///< of operations that wait
  bool explain = true;  ///< keep what times were spent on
  bool causes = true;   ///< and which message had to come before which

  /// A message was delivered: its row. Gives what its time was spent on, if that is kept.
  TimeParts add_message(Time now, const Message& message);
};

}  // namespace weft
