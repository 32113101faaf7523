// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/rank_executor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/contract.hpp"
#include "support/interrupt.hpp"
#include "transport/message_parts.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

constexpr std::uint64_t resume_token = (std::uint64_t{1} << 62);
constexpr std::uint64_t lane_tokens = (std::uint64_t{1} << 61);

constexpr std::uint64_t pair_key(std::uint32_t high, std::uint32_t low) {
  return static_cast<std::uint64_t>(high) << 32 | low;
}

}  // namespace

RankExecutor::RankExecutor(Rank rank, const Placement& placement, std::uint32_t place,
                           std::unique_ptr<RankProgram> program, HostNetwork& network, RunRecords& records)
    : rank_(rank),
      placement_(placement),
      host_(placement.host(rank.value())),
      place_(place),
      program_(std::move(program)),
      network_(network),
      records_(records),
      // Where processors are shared out, communication takes their time itself.
      slowed_(network.shares_processors() ? 1 : program_->compute_slowdown()) {
  keeps_operations_ = records.keep_operations.keeps(rank.value());
  explains_ = records.explain;
  accepts_unexpected_ = program_->accepts_unexpected();
  if (program_->receives_any()) any_ = std::make_unique<AnyMatching>();
  if (any_ && network.shares_processors())
    throw InputError(SourceLine{},
                     fmt::format("rank {} has recvs from any rank or with any tag; `fidelity: loggp` shares "
                                 "out processors to recvs whose sender is known; use packet or ideal",
                                 rank.value()));
  in_order_of_time_ = program_->in_order_of_time();
  takes_what_is_ready_ = program_->takes_what_is_ready();
  read_ahead_ = program_->read_ahead();
  reads_past_started_ = program_->reads_past_started();
  asks_for_processors_ = network.shares_processors();
  streams_are_processors_ = program_->streams_are_processors();
  // The network orders what runs on a processor.
  if (asks_for_processors_ && streams_are_processors_) takes_what_is_ready_ = passes_streams_ = true;
  record_.rank = rank.value();
  record_.node = host_;
}

void RankExecutor::start(Time now) {
  last_change_ = now;
  pull(now);
  make_progress(now);
}

// Admit operations until the program ends or, if it goes by the clock, until its newest operation lies in the future.
void RankExecutor::pull(Time now) {
  while (!exhausted_ && resume_at_ <= now && may_read_on()) {
    look_for_interrupt();  // there is no bound on the operations of a moment
    Operation operation;
    if (!program_->next(operation)) {
      exhausted_ = true;
      return;
    }
    if (operation.not_before > now) {
      if (in_order_of_time_) resume_at_ = operation.not_before;
      delayed_.emplace(operation.not_before, operation.id);
      network_.set_timer(host_, operation.not_before, with_place(resume_token));
    }
    admit(std::move(operation));
  }
}

bool RankExecutor::may_read_on() const {
  return read_ahead_ == 0 || live_.size() - (reads_past_started_ ? under_way_ : 0) < read_ahead_;
}

void RankExecutor::admit(Operation operation) {
  const std::uint64_t id = operation.id;
  WEFT_EXPECT(id >> place_bit == 0, "operation id {}", id);
  Live live;
  for (const std::uint64_t dependency : operation.after) {
    const auto found = live_.find(dependency);
    if (found == live_.end()) continue;  // done
    found->second.dependents.push_back(id);
    ++live.unfinished;
  }
  for (const std::uint64_t dependency : operation.after_start) {
    const auto found = live_.find(dependency);
    if (found == live_.end() || found->second.begun) continue;
    found->second.dependents_of_start.push_back(id);
    ++live.unfinished;
  }
  if (operation.stream != Stream::none && !takes_what_is_ready_)
    streams_[static_cast<int>(operation.stream)].push_back(id);
  if (operation.kind == Operation::Kind::collective) communicators_[operation.call->communicator->id()].push_back(id);
  const std::uint64_t lane = pair_key(operation.peer.value(), operation.tag);
  if (operation.kind == Operation::Kind::send) live.sequence = sends_[lane]++;
  if (operation.kind == Operation::Kind::recv && !any_) live.sequence = matching_[lane].recvs++;
  live.operation = std::move(operation);
  live_.emplace(id, std::move(live));
  candidates_.push_back(id);
}

