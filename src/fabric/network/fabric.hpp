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
#include "fabric/parameters/network_parameters.hpp"
#include "fabric/probes/arrival_observer.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "fabric/probes/port_tap.hpp"
#include "graph/partition/partition.hpp"
#include "routing/routing_algorithm.hpp"
#include "transport/congestion_control.hpp"

namespace ns3 {
class Packet;
template <typename T>
class Ptr;
}  // namespace ns3

namespace weft {

struct FrameCounters;
struct JobsOfHosts;
struct PortModel;
class FrameTable;
class LocalNetwork;
class NodeEpochs;

/// The network of one process, whichever of the two models its ports have (PortModel). Order of things at one node and
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

  /// Record a sample of every port each `interval` (> 0). Before the run.
  void set_sampling(Time interval);
  /// Other processes run on this core between two epochs, and leave nothing of this one in its caches.
  void expect_cold_caches();
  /// Record a sample each `interval` (> 0) of the queue pairs of `hosts` (ascending) to `destinations` (ascending;
  /// empty: all). Requires buffered(). Before the run.
  void sample_queue_pairs(Time interval, std::vector<std::uint32_t> hosts, std::vector<std::uint32_t> destinations);
  /// Keep how long each queue is how deep, for queue_depths(). Requires buffered(). Before the run.
  void keep_queue_depths();
  /// Count for which job's packets those of each job wait. Before the run.
  void count_waits_by_job(JobsOfHosts jobs);
  /// Count which output of a switch filled the ingress queues whose senders it stopped. Before the run.
  void count_pause_causes();
  /// Copy every packet that leaves through `port` of `node` to `tap` (pcap, trace sinks). Before the run. No-op if not
  /// owned here.
  void add_tap(NodeId node, std::uint32_t port, std::shared_ptr<PortTap> tap);

  // Links that differ from the topology. Before the run
  // ----------------------------------------------
  /// Change the rate of one direction of a link: that which leaves through `port` of `node`.
  void set_rate(NodeId node, std::uint32_t port, Bandwidth rate);
  /// Change one direction of a link. Rate and delay above 0. Whoever changes a link on one process of several calls
  /// settle_links() on all of them afterwards.
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
  using ArrivalObserver = weft::ArrivalObserver;
  void add_arrival_observer(NodeId node, std::uint32_t port, ArrivalObserver observer);
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
  const std::vector<std::uint32_t>& hosts() const override;
  bool owns(NodeId node) const override;
  std::uint32_t open_queue_pair(std::uint32_t host, std::uint32_t destination) override;
  std::uint64_t post(std::uint32_t host, std::uint32_t queue_pair, Time now, Message message,
                     std::uint64_t token = 0) override;
  void send_credit(std::uint32_t host, Time now, std::uint32_t to, std::uint32_t queue_pair) override;
  SendTimes send_times(std::uint32_t host, std::uint32_t queue_pair, Time now) const override;
  void set_timer(std::uint32_t host, Time at, std::uint64_t token) override;
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
  std::uint64_t inner_epochs() const;
  Time inner_epoch() const;
  std::vector<LinkCounters> link_counters() const override;
  /// The run has ended at `end`: what had not begun to leave by then has waited until then, and no longer. Once, before
  /// waits are read. Collective.
  void settle_waits(ProcessGroup& group, Time end);
  /// The `most` links for which packets have waited most until `end`, over all processes; the same on each. Collective.
  std::vector<HotLink> hot_links(ProcessGroup& group, std::size_t most, Time end) const;
  /// By class, queue pair and receiver: empty where ports have no queues by class. `end`: until when pauses count that
  /// have not ended.
  std::vector<LinkClassCounters> class_counters(Time end) const;
  /// Of queues in which something has waited, over the time until `end`; nothing without keep_queue_depths().
  std::vector<QueueDepth> queue_depths(Time end) const;
  /// Rows of /link_waits; nothing without count_waits_by_job().
  std::vector<LinkJobWait> link_waits() const;
  /// Rows of /link_pauses; nothing without count_pause_causes(). `end`: until when stops count that have not ended.
  std::vector<LinkPause> link_pauses(Time end) const;
  std::vector<QueuePairCounters> queue_pair_counters() const;
  std::vector<ReceiverCounters> receiver_counters() const;
  /// Ports have queues by class, and connections recover losses.
  bool buffered() const;
  /// Samples up to `end`, closing the last interval there. Moves them out.
  std::vector<PortSample> take_samples(Time end);
  /// Those of the intervals that ended at `now` or before, everything before which has happened. Moves them out;
  /// others, which events without effect may have closed, stay.
  std::vector<PortSample> take_closed_samples(Time now);
  std::size_t samples_held() const;
  /// Samples of ports and of queue pairs that take_samples(end) and take_queue_pair_samples(end) would give, about.
  std::uint64_t samples_until(Time end) const;
  /// The same of queue pairs.
  std::vector<QueuePairSample> take_queue_pair_samples(Time end);
  std::vector<QueuePairSample> take_closed_queue_pair_samples(Time now);
  std::uint32_t node_count() const override;
  /// Some link has been paused for longer than pfc.watchdog since this was asked last.
  bool suspicious() const;
  bool take_suspicion();
  /// Collective: ports that wait for each other in a cycle and have all been stopped since `stopped_by` at the latest,
  /// as text; empty if there is none.
  std::string find_deadlock(ProcessGroup& group, Time stopped_by) const;
  /// Packets wait in queues of owned nodes. O(ports).
  bool packets_wait() const;
  /// What congestion has done at owned nodes.
  CongestionTotals congestion() const;
  /// O(ports).
  bool idle() const override;
  std::uint64_t messages_in_flight() const;
  /// Every packet sent was received, per link, also over the cut, and nothing is queued; throws InternalError
  /// otherwise. Collective.
  void check_conservation(ProcessGroup& group);
  void finish(ProcessGroup& group, bool all_idle) override {
    if (all_idle) check_conservation(group);
  }
  /// Of this process's nodes, ports and queues.
  std::uint64_t memory_bytes() const override;

 private:
  void build_queues();
  void apply_link_times(std::uint32_t directed_link, const LinkTimes& times);
  void shrink_epoch(Time length);
  std::uint64_t packets_delivered(PortId port) const;
  void check_links() const;
  void check_cut(ProcessGroup& group) const;
  void check_frames(ProcessGroup& group) const;

  std::unique_ptr<LocalNetwork> net_;
  std::unique_ptr<PortModel> model_;
  std::unique_ptr<NodeEpochs> epochs_;
  Time lookahead_;
  std::function<void(Time)> after_advance_;
  bool advancing_ = false;
};

}  // namespace weft
