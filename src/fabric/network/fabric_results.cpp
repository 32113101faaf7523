// SPDX-License-Identifier: GPL-2.0-only
// What is read from the fabric when a run has ended, and what has to hold then.
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "fabric/frames/frame_table.hpp"
#include "fabric/local/node_epochs.hpp"
#include "fabric/network/fabric.hpp"
#include "fabric/network/port_model.hpp"
#include "fabric/probes/deadlock.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "support/contract.hpp"

namespace weft {
namespace {

/// Bytes of a port's longest queue: unsent work in ps times the rate; exact, in whole bytes.
std::int64_t peak_bytes(const OutputPort& port, const EarlierRates& rates) {
  const auto now =
      static_cast<std::int64_t>(static_cast<__int128>(port.peak_backlog.ps()) * port.rate_bps / 8'000'000'000'000);
  return std::max(now, rates.peak(port.directed_link));
}

/// What all processes have, one after another; plain data.
template <class Row>
std::vector<Row> gather_rows(ProcessGroup& group, const std::vector<Row>& here) {
  std::vector<std::byte> batch(here.size() * sizeof(Row));
  if (!here.empty()) std::memcpy(batch.data(), here.data(), batch.size());
  std::vector<Row> rows = here;
  for (const auto& other : group.gather(batch)) {
    const std::size_t count = other.size() / sizeof(Row);
    rows.resize(rows.size() + count);
    if (count > 0) std::memcpy(&rows[rows.size() - count], other.data(), other.size());
  }
  return rows;
}

/// The `most` of them for which packets have waited most. Links differ, so the order is complete.
void keep_hottest(std::vector<HotLink>& links, std::size_t most) {
  const std::size_t count = std::min(most, links.size());
  std::partial_sort(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(count), links.end(),
                    [](const HotLink& a, const HotLink& b) {
                      return a.queue_byte_ps != b.queue_byte_ps ? a.queue_byte_ps > b.queue_byte_ps
                                                                : a.directed_link < b.directed_link;
                    });
  links.resize(count);
}

}  // namespace

// Counters -----------------------------------------------------------------------------------------------------------

std::uint64_t Fabric::events() const { return net_->clock.events; }
std::uint64_t Fabric::inner_epochs() const { return epochs_->epochs(); }
std::uint32_t Fabric::node_count() const { return static_cast<std::uint32_t>(net_->nodes.all.size()); }
std::uint64_t Fabric::messages_in_flight() const { return net_->messages.live(); }

std::uint64_t Fabric::packet_hops() const {
  std::uint64_t total = 0;
  for (const OutputPort& port : net_->outputs) total += port.packets;
  return total;
}

std::vector<LinkCounters> Fabric::link_counters() const {
  std::vector<LinkCounters> result;
  result.reserve(net_->outputs.size());
  for (const LocalNode& node : net_->nodes.all) {
    const auto ends = net_->topology.graph.ports(NodeId(node.id));
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const PortId index = node.first_port + p;
      const OutputPort& port = net_->outputs[index];
      LinkCounters counters;
      counters.directed_link = port.directed_link;
      counters.from = NodeId(node.id);
      counters.to = ends[p].peer;
      counters.from_port = p;
      counters.bytes = port.payload_bytes + static_cast<std::int64_t>(port.data_packets) * net_->sizes.data_overhead +
                       static_cast<std::int64_t>(port.packets - port.data_packets) * net_->sizes.control_wire;
      counters.payload_bytes = port.payload_bytes;
      counters.packets = port.packets;
      counters.data_packets = port.data_packets;
      counters.busy_ps = port.busy.ps();
      counters.free_at_ps = port.free_at.ps();
      counters.peak_queue_bytes = peak_bytes(port, net_->rates);
      counters.queue_byte_ps = static_cast<double>(port.waited);
      counters.times = link_times(port.directed_link);
      const OtherTraffic other = net_->observers.other(index);
      counters.other_packets = other.packets;
      counters.other_bytes = other.bytes;
      model_->visit([&](auto& model) { model.add_counters(index, counters); });
      result.push_back(counters);
    }
  }
  return result;
}

// A port of the FIFO model counts a packet's wait when the packet comes, and the packet then lies where the link ends:
// for a link over the cut in another process.
void Fabric::settle_waits(ProcessGroup& group, Time end) {
  std::vector<WaitBeyond> beyond = model_->visit([&](auto& model) { return model.settle_waits(end); });
  if (buffered()) return;
  beyond = gather_rows(group, beyond);
  std::map<std::uint32_t, unsigned __int128> of_link;
  for (const WaitBeyond& wait : beyond) of_link.emplace(wait.directed_link, wait.byte_ps);
  if (of_link.empty()) return;
  for (OutputPort& port : net_->outputs) {
    const auto found = of_link.find(port.directed_link);
    if (found != of_link.end()) port.waited -= found->second;
  }
}