bool RankExecutor::may_start(const Live& live, Time now) const {
  const Operation& operation = live.operation;
  if (live.started || live.unfinished > 0 || operation.not_before > now) return false;
  if (operation.stream != Stream::none && !takes_what_is_ready_ &&
      streams_[static_cast<int>(operation.stream)].front() != operation.id)
    return false;
  return operation.kind != Operation::Kind::collective ||
         communicators_.at(operation.call->communicator->id()).front() == operation.id;
}

// Operations complete at once now and then (empty ones), which makes others startable: a list, not a recursion.
void RankExecutor::make_progress(Time now) {
  for (std::size_t i = 0;; ++i) {
    if (i == candidates_.size()) pull(now);
    if (i == candidates_.size() && takes_what_is_ready_)
      while (i == candidates_.size() && start_ready(now)) pull(now);
    if (i == candidates_.size()) break;
    const auto found = live_.find(candidates_[i]);
    if (found == live_.end() || !may_start(found->second, now)) continue;
    if (takes_what_is_ready_ && !passes_streams_ && found->second.operation.stream != Stream::none)
      ready_streams_[number_of_stream(found->second.operation)].ready.insert(candidates_[i]);
    else
      start_operation(now, found->second);
  }
  candidates_.clear();
}

// Starts the smallest ready operation of a stream that is free; false if there is none. Collectives among them are the
// first of their communicator.
bool RankExecutor::start_ready(Time now) {
  for (auto& [number, stream] : ready_streams_) {
    if (stream.busy || stream.ready.empty()) continue;
    const std::uint64_t id = *stream.ready.begin();
    stream.ready.erase(stream.ready.begin());
    stream.busy = true;
    start_operation(now, live_.at(id));
    return true;
  }
  return false;
}

std::uint32_t RankExecutor::number_of_stream(const Operation& operation) const {
  return streams_are_processors_ ? operation.cpu : static_cast<std::uint32_t>(operation.stream);
}

// These operations wait for one less.
void RankExecutor::release(const std::vector<std::uint64_t>& dependents) {
  for (const std::uint64_t dependent : dependents) {
    const auto waiting = live_.find(dependent);
    if (asks_for_processors_) waiting->second.cause = std::max(waiting->second.cause, network_.cause());
    if (--waiting->second.unfinished == 0) candidates_.push_back(dependent);
  }
}

void RankExecutor::start_operation(Time now, Live& live) {
  account(now);
  live.started = true;
  live.start = now;
  if (asks_for_processors_ && live.operation.kind != Operation::Kind::collective)
    return network_.request(host_, now, processor_request(live));
  begin_operation(now, live);
}

// Of programs whose streams are no processors, communication and the host's operations are on one, and those of the
// accelerator on others.
ProcessorRequest RankExecutor::processor_request(const Live& live) const {
  const Operation& operation = live.operation;
  ProcessorRequest request;
  request.rank = rank_.value();
  request.token = with_place(operation.id);
  request.cause = live.cause;
  const bool computes = operation.kind == Operation::Kind::compute;
  request.cpu = passes_streams_                                ? operation.cpu
                : computes && operation.stream != Stream::host ? 1 + static_cast<std::uint32_t>(operation.stream)
                                                               : 0;
  if (computes) return request;
  request.kind = operation.kind == Operation::Kind::send ? ProcessorRequest::Kind::send : ProcessorRequest::Kind::recv;
  request.nic = operation.queue_pair;
  request.source = operation.peer.value();
  request.tag = operation.tag;
  request.sequence = live.sequence;
  return request;
}

