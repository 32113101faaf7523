// SPDX-License-Identifier: GPL-2.0-only
// The packet-level network: hosts with NICs, output-queued switches, links. One object per MPI process holds the nodes
// that the process owns; links over the cut end in batches for the neighbour processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data_path.hpp"
#include "engine/process_group.hpp"
#include "fabric/client/host_client.hpp"
#include "fabric/client/host_network.hpp"
#include "fabric/client/link_counters.hpp"
#include "fabric/frames/frame_header.hpp"
#include "fabric/local/drive.hpp"
#include "fabric/network/fabric_checks.hpp"
#include "fabric/network/fabric_probes.hpp"
#include "fabric/network/fabric_results.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "fabric/probes/path_refusal.hpp"
#include "graph/partition/partition.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "transport/congestion_control/congestion_control.hpp"

namespace ns3 {
class Packet;
template <typename T>
class Ptr;
}  // namespace ns3

namespace weft {

struct FrameCounters;
struct PortModel;
class FrameTable;
class LocalNetwork;
class NodeEpochs;

/// The network of one process, with either of the two models of ports (PortModel). Order of events at one node and
/// time: packet arrivals by their tie key, then timers in the order in which they were set, then one decision of the
/// NIC what to send. Nothing depends on the partition.
///
/// Queueing: switches are output-queued, first in first out, without a buffer limit, so that a packet that reaches its
/// output at t leaves at max(t, port free) + serialisation, known at once: one visit per packet-hop. A NIC sends when
/// its port is free: ACKs and credits first, then one packet of each ready queue pair in turn.
class Fabric final : public HostNetwork {
 public:
  using Drive = weft::Drive;

  Fabric(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters,
         const RoutingAlgorithm& routing, std::uint64_t seed, Drive drive);
  ~Fabric() override;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Other processes run on this core between two epochs, and leave nothing of this one in its caches.
  void expect_cold_caches();
  /// What the run is to record. Before the run.
  FabricProbes& probes() { return probes_; }
  /// What the run has shown.
  FabricResults& results() { return results_; }
  const FabricResults& results() const { return results_; }
  /// Whether its packets still move.
  Deadlocks& deadlocks() { return deadlocks_; }
  /// The first path that parameters of the user do not suit, if this process has refused any: the run is to end.
  PathRefusal path_refusal() const;

  // Links that differ from the topology. Before the run
  // ----------------------------------------------
  /// Change the rate of one direction of a link: the one that leaves through `port` of `node`.
  void set_rate(NodeId node, std::uint32_t port, Bandwidth rate);
  /// Change one direction of a link. Rate and delay above 0. A caller that changes a link on one process of several
  /// also calls settle_links() on all of them afterwards.
  void set_link_times(std::uint32_t directed_link, const LinkTimes& times);
  LinkTimes link_times(std::uint32_t directed_link) const;
  /// Collective: every process learns the changes of all others since the last call. Throws InputError if two processes
  /// have changed one direction of a link differently.
  void settle_links(ProcessGroup& group);
  /// From here on the links stay as they are.
  void close_links();
  bool links_closed() const;

  // For traffic and observers beside the lean packets
  // -------------------------------------------------
  struct Departure {
    Time first_bit;
    Time last_bit;
  };
  /// Book the transmission of a frame of `wire` bytes that reaches the output of an owned port at `now`: first in,
  /// first out with the packets that have been committed there. From ns-3 events only. Packets of the host's own queue
  /// pairs are committed one at a time, when the port is free, so that a frame waits for one of them at most.
  Departure reserve_port(NodeId node, std::uint32_t port, Time now, Bytes wire);
  /// Time to put a packet on the wire of an owned port.
  Time serialization_at(NodeId node, std::uint32_t port, const Packet& packet) const;
  /// `action` is called at the end of each advance(end), while ParallelSimulatorImpl::enter() is allowed; nullptr:
  /// none.
  void set_after_advance(std::function<void(Time end)> action) { after_advance_ = std::move(action); }

  // Packets of ns-3's stacks from host to host
  // ----------------------------------------------------------------
  /// From here on hosts can send frames, and those for hosts of this process are handed to the table's receiver. Ports
  /// have queues by class then, as with `queues: output`. Before the run, on all processes. Throws InputError with
  /// `ack: none`.
  FrameTable& carry_frames();
  bool carries_frames() const;
  /// Of the machine.
  std::uint32_t host_count() const;
  /// Queue a frame at an owned host, at Simulator::Now(), from an ns-3 event. False if the host's transmit queue is
  /// full (1,000 times 64 KiB, or `buffer.queue`), or the frame is longer than the network's.
  bool send_frame(const FrameHeader& header, Time now, const ns3::Ptr<ns3::Packet>& frame);
  ns3::Ptr<ns3::Packet> frame_of(const Packet& packet) const;
  /// Of this process's hosts.
  const FrameCounters& frame_counters() const;

  /// Packets are being processed right now.
  bool advancing() const;
  Drive drive() const;

  // For the software of owned hosts -----------------------------------------------------------------------------------
  const std::vector<NodeId>& hosts() const override;
  bool owns(NodeId node) const override;
  std::uint32_t open_queue_pair(NodeId host, NodeId destination) override;
  std::uint64_t post(NodeId host, std::uint32_t queue_pair, Time now, Message message,
                     std::uint64_t token = 0) override;
  void send_credit(NodeId host, Time now, NodeId to, std::uint32_t queue_pair, Time late) override;
  SendTimes send_times(NodeId host, std::uint32_t queue_pair, Time now) const override;
  void set_timer(NodeId host, Time at, std::uint64_t token) override;
  const NetworkParameters& parameters() const override;
  Time latency_of(NodeId node) const;

  // DataPath ---------------------------------------------------------------------------------------------------------
  Time next_time() const override;
  void advance(Time end) override;
  Time lookahead() const override;
  std::span<const int> neighbours() const override;
  std::span<Batch> outgoing() override;
  void set_boundary_done(std::function<void()> done) override;
  void incoming(std::size_t neighbour, std::span<const std::byte> batch) override;
  std::uint64_t take_critical_events() override;
  Time now() const override;

  // Results ----------------------------------------------------------------------------------------------------------
  std::uint64_t packet_hops() const override;
  std::uint64_t events() const override;
  Time inner_epoch() const;
  std::vector<LinkCounters> link_counters() const override;
  /// Ports have queues by class, and connections recover losses.
  bool buffered() const;
  std::uint32_t node_count() const override;
  /// O(ports).
  bool idle() const override;
  /// As Conservation::check().
  void check_conservation(ProcessGroup& group) const;
  void finish(ProcessGroup& group, bool all_idle) override {
    if (all_idle) check_conservation(group);
  }
  /// Of this process's nodes, ports and queues.
  std::uint64_t memory_bytes() const override;

 private:
  void build_queues();
  void apply_link_times(std::uint32_t directed_link, const LinkTimes& times);
  void shrink_epoch(Time length);

  std::unique_ptr<LocalNetwork> net_;
  std::unique_ptr<PortModel> model_;
  std::unique_ptr<NodeEpochs> epochs_;
  Time lookahead_;
  FabricResults results_;
  FabricProbes probes_;
  Deadlocks deadlocks_;
  std::function<void(Time)> after_advance_;
  bool advancing_ = false;
};

}  // namespace weft
