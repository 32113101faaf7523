// SPDX-License-Identifier: GPL-2.0-only
// An operation of a rank between the moment when its program gave it and its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/execution/collective_run.hpp"
#include "schedule/program/program.hpp"
#include "transport/messages/message.hpp"
#include "transport/messages/send_waits.hpp"
#include "units/time.hpp"

namespace weft {

struct LiveOperation {
  Operation operation;
  std::uint32_t unfinished = 0;        ///< dependencies
  std::uint32_t sequence = 0;          ///< send, recv: number among those of its peer and tag
  std::uint32_t parts = 0;             ///< send: messages that have not been sent in full
  std::uint32_t queue_pair = 0;        ///< send: of its last message
  std::uint64_t message = no_message;  ///< send, recv: the last one
  SendTimes times;                     ///< of that, at the start
  bool started = false;
  std::uint64_t cause = 0;  ///< HostNetwork::cause() when it last waited for one less
  bool begun = false;       ///< it has what it needs: at its start, unless it has to ask for a processor
  Time start;
  Time sent;  ///< recv: when its message was
  std::vector<std::uint64_t> dependents;
  std::vector<std::uint64_t> dependents_of_start;
  std::unique_ptr<CollectiveRun> collective;

  /// A description of the operation and its wait, such as "operation 17 'grads' (line 7), recv of 4 KiB from rank 2,
  /// tag 7: no such message has come".
  std::string describe() const;
};

}  // namespace weft
