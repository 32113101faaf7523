// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fabric/parameters/link_flow_control.hpp"
#include "fabric/queued/queued_model.hpp"
#include "fabric/scheduling/headers_first.hpp"
#include "graph/machine/distances.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

ClassPlan plan_classes(const SwitchParameters& fabric, bool lossless, unsigned routing_lanes) {
  const PriorityParameters& wanted = fabric.priorities;
  const bool by_weight = !wanted.one_queue && wanted.scheduling->shares();
  ClassPlan plan;
  if (wanted.one_queue) {
    if (routing_lanes > 1)
      throw InputError(wanted.place,
                       fmt::format("routing needs {} virtual lanes; scheduling: fifo has one queue", routing_lanes));
    plan.count = 1;
    plan.control = plan.data = plan.other = LaneId();
    plan.priority[plan.data] = wanted.data;
    plan.data_lanes = 1;
  } else {
    // Most urgent first. The virtual lanes of routing are neighbours and take turns.
    plan.data_lanes = routing_lanes;
    plan.count = routing_lanes + 2;
    if (plan.count > ClassPlan::max)
      throw InputError(wanted.place, fmt::format("routing needs {} virtual lanes; there are {} beside those of control "
                                                 "and other traffic",
                                                 routing_lanes, ClassPlan::max - 2));
    const bool other_first = wanted.other > wanted.data;
    plan.control = LaneId();
    plan.other = LaneId(other_first ? 1 : plan.count - 1);
    plan.data = LaneId(other_first ? 2 : 1);
    plan.priority[plan.control] = wanted.control;
    plan.priority[plan.other] = wanted.other;
    for (unsigned lane = 0; lane < routing_lanes; ++lane) plan.priority[plan.data + lane] = wanted.data;
  }
  for (unsigned lane = 0; lane < routing_lanes; ++lane) {
    const std::uint32_t bit = (plan.data + lane).bit();
    if (lossless) plan.lossless |= bit;
    if (routing_lanes > 1 || by_weight) plan.shared |= bit;
    plan.weight[plan.data + lane] = wanted.data_weight;
  }
  if (by_weight && plan.count > 1) {
    plan.shared |= plan.other.bit();
    plan.weight[plan.other] = wanted.other_weight;
  }
  return plan;
}

/// An empty buffer has to take a full frame where there is no headroom, or everything is dropped for ever.
void require_room_for_frame(const BufferRules& rules, const BufferParameters& buffer, const MissingRoom& room,
                            NodeId node) {
  if (room.beyond_reserve() <= std::max(Bytes(), rules.sharing->limit(room.empty))) return;
  throw InputError(buffer.place, rules.sharing->remedy(room), node.value());
}

}  // namespace

void QueuedBuild::build() {
  QueuedState& state = q_.state;
  build_state();
  build_routes();
  build_nodes();
  if (state.services.ecn || net_.parameters.fabric.ecn.configured) q_.marking.build();
  build_schedulers();
  q_.outages.build();
  // Credits in a separate class fit into every queue. The same on all processes.
  state.loses_credits = net_.parameters.faults.lose_packets() || (state.finite && state.bypass == 0);
  q_.reporter.build();
}

void QueuedBuild::build_state() {
  QueuedState& state = q_.state;
  const SwitchParameters& fabric = net_.parameters.fabric;
  state.largest_frame = net_.parameters.mtu + net_.parameters.header;
  state.flow_control = flow_control_of_classes(fabric, net_.topology);
  const auto some = [&state](FlowControl kind) {
    return std::find(state.flow_control.begin(), state.flow_control.end(), kind) != state.flow_control.end();
  };
  state.pauses = some(FlowControl::pfc);
  state.credits = some(FlowControl::credit);
  choose_default_disciplines(net_.parameters.fabric);
  state.plan = plan_classes(fabric, state.pauses || state.credits, net_.routing.lanes());
  state.services = net_.parameters.congestion_control->services();
  state.rules = net_.parameters.recovery;
  state.rules.separate_marks = state.services.ecn;
  state.window_limits = net_.parameters.window_given || net_.parameters.congestion_control_name == "none";
  state.limited = fabric.buffer.size.has_value();
  if (fabric.buffer.queue) state.queue_limit = *fabric.buffer.queue;
  state.finite = state.limited || fabric.buffer.queue;
  state.bypass = state.plan.count > 1 ? state.plan.control.bit() : 0;
  if (state.services.telemetry) require_few_rates();
}

