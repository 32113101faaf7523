// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/standstill.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "app/processes/prepare.hpp"
#include "support/basics/error.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

constexpr std::int64_t tries = 16;
constexpr std::int64_t looks = 4;  // in that time

/// From a packet's departure until its sender sends it again, no less.
Time longest_try(const Experiment& experiment) {
  const NetworkParameters& network = experiment.network;
  const ClusterGraph& graph = experiment.topology->graph;
  Time link;
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& one = graph.link(LinkId(l));
    link = std::max(link, one.delay + serialization_time(network.max_mtu() + network.data_overhead(), one.rate));
  }
  return link + network.switch_latency + network.recovery.timeout;
}

Time end_of_faults(const LinkFaults& faults) {
  Time end;
  for (const auto& [link, fault] : faults.links) {
    for (const Outage& outage : fault.outages)
      if (outage.until < Time::max()) end = std::max(end, bounded_sum(outage.until, faults.reconvergence));
    for (const RateChange& change : fault.rates) end = std::max(end, change.at);
  }
  return end;
}

}  // namespace

Standstill::Standstill(const Experiment& experiment, const Fabric* fabric)
    : fabric_(fabric), path_(experiment.path), quiet_until_(end_of_faults(experiment.network.faults)) {
  // Without buffers and faults nothing is lost, and whether frames of ns-3's stacks arrive is not counted.
  if (fabric == nullptr || !fabric->buffered() || experiment.network.frames) return;
  patience_ = std::max(patience_, bounded_product(tries, longest_try(experiment)));
  next_look_ = Time::from_ps(patience_.ps() / looks);
}

void Standstill::look(Time now, ProcessGroup& group) {
  next_look_ = bounded_sum(next_look_, Time::from_ps(patience_.ps() / looks));
  std::uint64_t arrived = 0;
  for (const ReceiverCounters& c : fabric_->results().receiver_counters())
    arrived += c.packets + c.out_of_order + c.duplicates;
  const CongestionTotals totals = fabric_->results().congestion();
  arrived = group.sum(arrived + totals.trimmed);
  const std::uint64_t lost = group.sum(totals.dropped + totals.lost);
  if (arrived != arrived_ || lost == lost_ || now < quiet_until_) {
    arrived_ = arrived;
    lost_ = lost;
    since_ = now;
    return;
  }
  if (now - since_ < patience_) return;
  const std::string text = fmt::format(
      "{}: from {} to {} of simulated time {} packets have been dropped or lost, and none has arrived: the run "
      "gets no further; look at network.buffer, network.loss and network.failures",
      path_, to_text(since_), to_text(now), lost - lost_);
  throw AgreedFailure{exit_environment, group.rank() == 0 ? text : ""};
}

}  // namespace weft
