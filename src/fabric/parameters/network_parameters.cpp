// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/parameters/network_parameters.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/parameters/link_flow_control.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

Bytes bytes_between(const Spec& spec, std::int64_t min, std::int64_t max) {
  const Bytes value = spec.bytes();
  if (value.count() < min || value.count() > max)
    throw spec.error("found " + to_text(value) + "; expected a size from " + to_text(Bytes(min)) + " to " +
                     to_text(Bytes(max)));
  return value;
}

const std::vector<std::string> kinds_of_recovery = {"go_back_n", "selective_repeat", "go_back_0"};

std::string read_kind_of_recovery(const Spec& network, bool reorders, NetworkParameters& result) {
  const auto value = network.find("recovery");
  // Packets that take different paths must not be discarded because they arrive early.
  if (!value) return reorders || result.fabric.trimming ? "selective_repeat" : "go_back_n";
  result.recovery_given = true;
  const std::string kind = value->one_of(kinds_of_recovery);
  if (kind == "selective_repeat") return kind;
  if (result.fabric.load_balancing->overtaking() == Overtaking::always)
    throw value->error(
        "found with a load balancing that sends packets of a connection on different paths; "
        "expected selective_repeat");
  // A trimmed packet requests only itself; if the packets after it were also sent again, they would be trimmed in
  // turn, on a slow last link for ever.
  if (result.fabric.trimming)
    throw value->error("found with trimming, which asks for each trimmed packet by itself; expected selective_repeat");
  return kind;
}