// The same on all processes.
void QueuedBuild::require_few_rates() const {
  std::set<Bandwidth> rates;
  for (std::uint32_t link = 0; link < 2 * net_.topology.graph.link_count(); ++link)
    rates.insert(net_.links.times(link).rate);
  for (const auto& [link, fault] : net_.parameters.faults.links)
    for (const RateChange& change : fault.rates) rates.insert(change.rate);
  if (rates.size() <= PortLabel::max_rates) return;
  throw InputError(net_.parameters.congestion_control_place,
                   fmt::format("found '{}', whose telemetry tells at most {} rates of links apart, on links with {}",
                               net_.parameters.congestion_control_name, PortLabel::max_rates, rates.size()));
}

void QueuedBuild::build_routes() {
  QueuedState& state = q_.state;
  const LoadBalancing& balancing = *net_.parameters.fabric.load_balancing;
  state.spreads = balancing.spreads();
  const bool switches_choose = balancing.at_switch() != nullptr && !net_.routing.per_packet();
  state.routes_one_by_one = net_.routing.per_packet() || switches_choose;
  if (switches_choose)
    for (const LocalNode& node : net_.nodes.all)
      state.balancers.push_back(node.host == no_slot ? balancing.at_switch() : nullptr);
}

void QueuedBuild::build_nodes() {
  QueuedState& state = q_.state;
  state.ports.resize(net_.outputs.size());
  state.classes.resize(net_.outputs.size() * state.plan.count);
  for (const PortId p : net_.nodes.ports()) state.ports[p].classes = &state.classes[state.queue_number(p, LaneId())];
  state.events.resize(net_.nodes.all.size());
  state.deferred.resize(net_.nodes.all.size());
  state.hosts.resize(net_.nodes.hosts.size());
  state.buffer_of.assign(net_.nodes.all.size(), no_slot);
  std::uint32_t at = 0;
  for (const LocalNode& node : net_.nodes.all) {
    for (const PortId p : node.all_ports()) settle_port(p);
    if (node.host != no_slot) {
      state.hosts[node.host].ports.resize(node.ports);
    } else if (state.limited) {
      state.buffer_of[at] = static_cast<std::uint32_t>(state.buffers.size());
      state.buffers.push_back(make_buffer(node));
    }
    ++at;
  }
  for (const PortId p : net_.nodes.ports()) {
    const std::uint32_t local = net_.nodes.of_port[p];
    if (state.buffer_of[local] == no_slot) continue;
    state.ports[p].memory = &state.buffers[state.buffer_of[local]];
    state.ports[p].first_queue = (p - net_.nodes.all[local].first_port) * state.plan.count;
  }
}

// The properties of its link that a port stores, again after the link has changed.
void QueuedBuild::settle_port(PortId index) {
  QueuedState& state = q_.state;
  PortState& ps = state.ports[index];
  const LocalNode& node = net_.nodes.all[net_.nodes.of_port[index]];
  const ClusterGraph& graph = net_.topology.graph;
  const PortEnd& end = graph.ports(node.id)[index - node.first_port];
  const LinkTimes out = net_.links.times(directed(end.link, end.direction));
  const LinkTimes in = net_.links.times(directed(end.link, 1U - end.direction));
  ps.of_host = node.host != no_slot;
  if (state.services.telemetry) ps.label = state.telemetry.label_of(directed(end.link, end.direction), out.rate);
  ps.propagation = out.delay;
  ps.in_after = in.delay + net_.links.latency_of(node.id);
  ps.set_header_time(net_.links.head_time(end.peer, out.rate));
  const FlowControl kind = state.flow_control[net_.topology.link_class[end.link.value()]];
  ps.pausing = kind == FlowControl::pfc ? static_cast<std::uint8_t>(state.plan.lossless) : 0;
  ps.credited = kind == FlowControl::credit ? static_cast<std::uint8_t>(state.plan.lossless) : 0;
  if (ps.credited == 0) return;
  for (LaneId lane; lane < state.plan.end(); ++lane) {
    ClassQueue& queue = state.queue_of(index, lane);
    queue.room = queue.granted = static_cast<std::uint32_t>(input_buffer(index).count());
  }
}

