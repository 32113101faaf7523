// SPDX-License-Identifier: GPL-2.0-only
// What bytes consist of while a collective is replayed: contributions of ranks, by intervals.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A byte of the input of a rank (communicator index) that went into a value.
struct Contribution {
  std::uint32_t rank = 0;
  std::int64_t offset = 0;
  friend auto operator<=>(const Contribution&, const Contribution&) = default;
};

/// Consecutive bytes with the same contributing ranks; the offsets are those of the first byte and grow with it.
/// Sorted; a contribution that was added twice stands twice.
struct ContentPiece {
  std::int64_t bytes = 0;
  std::vector<Contribution> contributions;
};
using Content = std::vector<ContentPiece>;

/// Takes the first `bytes` bytes off a content.
Content take(std::deque<ContentPiece>& content, std::int64_t bytes);

/// Sum of two contents of equal length; for a barrier it is enough to have heard of a rank, once or more often.
Content reduced(const Content& a, const Content& b, bool repeats);

/// A range of a result and what its first byte must consist of.
struct Expected {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  std::vector<Contribution> contributions;
};

/// What has been stored in a buffer of one rank: pieces by their first byte, which never overlap.
class Storage {
 public:
  /// False if some byte has been written before (the first writing stays).
  bool write(std::int64_t begin, const Content& content);
  void overwrite(std::int64_t begin, const Content& content);
  /// Nothing if not all of these bytes have been written.
  std::optional<Content> read(std::int64_t begin, std::int64_t bytes);
  std::int64_t written() const { return written_; }
  /// What is wrong with the bytes of one result, or an empty text.
  std::string compare(const Expected& expected) const;

 private:
  std::map<std::int64_t, ContentPiece>::iterator split(std::int64_t at);

  std::map<std::int64_t, ContentPiece> pieces_;
  std::int64_t written_ = 0;
};

}  // namespace weft
