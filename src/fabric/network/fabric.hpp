// SPDX-License-Identifier: GPL-2.0-only
// The packet-level network: hosts with NICs, output-queued switches, links. One object per MPI process holds the nodes
// that the process owns; links over the cut end in batches for the neighbour processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/data_path.hpp"
#include "engine/process_group.hpp"
#include "fabric/client/host_client.hpp"
#include "fabric/client/host_network.hpp"
#include "fabric/client/link_counters.hpp"
#include "fabric/frames/frame_header.hpp"
#include "fabric/packet/arrival_order.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/packet/local_nodes.hpp"
#include "fabric/packet/node_calendar.hpp"
#include "fabric/packet/packet_queue.hpp"
#include "fabric/packet/port.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "fabric/probes/fabric_reports.hpp"
#include "fabric/probes/port_tap.hpp"
#include "graph/partition.hpp"
#include "routing/routing_algorithm.hpp"
#include "support/huge_pages.hpp"
#include "transport/congestion_control.hpp"
#include "transport/ideal_time.hpp"
#include "transport/reliable_sender.hpp"

namespace ns3 {
class Packet;
template <typename T>
class Ptr;
}  // namespace ns3

namespace weft {

struct BufferedState;
struct FrameCounters;
class FrameTable;
class SharedBuffer;
class WaitsByJob;
struct Connection;
struct JobsOfHosts;

/// The model. Order of things at one node and time: packet arrivals by their tie key, then timers in the order in which
/// they were set, then one decision of the NIC what to send. Nothing depends on the partition.
///
/// Queueing: switches are output-queued, first in first out, without a buffer limit, so that a packet that reaches its
/// output at t leaves at max(t, port free) + serialisation, known at once: one visit per packet-hop. A NIC sends when
/// its port is free: ACKs and credits first, then one packet of each ready queue pair in turn.
class Fabric final : public HostNetwork {
 public:
  /// How time advances: by windows of this class, or by one ns-3 event per packet arrival (the reference).
  enum class Drive { windows, ns3_events };

  Fabric(const Topology& topology, const Partition& partition, int process, const NetworkParameters& parameters,
         const RoutingAlgorithm& routing, std::uint64_t seed, Drive drive);
  ~Fabric() override;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Record a sample of every port each `interval` (> 0). Before the run.
  void set_sampling(Time interval);
  /// Other processes run on this core between two windows, and leave nothing of this one in its caches.
  void expect_cold_caches() { nodes_in_cache_ = 0; }
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

  // Links that differ from the topology (fabric_links.cpp). Before the run
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
  void close_links() { links_closed_ = true; }
  bool links_closed() const { return links_closed_ || events_ > 0; }

  // For traffic and observers beside the lean packets (fabric_links.cpp)
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
  /// Sees each packet that comes in through a port from another process, with the arrival of its last bit; in order.
  /// Packets from this process are seen by a tap of the port that sends them.
  using ArrivalObserver = std::function<void(Time last_bit, const Packet&)>;
  void add_arrival_observer(NodeId node, std::uint32_t port, ArrivalObserver observer);
  /// `action` is called at the end of each advance(end), while ParallelSimulatorImpl::enter() is allowed; nullptr:
  /// none.
  void set_after_advance(std::function<void(Time end)> action) { after_advance_ = std::move(action); }

  // Packets of ns-3's stacks from host to host (fabric_frames.cpp)
  // ----------------------------------------------------------------
  /// From here on hosts can send frames, and those for hosts of this process are handed to the table's receiver. Ports
  /// have queues by class then, as with `queues: output`. Before the run, on all processes. Throws InputError with
  /// `ack: none`.
  FrameTable& carry_frames();
  bool carries_frames() const { return frames_ != nullptr; }
  /// Of the machine.
  std::uint32_t host_count() const { return topology_.graph.host_count(); }
  /// Queue a frame at an owned host, at Simulator::Now(), from an ns-3 event. False if the host's transmit queue is
  /// full (1,000 times 64 KiB, or `buffer.queue`), or the frame is longer than the network's.
  bool send_frame(const FrameHeader& header, Time now, const ns3::Ptr<ns3::Packet>& frame);
  ns3::Ptr<ns3::Packet> frame_of(const Packet& packet) const;
  /// Of this process's hosts.
  const FrameCounters& frame_counters() const;

