// SPDX-License-Identifier: GPL-2.0-only
// An operation of a rank between the moment when its program gave it and its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/execution/collective_run.hpp"
#include "runtime/execution/operation_queues.hpp"
#include "schedule/program/packed_operation.hpp"
#include "schedule/program/program.hpp"
#include "transport/messages/message.hpp"
#include "transport/messages/send_waits.hpp"
#include "units/time.hpp"

namespace weft {

/// Operations that wait for one: mostly one at most.
class Dependents {
 public:
  void add(std::uint64_t id) {
    if (first_ == none)
      first_ = id;
    else if (others_ == nullptr)
      others_ = std::make_unique<std::vector<std::uint64_t>>(1, id);
    else
      others_->push_back(id);
  }
  /// In the order of add().
  template <class Each>
  void for_each(Each&& each) const {
    if (first_ != none) each(first_);
    if (others_ == nullptr) return;
    for (const std::uint64_t id : *others_) each(id);
  }

 private:
  static constexpr std::uint64_t none = UINT64_MAX;
  std::uint64_t first_ = none;
  std::unique_ptr<std::vector<std::uint64_t>> others_;
};

/// What an operation needs to start and once it has started.
struct OperationDetails {
  Operation operation;
  std::uint32_t parts = 0;             ///< send: messages that have not been sent in full
  std::uint32_t queue_pair = 0;        ///< send: of its last message
  std::uint64_t message = no_message;  ///< send, recv: the last one
  SendTimes times;                     ///< of that, at the start
  Time start;
  Time sent;  ///< recv: when its message was
  std::unique_ptr<CollectiveRun> collective;
};

struct LiveOperation {
  OperationTurn turn;
  Time not_before;
  std::uint32_t unfinished = 0;  ///< dependencies
  std::uint32_t sequence = 0;    ///< send, recv: number among those of its peer and tag
  bool started = false;
  bool begun = false;       ///< it has what it needs: at its start, unless it has to ask for a processor
  std::uint64_t cause = 0;  ///< HostNetwork::cause() when it last waited for one less
  Dependents dependents;
  std::unique_ptr<Dependents> dependents_of_start;  ///< null: none
  std::unique_ptr<OperationDetails> details;        ///< null: packed

  const Operation& operation() const { return details->operation; }
  /// Takes the operation and keeps it in `details`.
  void keep(Operation& operation);
  /// Takes the operation, which may be that of `details`: these are gone until unpack(). One that has not started needs
  /// nothing else of them.
  void pack(Operation& operation, SharedTexts& texts);
  void unpack();
  /// A description of the operation and its wait, such as "operation 17 'grads' (line 7), recv of 4 KiB from rank 2,
  /// tag 7: no such message has come".
  std::string describe() const;

 private:
  std::string describe(const Operation& operation) const;
  Operation packed_operation() const;

  PackedOperation packed_;
  std::shared_ptr<const CollectiveCall> call_;  // of that
};

}  // namespace weft
