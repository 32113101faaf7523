// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/collective/collective_content.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

std::vector<Contribution> shifted(std::vector<Contribution> contributions, std::int64_t by) {
  for (Contribution& contribution : contributions) contribution.offset += by;
  return contributions;
}

// Takes the first `bytes` bytes off a piece.
ContentPiece take(ContentPiece& piece, std::int64_t bytes) {
  ContentPiece head{bytes, piece.contributions};
  piece.contributions = shifted(std::move(piece.contributions), bytes);
  piece.bytes -= bytes;
  return head;
}

std::string describe(const std::vector<Contribution>& contributions) {
  constexpr std::size_t shown = 20;
  std::vector<std::string> words;
  for (const auto& [rank, offset] : contributions) {
    if (words.size() == shown) {
      words.push_back(fmt::format("... {} in all", contributions.size()));
      break;
    }
    words.push_back(fmt::format("{}@{}", rank, offset));
  }
  return fmt::format("{{{}}}", fmt::join(words, " "));
}

}  // namespace

Content take(std::deque<ContentPiece>& content, std::int64_t bytes) {
  Content head;
  while (bytes > 0 && !content.empty()) {
    const std::int64_t part = std::min(bytes, content.front().bytes);
    head.push_back(take(content.front(), part));
    if (content.front().bytes == 0) content.pop_front();
    bytes -= part;
  }
  return head;
}

Content reduced(const Content& a, const Content& b, bool repeats) {
  std::deque<ContentPiece> left(a.begin(), a.end());
  Content sum;
  for (ContentPiece right : b) {
    for (ContentPiece& piece : take(left, right.bytes)) {
      const ContentPiece other = take(right, piece.bytes);
      std::vector<Contribution> both;
      std::merge(piece.contributions.begin(), piece.contributions.end(), other.contributions.begin(),
                 other.contributions.end(), std::back_inserter(both));
      if (repeats) both.erase(std::unique(both.begin(), both.end()), both.end());
      sum.push_back({piece.bytes, std::move(both)});
    }
  }
  return sum;
}

bool Storage::write(std::int64_t begin, const Content& content) {
  bool fresh = true;
  for (const ContentPiece& piece : content) {
    const auto after = pieces_.lower_bound(begin);
    const bool free_after = after == pieces_.end() || after->first >= begin + piece.bytes;
    const bool free_before =
        after == pieces_.begin() || std::prev(after)->first + std::prev(after)->second.bytes <= begin;
    if (free_after && free_before) {
      pieces_.emplace_hint(after, begin, piece);
      written_ += piece.bytes;
    } else {
      fresh = false;
    }
    begin += piece.bytes;
  }
  return fresh;
}

void Storage::overwrite(std::int64_t begin, const Content& content) {
  for (const ContentPiece& piece : content) {
    pieces_.erase(split(begin), split(begin + piece.bytes));
    pieces_.emplace(begin, piece);
    begin += piece.bytes;
  }
}

std::optional<Content> Storage::read(std::int64_t begin, std::int64_t bytes) {
  const std::int64_t end = begin + bytes;
  split(end);
  Content content;
  for (auto piece = split(begin); begin < end; ++piece) {
    if (piece == pieces_.end() || piece->first != begin) return std::nullopt;
    content.push_back(piece->second);
    begin += piece->second.bytes;
  }
  return content;
}

std::string Storage::compare(const Expected& expected) const {
  const std::int64_t end = expected.begin + expected.bytes;
  for (std::int64_t at = expected.begin; at < end;) {
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return fmt::format("output byte {} is never written", at);
    --piece;
    const auto& [begin, found] = *piece;
    if (begin + found.bytes <= at) return fmt::format("output byte {} is never written", at);
    const std::vector<Contribution> is = shifted(found.contributions, at - begin);
    const std::vector<Contribution> should = shifted(expected.contributions, at - expected.begin);
    if (is != should)
      return fmt::format("output byte {} consists of {} (rank@byte of its input), and should of {}", at, describe(is),
                         describe(should));
    at = begin + found.bytes;
  }
  return {};
}

// The first piece at or after `at`, to which no piece from before reaches any more.
std::map<std::int64_t, ContentPiece>::iterator Storage::split(std::int64_t at) {
  const auto after = pieces_.lower_bound(at);
  if (after == pieces_.begin()) return after;
  const auto before = std::prev(after);
  const std::int64_t reach = before->first + before->second.bytes;
  if (reach <= at) return after;
  ContentPiece tail = before->second;
  before->second = take(tail, at - before->first);
  return pieces_.emplace_hint(after, at, std::move(tail));
}

}  // namespace weft
