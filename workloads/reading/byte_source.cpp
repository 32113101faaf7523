// SPDX-License-Identifier: GPL-2.0-only
// The bytes of a trace file one after another, plain or out of gzip, in little memory.
#include "workloads/reading/byte_source.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <zlib.h>

#include "support/documents/text_file.hpp"

namespace weft {
namespace {

constexpr std::size_t read_block_bytes = 16384;
constexpr int gzip_only = 16 + MAX_WBITS;  // inflateInit2: a gzip header, and nothing else

}  // namespace

/// zlib's state, and the compressed bytes that it has not yet taken.
struct ByteSource::Inflater {
  z_stream stream{};
  std::array<char, read_block_bytes> input{};
  bool between_members = false;
  Inflater() {
    if (inflateInit2(&stream, gzip_only) != Z_OK) throw EnvironmentError("zlib cannot begin: no memory");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

ByteSource::ByteSource(const std::string& path) : name_(path) {
  if (const std::string reason = why_closed(path); !reason.empty()) throw InputError({path, 0}, reason);
}
ByteSource::ByteSource(const std::string& name, std::string content)
    : name_(name), content_(std::make_shared<const std::string>(std::move(content))) {}
ByteSource::~ByteSource() = default;
ByteSource::ByteSource(ByteSource&& other) noexcept = default;

InputError ByteSource::error(const std::string& message) const {
  return InputError({name_, 0}, fmt::format("byte {}: {}", taken(), message));
}

// Raw bytes of the file.
std::size_t ByteSource::fetch(char* to, std::size_t max) {
  std::size_t count = 0;
  if (content_) {
    const std::uint64_t begin = std::min<std::uint64_t>(fetched_, content_->size());
    count = std::min<std::size_t>(max, content_->size() - begin);
    std::memcpy(to, content_->data() + begin, count);
  } else {
    std::ifstream file(name_, std::ios::binary);
    if (!file.seekg(static_cast<std::streamoff>(fetched_)))
      throw InputError({name_, 0}, "the file cannot be read any more");
    file.read(to, static_cast<std::streamsize>(max));
    if (file.bad()) throw InputError({name_, 0}, "the file cannot be read");
    count = static_cast<std::size_t>(file.gcount());
  }
  fetched_ += count;
  return count;
}

std::size_t ByteSource::decode(char* to, std::size_t max) {
  Inflater& inflater = *inflater_;
  z_stream& stream = inflater.stream;
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(max);
  while (stream.avail_out == max) {
    if (stream.avail_in == 0) {
      stream.next_in = reinterpret_cast<Bytef*>(inflater.input.data());
      stream.avail_in = static_cast<uInt>(fetch(inflater.input.data(), inflater.input.size()));
      if (stream.avail_in == 0 && inflater.between_members) return 0;
      if (stream.avail_in == 0) throw error("the gzip file ends in the middle; it has been cut off");
    }
    if (inflater.between_members && inflateReset(&stream) != Z_OK) throw error("zlib cannot go on");
    inflater.between_members = false;
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      inflater.between_members = true;
    else if (status != Z_OK && status != Z_BUF_ERROR)
      throw error(fmt::format("the gzip file is damaged ({})", stream.msg != nullptr ? stream.msg : "no gzip"));
  }
  return max - stream.avail_out;
}

bool ByteSource::fill() {
  if (!begun_) {
    begun_ = true;
    std::array<char, 2> magic{};
    const bool gzip = fetch(magic.data(), 2) == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
    fetched_ = 0;
    if (gzip) inflater_ = std::make_unique<Inflater>();
  }
  before_ += at_;
  // Bytes that peek() has read and that were not taken are kept.
  block_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = block_.size();
  block_.resize(kept + read_block_bytes);
  const std::size_t more =
      inflater_ ? decode(block_.data() + kept, read_block_bytes) : fetch(block_.data() + kept, read_block_bytes);
  filled_ = kept + more;
  block_.resize(filled_);
  return more > 0;
}

int ByteSource::peek(std::size_t ahead) {
  while (at_ + ahead >= filled_)
    if (!fill()) return end;
  return static_cast<unsigned char>(block_[at_ + ahead]);
}

void ByteSource::skip_to(std::uint64_t byte) {
  static_cast<void>(peek());
  if (!inflater_ && byte > before_ + filled_) {
    fetched_ = byte;
    before_ = byte;
    block_.clear();
    at_ = filled_ = 0;
  }
  while (taken() < byte && get() != end) {
  }
}

void ByteSource::read(std::string& to, std::size_t count) {
  while (count > 0 && (at_ < filled_ || fill())) {
    const std::size_t part = std::min(count, filled_ - at_);
    to.append(block_, at_, part);
    at_ += part;
    count -= part;
  }
}

}  // namespace weft