// The links of `changed` have new properties: updates all values derived from them there and at the neighbours. Before
// the run.
void QueuedBuild::settle_ports_of(NodeId changed) {
  QueuedState& state = q_.state;
  const auto settle = [&](NodeId id) {
    if (!net_.nodes.owns(id)) return;
    const std::uint32_t local = net_.nodes.local_of[id];
    const LocalNode& node = net_.nodes.all[local];
    for (const PortId p : node.all_ports()) settle_port(p);
    if (state.limited && node.host == no_slot) state.buffers[state.buffer_of[local]] = make_buffer(node);
  };
  settle(changed);
  for (const PortEnd& end : net_.topology.graph.ports(changed)) settle(end.peer);
  if (!state.markers.empty()) q_.marking.build();
}

SharedBuffer QueuedBuild::make_buffer(const LocalNode& node) const {
  const QueuedState& state = q_.state;
  const SwitchParameters& fabric = net_.parameters.fabric;
  const auto lossless = static_cast<std::int64_t>(std::popcount(state.plan.lossless));
  const Bytes reserves = fabric.buffer.reserve * node.ports * state.plan.count;
  Bytes headrooms;
  std::vector<Bytes> headroom(node.ports);
  for (std::uint32_t p = 0; p < node.ports; ++p) {
    if (state.ports[node.first_port + p].pausing == 0) continue;
    headroom[p] = fabric.pfc.headroom ? *fabric.pfc.headroom : needed_headroom(node.first_port + p);
    headrooms += headroom[p] * lossless;
  }
  BufferRules rules;
  rules.largest_frame = largest_frame(node.first_port);
  rules.shared = *fabric.buffer.size - reserves - headrooms;
  if (rules.shared < (headrooms > Bytes() ? Bytes() : rules.largest_frame)) {
    throw InputError(
        fabric.buffer.place,
        fmt::format("{} has {} ports: {} of headroom and {} of reserves do not fit into a packet memory of "
                    "{}; expected a larger size, or less headroom",
                    net_.topology.graph.name(node.id), node.ports, to_text(headrooms), to_text(reserves),
                    to_text(*fabric.buffer.size)),
        node.id.value());
  }
  rules.sharing = fabric.buffer.sharing.get();
  rules.reserve = fabric.buffer.reserve;
  std::uint32_t used = ((1U << state.plan.count) - 1) & ~state.bypass;
  if (!net_.parameters.frames && state.plan.other != state.plan.data) used &= ~state.plan.other.bit();
  std::uint32_t dropping = 0;  // classes that have neither headroom nor credits at some port
  for (const PortId p : node.all_ports()) dropping |= used & ~(state.ports[p].pausing | state.ports[p].credited);
  const std::size_t queues = std::size_t{node.ports} * state.plan.count;
  if (dropping != 0)
    require_room_for_frame(rules, fabric.buffer,
                           {rules.largest_frame,
                            fabric.buffer.reserve,
                            *fabric.buffer.size,
                            headrooms + reserves,
                            {rules.shared, Bytes(), queues, slowest_link_into(node)},
                            net_.topology.graph.name(node.id)},
                           node.id);
  rules.xon_offset = fabric.pfc.xon ? *fabric.pfc.xon : 2 * rules.largest_frame;
  SharedBuffer buffer(rules, queues);
  for (std::uint32_t p = 0; p < node.ports; ++p)
    for (LaneId lane; lane < state.plan.end(); ++lane) {
      const std::size_t queue = std::size_t{p} * state.plan.count + lane.value();
      buffer.set_rate(queue, rate_into(node.first_port + p));
      if (lane.in(state.ports[node.first_port + p].pausing)) buffer.set_headroom(queue, headroom[p]);
    }
  return buffer;
}

Bandwidth QueuedBuild::slowest_link_into(const LocalNode& node) const {
  Bandwidth slowest = rate_into(node.first_port);
  for (const PortId p : node.all_ports()) slowest = std::min(slowest, rate_into(p));
  return slowest;
}