  /// Packets are being processed right now.
  bool advancing() const { return advancing_ || in_node_; }
  Drive drive() const { return drive_; }

  // For the software of owned hosts -----------------------------------------------------------------------------------
  const std::vector<std::uint32_t>& hosts() const override { return owned_hosts_; }
  bool owns(NodeId node) const override { return local_of_[node.value()] != no_slot; }
  std::uint32_t open_queue_pair(std::uint32_t host, std::uint32_t destination) override;
  std::uint64_t post(std::uint32_t host, std::uint32_t queue_pair, Time now, Message message,
                     std::uint64_t token = 0) override;
  void send_credit(std::uint32_t host, Time now, std::uint32_t to, std::uint32_t queue_pair) override;
  SendTimes send_times(std::uint32_t host, std::uint32_t queue_pair, Time now) const override;
  void set_timer(std::uint32_t host, Time at, std::uint64_t token) override;
  const NetworkParameters& parameters() const override { return parameters_; }
  Time latency_of(NodeId node) const { return parameters_.latency_of(topology_.graph.node(node)); }

  // DataPath ---------------------------------------------------------------------------------------------------------
  Time next_time() const override;
  void advance(Time end) override;
  Time lookahead() const override;
  std::span<const int> neighbours() const override { return neighbour_processes_; }
  std::span<Batch> outgoing() override { return outgoing_; }
  void set_border_done(std::function<void()> done) override { border_done_ = std::move(done); }
  void incoming(std::size_t neighbour, std::span<const std::byte> batch) override;
  std::uint64_t take_critical_events() override;
  Time now() const override { return Time::from_ps(now_); }

  // Results ----------------------------------------------------------------------------------------------------------
  std::uint64_t packet_hops() const override;
  std::uint64_t events() const override { return events_; }
  std::uint64_t inner_windows() const { return inner_windows_; }
  Time inner_window() const { return Time::from_ps(window_length_); }
  std::vector<LinkCounters> link_counters() const override;
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
  /// The same of one class at a local port.
  QueueDepth queue_depth(std::uint32_t port, std::uint32_t lane, Time end) const;
  std::vector<QueuePairCounters> queue_pair_counters() const;
  std::vector<ReceiverCounters> receiver_counters() const;
  /// Ports have queues by class, and connections recover losses.
  bool buffered() const { return buffered_ != nullptr; }
  /// Samples up to `end`, closing the last interval there. Moves them out.
  std::vector<PortSample> take_samples(Time end);
  /// Those of the intervals that ended at `now` or before, everything before which has happened. Moves them out;
  /// others, which events without effect may have closed, stay.
  std::vector<PortSample> take_closed_samples(Time now);
  std::size_t samples_held() const { return samples_.size() + queue_pair_samples_.size(); }
  /// The same of queue pairs.
  std::vector<QueuePairSample> take_queue_pair_samples(Time end);
  std::vector<QueuePairSample> take_closed_queue_pair_samples(Time now);
  std::uint32_t node_count() const override { return static_cast<std::uint32_t>(nodes_.size()); }
  /// Some link has been paused for longer than pfc.watchdog since this was asked last.
  bool suspicious() const { return suspicious_; }
  bool take_suspicion() { return std::exchange(suspicious_, false); }
  /// Collective: ports that wait for each other in a circle and have all been stopped since `stopped_by` at the latest,
  /// as text; empty if there is none.
  std::string find_deadlock(ProcessGroup& group, Time stopped_by) const;
  /// Packets wait in queues of owned nodes. O(ports).
  bool packets_wait() const;
  /// What congestion has done at owned nodes.
  CongestionTotals congestion() const;
  /// O(ports).
  bool idle() const override;
  std::uint64_t messages_in_flight() const { return messages_.live(); }
  /// Every packet sent was received, per link, also over the cut, and nothing is queued; throws InternalError
  /// otherwise. Collective.
  void check_conservation(ProcessGroup& group);
  void finish(ProcessGroup& group, bool all_idle) override {
    if (all_idle) check_conservation(group);
  }
  /// Of this process's nodes, ports and queues.
  std::uint64_t memory_bytes() const override;

