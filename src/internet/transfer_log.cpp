// SPDX-License-Identifier: GPL-2.0-only
#include "internet/transfer_log.hpp"

#include <utility>

namespace weft {
namespace {

constexpr std::uint32_t no_sample = 0xffffffffU;

}  // namespace

std::uint32_t TransferLog::add(TransferRecord row, bool receiver_here) {
  row.transfer = size();
  has_endless_ = has_endless_ || row.size < 0;
  if (receiver_here && row.size >= 0) ++unfinished_;
  rows_.push_back(std::move(row));
  last_sample_.push_back(no_sample);
  return rows_.back().transfer;
}

void TransferLog::gave_up(std::uint32_t transfer) {
  if (rows_[transfer].size >= 0) given_up_.push_back(transfer);
}

bool TransferLog::unfinished(ProcessGroup& group) {
  const std::uint64_t unfinished = group.sum(unfinished_);
  const std::uint64_t given_up = group.sum(given_up_.size());
  if (unfinished == 0 || given_up == 0) return unfinished > 0;
  if (unfinished == known_.unfinished && given_up == known_.given_up) return known_.any;
  // A transfer may have been given up although all of it has arrived, if the last ACKs were lost.
  std::vector<std::uint64_t> ended(rows_.size());
  for (const std::uint32_t transfer : given_up_) ended[transfer] = 1;
  bool any = false;
  for (const TransferRecord& row : rows_) {
    const bool has_come = group.sum(static_cast<std::uint64_t>(row.bytes)) == static_cast<std::uint64_t>(row.size);
    const bool was_given_up = group.sum(ended[row.transfer]) > 0;
    any = any || (row.size >= 0 && !has_come && !was_given_up);
  }
  known_ = {unfinished, given_up, any};
  return any;
}

void TransferLog::received(std::uint32_t transfer, Time now, std::int64_t bytes) {
  TransferRecord& row = rows_[transfer];
  if (row.bytes == 0) row.first = now.ps();
  row.bytes += bytes;
  row.last = now.ps();
  if (row.size >= 0 && row.bytes == row.size) --unfinished_;
  if (sampling_ == Time()) return;
  const auto interval = static_cast<std::uint32_t>(now.ps() / sampling_.ps());
  std::uint32_t& last = last_sample_[transfer];
  if (last == no_sample || samples_[last].interval != interval) {
    last = static_cast<std::uint32_t>(samples_.size());
    samples_.push_back({transfer, interval, (interval + std::int64_t{1}) * sampling_.ps(), 0});
  }
  samples_[last].bytes += bytes;
}

// Values that a process does not see are 0 there.
std::vector<TransferRecord> TransferLog::whole_rows(ProcessGroup& group) const {
  std::vector<TransferRecord> rows = rows_;
  for (TransferRecord& row : rows)
    for (std::int64_t* value : {&row.connected, &row.first, &row.last, &row.bytes, &row.repeated})
      *value = static_cast<std::int64_t>(group.sum(static_cast<std::uint64_t>(*value)));
  return rows;
}

}  // namespace weft
