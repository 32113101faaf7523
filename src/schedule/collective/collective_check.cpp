// SPDX-License-Identifier: GPL-2.0-only
// Replay of a collective on sets of contributions, by byte intervals.
#include "schedule/collective/collective_check.hpp"

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

#include "schedule/collective/collective_content.hpp"
#include "schedule/collective/collective_definition.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

/// A slice in flight, with the chunk that it belongs to.
struct Slice {
  Content content;
  std::int64_t offset_in_chunk = 0;
  std::int64_t chunk = 0;
  std::int64_t slice = 0;
};

/// One rank and lane at work.
struct Worker {
  std::uint32_t index = 0;
  std::uint32_t lane = 0;
  std::uint32_t channel = 0;
  std::unique_ptr<StepStream> stream;
  Step step;
  std::uint64_t steps = 0;  ///< fetched
  std::uint64_t marks = 0;
  std::int64_t done = 0;  ///< bytes of the step
  bool active = false;    ///< there is a step
  bool ended = false;
};

/// The bytes that lanes have stored, and may read: lanes of a channel, or all of a rank.
struct Memory {
  Storage input;
  Storage output;
  Storage scratch;
  Storage& of(Buffer buffer) { return buffer == Buffer::input ? input : buffer == Buffer::output ? output : scratch; }
};

