// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/execution/runtime.hpp"

#include <utility>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

constexpr std::uint64_t start_token = (std::uint64_t{1} << 62) + 1;

}  // namespace

Runtime::Runtime(const Workload& workload, const Placement& placement, HostNetwork& network, MessageSelection messages,
                 OperationSelection operations, bool explain, bool causes)
    : workload_(workload), placement_(placement), network_(network) {
  records_.messages = MessageLog(messages);
  records_.keep_operations = std::move(operations);
  records_.explain = explain;
  records_.causes = causes;
  for (const JobInfo& job : workload.jobs())
    for (std::uint32_t r = job.first_rank; r < job.first_rank + job.ranks; ++r)
      add_rank(workload, r, job.background, placement, network);
}

void Runtime::add_rank(const Workload& workload, std::uint32_t r, bool background, const Placement& placement,
                       HostNetwork& network) {
  look_for_interrupt();
  const NodeId host = placement.host(r);
  if (!network.owns(host)) return;
  const std::uint32_t place = add_place(host);
  executors_.push_back(
      std::make_unique<RankExecutor>(Rank(r), placement, place, workload.program(Rank(r)), network, records_));
  background_.push_back(background);
  network.set_timer(host, workload.start(Rank(r)), start_token | std::uint64_t{place} << RankExecutor::place_bit);
}

std::uint32_t Runtime::add_place(NodeId host) {
  if (slot_of_host_.size() <= host.value()) slot_of_host_.resize(host.value() + 1, no_slot);
  if (slot_of_host_[host] == no_slot) {
    slot_of_host_[host] = static_cast<std::uint32_t>(ranks_of_host_.size());
    ranks_of_host_.emplace_back();
  }
  Ranks& ranks = ranks_of_host_[slot_of_host_[host]];
  ranks.push_back(static_cast<std::uint32_t>(executors_.size()));
  WEFT_EXPECT(ranks.size() <= RankExecutor::max_places, "host {} has more than {} ranks", host.value(),
              +RankExecutor::max_places);
  return static_cast<std::uint32_t>(ranks.size() - 1);
}

void Runtime::on_timer(NodeId host, Time now, std::uint64_t token) {
  RankExecutor& rank = executor(host, token);
  token = RankExecutor::without_place(token);
  if (token == start_token)
    rank.start(now);
  else
    rank.on_timer(now, token);
}

RankExecutor& Runtime::executor_of_rank(NodeId host, std::uint32_t rank) {
  if (host.value() < slot_of_host_.size() && slot_of_host_[host] != no_slot)
    for (const std::uint32_t number : ranks_of(host))
      if (executors_[number]->rank() == rank) return *executors_[number];
  if (rank >= placement_.ranks()) return add_aggregator(host, rank);
  throw InternalError(fmt::format("host {} gets a message for rank {}, which is not there", host.value(), rank));
}

// Aggregators are made when the first message for them arrives.
RankExecutor& Runtime::add_aggregator(NodeId host, std::uint32_t rank) {
  const std::uint32_t place = add_place(host);
  executors_.push_back(std::make_unique<RankExecutor>(Rank(rank), placement_, place, workload_, network_, records_));
  background_.push_back(true);  // the ranks that it serves determine whether all is done
  return *executors_.back();
}

void Runtime::on_message(NodeId host, Time now, const Message& message) {
  executor_of_rank(host, message.destination_rank).on_message(now, message);
}

void Runtime::on_sent(NodeId host, Time now, std::uint64_t token) {
  executor(host, token).on_sent(now, RankExecutor::without_place(token));
}

void Runtime::on_credit(NodeId host, Time now, std::uint32_t queue_pair, Time late) {
  for (const std::uint32_t number : ranks_of(host))
    if (executors_[number]->has_connection(queue_pair)) return executors_[number]->on_credit(now, queue_pair, late);
}

std::vector<RankRecord> Runtime::rank_records(Time end) const {
  std::vector<RankRecord> rows;
  for (const auto& executor : executors_) {
    if (executor->is_aggregator()) continue;
    rows.push_back(executor->record(end));
    rows.back().complete = executor->finished();
  }
  return rows;
}

std::vector<RankTransfers> Runtime::rank_transfers(Time end) const {
  std::vector<RankTransfers> rows;
  for (const auto& executor : executors_)
    if (!executor->is_aggregator()) rows.push_back(executor->transfers(end));
  return rows;
}

std::uint64_t Runtime::unfinished() const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < executors_.size(); ++i) count += background_[i] || executors_[i]->finished() ? 0 : 1;
  return count;
}

std::vector<std::string> Runtime::waiting(std::size_t max) const {
  std::vector<std::string> lines;
  for (const auto& executor : executors_) {
    if (lines.size() >= max) break;
    for (auto& line : executor->waiting(max - lines.size())) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<RankWait> Runtime::waits() const {
  std::vector<RankWait> all;
  for (const auto& executor : executors_) executor->add_waits(all);
  return all;
}

std::uint64_t Runtime::operations_done() const {
  std::uint64_t total = 0;
  for (const auto& executor : executors_)
    if (!executor->is_aggregator()) total += executor->operations_done();
  return total;
}

}  // namespace weft