void RankExecutor::begin_operation(Time now, Live& live) {
  live.begun = true;
  live.start = now;
  ++under_way_;
  release(live.dependents_of_start);
  const Operation& operation = live.operation;
  if (keeps_operations_ && !is_aggregator()) keep_dependencies(operation);
  if (operation.kind == Operation::Kind::compute) {
    if (!operation.host) ++computing_;
    const Time duration = program_->compute_time(operation, now);
    if (asks_for_processors_) return network_.run_on_processor(host_, now, processor_request(live), duration);
    if (slowed_.active() && !operation.host) slowed_.start(now, operation.id, duration, operation.slowdown);
    network_.set_timer(host_, bounded_sum(now, duration), with_place(operation.id));
    return;
  }
  count_communication(live, true);
  if (slows_compute(operation)) slowed_.begin_communication(now);
  if (operation.kind == Operation::Kind::send) return start_send(now, live);
  if (operation.kind == Operation::Kind::recv) return start_recv(now, live);
  start_collective(now, live);
}

// Of streams that are processors the network knows the order.
void RankExecutor::keep_dependencies(const Operation& operation) {
  std::optional<std::uint32_t> stream;
  if (operation.stream != Stream::none && !passes_streams_) stream = number_of_stream(operation);
  dependencies_.starts(rank_.value(), operation, stream, records_.dependencies);
}

// A recv is not counted: it may be posted long before anybody sends.
bool RankExecutor::slows_compute(const Operation& operation) const {
  return slowed_.active() && (operation.kind == Operation::Kind::collective || operation.kind == Operation::Kind::send);
}

void RankExecutor::start_collective(Time now, Live& live) {
  const CollectiveCall& call = *live.operation.call;
  const std::uint64_t id = live.operation.id;
  const std::uint32_t index = is_aggregator() ? live.operation.tag : call.communicator->index_of(rank_);
  live.collective = std::make_unique<CollectiveRun>(call, index, id, *this);
  live.collective->begin_at(now);
  if (call.tuning.launch > Time() && !is_aggregator())
    return set_lane_timer(bounded_sum(now, call.tuning.launch), id, no_lane);
  launch_collective(now, id);
}

void RankExecutor::launch_collective(Time now, std::uint64_t operation) {
  CollectiveRun& run = *live_.at(operation).collective;
  running_collective_[run.call().communicator->id()] = operation;
  bool finished = run.channels() == 0;
  for (std::uint32_t channel = 0; channel < run.channels(); ++channel) finished = run.advance(now, channel);
  if (finished) complete(now, operation);
}

void RankExecutor::set_lane_timer(Time at, std::uint64_t operation, std::uint32_t lane) {
  if (free_lane_timers_.empty()) {
    free_lane_timers_.push_back(static_cast<std::uint32_t>(lane_timers_.size()));
    lane_timers_.emplace_back();
  }
  const std::uint32_t slot = free_lane_timers_.back();
  free_lane_timers_.pop_back();
  lane_timers_[slot] = {operation, lane, lane == no_lane ? no_message : cause_};
  network_.set_timer(host_, at, with_place(lane_tokens + slot));
}

// Those of one connection. Gives the first; the others follow it.
std::uint32_t RankExecutor::open_queue_pairs(std::uint32_t peer) {
  const std::uint32_t host = placement_.host(peer);
  const std::uint32_t first = network_.open_queue_pair(host_, host);
  for (std::uint32_t i = 1; i < network_.parameters().queue_pairs_per_connection; ++i) {
    const std::uint32_t next = network_.open_queue_pair(host_, host);
    WEFT_EXPECT(next == first + i, "queue pair {} of host {} follows {}", next, host_, first);
  }
  return first;
}

// Posts a message to a connection's queue pairs: to the next in turn, or in parts to all (NCCL's ncclIbMultiSend in
// src/transport/net_ib.cc). Gives the number of parts. `turn` counts the messages of the connection.
std::uint32_t RankExecutor::post_spread(Time now, std::uint32_t first, std::uint32_t& turn, Message message,
                                        std::uint64_t token) {
  const NetworkParameters& network = network_.parameters();
  const std::uint32_t pairs = network.queue_pairs_per_connection;
  const std::uint32_t number = turn++;
  if (!network.split_data || pairs == 1) {
    ++record_.messages_sent;
    posted_ = network_.post(host_, first + number % pairs, now, message, token);
    return 1;
  }
  constexpr std::int64_t unit = NetworkParameters::split_unit;
  const std::int64_t whole = message.bytes;
  const std::int64_t share = std::max<std::int64_t>(1, (whole + pairs * unit - 1) / (pairs * unit)) * unit;
  message.parts = static_cast<std::uint32_t>(std::max<std::int64_t>(1, (whole + share - 1) / share));
  record_.messages_sent += message.parts;
  for (std::uint32_t part = 0; part < message.parts; ++part) {
    message.bytes = std::min(share, whole - part * share);
    posted_ = network_.post(host_, first + part, now, message, token);
  }
  return message.parts;
}