 private:
  static constexpr std::int64_t never = LocalHost::never;
  static constexpr std::int64_t pause_wire = NetworkParameters::pause_wire;
  static constexpr std::int64_t grant_wire = NetworkParameters::grant_wire;
  using Node = LocalNode;
  using Host = LocalHost;
  /// Marks a timer of the fabric itself (a message sent without ACKs has left); tokens of the client stay below it.
  static constexpr std::uint64_t sent_token = std::uint64_t{1} << 63;

  // fabric_buffered_build.cpp
  void build_buffered();
  void settle_port(std::uint32_t index);
  void settle_ports_of(NodeId node);
  SharedBuffer make_buffer(const Node& node) const;
  void build_marking();
  void build_schedulers();
  Bytes needed_headroom(std::uint32_t in_port) const;
  Bytes input_buffer(std::uint32_t port) const;
  Time longest_round_trip() const;

  // fabric_buffered.cpp
  std::int64_t next_buffered_event(const Node& node) const;
  void add_event(std::uint32_t local, const NodeEvent& event);
  void run_buffered(std::uint32_t local, std::int64_t end);
  void run_connections(std::uint32_t local, std::int64_t end);
  void run_queues(std::uint32_t local, std::int64_t end);
  void run_events(std::uint32_t local, std::int64_t before);
  void run_deferred(std::uint32_t local, std::int64_t end);
  std::uint32_t next_port(const Node& node) const;
  bool handle_first_event(std::uint32_t local);
  void catch_up(std::uint32_t port_index, std::int64_t before);
  void catch_up_all(std::uint32_t local, std::int64_t before);
  void stop_deferring(std::uint32_t local);
  bool may_defer() const;
  bool handle_event(std::uint32_t local, const NodeEvent& event);
  RouteRequest route_request(Packet& packet) const;
  void route_arrivals(const Node& node);
  std::uint16_t route_now(const Node& node, std::uint32_t in_port, Packet& packet, std::int64_t now);
  std::int64_t queued_bytes(std::uint32_t port) const;
  std::int64_t port_load(std::uint32_t port, std::int64_t now) const;
  void receive_adaptively(const Node& node, const Arrival& came);
  void enqueue(const Node& node, std::uint32_t out, Packet& packet, std::uint32_t in_port, std::uint8_t in_lane,
               std::int64_t now);
  bool find_room(const Node& node, std::uint32_t out, const Packet& packet, std::uint32_t in_port, std::uint8_t in_lane,
                 std::int64_t now, std::int64_t frame);
  void drop(std::uint32_t out, const Packet& packet);
  void forget(const Packet& packet);
  void trim(std::uint32_t out, Packet& packet);
  void mark(std::uint32_t port, Packet& packet, std::int64_t queue, std::int64_t came, std::int64_t now);
  void mark_beyond_floor(std::uint32_t port, Packet& packet, std::int64_t queue, std::int64_t came, std::int64_t now);
  std::int64_t wire_of(const Packet& packet) const;
  std::int64_t frame_bytes(const Packet& packet) const;
  /// Bytes of a packet on the wire, and ps that they take there.
  struct WireTime {
    std::int64_t wire;
    std::int64_t busy;
  };
  WireTime wire_time(const OutputPort& port, const Packet& packet) const;
  WireTime odd_wire_time(const OutputPort& port, const Packet& packet) const;
  std::int64_t odd_time(const OutputPort& port, const Packet& packet, std::int64_t wire) const;
  bool is_bypass(std::uint32_t lane) const;
  void kick(std::uint32_t port_index, std::int64_t now);
  bool has_work(std::uint32_t port_index) const;
  bool send_next(std::uint32_t port_index, std::int64_t now);
  bool look_at(std::uint32_t port_index, std::int64_t now);
  void look_again(std::uint32_t port_index, std::int64_t time);
  void look_by_event(std::uint32_t port_index, std::int64_t time);
  void wake_node_at(std::uint32_t local, std::int64_t time);
  std::int64_t paused_time(std::uint32_t port_index, std::uint32_t lane, std::int64_t now) const;
  std::int64_t oldest_wait(std::uint32_t port_index, std::int64_t now) const;
  void note_depth(std::uint32_t port_index, std::uint32_t lane, std::int64_t now);
  void leave_queue(std::uint32_t port_index, std::uint32_t lane, std::int64_t now);
  bool competes(std::uint32_t ready, std::uint32_t lane) const;
  std::uint32_t choose_lane(std::uint32_t port_index, std::uint32_t ready);
  std::uint32_t choose_sharing(std::uint32_t port_index, std::uint32_t ready);
  void tell_emptied(std::uint32_t port_index);
  void launch(std::uint32_t port_index, std::int64_t now, Packet& packet, WireTime size);
  void launch_watched(std::uint32_t port_index, std::int64_t now, Packet& packet, WireTime size);
  void count_departure(OutputPort& port, std::uint32_t port_index, std::int64_t now, const Packet& packet,
                       WireTime size);
  std::int64_t arrival_of(const OutputPort& port, std::uint32_t port_index, std::int64_t now, WireTime size) const;
  void record_hop(std::uint32_t port_index, Packet& packet, std::int64_t now);

