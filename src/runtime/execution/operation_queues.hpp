// SPDX-License-Identifier: GPL-2.0-only
// Which operation of a rank has its turn on its stream and on its communicator.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "schedule/program/program.hpp"

namespace weft {

/// What decides on an operation's turn.
struct OperationTurn {
  OperationTurn() = default;
  OperationTurn(const Operation& operation)  // NOLINT(google-explicit-constructor): each operation has its turn
      : id(operation.id),
        communicator(operation.kind == Operation::Kind::collective ? operation.call->communicator->id()
                                                                   : no_communicator),
        stream(operation.stream),
        cpu(operation.cpu) {}
  bool is_collective() const { return communicator != no_communicator; }

  std::uint64_t id = 0;
  std::uint32_t communicator = no_communicator;
  Stream stream = Stream::none;
  std::uint8_t cpu = 0;

 private:
  static constexpr std::uint32_t no_communicator = 0xffffffffU;
};

/// How a program uses its streams.
struct StreamUse {
  bool takes_ready = false;  ///< a free stream takes the smallest operation that is ready, not the next of the program
  bool are_processors = false;      ///< streams are Operation::cpu, not Operation::stream
  bool ordered_by_network = false;  ///< takes_ready, and the network orders what runs on a processor

  /// Number of the stream of an operation that has one.
  std::uint32_t number_of(const OperationTurn& operation) const {
    return are_processors ? operation.cpu : static_cast<std::uint32_t>(operation.stream);
  }
  /// The operation has to wait for its turn on a stream here.
  bool has_turns(const OperationTurn& operation) const {
    return operation.stream != Stream::none && !ordered_by_network;
  }
};

/// Operations by id, from add() to end(). Collectives of a communicator run one after another, as NCCL requires; those
/// of a stream that takes what is ready are the first of their communicator.
class OperationQueues {
 public:
  void set_use(const StreamUse& use) { use_ = use; }
  const StreamUse& use() const { return use_; }

  void add(const OperationTurn& operation) {
    if (operation.stream != Stream::none && !use_.takes_ready)
      streams_[static_cast<int>(operation.stream)].push_back(operation.id);
    if (operation.is_collective()) communicators_[operation.communicator].push_back(operation.id);
  }
  /// It is the first of its stream, if that goes by the program, and of its communicator.
  bool is_first(const OperationTurn& operation) const {
    if (operation.stream != Stream::none && !use_.takes_ready &&
        streams_[static_cast<int>(operation.stream)].front() != operation.id)
      return false;
    return !operation.is_collective() || communicators_.at(operation.communicator).front() == operation.id;
  }
  /// Its stream takes what is ready: it has to wait for take_ready().
  bool is_taken_when_ready(const OperationTurn& operation) const {
    return use_.takes_ready && use_.has_turns(operation);
  }
  void add_ready(const OperationTurn& operation) { ready_[use_.number_of(operation)].waiting.insert(operation.id); }
  /// The smallest ready operation of a free stream; the operation then takes the stream. Nothing if there is none.
  std::optional<std::uint64_t> take_ready() {
    for (auto& [number, stream] : ready_) {
      if (stream.busy || stream.waiting.empty()) continue;
      const std::uint64_t id = *stream.waiting.begin();
      stream.waiting.erase(stream.waiting.begin());
      stream.busy = true;
      return id;
    }
    return std::nullopt;
  }

  /// No collective of the communicator is here.
  bool is_idle(std::uint32_t communicator) const {
    const auto queue = communicators_.find(communicator);
    return queue == communicators_.end() || queue->second.empty();
  }
  /// The operation, which was the first, leaves its communicator; `next` gets who is first now.
  void end_collective(std::uint32_t communicator, std::vector<std::uint64_t>& next) {
    pop(communicators_.at(communicator), next);
  }
  /// It leaves its stream.
  void end(const OperationTurn& operation, std::vector<std::uint64_t>& next) {
    if (use_.takes_ready) {
      if (use_.has_turns(operation)) ready_[use_.number_of(operation)].busy = false;
    } else if (operation.stream != Stream::none) {
      pop(streams_[static_cast<int>(operation.stream)], next);
    }
  }

 private:
  using Queue = std::deque<std::uint64_t>;
  static void pop(Queue& queue, std::vector<std::uint64_t>& next) {
    queue.pop_front();
    if (!queue.empty()) next.push_back(queue.front());
  }
  struct ReadyStream {
    std::set<std::uint64_t> waiting;  // operations that wait for nothing but their turn
    bool busy = false;
  };

  StreamUse use_;
  Queue streams_[stream_count];
  std::map<std::uint32_t, ReadyStream> ready_;    // by number
  std::map<std::uint32_t, Queue> communicators_;  // by id
};

}  // namespace weft
