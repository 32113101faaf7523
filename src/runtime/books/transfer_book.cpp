// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/books/transfer_book.hpp"

#include <algorithm>

namespace weft {

void TransferBook::add(std::int64_t begin, std::int64_t end) {
  if (begin == end) return;
  if (sends_ > 0) {
    transferring_ += end - begin;
    return;
  }
  const bool collective = collectives_ > 0;
  if (!open_.empty() && open_.back().end == begin && open_.back().collective == collective)
    open_.back().end = end;
  else {
    settle();
    open_.push_back({{begin, end}, collective});
  }
}

void TransferBook::end_recv(std::int64_t start, std::int64_t sent) {
  const std::int64_t from = std::max(start, sent);
  for (; !open_.empty() && open_.back().end > from; open_.pop_back()) {
    Span& last = open_.back();
    transferring_ += last.end - std::max(last.begin, from);
    if (last.begin < from) {
      last.end = from;
      break;
    }
  }
  recvs_.erase(recvs_.find(start));
  settle();
}

// Spans before all recvs in flight belong to none of their messages.
void TransferBook::settle() {
  auto span = open_.begin();
  for (; span != open_.end() && (recvs_.empty() || span->end <= *recvs_.begin()); ++span)
    if (span->collective) kept_.push_back(*span);
  open_.erase(open_.begin(), span);
}

std::vector<TimeSpan> TransferBook::undecided() const {
  std::vector<TimeSpan> spans = kept_;
  for (const Span& span : open_)
    if (span.collective) spans.push_back(span);
  return spans;
}

}  // namespace weft
