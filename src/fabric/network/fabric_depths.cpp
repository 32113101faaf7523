// SPDX-License-Identifier: GPL-2.0-only
// How deep queues were, for whoever has asked for it.
#include <algorithm>

#include "fabric/network/buffered_state.hpp"
#include "fabric/network/fabric.hpp"
#include "support/contract.hpp"

namespace weft {

void Fabric::keep_queue_depths() {
  WEFT_EXPECT(buffered_, "depths of queues are asked for where ports have none by class");
  buffered_->depths.resize(buffered_->classes.size());
}

QueueDepth Fabric::queue_depth(std::uint32_t port, std::uint32_t lane, Time end) const {
  const ClassQueue& queue = buffered_->queue_of(port, lane);
  DepthHistogram depths = buffered_->depths[port * buffered_->plan.count + lane];
  depths.hold(queue.bytes, end.ps());
  const auto at = [&](double share) { return depths.percentile(share, end.ps()); };
  return {outputs_[port].directed_link,
          lane,
          buffered_->plan.priority[lane],
          depths.occupied(),
          queue.peak,
          depths.mean(end.ps()),
          at(0.5),
          at(0.9),
          at(0.99),
          at(0.999)};
}

std::vector<QueueDepth> Fabric::queue_depths(Time end) const {
  std::vector<QueueDepth> result;
  if (!buffered_ || buffered_->depths.empty()) return result;
  for (std::uint32_t p = 0; p < outputs_.size(); ++p)
    for (std::uint32_t lane = 0; lane < buffered_->plan.count; ++lane)
      if (buffered_->queue_of(p, lane).peak > 0) result.push_back(queue_depth(p, lane, end));
  return result;
}

}  // namespace weft
