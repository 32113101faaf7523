// SPDX-License-Identifier: GPL-2.0-only
// Collectives of a rank: their launch, slices, credits and timers.
#include "runtime/execution/rank_executor.hpp"
#include "support/basics/contract.hpp"

namespace weft {

void RankExecutor::start_collective(Time now, LiveOperation& live) {
  const CollectiveCall& call = *live.operation().call;
  const std::uint64_t id = live.operation().id;
  const std::uint32_t index = is_aggregator() ? live.operation().tag : call.communicator->index_of(rank_);
  live.details->collective = std::make_unique<CollectiveRun>(call, index, id, *this);
  live.details->collective->begin_at(now);
  if (call.tuning.launch > Time() && !is_aggregator())
    return set_lane_timer(bounded_sum(now, call.tuning.launch), id, no_lane);
  launch_collective(now, id);
}

void RankExecutor::launch_collective(Time now, std::uint64_t operation) {
  CollectiveRun& run = *live_.at(operation).details->collective;
  run.launched_at(now);
  running_collective_[run.call().communicator->id()] = operation;
  bool finished = run.channels() == 0;
  for (std::uint32_t channel = 0; channel < run.channels(); ++channel) finished = run.advance(now, channel);
  if (finished) complete(now, operation);
}

void RankExecutor::set_lane_timer(Time at, std::uint64_t operation, std::uint32_t lane) {
  const std::uint32_t slot = lane_timers_.add({operation, lane, lane == no_lane ? no_message : cause_});
  network_.set_timer(host_, at, with_place(lane_tokens + slot));
}

void RankExecutor::end_collective(Time now, const LiveOperation& live) {
  const CollectiveCall& call = *live.operation().call;
  if (!is_aggregator()) {
    records_.collectives.add({call.id, rank_.value(), live.details->start.ps(), now.ps(),
                              live.details->collective->messages(), live.details->collective->bytes().count()});
    if (book_.explains())
      records_.collectives.add(call.id,
                               {live.details->start.ps(), now.ps(), rank_.value(), live.details->collective->parts()});
  }
  const std::uint32_t communicator = call.communicator->id();
  running_collective_.erase(communicator);
  queues_.end_collective(communicator, candidates_);
  if (is_aggregator()) serve(communicator);
}

void RankExecutor::on_lane_timer(Time now, const LaneTimer& timer) {
  cause_ = timer.cause;
  CollectiveRun& run = *live_.at(timer.operation).details->collective;
  if (timer.lane == no_lane) {
    book_.explain_launch(now);
    return launch_collective(now, timer.operation);
  }
  if (book_.explains()) settle(now, run);
  if (!run.on_timer(now, timer.lane)) return;
  run.explain_rest();
  book_.explain(now, Because{TimePart::handling});
  complete(now, timer.operation);
}

void RankExecutor::settle(Time now, CollectiveRun& run) {
  book_.settle(now, run.busy_lanes(), run.open_lanes());
  run.settle(now);
}

template <class Why>
void RankExecutor::advance_collective(Time now, std::uint32_t communicator, std::uint32_t channel, const Why& why) {
  const auto running = running_collective_.find(communicator);
  if (running == running_collective_.end()) return;
  const std::uint64_t id = running->second;
  CollectiveRun& run = *live_.at(id).details->collective;
  const std::uint64_t moves = run.moves();
  std::int64_t wait = 0;
  if (book_.explains()) {
    settle(now, run);
    wait = channel < run.channels() ? run.wait(now, channel) : 0;
    run.expect(why, wait);
  }
  const bool finished = channel < run.channels() && run.advance(now, channel);
  if (book_.explains()) {
    // A slot that became free with others free, or a slice that came too early: no one waited for that.
    if (finished || run.moves() != moves) {
      run.explain_wait();
      book_.explain_wait(why, wait);
    }
    run.forget_expected();
  }
  if (!finished) return;
  complete(now, id);
  make_progress(now);
}

void RankExecutor::on_slice(Time now, const Message& message, const TimeParts& parts) {
  ReceiveConnection& from = receive_connection(message.communicator, message.channel, message.source_rank);
  if (!from.arrive(message.sequence, message.parts,
                   {message.bytes, message.collective, message.queue_pair, message.tag, now}))
    return;
  if (is_aggregator()) {
    serve(message.communicator);
    make_progress(now);
  }
  advance_collective(now, message.communicator, message.channel,
                     BecauseOfMessage{parts, Time::from_ps(std::int64_t{message.posting} * 1000)});
}

BecauseOfSending RankExecutor::since_last_answer(Time now, std::uint32_t queue_pair) {
  return book_.explains() ? connections_.since_last_answer(now, queue_pair) : BecauseOfSending{};
}

void RankExecutor::on_credit(Time now, std::uint32_t queue_pair, Time late) {
  const RankConnections::OwnQueuePair& own = connections_.own(queue_pair);
  SendConnection* const connection = own.connection;
  WEFT_EXPECT(connection->in_flight > 0, "rank {} gets a credit without a slice in flight", rank_.value());
  --connection->in_flight;
  cause_ = no_message;
  if (connection->slots && !connection->slots->empty()) {
    cause_ = message_id(host_, connection->slots->front());
    connection->slots->erase(connection->slots->begin());
  }
  BecauseOfSending why = since_last_answer(now, queue_pair);
  why.late = late.ps();
  advance_collective(now, connection->communicator, own.channel, why);
}

void RankExecutor::send_slice(Time now, SendConnection& connection, const CollectiveCall& call, std::uint32_t channel,
                              Bytes bytes, std::uint32_t member, Time posting) {
  Message message;
  message.posting = static_cast<std::uint32_t>(std::min<std::int64_t>(posting.ps() / 1000, UINT32_MAX));
  message.bytes = bytes;
  message.source_rank = rank_.value();
  message.destination_rank = connection.peer;
  message.collective = call.id;
  message.communicator = call.communicator->id();
  message.channel = channel;
  message.sequence = connection.sent;
  message.cause = cause_;
  if (member >= call.communicator->size()) message.tag = member;
  book_.add_bytes_sent(message.bytes);
  if (connection.in_flight <= 1) since_last_answer(now, connection.queue_pair);  // no one waited for an answer
  const auto [parts, last] = connections_.post(now, connection.queue_pair, connection.sent, message, 0);
  book_.add_sent(parts);
  if (records_.causes && credits_limited()) {
    if (!connection.slots) connection.slots = std::make_unique<std::vector<std::uint32_t>>();
    connection.slots->push_back(static_cast<std::uint32_t>(last));
  }
}

void RankExecutor::return_credit(Time now, std::uint32_t source_rank, std::uint32_t queue_pair, Time late) {
  network_.send_credit(host_, now, placement_.host(source_rank), queue_pair, late);
}

}  // namespace weft