void RankExecutor::start_send(Time now, Live& live) {
  const Operation& operation = live.operation;
  const auto [at, fresh] = queue_pairs_.try_emplace(pair_key(operation.peer.value(), operation.queue_pair));
  if (fresh) at->second.first = open_queue_pairs(operation.peer.value());
  Message message;
  message.bytes = operation.bytes.count();
  message.collective = no_collective;
  message.source_rank = rank_.value();
  message.destination_rank = operation.peer.value();
  message.tag = operation.tag;
  message.sequence = live.sequence;
  message.cause = cause_;
  message.notify = 1;
  message.one_sided = accepts_unexpected_ ? 1 : 0;  // all ranks of a job do, or none
  record_.bytes_sent += message.bytes;
  live.queue_pair = at->second.first + at->second.sent % network_.parameters().queue_pairs_per_connection;
  live.times = network_.send_times(host_, live.queue_pair, now);
  live.parts = post_spread(now, at->second.first, at->second.sent, message, with_place(operation.id));
  live.message = posted_;
}

void RankExecutor::start_any_recv(Time now, Live& live) {
  const auto found = std::find_if(any_->arrived.begin(), any_->arrived.end(), [&](const AnyMatching::Message& message) {
    return suits(live.operation, message.source, message.tag);
  });
  if (found == any_->arrived.end()) {
    any_->posted.push_back(live.operation.id);
    return;
  }
  live.message = found->id;
  any_->arrived.erase(found);
  complete(now, live.operation.id);
}

// One that has come before another one of its lane waits for that. True if a recv has ended.
bool RankExecutor::match_any(Time now, const Message& message, std::int64_t bytes) {
  const std::uint64_t lane = pair_key(message.source_rank, message.tag);
  auto& early = matching_[lane].arrived;
  early.emplace(message.sequence, Matching::Arrived{bytes, message.id});
  std::uint32_t& next = any_->taken[lane];
  const std::uint64_t before = operations_done_;
  for (auto at = early.begin(); at != early.end() && at->first == next; at = early.erase(at), ++next)
    deliver_any(now, message, at->second.message);
  return operations_done_ != before;
}

void RankExecutor::deliver_any(Time now, const Message& message, std::uint64_t id_of_message) {
  const auto found = std::find_if(any_->posted.begin(), any_->posted.end(), [&](std::uint64_t id) {
    return suits(live_.at(id).operation, message.source_rank, message.tag);
  });
  if (found == any_->posted.end()) {
    any_->arrived.push_back({message.source_rank, message.tag, id_of_message});
    return;
  }
  const std::uint64_t id = *found;
  any_->posted.erase(found);
  Live& live = live_.at(id);
  live.sent = Time::from_ps(message.issued);
  live.message = id_of_message;
  complete(now, id);
}

void RankExecutor::start_recv(Time now, Live& live) {
  if (any_) return start_any_recv(now, live);
  const Operation& operation = live.operation;
  Matching& matching = matching_[pair_key(operation.peer.value(), operation.tag)];
  const auto arrived = matching.arrived.find(live.sequence);
  if (arrived == matching.arrived.end()) {
    matching.posted.emplace(live.sequence, operation.id);
    return;
  }
  const auto [bytes, message] = arrived->second;
  live.message = message;
  matching.arrived.erase(arrived);
  WEFT_EXPECT(bytes == operation.bytes.count(), "rank {} receives {} bytes from rank {} tag {}, expected {}",
              rank_.value(), bytes, operation.peer.value(), operation.tag, operation.bytes.count());
  complete(now, operation.id);
}

