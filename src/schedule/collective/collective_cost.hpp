// SPDX-License-Identifier: GPL-2.0-only
// How long a collective takes in the alpha-beta model, without a network.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "units/bandwidth.hpp"
#include "units/time.hpp"

namespace weft {

/// A message of the model run.
struct ModelMessage {
  std::uint32_t sender = 0;
  std::uint32_t receiver = 0;
  std::uint32_t channel = 0;
  Bytes bytes{0};  ///< of data
  Time start;      ///< its first byte leaves
  Time end;        ///< its last byte has come
};

struct CollectiveCost {
  Time time;                 ///< the last rank ends
  std::uint64_t rounds = 0;  ///< messages on the longest chain of messages that wait for each other
  std::vector<Bytes> sent;   ///< data bytes by communicator index
  std::uint64_t messages = 0;
  bool finished = false;  ///< false: the lanes wait for each other for ever, or beyond the limit
};

/// R. Hockney's model (Parallel Computing 20(3), 1994, doi:10.1016/S0167-8191(06)80021-9): a message of b wire bytes
/// takes latency + b / rate; a rank sends one message at a time and receives one at a time, in both cases in the order
/// in which they are ready. Aggregators send and receive any number at a time. Freed slots are known to the sender at
/// once. Launch, step latency and kernel rates of the tuning count. `on_message` is called for every message, in the
/// order of their ends. The model ends at `limit`, unfinished, if the call would take longer. The call is settled: it
/// has its channels.
CollectiveCost model_cost(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, Time latency,
                          Bandwidth rate, const std::function<void(const ModelMessage&)>& on_message = {},
                          Time limit = Time::max());

}  // namespace weft
