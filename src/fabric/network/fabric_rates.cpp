// SPDX-License-Identifier: GPL-2.0-only
// Series of what queue pairs are allowed and do. A connection's state changes at events of its host only: before the
// first one at or after the end of an interval, it is what it was at that end.
#include <algorithm>
#include <utility>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "support/contract.hpp"

namespace weft {

void Fabric::sample_queue_pairs(Time interval, std::vector<std::uint32_t> hosts,
                                std::vector<std::uint32_t> destinations) {
  WEFT_EXPECT(buffered_ && interval > Time(), "queue pairs are to be sampled each {} ps", interval.ps());
  queue_pair_sampling_ = interval.ps();
  sampled_hosts_ = std::move(hosts);
  sampled_destinations_ = std::move(destinations);
}

// A connection has been opened.
void Fabric::start_sampling(const Node& node, Connection& connection, std::int64_t now) const {
  if (queue_pair_sampling_ == 0) return;
  const auto among = [](const std::vector<std::uint32_t>& all, std::uint32_t one) {
    return std::binary_search(all.begin(), all.end(), one);
  };
  if (!among(sampled_hosts_, node.id)) return;
  if (!sampled_destinations_.empty() && !among(sampled_destinations_, connection.sender.destination())) return;
  connection.next_sample = (now / queue_pair_sampling_ + 1) * queue_pair_sampling_;
}

void Fabric::flush_samples(const Node& node, Connection& connection, std::int64_t now) {
  const ReliableSender& sender = connection.sender;
  while (connection.next_sample <= now) {
    const std::int64_t sent = connection.sent_bytes - connection.sampled_bytes;
    if (sender.idle() && sent == 0) {
      connection.next_sample = (now / queue_pair_sampling_ + 1) * queue_pair_sampling_;
      return;
    }
    const std::int64_t window = connection.allowance.window == Allowance::never ? -1 : connection.allowance.window;
    const auto interval = static_cast<std::uint32_t>(connection.next_sample / queue_pair_sampling_ - 1);
    queue_pair_samples_.push_back({node.id, sender.number(), sender.destination(), interval,
                                   connection.allowance.rate_bps, window, sender.in_flight(), sent});
    connection.sampled_bytes = connection.sent_bytes;
    connection.next_sample += queue_pair_sampling_;
  }
}

std::vector<QueuePairSample> Fabric::take_queue_pair_samples(Time end) {
  if (queue_pair_sampling_ == 0) return {};
  // One boundary at or after the end closes the last interval.
  flush_queue_pair_samples((end.ps() + queue_pair_sampling_ - 1) / queue_pair_sampling_ * queue_pair_sampling_);
  return std::exchange(queue_pair_samples_, {});
}

std::vector<QueuePairSample> Fabric::take_closed_queue_pair_samples(Time now) {
  flush_queue_pair_samples(now.ps());
  return take_of_intervals_before(queue_pair_samples_, now.ps() / queue_pair_sampling_);
}

void Fabric::flush_queue_pair_samples(std::int64_t now) {
  for (const Node& node : nodes_)
    if (node.host != no_slot)
      for (Connection& connection : buffered_->hosts[node.host].connections)
        if (connection.next_sample <= now) flush_samples(node, connection, now);
}

}  // namespace weft
