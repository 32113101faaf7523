// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/network/fabric_results.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "fabric/local/local_network.hpp"
#include "fabric/network/gathering.hpp"
#include "fabric/network/port_model.hpp"
#include "fabric/probes/waits_by_job.hpp"

namespace weft {
namespace {

/// Bytes of a port's longest queue: unsent work in ps times the rate; exact, in whole bytes.
Bytes peak_bytes(const OutputPort& port, const EarlierRates& rates) {
  const Bytes now = bytes_sent_in(port.peak_backlog, port.rate);
  return std::max(now, rates.peak(port.directed_link));
}

/// Whether the packets that wait for a link are those that an accelerator or server sends itself: it leaves a host, in
/// a server the port of an accelerator, or the server.
bool queues_own(const ClusterGraph& graph, NodeId from, NodeId to) {
  const auto is_end = [&graph](NodeId node) { return graph.is_host(node) || graph.node(node).in_server; };
  if (graph.is_host(from)) return true;
  if (!graph.node(from).in_server) return false;
  const auto ends = graph.ports(from);
  return !is_end(to) ||
         std::any_of(ends.begin(), ends.end(), [&](const PortEnd& end) { return graph.is_host(end.peer); });
}

/// The `max` of them for which packets have waited most, those with queues of others' packets first. Links differ, so
/// the order is complete.
void keep_hottest(std::vector<HotLink>& links, std::size_t max) {
  const std::size_t count = std::min(max, links.size());
  std::partial_sort(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(count), links.end(),
                    [](const HotLink& a, const HotLink& b) {
                      if (a.own_queue != b.own_queue) return b.own_queue;
                      return a.queue_byte_ps != b.queue_byte_ps ? a.queue_byte_ps > b.queue_byte_ps
                                                                : a.directed_link < b.directed_link;
                    });
  links.resize(count);
}

}  // namespace

// Counters -----------------------------------------------------------------------------------------------------------

std::vector<LinkCounters> FabricResults::link_counters() const {
  std::vector<LinkCounters> result;
  result.reserve(net_.outputs.size());
  for (const LocalNode& node : net_.nodes.all) {
    const auto ends = net_.topology.graph.ports(node.id);
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const PortId index = node.first_port + p;
      const OutputPort& port = net_.outputs[index];
      LinkCounters counters;
      counters.directed_link = port.directed_link;
      counters.from = node.id;
      counters.to = ends[p].peer;
      counters.from_port = p;
      counters.bytes = port.payload_bytes + static_cast<std::int64_t>(port.data_packets) * net_.sizes.data_overhead +
                       static_cast<std::int64_t>(port.packets - port.data_packets) * net_.sizes.control_wire;
      counters.payload_bytes = port.payload_bytes;
      counters.packets = port.packets;
      counters.data_packets = port.data_packets;
      counters.busy = port.busy;
      counters.free_at = port.free_at;
      counters.peak_queue_bytes = peak_bytes(port, net_.rates);
      counters.queue_byte_ps = static_cast<double>(port.waited);
      counters.times = net_.links.times(port.directed_link);
      const OtherTraffic other = net_.observers.other(index);
      counters.other_packets = other.packets;
      counters.other_bytes = other.bytes;
      model_->visit([&](auto& model) { model.add_counters(index, counters); });
      result.push_back(counters);
    }
  }
  return result;
}

// A port of the FIFO model counts a packet's wait when the packet arrives, and the packet is then stored at the end of
// the link: for a cut link in another process.
void FabricResults::settle_waits(ProcessGroup& group, Time end) {
  std::vector<WaitBeyond> beyond = model_->visit([&](auto& model) { return model.settle_waits(end); });
  beyond = gather_rows(group, beyond);
  std::map<std::uint32_t, unsigned __int128> of_link;
  for (const WaitBeyond& wait : beyond) of_link.emplace(wait.directed_link, wait.byte_ps);
  if (of_link.empty()) return;
  for (OutputPort& port : net_.outputs) {
    const auto found = of_link.find(port.directed_link);
    if (found != of_link.end()) port.waited -= found->second;
  }
}