/// What holds without the map of the kind of recovery.
void set_usual_recovery(const Spec& network, bool reorders, NetworkParameters& result) {
  RecoveryRules& rules = result.recovery;
  const bool endless_queues = !result.fabric.buffer.size && !result.fabric.buffer.queue && !result.fabric.trimming;
  if (result.fabric.flow_control != FlowControl::none ||
      (endless_queues && !network.has("loss") && !network.has("failures"))) {
    // On a lossless network, and where queues have no end, nothing but a fault loses packets: the timer of InfiniBand,
    // 4.096 us * 2^14 (IBTA vol. 1, 9.7.6.1.3; 14 is the value that RDMA software sets). The short timers of lossy
    // networks would repeat packets that wait in a long queue.
    rules.timeout = rules.timeout_low = Time::from_ns(4096) * (1 << 14);
    rules.timed_for = Time::max();
  }
  // In order: the next packet shows a gap. Spread out: packets that arrive early leave the window at once, so that one
  // that waits in a queue may be overtaken by several windows.
  constexpr std::int64_t windows = 8;
  const std::int64_t overtaking = windows * ((result.window.count() + result.mtu.count() - 1) / result.mtu.count());
  rules.reordering = reorders ? static_cast<std::uint32_t>(std::clamp<std::int64_t>(overtaking, 1, 32'767)) : 1;
  // A header shows that its packet has been trimmed. A packet that others have overtaken, or its header, may still be
  // on its way.
  if (result.fabric.trimming) rules.reordering = std::numeric_limits<std::uint32_t>::max();
}

void read_timers(const Spec& map, NetworkParameters& result) {
  RecoveryRules& rules = result.recovery;
  if (const auto value = map.find("timeout")) {
    result.timeout_place = value->where();
    rules.timeout = rules.timeout_low = value->wait();
    rules.timed_for = Time::max();
    if (rules.timeout <= Time()) throw value->error("found 0; expected a time above 0");
  }
  if (const auto value = map.find("timeout_low")) {
    result.timeout_place = value->where();
    rules.timeout_low = value->time();
    rules.timed_for = Time::max();
    if (rules.timeout_low <= Time() || rules.timeout_low > rules.timeout)
      throw value->error("found " + to_text(value->time()) + "; expected above 0 and at most timeout");
  }
}

void read_recovery(const Spec& network, bool routing_reorders, NetworkParameters& result) {
  RecoveryRules& rules = result.recovery;
  const bool reorders = result.fabric.load_balancing->overtaking() != Overtaking::never || routing_reorders;
  const std::string kind = read_kind_of_recovery(network, reorders, result);
  rules.kind = kind == "go_back_n"          ? Recovery::go_back_n
               : kind == "selective_repeat" ? Recovery::selective_repeat
                                            : Recovery::go_back_0;
  set_usual_recovery(network, reorders, result);
  for (const std::string& name : kinds_of_recovery) {
    const auto map = network.find(name);
    if (!map) continue;
    if (name != kind) throw map->error("found with recovery: " + kind);
    read_timers(*map, result);
    if (name == "selective_repeat")
      if (const auto value = map->find("reordering"))
        rules.reordering = static_cast<std::uint32_t>(value->integer(1, 32'767));
    map->finish();
  }
  if (const auto value = network.find("ack_interval"))
    rules.ack_interval = static_cast<std::uint32_t>(value->integer(1, 1024));
}

// A pause is renewed after half of its time, and that frame may have to wait for a packet: pauses have to be longer
// than two packets so as not to end in between.
void check_quanta(const Spec& pfc, const NetworkParameters& network) {
  const Bytes longest = std::max(network.max_mtu() + network.data_overhead(), network.control_wire());
  const std::int64_t min = (2 * longest.count() * 8 + 511) / 512;
  if (network.fabric.pfc.quanta < min)
    throw pfc.at("quanta").error("found " + std::to_string(network.fabric.pfc.quanta) + "; expected at least " +
                                 std::to_string(min) + ", the time of two packets of " + to_text(longest));
}

void read_congestion_control(const Spec& network, NetworkParameters& result) {
  const auto& registry = CongestionControlRegistry::instance();
  if (const auto value = network.find("congestion_control")) {
    result.congestion_control_name = value->one_of(registry.names());
    result.congestion_control_place = value->where();
  }
  for (const std::string& name : registry.names()) {
    if (name == result.congestion_control_name || name == "none") continue;
    if (const auto map = network.find(name))
      throw map->error("found with congestion_control: " + result.congestion_control_name);
  }
  std::shared_ptr<CongestionControlKind> kind = registry.find(result.congestion_control_name)->make();
  kind->configure(result.congestion_control_name == "none" ? std::nullopt
                                                           : network.find(result.congestion_control_name));
  result.congestion_control = std::move(kind);
}

// Defaults and ways of NCCL 2.20 and later (src/transport/net_ib.cc, ncclIbMultiSend): one queue pair, messages in
// turn.
void read_connections(const Spec& network, NetworkParameters& result) {
  const auto connections = network.find("connections");
  if (!connections) return;
  if (const auto value = connections->find("queue_pairs"))
    result.queue_pairs_per_connection = static_cast<std::uint32_t>(value->integer(1, 128));  // NCCL_IB_MAX_QPS
  if (const auto value = connections->find("data"))
    result.split_data = value->one_of({"round_robin", "split"}) == "split";
  connections->finish();
}

// Without queues by class a port has the order of all departures as soon as a packet comes; whatever stops, drops,
// marks or reorders packets needs the queues.
void check_committed(const Spec& network, const NetworkParameters& result) {
  const auto queues = network.find("queues");
  if (!queues || result.fidelity != Fidelity::packet || queues->text() == "output") return;
  if (!result.buffered() && !result.fault_keys.loss && !result.fault_keys.failures) return;
  std::vector<std::string> given;
  for (const char* key : {"flow_control", "link_classes", "buffer", "ecn", "switching", "trimming", "load_balancing",
                          "congestion_control", "recovery", "ack_interval", "loss", "failures"})
    if (network.has(key)) given.emplace_back(key);
  throw queues->error(
      fmt::format("found committed with {}, which need queues by class; expected output", fmt::join(given, ", ")));
}

// Keys that also apply to the ideal network have the same meaning there. It has no queues, so keys about queues are
// ignored; keys that would change an idle network are refused.
void read_fidelity(const Spec& network, NetworkParameters& result) {
  const auto value = network.find("fidelity");
  const auto model = network.find("loggp");
  const std::string name = value ? value->one_of({"packet", "ideal", "loggp"}) : "packet";
  if (model && name != "loggp" && !(model->is_map() && model->size() == 0))
    throw model->error(fmt::format("found with fidelity: {}; expected fidelity: loggp with it", name));
  if (name == "packet") return;
  result.fidelity = name == "ideal" ? Fidelity::ideal : Fidelity::loggp;
  result.fidelity_place = value->where();
  if (model) result.loggp = read_loggp(*model);
  for (const char* key : {"loss", "failures"}) {
    const auto faults = network.find(key);
    if (faults && !(faults->is_sequence() && faults->size() == 0))
      throw faults->error(
          fmt::format("found with fidelity: {}, which has no faults; expected fidelity: packet, or []", name));
  }
  for (const char* key :
       {"window",           "queues",       "buffer",           "flow_control",   "link_classes", "pfc",
        "credit",           "ecn",          "priorities",       "trimming",       "recovery",     "go_back_n",
        "selective_repeat", "go_back_0",    "ack_interval",     "load_balancing", "flowlet",      "queue_reports",
        "reconvergence",    "local_repair", "resilient_hashing"})
    if (network.has(key)) result.without_effect.emplace_back(key);
  if (result.congestion_control_name != "none") result.without_effect.emplace_back("congestion_control");
  if (result.fidelity == Fidelity::ideal) return;
  for (const char* key : {"mtu", "server_mtu", "header", "wire_overhead", "switch_latency", "connections", "routing"})
    if (network.has(key)) result.without_effect.emplace_back(key);
  result.queue_pairs_per_connection = 1;
}

}  // namespace

std::string_view to_text(Fidelity fidelity) {
  return fidelity == Fidelity::packet ? "packet" : fidelity == Fidelity::ideal ? "ideal" : "loggp";
}

bool NetworkParameters::buffered() const {
  return frames || fabric.buffered || uses(fabric, FlowControl::pfc) || uses(fabric, FlowControl::credit) ||
         fabric.buffer.size || fabric.buffer.queue || fabric.ecn.configured || fabric.cut_through || fabric.trimming ||
         fabric.load_balancing_name != "ecmp" || congestion_control_name != "none" || recovery_given ||
         recovery.ack_interval > 1 || !faults.empty();
}

Bytes NetworkParameters::min_wire() const {
  Bytes min = data_overhead();
  if (acks) min = std::min(min, control_wire());
  if (uses(fabric, FlowControl::pfc)) min = std::min(min, pause_wire);
  if (uses(fabric, FlowControl::credit) || uses(fabric, FlowControl::pfc) || has_credits_inside_servers(fabric))
    min = std::min(min, grant_wire);
  constexpr Bytes min_frame(64);  // IEEE 802.3 clause 3.2.8
  if (frames) min = std::min(min, min_frame + wire_overhead);
  if (fabric.cut_through) min = std::min(min, header);
  return min;
}

Bytes NetworkParameters::data_wire(const LinkFraming& framing, Bytes payload, bool with_answers) const {
  if (framing.payload == 0) return payload + data_overhead();
  const std::int64_t frames = std::max<std::int64_t>(1, (payload.count() + framing.payload - 1) / framing.payload);
  return payload + Bytes(frames * (framing.overhead + (with_answers ? framing.answer : 0)));
}

Bytes NetworkParameters::control_wire(const LinkFraming& framing, Bytes payload) const {
  if (framing.payload == 0) return control_wire();
  const std::int64_t frames = (payload.count() + framing.payload - 1) / framing.payload;
  return Bytes(std::max<std::int64_t>(1, frames * framing.answer));
}

Bytes NetworkParameters::min_wire(const LinkFraming& framing) const {
  if (framing.payload == 0) return min_wire();
  return std::min({min_wire(), std::max(Bytes(1), data_wire(framing, Bytes(0))),
                   control_wire(framing, std::min(mtu, server_mtu.value_or(mtu)))});
}

NetworkParameters read_network_parameters(const std::optional<Spec>& given, bool routing_reorders) {
  NetworkParameters result;
  const std::optional<Spec> spec = given ? given : Spec::parse("{}", "");
  if (const auto value = spec->find("mtu")) result.mtu = bytes_between(*value, 1, 65'535);
  if (const auto value = spec->find("server_mtu")) result.server_mtu = bytes_between(*value, 1, 65'535);
  if (const auto value = spec->find("header")) result.header = bytes_between(*value, 1, 65'535);
  if (const auto value = spec->find("wire_overhead")) result.wire_overhead = bytes_between(*value, 0, 65'535);
  if (const auto value = spec->find("ack")) {
    if (value->is_scalar() && value->text() == "none")
      result.acks = false;
    else
      result.ack = bytes_between(*value, 1, 65'535);
  }
  if (const auto value = spec->find("switch_latency")) result.switch_latency = value->wait();
  if (const auto value = spec->find("window")) {
    result.window = bytes_between(*value, 1, std::int64_t{1} << 50);
    result.window_given = true;
  }
  if (const auto value = spec->find("routing")) result.routing = value->one_of(RoutingRegistry::instance().names());
  result.fabric = read_switch_parameters(*spec, result.mtu + result.header);
  if (const auto pfc = spec->find("pfc")) check_quanta(*pfc, result);
  read_connections(*spec, result);
  read_recovery(*spec, routing_reorders, result);
  read_congestion_control(*spec, result);
  if (!result.acks && (result.buffered() || spec->has("loss") || spec->has("failures")))
    throw spec->at("ack").error("found none beside keys that need reliable connections; these rest on ACKs");
  read_fidelity(*spec, result);
  result.fault_keys = {spec->find("loss"), spec->find("failures"), spec->find("reconvergence"),
                       spec->find("local_repair"), spec->find("resilient_hashing")};
  spec->finish();
  check_committed(*spec, result);
  return result;
}

}  // namespace weft
