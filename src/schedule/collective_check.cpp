// SPDX-License-Identifier: GPL-2.0-only
// Replay of a collective on sets of contributions, by byte intervals.
#include "schedule/collective_check.hpp"

#include <algorithm>
#include <compare>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/contract.hpp"

namespace weft {
namespace {

/// A byte of the input of a rank (communicator index) that went into a value.
struct Contribution {
  std::uint32_t rank = 0;
  std::int64_t offset = 0;
  friend auto operator<=>(const Contribution&, const Contribution&) = default;
};

/// Consecutive bytes with the same contributing ranks; the offsets are those of the first byte and grow with it.
/// Sorted; a contribution that was added twice stands twice.
struct Piece {
  std::int64_t bytes = 0;
  std::vector<Contribution> contributions;
};
using Content = std::vector<Piece>;

std::vector<Contribution> shifted(std::vector<Contribution> contributions, std::int64_t by) {
  for (Contribution& contribution : contributions) contribution.offset += by;
  return contributions;
}

/// Takes the first `bytes` bytes off a piece.
Piece take(Piece& piece, std::int64_t bytes) {
  Piece head{bytes, piece.contributions};
  piece.contributions = shifted(std::move(piece.contributions), bytes);
  piece.bytes -= bytes;
  return head;
}

/// Takes the first `bytes` bytes off a content.
Content take(std::deque<Piece>& content, std::int64_t bytes) {
  Content head;
  while (bytes > 0 && !content.empty()) {
    const std::int64_t part = std::min(bytes, content.front().bytes);
    head.push_back(take(content.front(), part));
    if (content.front().bytes == 0) content.pop_front();
    bytes -= part;
  }
  return head;
}

/// Sum of two contents of equal length.
Content reduced(const Content& a, const Content& b) {
  std::deque<Piece> left(a.begin(), a.end());
  Content sum;
  for (Piece right : b) {
    for (Piece& piece : take(left, right.bytes)) {
      const Piece other = take(right, piece.bytes);
      std::vector<Contribution> both;
      std::merge(piece.contributions.begin(), piece.contributions.end(), other.contributions.begin(),
                 other.contributions.end(), std::back_inserter(both));
      sum.push_back({piece.bytes, std::move(both)});
    }
  }
  return sum;
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

/// A range of a result and what its first byte must consist of.
struct Expected {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  std::vector<Contribution> contributions;
};

/// Lengths and contents of the buffers, by the definitions in collective.hpp.
class Buffers {
 public:
  explicit Buffers(const CollectiveCall& call)
      : call_(call),
        ranks_(call.communicator->size()),
        size_(call.size.count()),
        block_(size_ / ranks_ + (size_ % ranks_ ? 1 : 0)) {}

  std::int64_t block_bytes(std::uint32_t block) const {
    return std::clamp<std::int64_t>(size_ - block * block_, 0, block_);
  }
  std::int64_t input_bytes(std::uint32_t index) const {
    if (call_.kind == CollectiveKind::all_gather) return block_bytes(index);
    if (call_.kind == CollectiveKind::broadcast) return index == call_.root ? size_ : 0;
    return size_;
  }
  /// The results of a rank, without empty ranges.
  std::vector<Expected> results(std::uint32_t index) const {
    std::vector<Expected> all;
    switch (call_.kind) {
      case CollectiveKind::all_reduce:
        all.push_back({0, size_, all_ranks(0)});
        break;
      case CollectiveKind::reduce:
        if (index == call_.root) all.push_back({0, size_, all_ranks(0)});
        break;
      case CollectiveKind::reduce_scatter:
        all.push_back({0, block_bytes(index), all_ranks(index * block_)});
        break;
      case CollectiveKind::broadcast:
        if (index != call_.root) all.push_back({0, size_, {{call_.root, 0}}});
        break;
      case CollectiveKind::all_gather:
        for (std::uint32_t rank = 0; rank < ranks_; ++rank)
          all.push_back({rank * block_, block_bytes(rank), {{rank, 0}}});
        break;
      case CollectiveKind::all_to_all:
        for (std::uint32_t rank = 0; rank < ranks_; ++rank)
          all.push_back({rank * block_, block_bytes(index), {{rank, index * block_}}});
        break;
    }
    std::erase_if(all, [](const Expected& range) { return range.bytes == 0; });
    return all;
  }
  /// One rank alone: its output may be its input.
  bool may_be_untouched() const {
    return ranks_ == 1 && (call_.kind == CollectiveKind::all_reduce || call_.kind == CollectiveKind::broadcast ||
                           call_.kind == CollectiveKind::reduce);
  }

 private:
  std::vector<Contribution> all_ranks(std::int64_t offset) const {
    std::vector<Contribution> contributions;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) contributions.push_back({rank, offset});
    return contributions;
  }

  const CollectiveCall& call_;
  std::uint32_t ranks_;
  std::int64_t size_;
  std::int64_t block_;
};

/// What has been stored in a buffer of one rank: pieces by their first byte, which never overlap.
class Storage {
 public:
  /// False if some byte has been written before (the first writing stays).
  bool write(std::int64_t begin, const Content& content) {
    bool fresh = true;
    for (const Piece& piece : content) {
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

  void overwrite(std::int64_t begin, const Content& content) {
    for (const Piece& piece : content) {
      pieces_.erase(split(begin), split(begin + piece.bytes));
      pieces_.emplace(begin, piece);
      begin += piece.bytes;
    }
  }

  /// Nothing if not all of these bytes have been written.
  std::optional<Content> read(std::int64_t begin, std::int64_t bytes) {
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

  std::int64_t written() const { return written_; }

  /// What is wrong with the bytes of one result, or an empty text.
  std::string compare(const Expected& expected) const {
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

 private:
  /// The first piece at or after `at`, to which no piece from before reaches any more.
  std::map<std::int64_t, Piece>::iterator split(std::int64_t at) {
    const auto after = pieces_.lower_bound(at);
    if (after == pieces_.begin()) return after;
    const auto before = std::prev(after);
    const std::int64_t reach = before->first + before->second.bytes;
    if (reach <= at) return after;
    Piece tail = before->second;
    before->second = take(tail, at - before->first);
    return pieces_.emplace_hint(after, at, std::move(tail));
  }

  std::map<std::int64_t, Piece> pieces_;
  std::int64_t written_ = 0;
};

/// A slice in flight, with the chunk that it belongs to.
struct Slice {
  Content content;
  std::int64_t offset_in_chunk = 0;
  std::int64_t chunk = 0;
  std::int64_t slice = 0;
};

/// One rank and channel at work.
struct Worker {
  std::uint32_t index = 0;
  std::uint32_t channel = 0;
  std::unique_ptr<StepStream> stream;
  Step step;
  Storage output;   ///< what this channel has stored, and may read
  Storage scratch;  ///< the same
  std::uint64_t steps = 0;
  std::int64_t done = 0;  ///< bytes of the step
  bool active = false;    ///< there is a step
  bool ended = false;
};

class Replayer {
 public:
  Replayer(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint64_t step_limit)
      : buffers_(call), ranks_(call.communicator->size()), credits_(algorithm.credits(call)), step_limit_(step_limit) {
    outputs_.resize(ranks_);
    result_.sent.resize(ranks_);
    for (std::uint32_t index = 0; index < ranks_; ++index) {
      for (std::uint32_t channel = 0; channel < call.tuning.channels; ++channel) {
        Worker worker;
        worker.index = index;
        worker.channel = channel;
        worker.stream = algorithm.steps(call, index, channel);
        workers_.push_back(std::move(worker));
      }
    }
  }

  CollectiveReplay run() {
    if (credits_ == 0) violation("no credits: nothing may be sent");
    for (bool progress = true; progress;) {
      progress = false;
      for (Worker& worker : workers_)
        while (advance(worker)) progress = true;
    }
    check_ends();
    check_results();
    return std::move(result_);
  }

 private:
  using Connection = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  ///< sender, receiver, channel

  void violation(std::string text) {
    constexpr std::size_t kept = 20;
    if (result_.violations.size() < kept) result_.violations.push_back(std::move(text));
  }
  void violation(const Worker& worker, const std::string& text) {
    violation(fmt::format("rank {}, channel {}, step {} ({}, {} B): {}", worker.index, worker.channel, worker.steps,
                          to_text(worker.step.primitive), worker.step.bytes.count(), text));
  }

  /// Moves one slice or fetches one step; false if the worker must wait or has ended.
  bool advance(Worker& worker) {
    if (worker.ended) return false;
    if (!worker.active) return fetch(worker);
    const Step& step = worker.step;
    auto incoming = flights_.end();
    auto outgoing = flights_.end();
    if (receives(step.primitive)) {
      incoming = flights_.find({step.receive_peer, worker.index, worker.channel});
      if (incoming == flights_.end() || incoming->second.empty()) return false;
    }
    if (sends(step.primitive)) {
      outgoing = flights_.try_emplace({worker.index, step.send_peer, worker.channel}).first;
      if (outgoing->second.size() >= credits_) return false;
    }
    const std::int64_t bytes = std::min(step.slice.count(), step.bytes.count() - worker.done);
    Content content = bring_in(worker, incoming == flights_.end() ? nullptr : &incoming->second, bytes);
    if (stores(step.primitive)) store(worker, content, bytes);
    if (outgoing != flights_.end()) {
      outgoing->second.push_back({std::move(content), worker.done, step.bytes.count(), step.slice.count()});
      result_.sent[worker.index] += Bytes(bytes);
      ++result_.messages;
    }
    worker.done += bytes;
    worker.active = worker.done < step.bytes.count();
    return true;
  }

  /// What a slice of the current step consists of before it is stored or sent.
  Content bring_in(Worker& worker, std::deque<Slice>* incoming, std::int64_t bytes) {
    const Step& step = worker.step;
    if (incoming == nullptr) return local(worker, bytes);
    const Slice slice = std::move(incoming->front());
    incoming->pop_front();
    if (slice.chunk != step.bytes.count() || slice.slice != step.slice.count() ||
        slice.offset_in_chunk != worker.done) {
      violation(worker,
                fmt::format("expects byte {} of {} in slices of {}, but rank {} sent byte {} of {} in slices of {}",
                            worker.done, step.bytes.count(), step.slice.count(), step.receive_peer,
                            slice.offset_in_chunk, slice.chunk, slice.slice));
      return {{bytes, {}}};
    }
    return reduces(step.primitive) ? reduced(slice.content, local(worker, bytes)) : slice.content;
  }

  /// The local data of a slice of the current step.
  Content local(Worker& worker, std::int64_t bytes) {
    const Step& step = worker.step;
    const std::int64_t begin = step.input_offset.count() + worker.done;
    if (step.source == Buffer::input) return {{bytes, {{worker.index, begin}}}};
    std::optional<Content> content =
        (step.source == Buffer::output ? worker.output : worker.scratch).read(begin, bytes);
    if (content) return *std::move(content);
    violation(worker, fmt::format("reads [{}, {}) of its {}, where it has not stored all of that", begin, begin + bytes,
                                  to_text(step.source)));
    return {{bytes, {}}};
  }

  void store(Worker& worker, const Content& content, std::int64_t bytes) {
    const std::int64_t begin = worker.step.output_offset.count() + worker.done;
    if (worker.step.target == Buffer::scratch) return worker.scratch.overwrite(begin, content);
    worker.output.overwrite(begin, content);
    if (!outputs_[worker.index].write(begin, content))
      violation(worker, fmt::format("some byte of output [{}, {}) is written twice", begin, begin + bytes));
  }

  bool fetch(Worker& worker) {
    if (worker.steps == step_limit_) {
      violation(worker, fmt::format("more than {} steps", step_limit_));
      worker.ended = true;
      return false;
    }
    worker.step = Step{};
    if (!worker.stream->next(worker.step)) {
      worker.ended = true;
      return true;
    }
    ++worker.steps;
    ++result_.steps;
    worker.done = 0;
    worker.active = sound(worker);
    return true;
  }

  /// The rules for a single step; a step that breaks them is left out.
  bool sound(const Worker& worker) {
    const Step& step = worker.step;
    const auto peer_is_wrong = [&](std::uint32_t peer) { return peer >= ranks_ || peer == worker.index; };
    const auto outside = [&](std::int64_t offset, std::int64_t limit) {
      return offset < 0 || offset + step.bytes.count() > limit;
    };
    std::string text;
    if (step.bytes.count() <= 0)
      text = "empty step";
    else if (step.slice.count() <= 0)
      text = fmt::format("slices of {} B", step.slice.count());
    else if (sends(step.primitive) && peer_is_wrong(step.send_peer))
      text = fmt::format("sends to {}", step.send_peer);
    else if (receives(step.primitive) && peer_is_wrong(step.receive_peer))
      text = fmt::format("receives from {}", step.receive_peer);
    else if ((reduces(step.primitive) || !receives(step.primitive)) && step.source == Buffer::input &&
             outside(step.input_offset.count(), buffers_.input_bytes(worker.index)))
      text =
          fmt::format("reads at {} of an input of {} B", step.input_offset.count(), buffers_.input_bytes(worker.index));
    else if (stores(step.primitive) && step.output_offset.count() < 0)
      text = fmt::format("writes at {}", step.output_offset.count());
    else if (stores(step.primitive) && step.target == Buffer::input)
      text = "writes to its input";
    if (!text.empty()) violation(worker, text);
    return text.empty();
  }

  void check_ends() {
    for (const Worker& worker : workers_) {
      if (worker.ended) continue;
      const Step& step = worker.step;
      const auto incoming = flights_.find({step.receive_peer, worker.index, worker.channel});
      const bool starves = receives(step.primitive) && (incoming == flights_.end() || incoming->second.empty());
      violation(worker, starves ? fmt::format("waits for ever for byte {} from rank {}", worker.done, step.receive_peer)
                                : fmt::format("waits for ever for one of {} credits to send byte {} to rank {}",
                                              credits_, worker.done, step.send_peer));
    }
    for (const auto& [connection, slices] : flights_) {
      const auto& [sender, receiver, channel] = connection;
      if (!slices.empty())
        violation(fmt::format("{} slices from rank {} to rank {} on channel {} are never received", slices.size(),
                              sender, receiver, channel));
    }
  }

  void check_results() {
    for (std::uint32_t index = 0; index < ranks_; ++index) {
      const Storage& output = outputs_[index];
      if (output.written() == 0 && buffers_.may_be_untouched()) continue;
      std::int64_t wanted = 0;
      bool right = true;
      for (const Expected& expected : buffers_.results(index)) {
        wanted += expected.bytes;
        const std::string text = output.compare(expected);
        if (text.empty()) continue;
        right = false;
        violation(fmt::format("rank {}: {}", index, text));
      }
      if (right && output.written() != wanted)
        violation(fmt::format("rank {}: {} bytes are written, but its result has {}", index, output.written(), wanted));
    }
  }

  Buffers buffers_;
  std::uint32_t ranks_;
  std::uint32_t credits_;
  std::uint64_t step_limit_;
  std::vector<Worker> workers_;
  std::vector<Storage> outputs_;
  std::map<Connection, std::deque<Slice>> flights_;
  CollectiveReplay result_;
};

}  // namespace

Bytes CollectiveReplay::total_sent() const {
  Bytes total;
  for (const Bytes bytes : sent) total += bytes;
  return total;
}

CollectiveReplay replay(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint64_t step_limit) {
  WEFT_EXPECT(algorithm.supports(call.kind), "{} by {}", to_text(call.kind), call.algorithm);
  WEFT_EXPECT(call.communicator->size() > 0, "a communicator of no ranks");
  return Replayer(algorithm, call, step_limit).run();
}

Bytes least_bytes_sent(const CollectiveCall& call) {
  const std::int64_t others = std::int64_t{call.communicator->size()} - 1;
  return call.size * (call.kind == CollectiveKind::all_reduce ? 2 * others : others);
}

}  // namespace weft
