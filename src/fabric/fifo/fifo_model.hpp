// SPDX-License-Identifier: GPL-2.0-only
// Ports whose queues are first in, first out and have no limit: the departure of a packet is known when it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/host_timers.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "support/system/huge_pages.hpp"
#include "transport/messages/message.hpp"
#include "transport/messages/queue_pair.hpp"
#include "transport/messages/receiver_table.hpp"
#include "transport/messages/send_waits.hpp"

namespace weft {

struct FifoHost {
  static constexpr Time never = Time::max();

  Time send_time = never;      ///< next decision of the NIC
  std::uint64_t messages = 0;  ///< posted so far: message numbers
  HostTimers timers;
  std::vector<Packet> control;  ///< ACKs and credits to send, in order
  std::size_t control_head = 0;
  std::vector<std::uint32_t> ready;  ///< ring of ready queue pairs
  std::size_t ready_head = 0;
  SharedLinks shared_links;  ///< that its queue pairs refer to
  std::vector<QueuePair> queue_pairs;
  ReceiverTable<ReceiverState> receivers;

  bool has_control() const { return control_head < control.size(); }
  bool has_ready() const { return ready_head < ready.size(); }
};

/// Switches and NICs without limits of buffers. A packet that reaches its output at t leaves at max(t, port free) +
/// serialisation, known at once: one visit per packet-hop. A NIC sends when its port is free: ACKs and credits first,
/// then one packet of each ready queue pair in turn.
class FifoModel {
 public:
  explicit FifoModel(LocalNetwork& net);

  // One node --------------------------------------------------------------------------------------------------------
  void begin_epochs(bool) {}
  /// Processes all events at a node before `end`.
  void run(const LocalNode& node, Time end);
  /// Time of a node's next own event, such as a timer or a decision of its NIC, or never.
  Time next_event(const LocalNode& node) const;
  /// Bytes of a node's ports and packets that are touched between two visits, roughly. Measured: fetching ahead begins
  /// to pay at 1,000 nodes with a second cache of 512 KiB, at 2,000 with 1 MiB.
  static constexpr std::size_t touched_bytes = 512;
  /// Ask for what a node will need in two visits, and what the first of these has brought points to.
  void fetch_first(const LocalNode& node) const;
  void fetch_second(const LocalNode& node) const;
  void fetch_third(const LocalNode&) const {}

  // For the software of hosts ---------------------------------------------------------------------------------------
  std::uint32_t open_queue_pair(const LocalNode& node, NodeId destination);
  std::uint64_t post(const LocalNode& node, std::uint32_t queue_pair, Time now, Message message);
  void send_credit(const LocalNode& node, const Packet& credit, Time now);
  SendTimes send_times(const LocalNode& node, std::uint32_t queue_pair, Time now) const;
  HostTimers& timers(const LocalNode& node) { return hosts_[node.host].timers; }

  // Beside the packets ----------------------------------------------------------------------------------------------
  /// Packets over the cut are more than what they hold.
  bool looks_at_arrivals() const { return false; }
  /// A packet from another process with which more data have arrived, or which is observed. `at`: after the packet.
  void take_in(const CutEnd& end, Packet packet, Time arrival, std::span<const std::byte> batch, std::size_t& at);
  /// A port of a host was taken for other traffic.
  void port_was_reserved(const LocalNode& node, Time free_at);
  void settle_links_of(NodeId) {}
  /// Bytes that wait for a port beyond what is committed.
  Bytes queued_bytes(PortId) const { return {}; }
  std::uint64_t lost(PortId) const { return 0; }
  void add_counters(PortId, LinkCounters&) const {}
  /// By link that ends here: the waits of its packets, as far as they lie after `end`.
  std::vector<WaitBeyond> settle_waits(Time end) const;
  void check_nodes() const {}
  std::uint64_t memory_bytes() const;

 private:
  static constexpr Time never = Time::max();
  /// Marks a timer of the model itself (a message sent without ACKs has left); tokens of the client stay below it.
  static constexpr std::uint64_t sent_token = std::uint64_t{1} << 63;

  // fifo_switch.cpp
  void run_switch(const LocalNode& node, Time end);
  void send_from_boundary(const LocalNode& node);
  void transmit(PortId port_index, Time now, const Packet& packet);
  void export_packet(const OutputPort& port, const Packet& packet, Time arrival);
  OutputPort sender_of(PortId input) const;

  // fifo_host.cpp
  void run_host(const LocalNode& node, Time end);
  void fire_timer(const LocalNode& node, FifoHost& host);
  void receive(const LocalNode& node, FifoHost& host, const Packet& packet);
  void receive_data(const LocalNode& node, FifoHost& host, const Packet& packet);
  void acknowledge(const LocalNode& node, FifoHost& host, const Packet& packet);
  void deliver(const LocalNode& node, ReceiverState& state, const Packet& packet);
  void send(const LocalNode& node, FifoHost& host, Time now);
  void send_data(const LocalNode& node, FifoHost& host, Time now);
  void wake_sender(const LocalNode& node, FifoHost& host, Time now);
  void list_if_ready(FifoHost& host, std::uint32_t queue_pair, Time now);

  LocalNetwork& net_;
  HugeVector<FifoHost> hosts_;
  std::span<const Arrival> arrivals_;  // of the running switch, in order
  std::vector<RouteRequest> requests_;
  std::vector<std::uint16_t> routes_;
  std::vector<std::uint32_t> staying_;  // [packets that stay in this process] -> position among the arrivals
  std::vector<std::uint32_t> leaving_;  // the same of those that leave it
};

}  // namespace weft