std::uint64_t RankExecutor::cause_of_end(const Live& live) const {
  if (live.operation.kind == Operation::Kind::compute) return no_message;
  return live.operation.kind == Operation::Kind::send ? live.message : cause_;
}

void RankExecutor::complete(Time now, std::uint64_t id) {
  const auto found = live_.find(id);
  WEFT_EXPECT(found != live_.end(), "rank {} completes operation {}", rank_.value(), id);
  account(now);
  Live& live = found->second;
  const Operation& operation = live.operation;
  if (operation.kind != Operation::Kind::compute)
    count_communication(live, false);
  else if (!operation.host)
    --computing_;
  if (slows_compute(operation)) slowed_.end_communication(now);
  ++operations_done_;
  record_.finished = now.ps();
  if (operation.kind == Operation::Kind::collective) {
    if (!is_aggregator()) {
      records_.collectives.add({operation.call->id, rank_.value(), live.start.ps(), now.ps(),
                                live.collective->messages(), live.collective->bytes().count()});
      if (explains_)
        records_.collectives.add(operation.call->id,
                                 {live.start.ps(), now.ps(), rank_.value(), live.collective->parts()});
    }
    const std::uint32_t communicator = operation.call->communicator->id();
    running_collective_.erase(communicator);
    Queue& queue = communicators_.at(communicator);
    queue.pop_front();
    if (!queue.empty()) candidates_.push_back(queue.front());
    if (is_aggregator()) serve(communicator);
  }
  if (keeps_operations_ && !is_aggregator())
    records_.operations.push_back({rank_.value(), id, live.start.ps(), now.ps(),
                                   static_cast<std::uint8_t>(operation.kind),
                                   operation.call != nullptr ? operation.call->id : no_collective, operation.label,
                                   cause_of_end(live), std::string(to_text(operation.stream)),
                                   std::string(operation.phase), std::string(operation.group), live.message});
  if (takes_what_is_ready_) {
    if (operation.stream != Stream::none && !passes_streams_) ready_streams_[number_of_stream(operation)].busy = false;
  } else if (operation.stream != Stream::none) {
    Queue& queue = streams_[static_cast<int>(operation.stream)];
    queue.pop_front();
    if (!queue.empty()) candidates_.push_back(queue.front());
  }
  release(live.dependents);
  --under_way_;
  live_.erase(found);
}

void RankExecutor::on_timer(Time now, std::uint64_t token) {
  cause_ = no_message;
  if ((token & ProcessorRequest::granted) != 0) {
    account(now);
    begin_operation(now, live_.at(token & ~ProcessorRequest::granted));
    return make_progress(now);
  }
  if (token < lane_tokens) {
    // A timer is never later than the operation's end: if that has moved, it is waited for again.
    const Time left = slowed_.active() ? slowed_.left(now, token) : Time();
    if (left > Time()) return network_.set_timer(host_, bounded_sum(now, left), with_place(token));
    complete(now, token);
  } else if (token < resume_token) {
    const auto slot = static_cast<std::uint32_t>(token - lane_tokens);
    const LaneTimer due = lane_timers_[slot];
    free_lane_timers_.push_back(slot);
    cause_ = due.cause;
    CollectiveRun& run = *live_.at(due.operation).collective;
    const Because why{due.lane == no_lane ? TimePart::launch : TimePart::handling};
    explain(now, why);
    run.explain(now, why);
    if (due.lane == no_lane)
      launch_collective(now, due.operation);
    else if (run.on_timer(now, due.lane))
      complete(now, due.operation);
  } else {
    const auto due_end = delayed_.upper_bound(now);
    for (auto due = delayed_.begin(); due != due_end; ++due) candidates_.push_back(due->second);
    delayed_.erase(delayed_.begin(), due_end);
    pull(now);
  }
  make_progress(now);
}

void RankExecutor::on_sent(Time now, std::uint64_t token) {
  Live& live = live_.at(token);
  if (--live.parts > 0) return;
  cause_ = live.message;
  if (explains_)
    explain(now, BecauseOfSending{live.times, network_.send_times(host_, live.queue_pair, now), (now - live.start).ps(),
                                  TimePart::sending});
  complete(now, token);
  make_progress(now);
}

