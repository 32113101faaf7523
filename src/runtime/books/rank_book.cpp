// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/rank_book.hpp"

namespace weft {

void RankBook::account(Time now) {
  const std::int64_t span = (now - last_change_).ps();
  last_change_ = now;
  if (computing_ > 0) record_.compute += span;
  if (communicating_ > 0) record_.communication += span;
  if (communicating_ == 0 || computing_ > 0) return;
  record_.exposed += span;
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
  if (communicating_ > 0 && computing_ == 0) book.add(last_change_.ps(), end.ps());
  return {record_.rank, book.transferring(), book.undecided(), {}};
}

RankRecord RankBook::record(Time end) const {
  RankRecord result = record_;
  const std::int64_t open = (end - last_change_).ps();  // open operations count until the end
  if (computing_ > 0) result.compute += open;
  if (communicating_ > 0) result.communication += open;
  if (communicating_ > 0 && computing_ == 0) result.exposed += open;
  result.idle = end.ps() - result.compute - result.exposed;
  result.under_way = computing_ > 0 || communicating_ > 0;
  if (!explains_) return result;
  result.parts[TimePart::compute] = result.compute;
  result.parts[TimePart::idle] = result.idle;
  // The reasons of open waits are not known yet.
  result.parts[TimePart::peers] += end.ps() - result.parts.total();
  return result;
}

}  // namespace weft