class Replayer {
 public:
  Replayer(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint64_t step_limit, bool backwards)
      : algorithm_(algorithm),
        call_(call),
        buffers_(call, algorithm.in_place()),
        ranks_(call.communicator->size()),
        members_(ranks_ + algorithm.aggregators(call)),
        channels_(algorithm.channels(call)),
        lanes_(algorithm.lanes(call)),
        credits_(algorithm.credits(call)),
        shared_(algorithm.shares_memory()),
        step_limit_(step_limit),
        backwards_(backwards) {
    WEFT_EXPECT(lanes_ % channels_ == 0, "{} lanes on {} channels", lanes_, channels_);
    outputs_.resize(members_);
    result_.sent.resize(ranks_);
    result_.sent_between_servers.resize(ranks_);
    memories_.resize(std::size_t{members_} * (shared_ ? 1 : channels_));
    for (std::uint32_t index = 0; index < members_; ++index) {
      const auto [place, bytes, offset] = index < ranks_ ? buffers_.own(index) : Buffers::Own{};
      for (std::uint32_t channel = 0; bytes > 0 && channel < (shared_ ? 1 : channels_); ++channel)
        memories_[shared_ ? index : std::size_t{index} * channels_ + channel].input.write(place,
                                                                                          {{bytes, {{index, offset}}}});
      for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
        Worker worker;
        worker.index = index;
        worker.lane = lane;
        worker.channel = lane % channels_;
        worker.stream = algorithm.steps(call, index, lane);
        workers_.push_back(std::move(worker));
      }
    }
  }

  CollectiveReplay run() {
    if (credits_ == 0) violation("no credits: nothing may be sent");
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < workers_.size(); ++i) {
        Worker& worker = workers_[backwards_ ? workers_.size() - 1 - i : i];
        while (advance(worker)) progress = true;
      }
    }
    check_ends();
    check_results();
    return std::move(result_);
  }

 private:
  using Connection = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  ///< sender, receiver, channel

  Memory& memory(const Worker& worker) {
    if (shared_) return memories_[worker.index];
    return memories_[std::size_t{worker.index} * channels_ + algorithm_.memory_of(call_, worker.lane)];
  }
  void violation(std::string text) {
    constexpr std::size_t kept = 20;
    if (result_.violations.size() < kept) result_.violations.push_back(std::move(text));
  }
  void violation(const Worker& worker, const std::string& text) {
    violation(fmt::format("rank {}, {} ({}, {} B): {}", worker.index,
                          algorithm_.name_step(call_, worker.index, worker.lane, worker.steps - 1),
                          to_text(worker.step.primitive), worker.step.bytes.count(), text));
  }

  bool waits(const Worker& worker) const {
    const Step& step = worker.step;
    return step.wait_lane != no_lane &&
           workers_[std::size_t{worker.index} * lanes_ + step.wait_lane].marks < step.wait_marks;
  }

  /// Moves one slice or fetches one step; false if the worker must wait or has ended.
  bool advance(Worker& worker) {
    if (worker.ended) return false;
    if (!worker.active) return fetch(worker);
    const Step& step = worker.step;
    if (waits(worker)) return false;
    for (std::uint32_t i = 0; i < step.receive_count(); ++i)
      if (incoming(worker, i) == nullptr) return false;
    for (std::uint32_t i = 0; i < step.send_count(); ++i)
      if (outgoing(worker, i).size() >= credits_) return false;
    if (step.primitive == Primitive::nop) return finish(worker);
    const std::int64_t bytes = std::min(step.slice.count(), step.bytes.count() - worker.done);
    const Content content = bring_in(worker, bytes);
    if (stores(step.primitive)) store(worker, content, bytes);
    for (std::uint32_t i = 0; i < step.send_count(); ++i) {
      outgoing(worker, i).push_back({content, worker.done, step.bytes.count(), step.slice.count()});
      (worker.index < ranks_ ? result_.sent[worker.index] : result_.sent_by_aggregators) += Bytes(bytes);
      const std::uint32_t server = call_.tuning.ranks_per_server;
      if (server != 0 && worker.index < ranks_ && step.send_to(i) < ranks_ &&
          worker.index / server != step.send_to(i) / server)
        result_.sent_between_servers[worker.index] += Bytes(bytes);
      ++result_.messages;
    }
    worker.done += bytes;
    return worker.done < step.bytes.count() || finish(worker);
  }

  bool finish(Worker& worker) {
    worker.active = false;
    if (worker.step.mark) ++worker.marks;
    return true;
  }

  /// The queue from which a step receives, or null if it is empty.
  std::deque<Slice>* incoming(const Worker& worker, std::uint32_t number) {
    const auto found = flights_.find({worker.step.receive_from(number), worker.index, worker.channel});
    return found == flights_.end() || found->second.empty() ? nullptr : &found->second;
  }
  std::deque<Slice>& outgoing(const Worker& worker, std::uint32_t number) {
    return flights_[{worker.index, worker.step.send_to(number), worker.channel}];
  }

  /// The data that the step handles: arriving data, local data, or the sum of all.
  Content bring_in(Worker& worker, std::int64_t bytes) {
    const Step& step = worker.step;
    std::optional<Content> content;
    if (reads(step.primitive)) content = local(worker, step.source, step.input_offset.count() + worker.done, bytes);
    if (step.primitive == Primitive::reduce)
      content = reduced(*content, local(worker, step.target, step.output_offset.count() + worker.done, bytes),
                        buffers_.at_most_once());
    for (std::uint32_t i = 0; i < step.receive_count(); ++i) {
      Content arrived = receive(worker, i, bytes);
      content = content ? reduced(arrived, *content, buffers_.at_most_once()) : std::move(arrived);
    }
    return *std::move(content);
  }

  Content receive(Worker& worker, std::uint32_t number, std::int64_t bytes) {
    const Step& step = worker.step;
    std::deque<Slice>& queue = *incoming(worker, number);
    Slice slice = std::move(queue.front());
    queue.pop_front();
    if (slice.chunk == step.bytes.count() && slice.slice == step.slice.count() && slice.offset_in_chunk == worker.done)
      return std::move(slice.content);
    violation(worker,
              fmt::format("expects byte {} of {} in slices of {}, but rank {} sent byte {} of {} in slices of {}",
                          worker.done, step.bytes.count(), step.slice.count(), step.receive_from(number),
                          slice.offset_in_chunk, slice.chunk, slice.slice));
    return {{bytes, {}}};
  }

  Content local(Worker& worker, Buffer buffer, std::int64_t begin, std::int64_t bytes) {
    std::optional<Content> content = memory(worker).of(buffer).read(begin, bytes);
    if (content) return *std::move(content);
    violation(worker, fmt::format("reads [{}, {}) of its {}, where it {} all of that", begin, begin + bytes,
                                  to_text(buffer), buffer == Buffer::input ? "does not have" : "has not stored"));
    return {{bytes, {}}};
  }

  void store(Worker& worker, const Content& content, std::int64_t bytes) {
    const std::int64_t begin = worker.step.output_offset.count() + worker.done;
    memory(worker).of(worker.step.target).overwrite(begin, content);
    if (shared_ || worker.step.target != Buffer::output) return;
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
    const auto peer_is_wrong = [&](std::uint32_t peer) { return peer >= members_ || peer == worker.index; };
    std::string text;
    for (std::uint32_t i = 0; i < step.send_count(); ++i)
      if (peer_is_wrong(step.send_to(i))) text = fmt::format("sends to {}", step.send_to(i));
    for (std::uint32_t i = 0; i < step.receive_count(); ++i)
      if (peer_is_wrong(step.receive_from(i))) text = fmt::format("receives from {}", step.receive_from(i));
    if (step.wait_lane != no_lane && step.wait_lane >= lanes_) text = fmt::format("waits for lane {}", step.wait_lane);
    if (step.primitive != Primitive::nop) {
      if (step.bytes.count() <= 0)
        text = "empty step";
      else if (step.slice.count() <= 0)
        text = fmt::format("slices of {} B", step.slice.count());
      else if (step.receive_count() > 1 && !reduces(step.primitive))
        text = "receives from several peers without reducing";
      else if (reads(step.primitive) && step.input_offset.count() < 0)
        text = fmt::format("reads at {}", step.input_offset.count());
      else if (stores(step.primitive) && step.output_offset.count() < 0)
        text = fmt::format("writes at {}", step.output_offset.count());
      else if (stores(step.primitive) && step.target == Buffer::input && !algorithm_.in_place())
        text = "writes to its input";
    }
    if (!text.empty()) violation(worker, text);
    return text.empty();
  }

  /// The reason why a worker that has not ended cannot continue.
  std::string reason(const Worker& worker) {
    const Step& step = worker.step;
    if (waits(worker))
      return fmt::format("for mark {} of lane {}, which has {}", step.wait_marks, step.wait_lane,
                         workers_[std::size_t{worker.index} * lanes_ + step.wait_lane].marks);
    for (std::uint32_t i = 0; i < step.receive_count(); ++i)
      if (incoming(worker, i) == nullptr)
        return fmt::format("for byte {} from rank {}", worker.done, step.receive_from(i));
    for (std::uint32_t i = 0; i < step.send_count(); ++i)
      if (outgoing(worker, i).size() >= credits_)
        return fmt::format("for one of {} credits to send byte {} to rank {}", credits_, worker.done, step.send_to(i));
    return "for nothing";
  }

  void check_ends() {
    for (const Worker& worker : workers_)
      if (!worker.ended) violation(worker, "waits for ever " + reason(worker));
    for (const auto& [connection, slices] : flights_) {
      const auto& [sender, receiver, channel] = connection;
      if (!slices.empty())
        violation(fmt::format("{} slices from rank {} to rank {} on channel {} are never received", slices.size(),
                              sender, receiver, channel));
    }
  }

  void check_results() {
    for (std::uint32_t index = 0; index < ranks_; ++index) {
      const Storage& output = !shared_                ? outputs_[index]
                              : algorithm_.in_place() ? memories_[index].input
                                                      : memories_[index].output;
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
      if (!shared_ && right && output.written() != wanted)
        violation(fmt::format("rank {}: {} bytes are written, but its result has {}", index, output.written(), wanted));
    }
  }

  const CollectiveAlgorithm& algorithm_;
  const CollectiveCall& call_;
  Buffers buffers_;
  std::uint32_t ranks_;
  std::uint32_t members_;  ///< ranks, and aggregators behind them
  std::uint32_t channels_;
  std::uint32_t lanes_;
  std::uint32_t credits_;
  bool shared_;
  std::uint64_t step_limit_;
  bool backwards_;
  std::vector<Worker> workers_;
  std::vector<Memory> memories_;
  std::vector<Storage> outputs_;
  std::map<Connection, std::deque<Slice>> flights_;
  CollectiveReplay result_;
};

}  // namespace

