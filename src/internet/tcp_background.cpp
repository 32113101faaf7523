// SPDX-License-Identifier: GPL-2.0-only
// `background: [{kind: tcp, ...}]`: bulk transfers over TCP, such as those of storage.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ns3/tcp-congestion-ops.h>
#include <ns3/tcp-cubic.h>
#include <ns3/tcp-dctcp.h>
#include <ns3/tcp-htcp.h>
#include <ns3/tcp-linux-reno.h>
#include <ns3/tcp-vegas.h>

#include "fabric/frames/ethernet.hpp"
#include "internet/background.hpp"
#include "internet/tcp_applications.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

// Those of ns-3 that need no random numbers.
const std::map<std::string, ns3::TypeId (*)()> congestion_controls = {
    {"cubic", &ns3::TcpCubic::GetTypeId},      {"dctcp", &ns3::TcpDctcp::GetTypeId},
    {"htcp", &ns3::TcpHtcp::GetTypeId},        {"linux_reno", &ns3::TcpLinuxReno::GetTypeId},
    {"new_reno", &ns3::TcpNewReno::GetTypeId}, {"vegas", &ns3::TcpVegas::GetTypeId},
};

constexpr std::uint16_t first_port = 5001;
constexpr std::int64_t max_connections = 10'000;
/// IPv4 and TCP with its time stamps option (RFC 7323): the part of a packet that is not payload.
constexpr std::int64_t tcp_ip = 20 + 20 + 12;

struct Tcp {
  std::string name;
  NodeId from;
  NodeId to;
  std::uint32_t connections = 1;
  std::optional<Bytes> size;
  Time start;
  std::uint8_t priority = 0;
  TcpSettings settings;
  SourceLine place;
};

class TcpTraffic final : public BackgroundTraffic {
 public:
  explicit TcpTraffic(Tcp tcp) : tcp_(std::move(tcp)) {}
  std::vector<NodeId> hosts() const override { return {tcp_.from, tcp_.to}; }

  void install(Internet& internet, TransferLog& log) const override {
    for (std::uint32_t i = 0; i < tcp_.connections; ++i) {
      TransferRecord row;
      row.name = tcp_.connections == 1 ? tcp_.name : fmt::format("{}.{}", tcp_.name, i);
      row.source = tcp_.from.value();
      row.destination = tcp_.to.value();
      row.priority = tcp_.priority;
      row.size = tcp_.size ? tcp_.size->count() : -1;
      row.start = tcp_.start.ps();
      const auto receiver = internet.node(tcp_.to);
      const std::uint32_t number = log.add(std::move(row), receiver != nullptr);
      if (number > UINT16_MAX - first_port)
        throw InputError(tcp_.place, fmt::format("there are more than {} connections in all", number));
      const auto port = static_cast<std::uint16_t>(first_port + number);
      if (receiver) receiver->AddApplication(ns3::CreateObject<TcpReceiver>(tcp_.settings, port, log, number));
      const auto sender = internet.node(tcp_.from);
      if (!sender) continue;
      const ns3::InetSocketAddress address(Internet::address(tcp_.to), port);
      const auto application = ns3::CreateObject<TcpSender>(tcp_.settings, address, tcp_.size, log, number);
      application->SetStartTime(ns3::TimeStep(static_cast<std::uint64_t>(tcp_.start.ps())));
      sender->AddApplication(application);
    }
  }

 private:
  Tcp tcp_;
};

NodeId read_host(const Spec& spec, const BackgroundContext& context) {
  return NodeId(static_cast<std::uint32_t>(spec.integer(0, context.hosts - 1)));
}

std::uint8_t read_priority(const Spec& entry, const PriorityParameters& classes) {
  const auto spec = entry.find("priority");
  if (!spec) return classes.one_queue ? classes.data : classes.other;
  const auto priority = static_cast<std::uint8_t>(spec->integer(0, 7));
  if (classes.one_queue || priority == classes.data || priority == classes.other) return priority;
  throw spec->error(
      fmt::format("found {}; expected {}, the class of RDMA data, or {}, that of other traffic "
                  "(network.priorities)",
                  priority, classes.data, classes.other));
}