  // fabric_flow_control.cpp
  void stop_sender(std::uint32_t in_port, std::uint8_t lane, std::uint32_t out, std::int64_t frame, std::int64_t now);
  std::uint32_t filling_output(std::uint32_t in_port, std::uint8_t in_lane, std::uint32_t out,
                               std::int64_t frame) const;
  void let_sender_resume(std::uint32_t in_port, std::uint8_t lane, std::int64_t now);
  void give_room(std::uint32_t in_port, std::uint8_t lane, std::int64_t frame, std::int64_t now);
  std::int64_t pause_time(std::uint32_t port) const;
  void send_pause(std::uint32_t port_index, std::int64_t now);
  bool refresh_pause(const NodeEvent& event);
  void read_pause(const NodeEvent& event);
  bool expire_pause(const NodeEvent& event);
  void unblock(std::uint32_t port_index, std::uint8_t lane, std::int64_t now);
  bool takes_credit(std::uint32_t port_index, std::uint32_t lane, std::int64_t frame, std::int64_t now);
  bool finds_credit(std::uint32_t port_index, std::uint32_t lane, std::int64_t frame, std::int64_t now);
  void give_credit(std::uint32_t in_port, std::uint8_t lane, std::int64_t frame, std::int64_t now);
  void note_credit_taken(std::uint32_t in_port, std::uint8_t in_lane, std::uint32_t out, std::int64_t frame,
                         std::int64_t now);
  void note_credit_given(std::uint32_t in_port, std::uint8_t in_lane, std::int64_t frame, std::int64_t now);
  void give_back_credit(std::uint32_t port_index, std::uint32_t lane, std::int64_t frame);
  void send_grant(std::uint32_t port_index, std::int64_t now);
  void read_grant(const NodeEvent& event);
  void send_link_frame(std::uint32_t port_index, std::int64_t now, Packet frame, std::int64_t later);
  static NodeEvent link_frame_event(std::uint32_t port_index, const Packet& frame, std::int64_t arrival);

  // fabric_reports.cpp
  void build_reports();
  void queue_changed(std::uint32_t port_index, std::int64_t now);
  void report_queues(const NodeEvent& event);
  void hear_report(const NodeEvent& event);