Bytes CollectiveReplay::total_sent() const {
  Bytes total = sent_by_aggregators;
  for (const Bytes bytes : sent) total += bytes;
  return total;
}

CollectiveReplay replay(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint64_t step_limit) {
  WEFT_EXPECT(algorithm.supports(call.kind), "{} by {}", to_text(call.kind), call.algorithm);
  WEFT_EXPECT(call.communicator->size() > 0, "a communicator of no ranks");
  CollectiveReplay result = Replayer(algorithm, call, step_limit, false).run();
  // Lanes of one rank share memory: their results must not depend on which of them is faster.
  if (algorithm.lanes(call) == algorithm.channels(call) && !algorithm.shares_memory()) return result;
  if (!result.violations.empty()) return result;
  return Replayer(algorithm, call, step_limit, true).run();
}

Bytes min_bytes_sent(const CollectiveCall& call) {
  const std::int64_t others = std::int64_t{call.communicator->size()} - 1;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return call.size * (2 * others);
    case CollectiveKind::barrier:
      return call.size * others;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return call.size - Bytes(block_bytes(call, call.root));
    case CollectiveKind::send_recv:
      return others == 0 ? Bytes(0) : call.size * (others + 1);
    case CollectiveKind::all_to_all: {
      std::int64_t bytes = 0;
      for (std::uint32_t to = 0; call.blocks == nullptr && to <= others; ++to)
        bytes += pair_bytes(call, 0, to) * others;
      for (std::uint32_t from = 0; call.blocks != nullptr && from <= others; ++from)
        for (std::uint32_t to = 0; to <= others; ++to) bytes += from == to ? 0 : pair_bytes(call, from, to);
      return Bytes(bytes);
    }
    default:
      return call.size * others;
  }
}

}  // namespace weft