void RankExecutor::on_message(Time now, const Message& message) {
  cause_ = message.id;
  ++record_.messages_received;
  record_.bytes_received += message.bytes;
  MessageRecord row;
  row.id = message.id;
  row.source = message.source_rank;
  row.destination = message.destination_rank;
  row.bytes = message.bytes;
  row.issued = message.issued;
  row.delivered = now.ps();
  row.ideal = message.ideal;
  row.packets = message.packets;
  row.collective = message.collective;
  row.tag = message.tag;
  row.queueing = message.waited;
  row.paused = message.paused;
  row.retransmission = message.retransmission;
  row.cause = message.cause;
  for (std::size_t i = 0; i < message.longest_waits.size(); ++i) {
    row.slowest_links[i] = message.longest_waits[i].link;
    row.slowest_waits[i] = message.longest_waits[i].wait;
  }
  if (records_.explain) row.parts = parts_of(message, now.ps());
  records_.messages.add(row);
  ++records_.messages_delivered;
  records_.bytes_delivered += message.bytes;
  if (message.collective != no_collective) {
    ReceiveConnection& from = receive_connection(message.communicator, message.channel, message.source_rank);
    if (from.arrive(message.sequence, message.parts,
                    {message.bytes, message.collective, message.queue_pair, message.tag})) {
      if (is_aggregator()) {
        serve(message.communicator);
        make_progress(now);
      }
      advance_collective(now, message.communicator, message.channel, BecauseOfMessage{row.parts});
    }
    return;
  }
  if (accepts_unexpected_) return;
  Matching& matching = matching_[pair_key(message.source_rank, message.tag)];
  std::int64_t bytes = message.bytes;
  if (message.parts > 1) {
    Matching::Part& part = matching.parts[message.sequence];
    part.bytes += bytes;
    if (++part.count < message.parts) return;
    bytes = part.bytes;
    matching.parts.erase(message.sequence);
  }
  if (any_) {
    explain(now, BecauseOfMessage{row.parts});
    if (match_any(now, message, bytes)) make_progress(now);
    return;
  }
  const auto posted = matching.posted.find(message.sequence);
  if (posted == matching.posted.end()) {
    matching.arrived.emplace(message.sequence, Matching::Arrived{bytes, message.id});
    return;
  }
  const std::uint64_t id = posted->second;
  matching.posted.erase(posted);
  Live& live = live_.at(id);
  live.sent = Time::from_ps(message.issued);
  live.message = message.id;
  const Operation& operation = live.operation;
  WEFT_EXPECT(bytes == operation.bytes.count(), "rank {} receives {} bytes from rank {} tag {}, expected {}",
              rank_.value(), bytes, message.source_rank, message.tag, operation.bytes.count());
  explain(now, BecauseOfMessage{row.parts});
  complete(now, id);
  make_progress(now);
}

BecauseOfSending RankExecutor::since_last_answer(Time now, std::uint32_t queue_pair) {
  if (!explains_) return {};
  OwnQueuePair& own = connection_of_queue_pair_.at(queue_pair);
  const BecauseOfSending why{own.times, network_.send_times(host_, queue_pair, now), (now - own.answered).ps(),
                             TimePart::credits};
  own.times = why.to;
  own.answered = now;
  return why;
}

void RankExecutor::on_credit(Time now, std::uint32_t queue_pair) {
  const OwnQueuePair& own = connection_of_queue_pair_.at(queue_pair);
  SendConnection* const connection = own.connection;
  WEFT_EXPECT(connection->in_flight > 0, "rank {} gets a credit without a slice in flight", rank_.value());
  --connection->in_flight;
  cause_ = no_message;
  if (connection->slots && !connection->slots->empty()) {
    cause_ = std::uint64_t{host_} << 32 | connection->slots->front();
    connection->slots->erase(connection->slots->begin());
  }
  advance_collective(now, connection->communicator, own.channel, since_last_answer(now, queue_pair));
}