// Virtual lanes of routing take turns where data and other traffic do not share. Where packets are trimmed all classes
// share the link with the headers.
void QueuedBuild::build_schedulers() {
  QueuedState& state = q_.state;
  const std::uint32_t sharing = state.plan.shared;
  const bool headers = net_.parameters.fabric.trimming && state.plan.count > 1;
  if (headers) state.plan.shared = (1U << state.plan.count) - 1;
  if (state.plan.shared == 0) return;
  const SchedulingDiscipline* scheduling = net_.parameters.fabric.priorities.scheduling.get();
  const auto turns = SchedulingRegistry::instance().find("deficit_round_robin")->make();
  if (!scheduling->shares()) scheduling = turns.get();
  const ClassShares shares{state.plan.count, sharing, state.plan.weight, state.largest_frame};
  for (std::size_t p = 0; p < net_.outputs.size(); ++p) {
    auto scheduler = sharing != 0 ? scheduling->make(shares) : nullptr;
    if (headers) scheduler = std::make_unique<HeadersFirst>(state.plan.control, std::move(scheduler), sharing);
    state.schedulers.push_back(std::move(scheduler));
  }
}

/// Headroom that an ingress queue needs for nothing to be dropped, in bytes of frames. From the moment at which a frame
/// crosses the threshold: the port that sends the pause frame may just have begun another frame; the pause frame takes
/// its time, travels, and is answered; the other end may just have begun a frame; the frames sent until then are on the
/// link and in the switch's pipeline. (Zhu et al., SIGCOMM 2015, section 4; IEEE 802.1Q-2018 annex O.) The frame that
/// crosses the threshold may need headroom itself, if other queues have taken the memory that was free when the frame
/// before it arrived.
Bytes QueuedBuild::max_payload_at(PortId port) const {
  const NodeProperties& node = net_.topology.graph.node(net_.nodes.all[net_.nodes.of_port[port]].id);
  return net_.parameters.max_mtu(node.block != no_block);
}

Bytes QueuedBuild::needed_headroom(PortId in_port) const {
  const PortState& ps = q_.state.ports[in_port];
  const OutputPort& back = net_.outputs[in_port];
  const Bandwidth rate_in = rate_into(in_port);
  const Bytes largest = max_payload_at(in_port) + net_.sizes.data_overhead;
  const Bytes in_the_way = std::max({largest, net_.sizes.control_wire, NetworkParameters::pause_wire});
  const Time stopping = serialization_time(in_the_way, back.rate) +
                        serialization_time(NetworkParameters::pause_wire, back.rate) + ps.propagation +
                        net_.parameters.fabric.pfc.response + ps.in_after;
  const Bytes wire = bytes_begun_in(stopping, rate_in);
  // Bytes of the wire hold bytes of frames and gaps; full frames are the worst case, rounded up to whole ones.
  const std::int64_t frames = (wire + largest - Bytes(1)) / largest;
  return (frames + 2) * largest_frame(in_port);
}

/// Of the other direction of the port's link.
Bandwidth QueuedBuild::rate_into(PortId port) const {
  return net_.links.times(net_.outputs[port].directed_link ^ 1U).rate;
}

/// Space for the bytes that a sender can have in flight in a round trip of the link and its answer, and a frame at each
/// end.
Bytes QueuedBuild::input_buffer(PortId port) const {
  if (net_.parameters.fabric.credit.buffer) return *net_.parameters.fabric.credit.buffer;
  const PortState& ps = q_.state.ports[port];
  const Bandwidth slower = std::min(net_.outputs[port].rate, rate_into(port));
  const Bandwidth faster = std::max(net_.outputs[port].rate, rate_into(port));
  const Bytes largest = max_payload_at(port) + net_.sizes.data_overhead;
  const Time round = 2 * ps.propagation + net_.parameters.switch_latency + 2 * serialization_time(largest, slower);
  const Bytes bytes = bytes_sent_in(round, faster) + 2 * largest_frame(port);
  return std::min(bytes, Bytes(std::int64_t{1} << 30));  // counted modulo 2^32
}

/// Of hosts that are farthest apart, over the slowest links, without queues.
Time QueuedBuild::longest_round_trip() const {
  const ClusterGraph& graph = net_.topology.graph;
  if (longest_round_trip_ > Time()) return longest_round_trip_;
  Time slowest;
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    slowest = std::max(slowest,
                       link.delay +
                           serialization_time(net_.parameters.max_mtu() + net_.parameters.data_overhead(), link.rate) +
                           link.delay + serialization_time(net_.parameters.control_wire(), link.rate));
  }
  longest_round_trip_ = (slowest + 2 * net_.parameters.switch_latency) * std::max(estimate_diameter(graph), 1U);
  return longest_round_trip_;
}

}  // namespace weft
