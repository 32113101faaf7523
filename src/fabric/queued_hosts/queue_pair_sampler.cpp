// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <utility>

#include "fabric/queued/queued_model.hpp"
#include "support/basics/contract.hpp"

namespace weft {

// A connection has been opened.
void QueuePairSampler::open(const LocalNode& node, Connection& connection, Time now) const {
  if (interval_ == Time()) return;
  const auto among = [](const std::vector<NodeId>& all, NodeId one) {
    return std::binary_search(all.begin(), all.end(), one);
  };
  if (!among(hosts_, node.id)) return;
  if (!destinations_.empty() && !among(destinations_, connection.sender.destination())) return;
  connection.next_sample = (now / interval_ + 1) * interval_;
}

std::vector<QueuePairSample> QueuePairSampler::take(Time end) {
  if (interval_ == Time()) return {};
  // One boundary at or after the end closes the last interval.
  flush_all((end + interval_ - Time::from_ps(1)) / interval_ * interval_);
  return std::exchange(samples_, {});
}

std::vector<QueuePairSample> QueuePairSampler::take_closed(Time now) {
  flush_all(now);
  return take_of_intervals_before(samples_, now / interval_);
}

std::uint64_t QueuePairSampler::missing(Time end) const {
  std::uint64_t samples = 0;
  for (const LocalNode& node : net_.nodes.all)
    if (node.host != no_slot)
      for (const Connection& connection : q_.state.hosts[node.host].connections)
        if (connection.next_sample <= end)
          samples += static_cast<std::uint64_t>((end - connection.next_sample) / interval_) + 2;
  return samples;
}

void QueuePairSampler::flush_all(Time now) {
  for (const LocalNode& node : net_.nodes.all)
    if (node.host != no_slot)
      for (Connection& connection : q_.state.hosts[node.host].connections)
        if (connection.next_sample <= now) flush(node, connection, now);
}

void QueuePairSampler::start(Time interval, std::vector<NodeId> hosts, std::vector<NodeId> destinations) {
  WEFT_EXPECT(interval > Time(), "queue pairs are to be sampled each {} ps", interval.ps());
  interval_ = interval;
  hosts_ = std::move(hosts);
  destinations_ = std::move(destinations);
}

void QueuePairSampler::flush(const LocalNode& node, Connection& connection, Time now) {
  const ReliableSender& sender = connection.sender;
  while (connection.next_sample <= now) {
    const Bytes sent = connection.sent - connection.sampled;
    if (sender.idle() && sent == Bytes()) {
      connection.next_sample = (now / interval_ + 1) * interval_;
      return;
    }
    const auto interval = static_cast<std::uint32_t>(connection.next_sample / interval_ - 1);
    samples_.push_back({node.id, sender.number(), sender.destination(), interval, connection.allowance.rate,
                        connection.allowance.window, sender.in_flight(), sent});
    connection.sampled = connection.sent;
    connection.next_sample += interval_;
  }
}

}  // namespace weft