template <class Why>
void RankExecutor::advance_collective(Time now, std::uint32_t communicator, std::uint32_t channel, const Why& why) {
  const auto running = running_collective_.find(communicator);
  if (running == running_collective_.end()) return;
  const std::uint64_t id = running->second;
  CollectiveRun& run = *live_.at(id).collective;
  if (explains_) {
    explain(now, why);
    run.explain(now, why);
  }
  if (channel >= run.channels() || !run.advance(now, channel)) return;
  complete(now, id);
  make_progress(now);
}

SendConnection& RankExecutor::send_connection(const CollectiveCall& call, std::uint32_t channel, std::uint32_t rank) {
  const auto [at, fresh] = send_connections_.try_emplace({call.communicator->id(), channel, rank});
  if (fresh) {
    at->second.queue_pair = open_queue_pairs(rank);
    at->second.peer = rank;
    at->second.communicator = call.communicator->id();
    for (std::uint32_t i = 0; i < network_.parameters().queue_pairs_per_connection; ++i)
      connection_of_queue_pair_[at->second.queue_pair + i] = {&at->second, channel, Time(), {}};
  }
  return at->second;
}

ReceiveConnection& RankExecutor::receive_connection(std::uint32_t communicator, std::uint32_t channel,
                                                    std::uint32_t source) {
  return receive_connections_[{communicator, channel, source}];
}

void RankExecutor::send_slice(Time now, SendConnection& connection, const CollectiveCall& call, std::uint32_t channel,
                              Bytes bytes, std::uint32_t member) {
  Message message;
  message.bytes = bytes.count();
  message.source_rank = rank_.value();
  message.destination_rank = connection.peer;
  message.collective = call.id;
  message.communicator = call.communicator->id();
  message.channel = channel;
  message.sequence = connection.sent;
  message.cause = cause_;
  if (member >= call.communicator->size()) message.tag = member;
  record_.bytes_sent += message.bytes;
  if (connection.in_flight <= 1) since_last_answer(now, connection.queue_pair);  // nobody has waited for an answer
  post_spread(now, connection.queue_pair, connection.sent, message, 0);
  if (records_.causes && credits_limited()) {
    if (!connection.slots) connection.slots = std::make_unique<std::vector<std::uint32_t>>();
    connection.slots->push_back(static_cast<std::uint32_t>(posted_));
  }
}

void RankExecutor::return_credit(Time now, std::uint32_t source_rank, std::uint32_t queue_pair) {
  network_.send_credit(host_, now, placement_.host(source_rank), queue_pair);
}

void RankExecutor::account(Time now) {
  const std::int64_t span = (now - last_change_).ps();
  last_change_ = now;
  if (computing_ > 0) record_.compute += span;
  if (communicating_ > 0) record_.communication += span;
  if (communicating_ == 0 || computing_ > 0) return;
  record_.exposed += span;
  unexplained_ += span;
  transfers_.add((now - Time::from_ps(span)).ps(), now.ps());
  if (transfers_.keeps_many())
    for (const TimeSpan& kept : transfers_.take_kept()) records_.undecided.add({rank_.value(), kept.begin, kept.end});
}

// What has happened now is what the rank has waited for, as far as it communicates and does not compute.
template <class Why>
void RankExecutor::explain(Time now, const Why& why) {
  if (!explains_) return;
  account(now);
  why.add_to(record_.parts, std::exchange(unexplained_, 0));
}

void RankExecutor::count_communication(const Live& live, bool starts) {
  if (starts)
    ++communicating_;
  else
    --communicating_;
  switch (live.operation.kind) {
    case Operation::Kind::send:
      return starts ? transfers_.start_send() : transfers_.end_send();
    case Operation::Kind::recv:
      return starts ? transfers_.start_recv(live.start.ps()) : transfers_.end_recv(live.start.ps(), live.sent.ps());
    default:
      return starts ? transfers_.start_collective() : transfers_.end_collective();
  }
}