std::vector<HotLink> Fabric::hot_links(ProcessGroup& group, std::size_t most, Time end) const {
  std::vector<HotLink> links;
  for (const PortId p : net_->nodes.ports()) {
    const OutputPort& port = net_->outputs[p];
    if (port.waited == 0) continue;
    const Time busy = port.busy - std::max(Time(), port.free_at - end);
    links.push_back(
        {port.directed_link, p, busy.ps(), peak_bytes(port, net_->rates), static_cast<double>(port.waited), -1});
    if (links.size() >= 4 * most + 64) keep_hottest(links, most);
  }
  keep_hottest(links, most);
  const QueuedModel* queued = model_->queued();
  for (HotLink& link : links) {
    const PortId port = std::exchange(link.port, PortId::none());
    if (queued == nullptr || !queued->results.keeps_depths()) continue;
    for (LaneId lane; lane < queued->state.plan.end(); ++lane)
      link.p99_queue = std::max(link.p99_queue, queued->results.queue_depth(port, lane, end).p99);
  }
  links = gather_rows(group, links);
  keep_hottest(links, most);
  return links;
}

std::vector<LinkJobWait> Fabric::link_waits() const {
  std::vector<LinkJobWait> rows;
  const WaitsByJob* waits = net_->observers.waits();
  if (waits == nullptr) return rows;
  for (const PortId p : net_->nodes.ports())
    for (const JobWait& wait : waits->of_port(p)) rows.push_back({net_->outputs[p].directed_link, wait});
  return rows;
}

std::vector<LinkClassCounters> Fabric::class_counters(Time end) const {
  return buffered() ? model_->queued()->results.class_counters(end) : std::vector<LinkClassCounters>();
}
std::vector<QueueDepth> Fabric::queue_depths(Time end) const {
  return buffered() ? model_->queued()->results.queue_depths(end) : std::vector<QueueDepth>();
}
std::vector<LinkPause> Fabric::link_pauses(Time end) const {
  return buffered() ? model_->queued()->results.link_pauses(end) : std::vector<LinkPause>();
}
std::vector<QueuePairCounters> Fabric::queue_pair_counters() const {
  return buffered() ? model_->queued()->results.queue_pair_counters() : std::vector<QueuePairCounters>();
}
std::vector<ReceiverCounters> Fabric::receiver_counters() const {
  return buffered() ? model_->queued()->results.receiver_counters() : std::vector<ReceiverCounters>();
}
CongestionTotals Fabric::congestion() const {
  return buffered() ? model_->queued()->results.congestion() : CongestionTotals();
}

std::uint64_t Fabric::memory_bytes() const {
  return net_->memory_bytes() + model_->visit([](auto& model) { return model.memory_bytes(); });
}

// Series -------------------------------------------------------------------------------------------------------------

std::vector<PortSample> Fabric::take_samples(Time end) {
  if (!net_->sampler.on()) return {};
  model_->visit([&](auto& model) {
    for (const PortId p : net_->nodes.ports()) net_->sampler.close(net_->outputs[p], end, model.queued_bytes(p));
  });
  return net_->sampler.take();
}

std::vector<PortSample> Fabric::take_closed_samples(Time now) {
  model_->visit([&](auto& model) {
    for (const PortId p : net_->nodes.ports())
      if (now >= net_->outputs[p].next_sample) net_->sampler.flush(net_->outputs[p], now, model.queued_bytes(p));
  });
  return net_->sampler.take_closed(now);
}

std::vector<QueuePairSample> Fabric::take_queue_pair_samples(Time end) {
  return buffered() ? model_->queued()->samples.take(end) : std::vector<QueuePairSample>();
}
std::vector<QueuePairSample> Fabric::take_closed_queue_pair_samples(Time now) {
  return model_->queued()->samples.take_closed(now);
}
std::size_t Fabric::samples_held() const {
  return net_->sampler.held() + (buffered() ? model_->queued()->samples.held() : 0);
}

std::uint64_t Fabric::samples_until(Time end) const {
  std::uint64_t samples = samples_held();
  if (net_->sampler.on())
    model_->visit([&](auto& model) {
      for (const PortId p : net_->nodes.ports())
        samples += net_->sampler.missing(net_->outputs[p], end, model.queued_bytes(p));
    });
  return buffered() ? samples + model_->queued()->samples.missing(end) : samples;
}

