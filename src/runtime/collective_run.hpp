// SPDX-License-Identifier: GPL-2.0-only
// One rank's execution of one collective: every channel walks its stream of steps, slice by slice.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedule/collective.hpp"
#include "units/time.hpp"

namespace weft {

class RankExecutor;

/// NCCL's primitives (src/device/prims_simple.h): a step waits for its slice to arrive and for a free slot on the
/// sending connection, then forwards the slice and frees the slot it came from. Reduction and copies take no time of
/// their own.
class CollectiveRun {
 public:
  CollectiveRun(const CollectiveCall& call, std::uint32_t index, RankExecutor& executor);
  /// Walk `channel` as far as it goes. True when all channels are at their end.
  bool advance(Time now, std::uint32_t channel);
  std::uint32_t channels() const { return static_cast<std::uint32_t>(channels_.size()); }
  std::uint64_t messages() const { return messages_; }
  Bytes bytes() const { return bytes_; }
  const CollectiveCall& call() const { return call_; }
  /// What the first unfinished channel waits for.
  std::string waiting() const;

 private:
  struct Channel {
    std::unique_ptr<StepStream> stream;
    Step step;
    bool has_step = false;
    bool finished = false;
    Bytes done;               // of the step
    std::uint64_t steps = 0;  // completed
  };
  bool advance_slice(Time now, std::uint32_t channel);

  const CollectiveCall& call_;
  RankExecutor& executor_;
  std::uint32_t credits_;
  std::uint32_t unfinished_;
  std::vector<Channel> channels_;
  std::uint64_t messages_ = 0;
  Bytes bytes_;
};

}  // namespace weft