std::vector<HotLink> FabricResults::hot_links(ProcessGroup& group, std::size_t max, Time end) const {
  std::vector<HotLink> links;
  const ClusterGraph& graph = net_.topology.graph;
  for (const PortId p : net_.nodes.ports()) {
    const OutputPort& port = net_.outputs[p];
    if (port.waited == 0) continue;
    const Time busy = port.busy - std::max(Time(), port.free_at - end);
    const LinkProperties& link = graph.link(LinkId(port.directed_link / 2));
    const unsigned way = port.directed_link % 2;
    const bool own = queues_own(graph, link.ends[way], link.ends[1 - way]);
    links.push_back(
        {port.directed_link, p, busy, peak_bytes(port, net_.rates), static_cast<double>(port.waited), Bytes(-1), own});
    if (links.size() >= 4 * max + 64) keep_hottest(links, max);
  }
  keep_hottest(links, max);
  const auto fullest = [&](PortId port) {
    return model_->ask_queued([&](QueuedModel& model) { return model.results.p99_of_fullest_class(port, end); });
  };
  for (HotLink& link : links) link.p99_queue = fullest(std::exchange(link.port, PortId::none())).value_or(Bytes(-1));
  links = gather_rows(group, links);
  keep_hottest(links, max);
  return links;
}

std::vector<LinkJobWait> FabricResults::link_waits() const {
  std::vector<LinkJobWait> rows;
  const WaitsByJob* waits = net_.observers.waits();
  if (waits == nullptr) return rows;
  for (const PortId p : net_.nodes.ports())
    for (const JobWait& wait : waits->of_port(p)) rows.push_back({net_.outputs[p].directed_link, wait});
  return rows;
}

std::vector<LinkClassCounters> FabricResults::class_counters(Time end) const {
  return model_->ask_queued([&](QueuedModel& model) { return model.results.class_counters(end); });
}
std::vector<QueueDepth> FabricResults::queue_depths(Time end) const {
  return model_->ask_queued([&](QueuedModel& model) { return model.results.queue_depths(end); });
}
std::vector<LinkPause> FabricResults::link_pauses(Time end) const {
  return model_->ask_queued([&](QueuedModel& model) { return model.results.link_pauses(end); });
}
std::vector<QueuePairCounters> FabricResults::queue_pair_counters() const {
  return model_->ask_queued([&](QueuedModel& model) { return model.results.queue_pair_counters(); });
}
std::vector<ReceiverCounters> FabricResults::receiver_counters() const {
  return model_->ask_queued([&](QueuedModel& model) { return model.results.receiver_counters(); });
}
CongestionTotals FabricResults::congestion() const {
  return model_->ask_queued([&](QueuedModel& model) { return model.results.congestion(); });
}

// Series -------------------------------------------------------------------------------------------------------------

std::vector<PortSample> FabricResults::take_samples(Time end) {
  if (!net_.sampler.on()) return {};
  model_->visit([&](auto& model) {
    for (const PortId p : net_.nodes.ports()) net_.sampler.close(net_.outputs[p], end, model.queued_bytes(p));
  });
  return net_.sampler.take();
}

std::vector<PortSample> FabricResults::take_closed_samples(Time now) {
  model_->visit([&](auto& model) {
    for (const PortId p : net_.nodes.ports())
      if (now >= net_.outputs[p].next_sample) net_.sampler.flush(net_.outputs[p], now, model.queued_bytes(p));
  });
  return net_.sampler.take_closed(now);
}

std::vector<QueuePairSample> FabricResults::take_queue_pair_samples(Time end) {
  return model_->ask_queued([&](QueuedModel& model) { return model.samples.take(end); });
}
std::vector<QueuePairSample> FabricResults::take_closed_queue_pair_samples(Time now) {
  return model_->ask_queued([&](QueuedModel& model) { return model.samples.take_closed(now); });
}
std::size_t FabricResults::samples_held() const {
  return net_.sampler.held() + model_->ask_queued([](QueuedModel& model) { return model.samples.held(); });
}

std::uint64_t FabricResults::samples_until(Time end) const {
  std::uint64_t samples = samples_held();
  if (net_.sampler.on())
    model_->visit([&](auto& model) {
      for (const PortId p : net_.nodes.ports())
        samples += net_.sampler.missing(net_.outputs[p], end, model.queued_bytes(p));
    });
  return samples + model_->ask_queued([&](QueuedModel& model) { return model.samples.missing(end); });
}

}  // namespace weft