// Standstill ---------------------------------------------------------------------------------------------------------

bool Fabric::suspicious() const { return buffered() && model_->queued()->control.suspicious; }
bool Fabric::take_suspicion() { return buffered() && std::exchange(model_->queued()->control.suspicious, false); }
bool Fabric::packets_wait() const { return buffered() && model_->queued()->results.packets_wait(); }

std::string Fabric::find_deadlock(ProcessGroup& group, Time stopped_by) const {
  std::vector<WaitEdge> edges;
  if (buffered()) edges = model_->queued()->results.wait_edges(stopped_by);
  return describe_cycle(find_waiting_cycle(gather_rows(group, edges)), net_->topology.graph);
}

bool Fabric::idle() const {
  return model_->visit([this](auto& model) {
    return std::all_of(net_->nodes.all.begin(), net_->nodes.all.end(), [&](const LocalNode& node) {
      return net_->next_arrival(node) == LocalNetwork::never && model.next_event(node) == LocalNetwork::never;
    });
  });
}

// Conservation -------------------------------------------------------------------------------------------------------

void Fabric::check_conservation(ProcessGroup& group) {
  check_links();
  check_cut(group);
  WEFT_EXPECT(net_->messages.live() == 0, "{} messages have not been delivered", net_->messages.live());
  model_->visit([](auto& model) { model.check_nodes(); });
  check_frames(group);
}

// Packets that went into a link less those that it has lost.
std::uint64_t Fabric::packets_delivered(PortId port) const {
  return net_->outputs[port].packets - model_->visit([&](auto& model) { return model.lost(port); });
}

void Fabric::check_links() const {
  for (const LocalNode& node : net_->nodes.all) {
    for (const PortId p : node.all_ports()) {
      WEFT_EXPECT(net_->inputs[p].empty(), "node {} port {}: {} packets have not been received", node.id,
                  p - node.first_port, net_->inputs[p].size());
      const OutputPort& port = net_->outputs[p];
      if (port.leaves_process()) continue;
      const std::uint64_t received = net_->inputs[port.peer()].taken();
      WEFT_EXPECT(packets_delivered(p) == received, "link {}: {} packets delivered, {} received", port.directed_link,
                  packets_delivered(p), received);
    }
  }
}

// Cut links: tells every neighbour how many packets came in over each of them.
void Fabric::check_cut(ProcessGroup& group) const {
  const std::span<const Neighbour> neighbours = net_->cut.neighbours();
  std::vector<std::vector<std::byte>> told(neighbours.size());
  std::vector<std::vector<std::byte>> heard(neighbours.size());
  for (std::size_t n = 0; n < neighbours.size(); ++n) {
    for (const CutEnd& end : neighbours[n].ends) {
      const std::uint64_t taken = net_->inputs[end.port].taken();
      const auto* bytes = reinterpret_cast<const std::byte*>(&taken);
      told[n].insert(told[n].end(), bytes, bytes + sizeof(taken));
    }
  }
  group.exchange(net_->cut.processes(), told, heard);
  for (std::size_t n = 0; n < neighbours.size(); ++n) {
    for (std::size_t i = 0; i < neighbours[n].ends.size(); ++i) {
      std::uint64_t received = 0;
      std::memcpy(&received, heard[n].data() + i * sizeof(received), sizeof(received));
      const PortId index = neighbours[n].ends[i].port;
      const std::uint64_t delivered = packets_delivered(index);
      WEFT_EXPECT(delivered == received, "link {}: {} packets delivered, {} received",
                  net_->outputs[index].directed_link, delivered, received);
    }
  }
}

/// Collective. Frames that were sent have arrived or were dropped, over all processes, and none is held.
void Fabric::check_frames(ProcessGroup& group) const {
  const FrameCounters& here = frame_counters();
  const auto sum = [&group](std::int64_t value) { return group.sum(static_cast<std::uint64_t>(value)); };
  const std::uint64_t sent = group.sum(here.sent);
  const std::uint64_t ended = group.sum(here.delivered) + group.sum(here.dropped);
  const std::uint64_t sent_bytes = sum(here.sent_bytes);
  const std::uint64_t ended_bytes = sum(here.delivered_bytes) + sum(here.dropped_bytes);
  WEFT_EXPECT(sent == ended && sent_bytes == ended_bytes,
              "{} frames of {} bytes were sent, {} of {} bytes have arrived or were dropped", sent, sent_bytes, ended,
              ended_bytes);
  const std::uint64_t held = carries_frames() ? model_->queued()->frames.table->live() : 0;
  WEFT_EXPECT(held == 0, "{} frames are held", held);
}

}  // namespace weft
