// SPDX-License-Identifier: GPL-2.0-only
// The `network:` map of an experiment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/parameters/link_faults.hpp"
#include "fabric/parameters/loggp_parameters.hpp"
#include "fabric/parameters/switch_parameters.hpp"
#include "graph/machine/cluster_graph.hpp"
#include "support/documents/spec.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "transport/recovery/recovery.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// What moves messages: packets, link by link (Fabric), what is known of a message on an idle network (IdealNetwork),
/// or the LogGOPS model (LogGpNetwork).
enum class Fidelity : std::uint8_t { packet, ideal, loggp };
std::string_view to_text(Fidelity fidelity);

/// Frame sizes and host limits. Defaults: RoCEv2 over Ethernet with a 4,096-byte path MTU.
struct NetworkParameters {
  Bytes mtu{4096};  ///< payload bytes per packet; 1 to 65,535
  /// The same between hosts of one server, if it is another.
  std::optional<Bytes> server_mtu;
  Bytes header{62};  ///< Ethernet 14 + IPv4 20 + UDP 8 + BTH 12 + ICRC 4 + FCS 4 (IBTA RoCEv2 annex A17; IEEE 802.3)
  Bytes wire_overhead{20};        ///< preamble and start delimiter 8, inter-frame gap 12 (IEEE 802.3 clause 4)
  Bytes ack{66};                  ///< an ACK frame: header plus AETH 4
  bool acks = true;               ///< false (`ack: none`): no ACK and credit traffic, unlimited window
  Time switch_latency;            ///< from the last bit in to the output queue
  Bytes window{Bytes::kib(256)};  ///< unacknowledged payload bytes per queue pair
  std::string routing;            ///< name of a routing algorithm; empty: the topology's own
  Fidelity fidelity = Fidelity::packet;
  SourceLine fidelity_place;
  LogGpParameters loggp;
  std::vector<std::string> without_effect;  ///< keys given that change nothing without packets

  /// `network.connections`: queue pairs of each connection between two ranks (NCCL_IB_QPS_PER_CONNECTION), which take
  /// its messages in turn, or a part of each message each (NCCL_IB_SPLIT_DATA_ON_QPS).
  std::uint32_t queue_pairs_per_connection = 1;
  bool split_data = false;
  static constexpr std::int64_t split_unit = 128;  ///< parts are multiples of so many bytes (NCCL, net_ib.cc)

  SwitchParameters fabric;
  RecoveryRules recovery;
  bool recovery_given = false;
  std::optional<SourceLine> timeout_place;  ///< if a timeout was given
  bool window_given = false;
  std::string congestion_control_name = "none";
  SourceLine congestion_control_place;
  std::shared_ptr<const CongestionControlKind> congestion_control;
  LinkFaultKeys fault_keys;  ///< for read_link_faults(), which needs the machine
  LinkFaults faults;
  bool frames = false;  ///< hosts send Ethernet frames beside RDMA traffic: Fabric::carry_frames()

  /// A pause frame with preamble and gap (IEEE 802.3 clause 31: 64 + 20 B), and a credit update (IBTA vol. 1, 7.9.4: a
  /// flow-control packet of 8 B).
  static constexpr Bytes pause_wire = Bytes(84);
  static constexpr Bytes grant_wire = Bytes(8);

  /// Something needs ports with queues: see Fabric.
  bool buffered() const;
  /// From a packet's last bit in to its output queue: of switches of the network. Inside servers there is no time but
  /// that of the links, which their designs give.
  Time latency_of(const NodeProperties& node) const {
    return node.kind == NodeKind::host || node.in_server ? Time() : switch_latency;
  }
  /// Payload bytes of a full packet between two hosts.
  Bytes mtu_between(const NodeProperties& a, const NodeProperties& b) const {
    return a.block != no_block && a.block == b.block ? server_mtu.value_or(mtu) : mtu;
  }
  /// The largest at nodes of servers, or of the network.
  Bytes max_mtu(bool in_server = true) const { return in_server ? std::max(mtu, server_mtu.value_or(mtu)) : mtu; }
  /// The window between hosts of one server: as many packets as elsewhere, if they are larger.
  Bytes server_window() const {
    const Bytes full = server_mtu.value_or(mtu);
    return full > mtu ? std::max(window, (window / mtu) * full) : window;
  }
  Bytes data_overhead() const { return header + wire_overhead; }
  Bytes control_wire() const { return ack + wire_overhead; }
  /// The least that passes a link before something happens at its other end, which bounds the lookahead: a packet
  /// without payload, an ACK, a frame of flow control, or the header of a packet that is cut through.
  Bytes min_wire() const;
  /// The same on a link with a framing of its own. Its answers are ACKs. Where there are no packets of ACKs, answers
  /// are counted with the data (`with_answers`), as if there were as much traffic in the other direction.
  Bytes data_wire(const LinkFraming& framing, Bytes payload, bool with_answers) const;
  Bytes data_wire(const LinkFraming& framing, Bytes payload) const { return data_wire(framing, payload, !acks); }
  /// `payload`: of the packet that is answered.
  Bytes control_wire(const LinkFraming& framing, Bytes payload) const;
  Bytes control_wire(const LinkFraming& framing) const { return control_wire(framing, mtu); }
  Bytes min_wire(const LinkFraming& framing) const;
};

/// Reads and finishes the map; all keys are optional. `routing_reorders`: see RoutingAlgorithm::reorders(). Throws
/// InputError.
NetworkParameters read_network_parameters(const std::optional<Spec>& spec, bool routing_reorders = false);

}  // namespace weft
