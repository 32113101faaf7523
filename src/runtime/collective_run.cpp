// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/collective_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/rank_executor.hpp"
#include "support/contract.hpp"

namespace weft {

CollectiveRun::CollectiveRun(const CollectiveCall& call, std::uint32_t index, RankExecutor& executor)
    : call_(call), executor_(executor), channels_(call.tuning.channels) {
  const auto* entry = CollectiveRegistry::instance().find(call.algorithm);
  WEFT_EXPECT(entry != nullptr, "collective algorithm {}", call.algorithm);
  const auto algorithm = entry->make();
  credits_ = algorithm->credits(call);
  unfinished_ = call.tuning.channels;
  for (std::uint32_t c = 0; c < call.tuning.channels; ++c) channels_[c].stream = algorithm->steps(call, index, c);
}

bool CollectiveRun::advance(Time now, std::uint32_t channel) {
  while (!channels_[channel].finished && advance_slice(now, channel)) {
  }
  return unfinished_ == 0;
}

// One slice further; false if the channel must wait or is at its end.
bool CollectiveRun::advance_slice(Time now, std::uint32_t number) {
  Channel& channel = channels_[number];
  if (!channel.has_step) {
    if (!channel.stream->next(channel.step)) {
      channel.finished = true;
      channel.stream.reset();
      --unfinished_;
      return false;
    }
    channel.has_step = true;
    channel.done = Bytes(0);
  }
  const Step& step = channel.step;
  const Bytes slice = std::min(step.slice, step.bytes - channel.done);
  ReceiveConnection* from = nullptr;
  SendConnection* to = nullptr;
  if (receives(step.primitive)) {
    const std::uint32_t source = call_.communicator->rank(step.receive_peer).value();
    from = &executor_.receive_connection(call_.communicator->id(), number, source);
    if (from->empty()) return false;
  }
  if (sends(step.primitive)) {
    to = &executor_.send_connection(call_, number, step.send_peer);
    if (executor_.credits_limited() && to->in_flight >= credits_) return false;
  }
  if (from != nullptr) {
    const ReceiveConnection::Slice arrived = from->pop();
    WEFT_EXPECT(arrived.bytes == slice.count() && arrived.collective == call_.id,
                "collective {} channel {} expected a slice of {} bytes, found {} of collective {}", call_.id, number,
                slice.count(), arrived.bytes, arrived.collective);
    if (executor_.credits_limited())
      executor_.return_credit(now, call_.communicator->rank(step.receive_peer).value(), arrived.queue_pair);
  }
  if (to != nullptr) {
    ++to->in_flight;
    ++messages_;
    bytes_ += slice;
    executor_.send_slice(now, *to, call_, number, slice);
  }
  channel.done += slice;
  if (channel.done == step.bytes) {
    channel.has_step = false;
    ++channel.steps;
  }
  return true;
}

std::string CollectiveRun::waiting() const {
  for (std::uint32_t c = 0; c < channels_.size(); ++c) {
    const Channel& channel = channels_[c];
    if (channel.finished) continue;
    std::string peers;
    if (receives(channel.step.primitive))
      peers += fmt::format(" from rank {}", call_.communicator->rank(channel.step.receive_peer).value());
    if (sends(channel.step.primitive))
      peers += fmt::format(" to rank {}", call_.communicator->rank(channel.step.send_peer).value());
    return fmt::format("channel {} waits in step {} ({}{})", c, channel.steps, to_text(channel.step.primitive), peers);
  }
  return "nothing";
}

}  // namespace weft