  // fabric_nic.cpp
  bool window_allows(const Connection& connection) const;
  void nic_list(const Node& node, Connection& connection, std::int64_t now);
  void nic_wake(std::uint32_t port_index, std::int64_t now);
  void nic_unhold(const Node& node, std::uint32_t port_index, std::uint8_t lane, std::int64_t now);
  void nic_push_urgent(const Node& node, std::uint32_t port_index, const Packet& packet, std::int64_t now);
  bool nic_send_urgent(const Node& node, std::uint32_t port_index, std::int64_t now);
  bool nic_send_data(const Node& node, std::uint32_t port_index, std::int64_t now);
  bool nic_send_from(const Node& node, Connection& connection, std::int64_t now);
  static void pace(Connection& connection);
  void nic_obey(const Node& node, Connection& connection, std::int64_t now);
  void nic_watch(const Node& node, Connection& connection);
  void nic_pace(const Node& node, const NodeEvent& event);
  bool nic_timeout(const Node& node, const NodeEvent& event);
  bool nic_control_timer(const Node& node, const NodeEvent& event);
  void nic_note_data(const Node& node, std::uint32_t port_index, const Packet& packet);
  void nic_watch_pulls(const Node& node, std::uint32_t port_index, std::int64_t now);
  bool nic_send_pull(const Node& node, const NodeEvent& event);
  void nic_receive_pull(const Node& node, const Packet& packet);
  void nic_lost(const Node& node, Connection& connection, const ReliableSender::Progress& progress, std::int64_t now,
                bool timeout);
  void nic_receive(const Node& node, std::uint32_t port_index, const Packet& packet);
  void nic_receive_data(const Node& node, std::uint32_t port_index, const Packet& packet);
  void nic_receive_answer(const Node& node, const Packet& packet);
  void nic_receive_credit(const Node& node, std::uint32_t port_index, const Packet& packet);
  void nic_receive_credit_ack(const Node& node, const Packet& packet);
  bool nic_credit_timeout(const Node& node, const NodeEvent& event);
  void finish_sent(const Node& node, const Connection& connection, std::uint32_t done, std::int64_t now);
  std::uint32_t open_connection(const Node& node, std::uint32_t destination);
  void post_reliably(const Node& node, std::uint32_t queue_pair, Time now, Message message);
  void send_reliable_credit(const Node& node, Packet credit, Time now);
  std::uint32_t push_credit(const Node& node, Packet credit, std::int64_t now);
  void push_counted_credit(const Node& node, std::uint32_t position, std::int64_t now);
  void limit_window(Connection& connection) const;
  FlowPath flow_path(std::uint32_t port, const std::vector<PathLink>& path) const;

  // fabric_frames.cpp
  std::uint8_t lane_of_priority(std::uint8_t priority) const;
  void hand_up(std::uint32_t in_port, Packet& packet, std::int64_t arrival);
  bool nic_send_beside_frames(const Node& node, std::uint32_t port_index, std::int64_t now);
  bool nic_choose_beside_frames(const Node& node, std::uint32_t port_index, std::int64_t now);
  bool nic_send_of_data_class(const Node& node, std::uint32_t port_index, std::int64_t now);
  bool send_waiting(std::uint32_t port_index, std::uint32_t lane, std::int64_t now);
  void check_frames(ProcessGroup& group) const;

  // fabric_faults.cpp
  void build_faults();
  const RoutingAlgorithm& routing_at(std::int64_t now) const;
  bool link_loses(std::uint32_t port, std::int64_t start, std::int64_t end, std::int64_t wire) const;
  std::int64_t outage_end(std::uint32_t port, std::int64_t start, std::int64_t end) const;
  void change_link(const NodeEvent& event);

  // fabric_build.cpp
  void build_nodes(const Partition& partition, int process);
  void build_cut(const Partition& partition, int process);
  void set_window(std::int64_t length);
  void set_port_times(OutputPort& port, Bandwidth rate) const;

  // fabric_links.cpp
  void apply_link_times(std::uint32_t directed_link, const LinkTimes& times);
  std::uint32_t local_port(NodeId node, std::uint32_t port) const;
  void observe_arrival(std::uint32_t port_index, const Packet& packet) const;
  Bytes wire_bytes(const Packet& packet) const;

  Time head_time(NodeId node, Bandwidth rate) const;
  std::uint32_t path_profile(std::uint32_t source, std::uint32_t destination, std::uint32_t queue_pair);