RankTransfers RankExecutor::transfers(Time end) const {
  TransferBook book = transfers_;
  if (communicating_ > 0 && computing_ == 0) book.add(last_change_.ps(), end.ps());
  RankTransfers result{rank_.value(), book.transferring(), book.undecided(), {}};
  for (const auto& [id, live] : live_)
    if (live.started && live.operation.kind == Operation::Kind::collective)
      result.under_way.emplace_back(live.operation.call->id, live.start.ps());
  return result;
}

RankRecord RankExecutor::record(Time end) const {
  RankRecord result = record_;
  const std::int64_t open = (end - last_change_).ps();  // what is still under way counts until the end
  if (computing_ > 0) result.compute += open;
  if (communicating_ > 0) result.communication += open;
  if (communicating_ > 0 && computing_ == 0) result.exposed += open;
  result.idle = end.ps() - result.compute - result.exposed;
  result.under_way = computing_ > 0 || communicating_ > 0;
  if (!explains_) return result;
  result.parts[TimePart::compute] = result.compute;
  result.parts[TimePart::idle] = result.idle;
  // Of what is under way nobody knows yet what it waits for.
  result.parts[TimePart::peers] += end.ps() - result.parts.total();
  return result;
}

bool RankExecutor::finished() const {
  if (!exhausted_ || !live_.empty()) return false;
  for (const auto& [key, connection] : receive_connections_)
    if (!connection.empty()) return false;
  for (const auto& [key, matching] : matching_)
    if (!matching.arrived.empty()) return false;
  return !any_ || any_->arrived.empty();
}

std::string RankExecutor::describe(const Live& live) const {
  const Operation& operation = live.operation;
  std::string text = is_aggregator() ? fmt::format("aggregator at host {}: operation {}", host_, operation.id)
                                     : fmt::format("rank {}: operation {}", rank_.value(), operation.id);
  if (!operation.label.empty()) text += fmt::format(" '{}'", operation.label);
  if (operation.line != 0) text += fmt::format(" (line {})", operation.line);
  switch (operation.kind) {
    case Operation::Kind::compute:
      text += ", compute of " + to_text(operation.duration);
      break;
    case Operation::Kind::send:
      text += fmt::format(", send of {} to rank {}, tag {}", to_text(operation.bytes), operation.peer.value(),
                          operation.tag);
      break;
    case Operation::Kind::recv:
      text += fmt::format(", recv of {} from {}, {}", to_text(operation.bytes),
                          operation.any_source ? "any rank" : fmt::format("rank {}", operation.peer.value()),
                          operation.any_tag ? "any tag" : fmt::format("tag {}", operation.tag));
      break;
    case Operation::Kind::collective:
      text += fmt::format(", {} number {}", to_text(operation.call->kind), operation.call->id);
      break;
  }
  if (live.unfinished > 0)
    return text + fmt::format(": waits for {} operation{} before it", live.unfinished, live.unfinished == 1 ? "" : "s");
  if (!live.started) return text + ": waits for its stream or communicator";
  if (live.collective) return text + ": " + live.collective->waiting();
  return text + (operation.kind == Operation::Kind::recv ? ": no such message has come" : ": has not completed");
}

void RankExecutor::add_waits(std::vector<RankWait>& waits) const {
  for (const auto& [id, live] : live_) {
    if (!live.started) continue;
    if (live.operation.kind == Operation::Kind::recv && !live.operation.any_source)
      waits.push_back({{rank_.value()}, {live.operation.peer.value()}, Waiter::none, describe(live)});
    if (!live.collective) continue;
    for (const auto& [awaited, channel] : live.collective->awaited_ranks()) {
      const auto named = [&](std::uint32_t rank) {
        return rank < placement_.ranks() ? Waiter{rank} : Waiter{rank, live.operation.call->id, channel};
      };
      waits.push_back({named(rank_.value()), named(awaited), live.operation.call->id, describe(live)});
    }
  }
}

std::vector<std::string> RankExecutor::waiting(std::size_t most) const {
  std::vector<std::string> lines;
  for (const auto& [id, live] : live_) {
    if (lines.size() >= most) return lines;
    lines.push_back(describe(live));
  }
  if (lines.empty() && !finished())
    lines.push_back(fmt::format("rank {}: messages have come that no operation receives", rank_.value()));
  return lines;
}

}  // namespace weft
