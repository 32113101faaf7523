// SPDX-License-Identifier: GPL-2.0-only
// The log of delivered messages: all rows, a sample, or none; and always their fingerprint.
#pragma once

#include <cstdint>
#include <vector>

#include "results/tables/records.hpp"
#include "support/basics/random.hpp"

namespace weft {

/// Which messages get a row. A sample is one in `every` by a hash of the message's id, so that it is the same for every
/// number of MPI ranks and periods in the traffic do not show.
struct MessageSelection {
  std::uint64_t every = 1;  ///< 1: all, 0: none
  bool takes(std::uint64_t id) const { return every == 1 || (every != 0 && mix64(id) % every == 0); }
};

class MessageLog {
 public:
  explicit MessageLog(MessageSelection selection = {}) : selection_(selection) {}
  /// Not inline: the declarations of tables take seconds to compile, and this is called once per message.
  void add(const MessageRecord& row);
  /// Of all messages, also of those without a row.
  std::uint64_t fingerprint() const { return fingerprint_; }
  /// Those since the last forget_rows(), which keeps their memory for the next ones.
  const std::vector<MessageRecord>& rows() const { return rows_; }
  void forget_rows() { rows_.clear(); }

 private:
  MessageSelection selection_;
  std::uint64_t fingerprint_ = 0;
  std::vector<MessageRecord> rows_;
};

}  // namespace weft
