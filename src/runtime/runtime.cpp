// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/runtime.hpp"

namespace weft {
namespace {

constexpr std::uint64_t start_token = (std::uint64_t{1} << 62) + 1;

}  // namespace

Runtime::Runtime(const Workload& workload, Fabric& fabric, MessageSelection messages, bool keep_operations)
    : records_{MessageLog(messages), 0, 0, {}, {}, keep_operations} {
  for (const std::uint32_t host : fabric.hosts()) {
    if (host >= workload.ranks()) continue;
    if (executor_of_host_.size() <= host) executor_of_host_.resize(host + 1, no_slot);
    executor_of_host_[host] = static_cast<std::uint32_t>(executors_.size());
    const Rank rank(host);
    executors_.push_back(std::make_unique<RankExecutor>(rank, host, workload.program(rank), fabric, records_));
    fabric.set_timer(host, Time(), start_token);
  }
}

void Runtime::on_timer(std::uint32_t host, Time now, std::uint64_t token) {
  if (token == start_token)
    executor(host).start(now);
  else
    executor(host).on_timer(now, token);
}

void Runtime::on_message(std::uint32_t host, Time now, const Message& message) {
  executor(host).on_message(now, message);
}

void Runtime::on_sent(std::uint32_t host, Time now, std::uint64_t token) { executor(host).on_sent(now, token); }

void Runtime::on_credit(std::uint32_t host, Time now, std::uint32_t queue_pair) {
  executor(host).on_credit(now, queue_pair);
}

std::vector<RankRecord> Runtime::rank_records(Time end) const {
  std::vector<RankRecord> rows;
  for (const auto& executor : executors_) rows.push_back(executor->record(end));
  return rows;
}

std::uint64_t Runtime::unfinished() const {
  std::uint64_t count = 0;
  for (const auto& executor : executors_) count += executor->finished() ? 0 : 1;
  return count;
}

std::vector<std::string> Runtime::waiting(std::size_t most) const {
  std::vector<std::string> lines;
  for (const auto& executor : executors_) {
    if (lines.size() >= most) break;
    for (auto& line : executor->waiting(most - lines.size())) lines.push_back(std::move(line));
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
  for (const auto& executor : executors_) total += executor->operations_done();
  return total;
}

}  // namespace weft
