// SPDX-License-Identifier: GPL-2.0-only
// The bytes of a trace file one after another, plain or out of gzip, in little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "support/basics/error.hpp"

namespace weft {

/// Reads a file from its beginning to its end. Gzip (RFC 1952) is recognised by its first two bytes; members that
/// follow each other are one text. The file is open only while a block is fetched: there may be more ranks than a
/// process may have open files.
class ByteSource {
 public:
  /// Throws InputError if the file cannot be read.
  explicit ByteSource(const std::string& path);
  /// The content itself; `name` is the name of the file in messages.
  ByteSource(const std::string& name, std::string content);
  ~ByteSource();
  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;

  static constexpr int end = -1;
  /// The next byte, or `end`. Throws InputError for damaged gzip.
  int get() { return at_ < filled_ || fill() ? static_cast<unsigned char>(block_[at_++]) : end; }
  /// What get() will give after `ahead` further bytes, at most 63; nothing is taken.
  int peek(std::size_t ahead = 0);
  /// Appends `count` bytes to `to`; fewer if the file ends before.
  void read(std::string& to, std::size_t count);
  /// Goes on at this byte, which has not been taken yet. Gzip has to be read up to there.
  void skip_to(std::uint64_t byte);
  /// Bytes taken so far, counted after decompression.
  std::uint64_t taken() const { return before_ + at_; }
  const std::string& name() const { return name_; }
  /// "FILE: byte 17: MESSAGE".
  InputError error(const std::string& message) const;

 private:
  struct Inflater;
  bool fill();
  std::size_t fetch(char* to, std::size_t max);
  std::size_t decode(char* to, std::size_t max);

  std::string name_;
  std::shared_ptr<const std::string> content_;  // instead of a file
  std::uint64_t fetched_ = 0;                   // bytes of the file
  std::unique_ptr<Inflater> inflater_;          // of a gzip file
  bool begun_ = false;
  std::string block_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t before_ = 0;  // bytes before this block
};

}  // namespace weft
