// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/execution/rank_executor.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/system/interrupt.hpp"

namespace weft {

RankExecutor::RankExecutor(Rank rank, const Placement& placement, std::uint32_t place,
                           std::unique_ptr<RankProgram> program, HostNetwork& network, RunRecords& records)
    : rank_(rank),
      placement_(placement),
      host_(placement.host(rank.value())),
      place_(place),
      program_(std::move(program)),
      network_(network),
      records_(records),
      matching_(program_->receives_any()),
      connections_(host_, placement, network),
      // Where operations share processors, communication takes processor time itself.
      slowed_(network.shares_processors() ? 1 : program_->compute_slowdown()),
      book_(rank.value(), host_, records.explain, records.undecided) {
  keeps_operations_ = records.keep_operations.keeps(rank.value());
  accepts_unexpected_ = program_->accepts_unexpected();
  if (matching_.any() && network.shares_processors())
    throw InputError(SourceLine{},
                     fmt::format("rank {} has recvs from any rank or with any tag; `fidelity: loggp` shares "
                                 "out processors to recvs whose sender is known; use packet or ideal",
                                 rank.value()));
  in_order_of_time_ = program_->in_order_of_time();
  read_ahead_ = program_->read_ahead();
  reads_past_started_ = program_->reads_past_started();
  asks_for_processors_ = network.shares_processors();
  StreamUse use{program_->takes_what_is_ready(), program_->streams_are_processors(), false};
  if (asks_for_processors_ && use.are_processors) use.takes_ready = use.ordered_by_network = true;
  queues_.set_use(use);
}

void RankExecutor::start(Time now) {
  book_.open(now);
  pull(now);
  make_progress(now);
}

// Admit operations until the program ends or, if it follows the clock, until its newest operation is in the future.
void RankExecutor::pull(Time now) {
  while (!exhausted_ && resume_at_ <= now && may_read_on()) {
    look_for_interrupt();  // there is no bound on the operations of a moment
    next_ = Operation();
    if (!program_->next(next_)) {
      exhausted_ = true;
      return;
    }
    if (next_.not_before > now) {
      if (in_order_of_time_) resume_at_ = next_.not_before;
      delayed_.emplace(next_.not_before, next_.id);
      network_.set_timer(host_, next_.not_before, with_place(resume_token));
    }
    admit(next_);
  }
}

bool RankExecutor::may_read_on() const {
  return read_ahead_ == 0 || live_.size() - (reads_past_started_ ? under_way_ : 0) < read_ahead_;
}

void RankExecutor::admit(Operation& operation) {
  const std::uint64_t id = operation.id;
  WEFT_EXPECT(id >> place_bit == 0, "operation id {}", id);
  LiveOperation live;
  for (const std::uint64_t dependency : operation.after) {
    LiveOperation* const found = live_.find(dependency);
    if (found == nullptr) continue;  // done
    found->dependents.add(id);
    ++live.unfinished;
  }
  for (const std::uint64_t dependency : operation.after_start) {
    LiveOperation* const found = live_.find(dependency);
    if (found == nullptr || found->begun) continue;
    auto& dependents = found->dependents_of_start;
    if (dependents == nullptr) dependents = std::make_unique<Dependents>();
    dependents->add(id);
    ++live.unfinished;
  }
  live.turn = operation;
  live.not_before = operation.not_before;
  queues_.add(live.turn);
  if (operation.kind == Operation::Kind::send) live.sequence = matching_.number_send(operation);
  if (operation.kind == Operation::Kind::recv) live.sequence = matching_.number_recv(operation);
  if (!keeps_operations_) operation.after = operation.after_start = {};  // the others know that it waits for them
  if (packs() && (live.unfinished > 0 || !queues_.is_first(live.turn)))
    live.pack(operation, records_.labels);
  else
    live.keep(operation);
  live_.add(id, std::move(live));
  candidates_.push_back(id);
}

bool RankExecutor::may_start(const LiveOperation& live, Time now) const {
  return !live.started && live.unfinished == 0 && live.not_before <= now && queues_.is_first(live.turn);
}

// Of programs that are read far ahead, most operations wait for a long time.
bool RankExecutor::packs() const {
  constexpr std::size_t most_in_full = 64;
  return live_.size() > most_in_full;
}

void RankExecutor::set_aside(LiveOperation& live) {
  if (packs() && !live.started && live.details != nullptr) live.pack(live.details->operation, records_.labels);
}

// Operations complete at once now and then (empty ones), which makes others startable: a list, not a recursion.
void RankExecutor::make_progress(Time now) {
  for (std::size_t i = 0;; ++i) {
    if (i == candidates_.size()) pull(now);
    if (i == candidates_.size() && queues_.use().takes_ready)
      while (i == candidates_.size() && start_ready(now)) pull(now);
    if (i == candidates_.size()) break;
    LiveOperation* const found = live_.find(candidates_[i]);
    if (found == nullptr) continue;
    LiveOperation& live = *found;
    if (!may_start(live, now)) {
      set_aside(live);
    } else if (queues_.is_taken_when_ready(live.turn)) {
      queues_.add_ready(live.turn);
      set_aside(live);
    } else {
      start_operation(now, live);
    }
  }
  candidates_.clear();
}

// Starts the smallest ready operation of a stream that is free; false if there is none.
bool RankExecutor::start_ready(Time now) {
  const auto id = queues_.take_ready();
  if (id) start_operation(now, live_.at(*id));
  return id.has_value();
}

// These operations wait for one less.
void RankExecutor::release(const Dependents& dependents) {
  dependents.for_each([this](std::uint64_t dependent) {
    LiveOperation& waiting = live_.at(dependent);
    if (asks_for_processors_) waiting.cause = std::max(waiting.cause, network_.cause());
    if (--waiting.unfinished == 0) candidates_.push_back(dependent);
  });
}

void RankExecutor::start_operation(Time now, LiveOperation& live) {
  book_.account(now);
  live.unpack();
  live.started = true;
  live.details->start = now;
  if (asks_for_processors_ && live.operation().kind != Operation::Kind::collective)
    return network_.request(host_, now, processor_request(live));
  begin_operation(now, live);
}

// In programs whose streams are no processors, communication and the host's operations are on one, and those of the
// accelerator on others.
ProcessorRequest RankExecutor::processor_request(const LiveOperation& live) const {
  const Operation& operation = live.operation();
  ProcessorRequest request;
  request.rank = rank_.value();
  request.token = with_place(operation.id);
  request.cause = live.cause;
  const bool computes = operation.kind == Operation::Kind::compute;
  request.cpu = queues_.use().ordered_by_network               ? operation.cpu
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

void RankExecutor::begin_operation(Time now, LiveOperation& live) {
  live.begun = true;
  live.details->start = now;
  ++under_way_;
  if (live.dependents_of_start != nullptr) release(*live.dependents_of_start);
  const Operation& operation = live.operation();
  if (keeps_operations_ && !is_aggregator()) keep_dependencies(operation);
  if (operation.kind == Operation::Kind::compute) {
    book_.begin_compute(operation.worker);
    const Time duration = program_->compute_time(operation, now);
    if (asks_for_processors_) return network_.run_on_processor(host_, now, processor_request(live), duration);
    if (slowed_.active() && operation.worker == Worker::device)
      slowed_.start(now, operation.id, duration, operation.slowdown);
    network_.set_timer(host_, bounded_sum(now, duration), with_place(operation.id));
    return;
  }
  book_.begin_communication(operation.kind, now);
  if (slows_compute(operation)) slowed_.begin_communication(now);
  if (operation.kind == Operation::Kind::send) return start_send(now, live);
  if (operation.kind == Operation::Kind::recv) return start_recv(now, live);
  start_collective(now, live);
}

// The network knows the order of streams that are processors.
void RankExecutor::keep_dependencies(const Operation& operation) {
  std::optional<std::uint32_t> stream;
  if (queues_.use().has_turns(operation)) stream = queues_.use().number_of(operation);
  dependencies_.starts(rank_.value(), operation, stream, records_.dependencies);
}

// A recv is not counted: it may be posted long before anybody sends.
bool RankExecutor::slows_compute(const Operation& operation) const {
  return slowed_.active() && (operation.kind == Operation::Kind::collective || operation.kind == Operation::Kind::send);
}

void RankExecutor::start_send(Time now, LiveOperation& live) {
  const Operation& operation = live.operation();
  RankConnections::SendQueues& queues = connections_.send_queues(operation.peer.value(), operation.queue_pair);
  Message message;
  message.bytes = operation.bytes;
  message.collective = no_collective;
  message.source_rank = rank_.value();
  message.destination_rank = operation.peer.value();
  message.tag = operation.tag;
  message.sequence = live.sequence;
  message.cause = cause_;
  message.notify = 1;
  message.one_sided = accepts_unexpected_ ? 1 : 0;  // all ranks of a job do, or none
  book_.add_bytes_sent(message.bytes);
  live.details->queue_pair = queues.first + queues.sent % network_.parameters().queue_pairs_per_connection;
  live.details->times = network_.send_times(host_, live.details->queue_pair, now);
  const auto [parts, last] = connections_.post(now, queues.first, queues.sent, message, with_place(operation.id));
  book_.add_sent(parts);
  live.details->parts = parts;
  live.details->message = last;
}

namespace {

bool takes(const Operation& recv, Bytes message) {
  return recv.at_most ? message <= recv.bytes : message == recv.bytes;
}

}  // namespace

void RankExecutor::start_recv(Time now, LiveOperation& live) {
  const Operation& operation = live.operation();
  const auto arrived = matching_.post(operation, live.sequence);
  if (!arrived) return;
  live.details->message = arrived->message;
  WEFT_EXPECT(matching_.any() || takes(operation, arrived->bytes),
              "rank {} receives {} bytes from rank {} tag {}, expected {}", rank_.value(), arrived->bytes.count(),
              operation.peer.value(), operation.tag, operation.bytes.count());
  complete(now, operation.id);
}

std::uint64_t RankExecutor::cause_of_end(const LiveOperation& live) const {
  if (live.operation().kind == Operation::Kind::compute) return no_message;
  return live.operation().kind == Operation::Kind::send ? live.details->message : cause_;
}

namespace {

// What the host does runs there, also where threads of a trace give it an order.
Stream runs_on(const Operation& operation) {
  return operation.worker == Worker::host ? Stream::host : operation.stream;
}

std::uint8_t kind_of_row(const Operation& operation) {
  constexpr std::uint8_t without_device = 4;
  return operation.kind == Operation::Kind::compute && operation.worker != Worker::device
             ? without_device
             : static_cast<std::uint8_t>(operation.kind);
}

}  // namespace

void RankExecutor::complete(Time now, std::uint64_t id) {
  book_.account(now);
  LiveOperation& live = live_.at(id);
  const Operation& operation = live.operation();
  if (operation.kind != Operation::Kind::compute)
    book_.end_communication(operation.kind, live.details->start, live.details->sent);
  else
    book_.end_compute(operation.worker);
  if (slows_compute(operation)) slowed_.end_communication(now);
  ++operations_done_;
  book_.end_operation(now);
  if (operation.kind == Operation::Kind::collective) end_collective(now, live);
  if (keeps_operations_ && !is_aggregator())
    records_.operations.push_back({rank_.value(), id, live.details->start.ps(), now.ps(), kind_of_row(operation),
                                   operation.call != nullptr ? operation.call->id : no_collective,
                                   operation.label.text(), cause_of_end(live), std::string(to_text(runs_on(operation))),
                                   std::string(operation.phase), std::string(operation.group), live.details->message});
  queues_.end(live.turn, candidates_);
  release(live.dependents);
  --under_way_;
  live_.erase(id);
}

void RankExecutor::on_timer(Time now, std::uint64_t token) {
  cause_ = no_message;
  if ((token & ProcessorRequest::granted) != 0) {
    book_.account(now);
    begin_operation(now, live_.at(token & ~ProcessorRequest::granted));
    return make_progress(now);
  }
  if (token < lane_tokens) {
    // A timer is never later than the operation's end: if that has moved, it is waited for again.
    const Time left = slowed_.active() ? slowed_.left(now, token) : Time();
    if (left > Time()) return network_.set_timer(host_, bounded_sum(now, left), with_place(token));
    complete(now, token);
  } else if (token < resume_token) {
    on_lane_timer(now, lane_timers_.take(static_cast<std::uint32_t>(token - lane_tokens)));
  } else {
    const auto due_end = delayed_.upper_bound(now);
    for (auto due = delayed_.begin(); due != due_end; ++due) candidates_.push_back(due->second);
    delayed_.erase(delayed_.begin(), due_end);
    pull(now);
  }
  make_progress(now);
}

void RankExecutor::on_sent(Time now, std::uint64_t token) {
  LiveOperation& live = live_.at(token);
  if (--live.details->parts > 0) return;
  cause_ = live.details->message;
  if (book_.explains())
    book_.explain(now, BecauseOfSending{live.details->times, network_.send_times(host_, live.details->queue_pair, now),
                                        (now - live.details->start).ps(), TimePart::sending});
  complete(now, token);
  make_progress(now);
}

void RankExecutor::on_message(Time now, const Message& message) {
  cause_ = message.id;
  book_.add_received(message.bytes);
  const TimeParts parts = records_.add_message(now, message);
  if (message.collective != no_collective) return on_slice(now, message, parts);
  if (accepts_unexpected_) return;
  const auto bytes = matching_.gather(message);
  if (!bytes) return;
  if (matching_.any()) {
    book_.explain(now, BecauseOfMessage{parts});
    const std::uint64_t before = operations_done_;
    matching_.arrive_any(message, *bytes,
                         [&](std::uint64_t recv, std::uint64_t taken) { end_recv(now, recv, message, taken); });
    if (operations_done_ != before) make_progress(now);
    return;
  }
  const auto recv = matching_.arrive(message, *bytes);
  if (!recv) return;
  const Operation& operation = live_.at(*recv).operation();
  WEFT_EXPECT(takes(operation, *bytes), "rank {} receives {} bytes from rank {} tag {}, expected {}", rank_.value(),
              bytes->count(), message.source_rank, message.tag, operation.bytes.count());
  book_.explain(now, BecauseOfMessage{parts});
  end_recv(now, *recv, message, message.id);
  make_progress(now);
}

// `last`: the message that has arrived now; `message`: the message that the recv takes, which may have arrived earlier.
void RankExecutor::end_recv(Time now, std::uint64_t id, const Message& last, std::uint64_t message) {
  LiveOperation& live = live_.at(id);
  live.details->sent = last.issued;
  live.details->message = message;
  complete(now, id);
}

RankTransfers RankExecutor::transfers(Time end) const {
  RankTransfers result = book_.transfers(end);
  for (const LiveOperation* live : in_order())
    if (live->started && live->turn.is_collective())
      result.under_way.emplace_back(live->operation().call->id, live->details->start.ps());
  return result;
}

bool RankExecutor::finished() const { return exhausted_ && live_.empty() && connections_.empty() && matching_.empty(); }

}  // namespace weft
