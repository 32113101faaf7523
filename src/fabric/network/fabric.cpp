// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/network/fabric.hpp"

#include <algorithm>
#include <utility>

#include "fabric/frames/frame_table.hpp"
#include "fabric/local/node_epochs.hpp"
#include "fabric/network/port_model.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "transport/messages/late.hpp"

namespace weft {

// Building -----------------------------------------------------------------------------------------------------------

Fabric::Fabric(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters,
               const RoutingAlgorithm& routing, std::uint64_t seed, Drive drive)
    : net_(std::make_unique<LocalNetwork>(topology, partition, process, parameters, routing, seed, drive, client_)),
      model_(std::make_unique<PortModel>(std::in_place_type<FifoModel>, *net_)),
      epochs_(std::make_unique<NodeEpochs>(*net_)),
      lookahead_(partition.lookahead),
      results_(*net_, model_),
      probes_(*net_, model_),
      deadlocks_(*net_, model_) {
  // A single process pauses from time to time, to check for interrupts and show progress.
  if (lookahead_ == Time::max()) lookahead_ = inner_epoch() * 256;
  if (parameters.buffered() || routing.per_packet() || routing.lanes() > 1) build_queues();
  if (parameters.frames) carry_frames();
  if (drive == Drive::epochs) return;
  net_->clock.reference.start(
      [this](std::uint32_t local, Time end) {
        model_->visit([&](auto& model) { epochs_->run_node(model, local, end); });
      },
      [this](std::uint32_t local) {
        return model_->visit([&](auto& model) { return model.next_event(net_->nodes.all[local]); });
      });
}

Fabric::~Fabric() = default;

// Earlier requests of the software of hosts are kept.
void Fabric::build_queues() {
  auto queued = std::make_unique<PortModel>(std::in_place_type<QueuedModel>, *net_);
  model_->visit([&](auto& model) {
    for (const LocalNode& node : net_->nodes.all)
      if (node.host != no_slot) queued->queued()->timers(node) = std::move(model.timers(node));
  });
  model_ = std::move(queued);
}

bool Fabric::buffered() const { return model_->buffered(); }

PathRefusal Fabric::path_refusal() const {
  return model_->ask_queued([](const QueuedModel& model) { return model.nics.refusal; });
}

void Fabric::expect_cold_caches() { epochs_->expect_cold_caches(); }

// Links --------------------------------------------------------------------------------------------------------------

LinkTimes Fabric::link_times(std::uint32_t directed_link) const { return net_->links.times(directed_link); }
Time Fabric::latency_of(NodeId node) const { return net_->links.latency_of(node); }
void Fabric::close_links() { net_->links.close(); }
bool Fabric::links_closed() const { return net_->links.closed() || net_->clock.events > 0; }

void Fabric::set_rate(NodeId node, std::uint32_t port, Bandwidth rate) {
  const PortEnd& end = net_->topology.graph.ports(node)[port];
  const std::uint32_t link = directed(end.link, end.direction);
  set_link_times(link, {rate, link_times(link).delay});
}

void Fabric::set_link_times(std::uint32_t directed_link, const LinkTimes& times) {
  WEFT_EXPECT(!links_closed(), "directed link {} changes during the run", directed_link);
  net_->links.change(directed_link, times);
  apply_link_times(directed_link, times);
}

void Fabric::settle_links(ProcessGroup& group) {
  net_->links.settle(group, [this](std::uint32_t link, const LinkTimes& times) { apply_link_times(link, times); });
}

void Fabric::apply_link_times(std::uint32_t directed_link, const LinkTimes& times) {
  const unsigned direction = directed_link % 2;
  const LinkProperties& link = net_->topology.graph.link(LinkId(directed_link / 2));
  if (owns(link.ends[direction])) {
    OutputPort& port = net_->outputs[net_->nodes.port(link.ends[direction], link.ports[direction])];
    port.after = times.delay + latency_of(link.ends[1 - direction]);
    net_->links.set_port_times(port, times.rate);
  }
  model_->visit([&](auto& model) { model.settle_links_of(link.ends[direction]); });
  const Time min = net_->links.min_crossing(directed_link, times);
  shrink_epoch(min);
  if (net_->cut.cuts(directed_link / 2)) lookahead_ = std::min(lookahead_, min);
  if (carries_frames()) lookahead_ = std::min(lookahead_, inner_epoch());
}

// Epochs and lookahead only shrink. A calendar entry made with longer epochs is then a visit too early, which does
// nothing.
void Fabric::shrink_epoch(Time length) {
  net_->clock.set_epoch(std::min(net_->clock.epoch_length(), std::max(length, Time::from_ps(1))));
}

// Traffic and observers beside the packets ---------------------------------------------------------------------------

Time Fabric::serialization_at(NodeId node, std::uint32_t port, const Packet& packet) const {
  const OutputPort& output = net_->outputs[net_->nodes.port(node, port)];
  if (packet.kind != PacketKind::data && packet.kind != PacketKind::frame)
    return net_->sizes.control_time(output, packet);
  return net_->sizes.odd_time(output, packet, net_->sizes.wire_of(packet));
}

Fabric::Departure Fabric::reserve_port(NodeId node, std::uint32_t port_number, Time now, Bytes wire) {
  WEFT_EXPECT(!advancing(), "node {} port {}: a frame at {} ps comes from within the data path", node.value(),
              port_number, now.ps());
  const PortId index = net_->nodes.port(node, port_number);
  OutputPort& port = net_->outputs[index];
  const Bytes queued = model_->visit([&](auto& model) { return model.queued_bytes(index); });
  if (net_->sampler.due(port, now)) net_->sampler.flush(port, now, queued);
  const Time serialization = serialization_time(wire, port.rate);
  const Time start = std::max(now, port.free_at);
  port.free_at = start + serialization;
  port.busy += serialization;
  port.peak_backlog = std::max(port.peak_backlog, port.free_at - now);
  port.waited += static_cast<unsigned __int128>(static_cast<std::uint64_t>((start - now).ps())) *
                 static_cast<std::uint64_t>(wire.count());
  net_->observers.count_other(index, wire, net_->outputs.size());
  const LocalNode& owner = net_->nodes.all[net_->nodes.of_port[index]];
  if (owner.host != no_slot) model_->visit([&](auto& model) { model.port_was_reserved(owner, port.free_at); });
  return {start, port.free_at};
}

// Packets of ns-3's stacks -------------------------------------------------------------------------------------------

bool Fabric::carries_frames() const { return model_->frames() != nullptr; }
std::uint32_t Fabric::host_count() const { return net_->topology.graph.host_count(); }

FrameTable& Fabric::carry_frames() {
  if (carries_frames()) return *model_->queued()->frames.table;
  WEFT_EXPECT(events() == 0, "frames are asked for after {} events", events());
  if (!parameters().acks)
    throw InputError(
        SourceLine{"network", 0},
        "ack: none is found beside packets of ns-3's stack, which go through ports with queues; these rest "
        "on ACKs");
  if (!buffered()) build_queues();
  FrameTable& table = model_->queued()->frames.carry();
  // The least frame may be shorter than anything that the network had before. And what arrives at a host is an ns-3
  // event there, which has to lie beyond the engine's epoch.
  shrink_epoch(net_->links.min_crossing());
  lookahead_ = std::min(lookahead_, inner_epoch());
  return table;
}

bool Fabric::send_frame(const FrameHeader& header, Time now, const ns3::Ptr<ns3::Packet>& frame) {
  WEFT_EXPECT(carries_frames() && !advancing(), "host {}: a frame at {} ps comes from within the data path",
              header.source.value(), now.ps());
  return model_->queued()->frames.send(header, now, frame);
}

/// The content of a frame on the wire; nullptr if `packet` is no frame.
ns3::Ptr<ns3::Packet> Fabric::frame_of(const Packet& packet) const {
  return packet.kind == PacketKind::frame ? model_->queued()->frames.table->at(packet.message) : nullptr;
}

const FrameCounters& Fabric::frame_counters() const {
  static const FrameCounters none;
  return carries_frames() ? model_->queued()->frames.table->counters() : none;
}

// For the software of owned hosts ------------------------------------------------------------------------------------

const std::vector<NodeId>& Fabric::hosts() const { return net_->nodes.hosts; }
bool Fabric::owns(NodeId node) const { return net_->nodes.owns(node); }
const NetworkParameters& Fabric::parameters() const { return net_->parameters; }

std::uint32_t Fabric::open_queue_pair(NodeId host, NodeId destination) {
  WEFT_EXPECT(host != destination, "host {} opens a queue pair to itself", host.value());
  return model_->visit([&](auto& model) { return model.open_queue_pair(net_->nodes.of_host(host), destination); });
}

std::uint64_t Fabric::post(NodeId host, std::uint32_t queue_pair, Time now, Message message, std::uint64_t token) {
  message.source = host;
  message.token = token;
  return model_->visit([&](auto& model) { return model.post(net_->nodes.of_host(host), queue_pair, now, message); });
}

void Fabric::send_credit(NodeId host, Time now, NodeId to, std::uint32_t queue_pair, Time late) {
  Packet credit;
  credit.set_ends(host, to);
  credit.queue_pair = queue_pair;
  credit.kind = PacketKind::credit;
  credit.message = late_to_bits(late);
  model_->visit([&](auto& model) { model.send_credit(net_->nodes.of_host(host), credit, now); });
}

SendTimes Fabric::send_times(NodeId host, std::uint32_t queue_pair, Time now) const {
  return model_->visit([&](auto& model) { return model.send_times(net_->nodes.of_host(host), queue_pair, now); });
}

void Fabric::set_timer(NodeId host, Time at, std::uint64_t token) {
  model_->visit([&](auto& model) { model.timers(net_->nodes.of_host(host)).set(at, token); });
  net_->clock.wake_software(net_->nodes.local_of[host], at);
}

// What is read from outside -------------------------------------------------------------------------------------------

std::uint64_t Fabric::events() const { return net_->clock.events; }
std::uint32_t Fabric::node_count() const { return static_cast<std::uint32_t>(net_->nodes.all.size()); }
std::vector<LinkCounters> Fabric::link_counters() const { return results_.link_counters(); }
void Fabric::check_conservation(ProcessGroup& group) const { Conservation(*net_, model_).check(group); }

std::uint64_t Fabric::packet_hops() const {
  std::uint64_t total = 0;
  for (const OutputPort& port : net_->outputs) total += port.packets;
  return total;
}

std::uint64_t Fabric::memory_bytes() const {
  return net_->memory_bytes() + model_->visit([](auto& model) { return model.memory_bytes(); });
}

bool Fabric::idle() const {
  return model_->visit([this](auto& model) {
    return std::all_of(net_->nodes.all.begin(), net_->nodes.all.end(), [&](const LocalNode& node) {
      return net_->next_arrival(node) == LocalNetwork::never && model.next_event(node) == LocalNetwork::never;
    });
  });
}

// DataPath -----------------------------------------------------------------------------------------------------------

Drive Fabric::drive() const { return net_->clock.drive; }
bool Fabric::advancing() const { return advancing_ || net_->clock.in_node(); }
Time Fabric::now() const { return net_->clock.now; }
Time Fabric::next_time() const { return epochs_->next_time(); }
Time Fabric::lookahead() const { return lookahead_; }
Time Fabric::inner_epoch() const { return net_->clock.epoch_length(); }
std::span<const int> Fabric::neighbours() const { return net_->cut.processes(); }
std::span<Batch> Fabric::outgoing() { return net_->cut.outgoing(); }
void Fabric::set_boundary_done(std::function<void()> done) { epochs_->set_boundary_done(std::move(done)); }
std::uint64_t Fabric::take_critical_events() { return epochs_->take_critical_events(); }

void Fabric::advance(Time end) {
  advancing_ = true;
  model_->visit([&](auto& model) {
    model.begin_epochs(after_advance_ != nullptr);
    epochs_->advance(model, end);
  });
  if (after_advance_) after_advance_(end);
  advancing_ = false;
}

void Fabric::incoming(std::size_t neighbour, std::span<const std::byte> batch) {
  model_->visit([&](auto& model) {
    const bool looked_at = model.looks_at_arrivals() || net_->observers.observes_arrivals();
    net_->cut.read(
        neighbour, batch, [this](PortId port) { __builtin_prefetch(&net_->inputs[port]); },
        [&](const CutEnd& end, const Packet& packet, Time arrival, std::size_t& at) {
          if (looked_at || packet.kind > PacketKind::cnp || carries_descriptor(packet)) [[unlikely]]
            model.take_in(end, packet, arrival, batch, at);
          else
            net_->push_local(end.port, packet, arrival, end.node);
        });
  });
}

}  // namespace weft
