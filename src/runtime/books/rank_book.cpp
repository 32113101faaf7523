// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/rank_book.hpp"

namespace weft {

void RankBook::add_to(RankRecord& record, std::int64_t span) const {
  const bool computes = works(Worker::device), communicates = communicating_ > 0;
  if (computes) record.compute += span;
  if (communicates) record.communication += span;
  if (exposed()) record.exposed += span;
  if (!works(Worker::host)) return;
  record.host += span;
  if (!computes && !communicates) record.parts[TimePart::host] += span;
}

void RankBook::account(Time now) {
  const std::int64_t span = (now - last_change_).ps();
  last_change_ = now;
  add_to(record_, span);
  if (!exposed()) return;
  unexplained_.pass(span);
  transfers_.add((now - Time::from_ps(span)).ps(), now.ps());
  if (transfers_.keeps_many())
    for (const TimeSpan& kept : transfers_.take_kept()) undecided_.add({record_.rank, kept.begin, kept.end});
}

void RankBook::begin_communication(Operation::Kind kind, Time start) {
  ++communicating_;
  switch (kind) {
    case Operation::Kind::send:
      return transfers_.start_send();
    case Operation::Kind::recv:
      return transfers_.start_recv(start.ps());
    default:
      return transfers_.start_collective();
  }
}

void RankBook::end_communication(Operation::Kind kind, Time start, Time sent) {
  --communicating_;
  switch (kind) {
    case Operation::Kind::send:
      return transfers_.end_send();
    case Operation::Kind::recv:
      return transfers_.end_recv(start.ps(), sent.ps());
    default:
      return transfers_.end_collective();
  }
}

RankTransfers RankBook::transfers(Time end) const {
  TransferBook book = transfers_;
  if (exposed()) book.add(last_change_.ps(), end.ps());
  return {record_.rank, book.transferring(), book.undecided(), {}};
}

RankRecord RankBook::record(Time end) const {
  RankRecord result = record_;
  add_to(result, (end - last_change_).ps());  // open operations count until the end
  result.idle = end.ps() - result.compute - result.exposed;
  result.under_way = works(Worker::device) || communicating_ > 0;
  if (!explains_) return result;
  result.parts[TimePart::compute] = result.compute;
  result.parts[TimePart::idle] = result.idle - result.parts[TimePart::host];
  // The reasons of open waits are not known yet.
  result.parts[TimePart::peers] += end.ps() - result.parts.total();
  return result;
}

}  // namespace weft
