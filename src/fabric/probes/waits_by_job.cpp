// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/probes/waits_by_job.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weft {

WaitsByJob::WaitsByJob(JobsOfHosts jobs, std::size_t ports) : jobs_(std::move(jobs)), waits_(ports) {
  if (several()) sent_.resize(ports);
}

void WaitsByJob::forget_before(Runs& sent, Time needed) {
  while (sent.first < sent.runs.size() && sent.runs[sent.first].end <= needed) ++sent.first;
  if (sent.first * 2 <= sent.runs.size()) return;
  sent.runs.erase(sent.runs.begin(), sent.runs.begin() + static_cast<std::ptrdiff_t>(sent.first));
  sent.first = 0;
}

void WaitsByJob::sent(PortId port, NodeId source, Time start, Time end, Time needed) {
  Runs& sent = sent_[port];
  const std::uint16_t job = jobs_.job[source];
  if (sent.first < sent.runs.size() && sent.runs.back().job == job && sent.runs.back().end == start) {
    sent.runs.back().end = end;
  } else {
    forget_before(sent, needed);
    sent.runs.push_back({start, end, job});
  }
}

void WaitsByJob::add(PortId port, std::uint16_t waiter, std::uint16_t ahead, Time time, Time from, Time until) {
  std::vector<JobWait>& waits = waits_[port];
  auto at = std::find_if(waits.begin(), waits.end(),
                         [&](const JobWait& wait) { return wait.waiter == waiter && wait.ahead == ahead; });
  if (at == waits.end()) at = waits.insert(at, {waiter, ahead, 0, Time(), from, until});
  ++at->waits;
  // Sums of many waits may be longer than simulated time can be.
  at->time += std::min(time, Time::max() - at->time);
  at->first = std::min(at->first, from);
  at->last = std::max(at->last, until);
}

void WaitsByJob::waited(PortId port, NodeId source, Time from, Time until) {
  if (until <= from) return;
  const std::uint16_t waiter = jobs_.job[source];
  if (!several()) return add(port, waiter, waiter, until - from, from, until);
  found_.clear();
  Time rest = until - from;
  const Runs& sent = sent_[port];
  for (std::size_t i = sent.runs.size(); i > sent.first && sent.runs[i - 1].end > from; --i) {
    const Run& run = sent.runs[i - 1];
    const Time time = std::min(run.end, until) - std::max(run.start, from);
    if (time <= Time()) continue;
    rest -= time;
    const auto known =
        std::find_if(found_.begin(), found_.end(), [&](const JobWait& wait) { return wait.ahead == run.job; });
    if (known == found_.end())
      found_.push_back({waiter, run.job, 1, time, from, until});
    else
      known->time += time;
  }
  for (const JobWait& wait : found_) add(port, waiter, wait.ahead, wait.time, from, until);
  if (rest > Time()) add(port, waiter, JobsOfHosts::no_job, rest, from, until);
}

std::uint64_t WaitsByJob::memory_bytes() const {
  std::uint64_t bytes = jobs_.job.capacity() * sizeof(std::uint16_t);
  for (const Runs& runs : sent_) bytes += sizeof(runs) + runs.runs.capacity() * sizeof(Run);
  for (const auto& waits : waits_) bytes += sizeof(waits) + waits.capacity() * sizeof(JobWait);
  return bytes;
}

}  // namespace weft