  // fabric_switch.cpp
  void run_node(std::uint32_t local, std::int64_t end);
  void run_switch(const Node& node, std::int64_t end);
  void send_from_border(const Node& node);
  void gather(const Node& node, std::int64_t end);
  bool arrives_before(const Arrival& a, const Arrival& b) const;
  void transmit(std::uint32_t port_index, std::int64_t now, const Packet& packet);
  void push_into_new_block(std::uint32_t port_index, const Packet& packet, std::int64_t arrival, std::uint32_t node);
  void send_on(OutputPort& port, const Packet& packet, std::int64_t arrival);
  void push_local(std::uint32_t port_index, const Packet& packet, std::int64_t arrival, std::uint32_t node);
  void export_packet(const OutputPort& port, const Packet& packet, std::int64_t arrival);
  void export_anew(const OutputPort& port, const Packet& packet, std::int64_t arrival);
  void export_rest(const Packet& packet, Batch& batch);
  std::int64_t node_next_time(const Node& node) const;
  std::int64_t node_next_event(const Node& node) const;
  std::uint64_t packets_delivered(std::uint32_t port) const;
  void check_nodes() const;
  void start_sampling(const Node& node, Connection& connection, std::int64_t now) const;
  void flush_samples(const Node& node, Connection& connection, std::int64_t now);
  void flush_samples(OutputPort& port, std::int64_t now, std::int64_t queued = 0);
  void flush_queue_pair_samples(std::int64_t now);
  bool add_sample(OutputPort& port, std::int64_t time, std::int64_t queued);

  // fabric_windows.cpp
  void run_windows_until(std::int64_t end);
  std::size_t put_border_last();
  std::int64_t window_start(std::int64_t time) const;
  void take_in(const CutEnd& end, Packet packet, std::int64_t arrival, std::span<const std::byte> batch,
               std::size_t& at);
  void fetch_next_nodes(std::size_t left, std::int64_t window_end) const;
  static void fetch_host(const Host& host);
  std::uint32_t telemetry_of(const Packet& packet) const;