std::uint32_t read_buffer(const Spec& entry, std::uint32_t segment) {
  const auto spec = entry.find("buffer");
  // tcp_rmem's and tcp_wmem's upper limits in Linux are 6 and 4 MiB (tcp(7)).
  if (!spec) return 4U << 20;
  const Bytes value = spec->bytes();
  constexpr std::int64_t max = std::int64_t{65'535} << 14;  // RFC 7323: the largest window
  if (value.count() < segment || value.count() > max)
    throw spec->error(fmt::format("found {}; expected a segment, {}, to {}", to_text(value), to_text(Bytes(segment)),
                                  to_text(Bytes(max))));
  return static_cast<std::uint32_t>(value.count());
}

Time read_time_above(const Spec& entry, const char* key, Time usual) {
  const auto spec = entry.find(key);
  if (!spec) return usual;
  if (spec->time() <= Time()) throw spec->error("found 0; expected a time above 0");
  return spec->time();
}

TcpSettings read_settings(const Spec& entry, const NetworkParameters& network) {
  TcpSettings settings;
  const std::int64_t room = std::min<std::int64_t>((network.mtu + network.header).count(), 65'535) -
                            (ethernet_header + frame_check).count() - tcp_ip;
  constexpr std::int64_t min_segment = 64;
  if (room < min_segment)
    throw entry.error(fmt::format("frames of network.mtu and header, {}, have no room for TCP/IP",
                                  to_text(network.mtu + network.header)));
  settings.segment = static_cast<std::uint32_t>(room);
  if (const auto spec = entry.find("segment")) {
    const Bytes value = spec->bytes();
    if (value.count() < min_segment || value.count() > room)
      throw spec->error(fmt::format("found {}; expected {} to {}, which is what fits into a frame of the network",
                                    to_text(value), to_text(Bytes(min_segment)), to_text(Bytes(room))));
    settings.segment = static_cast<std::uint32_t>(value.count());
  }
  std::vector<std::string> names;
  for (const auto& [name, type] : congestion_controls) names.push_back(name);
  std::string name = "cubic";
  if (const auto spec = entry.find("congestion_control")) name = spec->one_of(names);
  settings.congestion_control = congestion_controls.at(name)();
  settings.ecn = name == "dctcp";
  if (const auto spec = entry.find("ecn")) {
    settings.ecn = spec->boolean();
    if (name == "dctcp" && !settings.ecn) throw spec->error("found false with dctcp, which rests on marks");
  }
  settings.buffer = read_buffer(entry, settings.segment);
  // TCP_RTO_MIN and TCP_DELACK_MIN of Linux.
  settings.min_timeout = read_time_above(entry, "min_rto", Time::from_ms(200));
  settings.ack_delay = read_time_above(entry, "ack_delay", Time::from_ms(40));
  return settings;
}

class TcpKind final : public BackgroundKind {
 public:
  std::unique_ptr<BackgroundTraffic> read(const Spec& spec, const BackgroundContext& context) const override {
    Tcp tcp;
    tcp.place = spec.where();
    tcp.name = "tcp";
    if (const auto value = spec.find("name")) tcp.name = value->text();
    tcp.from = read_host(spec.at("from"), context);
    tcp.to = read_host(spec.at("to"), context);
    if (tcp.from == tcp.to) throw spec.at("to").error("found the host that sends; expected another one");
    if (const auto value = spec.find("connections"))
      tcp.connections = static_cast<std::uint32_t>(value->integer(1, max_connections));
    if (const auto value = spec.find("size")) {
      tcp.size = value->bytes();
      if (*tcp.size <= Bytes()) throw value->error("found 0; expected a size above 0");
    }
    if (const auto value = spec.find("start")) tcp.start = value->time();
    tcp.priority = read_priority(spec, context.network->fabric.priorities);
    tcp.settings = read_settings(spec, *context.network);
    tcp.settings.type_of_service = static_cast<std::uint8_t>(tcp.priority << 5);
    spec.finish();
    return std::make_unique<TcpTraffic>(std::move(tcp));
  }
};

const Registration<BackgroundKind, TcpKind> tcp_background_registration(
    "tcp", "bulk transfers over ns-3's TCP from host to host");

}  // namespace
}  // namespace weft