  // fabric_host.cpp
  void run_host(const Node& node, std::int64_t end);
  void fire_timer(const Node& node, Host& host);
  void host_receive(const Node& node, Host& host, const Packet& packet);
  void host_send(const Node& node, Host& host, std::int64_t now);
  void wake_sender(const Node& node, Host& host, std::int64_t now);
  void wake_node(std::uint32_t local, std::int64_t time);
  void list_if_ready(Host& host, std::uint32_t queue_pair, std::int64_t now);
  /// time / window_length_ without a division: the reciprocal is at most one too small.
  std::uint64_t window_number(std::int64_t time) const {
    const auto number = static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(static_cast<std::uint64_t>(time)) * window_reciprocal_) >> 64);
    return static_cast<std::uint64_t>(number + (time - number * window_length_ >= window_length_ ? 1 : 0));
  }
  const Node& node_of_host(std::uint32_t host) const { return nodes_[local_of_[host]]; }

  // fabric_reference.cpp
  void schedule_arrival(std::uint32_t local, std::int64_t time);
  void schedule_wake(std::uint32_t local);
  void reference_arrival(std::uint32_t local);
  void reference_drain(std::uint32_t local);

  const Topology& topology_;
  NetworkParameters parameters_;
  const RoutingAlgorithm& routing_;
  std::uint64_t seed_;
  Drive drive_;
  std::unique_ptr<BufferedState> buffered_;    ///< null where every packet's departure is known on its arrival
  std::unique_ptr<FrameTable> frames_;         ///< null where hosts send no frames
  std::unique_ptr<WaitsByJob> waits_by_job_;   ///< null where they are not counted
  std::unique_ptr<PauseCauses> pause_causes_;  ///< null where they are not counted
  bool watches_credits_ = false;               ///< and these are among them
  bool several_jobs_ = false;                  ///< and what ports send is kept for that
  bool routes_one_by_one_ = false;             ///< where a packet goes depends on the moment
  bool marks_at_arrival_ = false;
  bool marks_at_departure_ = false;
  bool marks_passing_ = false;       ///< also packets that wait in no queue
  bool watches_departures_ = false;  ///< faults or telemetry: each packet that leaves is looked at
  bool spreads_ = false;             ///< packets of a connection are routed by more than the connection
  bool defers_ = false;              ///< switches work out departures when somebody looks: DeferredPorts
  bool suspicious_ = false;          ///< a port has been paused for so long that there may be a deadlock
  std::uint32_t running_node_ = no_slot;
  mutable Time longest_round_trip_;
  /// Routing from a time on, as links have failed or come back.
  struct Detour {
    std::int64_t from;
    std::unique_ptr<RoutingAlgorithm> routing;
  };
  std::vector<Detour> detours_;
  bool has_faults_ = false;
  std::vector<const LinkFault*> fault_of_port_;  // [local ports]
  std::int64_t mtu_ = 0;
  std::int64_t window_ = 0;
  std::int64_t data_overhead_ = 0;
  std::int64_t control_wire_ = 0;
  std::int64_t wire_overhead_ = 0;

  std::vector<std::uint32_t> local_of_;  // [nodes] -> local index or no_slot
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> owned_hosts_;
  HugeVector<Host> host_states_;
  std::vector<std::uint32_t> local_of_port_;  // [local ports] -> local node
  HugeVector<OutputPort> outputs_;            // [local ports]
  PacketBlocks blocks_;                       // of all inputs_
  HugeVector<PacketQueue> inputs_;            // [local ports]: packets on their way to this node through that port
  std::vector<std::uint64_t> tie_salts_;      // [local ports]: from the seed and the directed link that ends there
  HugeVector<std::int64_t> heads_;            // [local ports]: arrival time of the first of them, or never
  std::vector<std::vector<PathLink>> profiles_;
  MessagePool messages_;

  NodeCalendar calendar_;
  std::int64_t window_length_ = 1;
  std::uint64_t window_reciprocal_ = 0;  // floor((2^64 - 1) / window_length_)
  std::int64_t lookahead_ = 0;
  std::int64_t now_ = 0;
  bool in_node_ = false;
  std::uint64_t events_ = 0;
  std::uint64_t inner_windows_ = 0;
  std::uint64_t critical_events_ = 0;

  std::vector<Neighbour> neighbours_;
  std::vector<int> neighbour_processes_;
  std::vector<Batch> outgoing_;
  std::vector<bool> on_border_;  // [local nodes]: it has links over the cut
  std::function<void()> border_done_;

  ArrivalOrder order_;
  std::span<const Arrival> arrivals_;  // of the running node, in order
  std::vector<RouteRequest> requests_;
  std::vector<std::uint16_t> routes_;
  std::vector<std::uint32_t> staying_;  // [packets that stay in this process] -> position among the arrivals
  std::vector<std::uint32_t> leaving_;  // the same of those that leave it
  std::vector<std::uint32_t> current_nodes_;
  std::size_t nodes_in_cache_;  // of a window, that stay in the processor's cache until the next one

  std::int64_t sampling_ = 0;
  std::vector<PortSample> samples_;
  std::int64_t queue_pair_sampling_ = 0;
  std::vector<std::uint32_t> sampled_hosts_;
  std::vector<std::uint32_t> sampled_destinations_;
  std::vector<QueuePairSample> queue_pair_samples_;
  std::vector<std::vector<std::shared_ptr<PortTap>>> taps_;  // [local ports], empty if no tap at all

  std::vector<bool> cut_;                               // [links] -> the partition cuts it
  std::map<std::uint32_t, LinkTimes> changed_links_;    // directed links that differ from the topology
  std::map<std::uint32_t, LinkTimes> unsettled_links_;  // those that the other processes do not know of
  bool links_closed_ = false;
  struct OtherTraffic {
    std::uint64_t packets = 0;
    std::int64_t bytes = 0;
  };
  std::vector<OtherTraffic> others_;                                         // [local ports], empty if there is none
  std::map<std::uint32_t, std::vector<ArrivalObserver>> arrival_observers_;  // by local port
  std::function<void(Time)> after_advance_;
  bool advancing_ = false;

  struct ReferenceState {
    std::int64_t drain_at = -1;
    std::int64_t wake_at = never;
  };
  std::vector<ReferenceState> reference_;
};

}  // namespace weft
