// SPDX-License-Identifier: GPL-2.0-only
// All that a fabric holds where ports have queues and connections recover losses. Plain data: fabric_buffered.cpp,
// fabric_flow_control.cpp and fabric_nic.cpp work on it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/marking/queue_marking.hpp"
#include "fabric/packet/buffered_port.hpp"
#include "fabric/packet/event_heap.hpp"
#include "fabric/packet/shared_buffer.hpp"
#include "fabric/packet/telemetry_pool.hpp"
#include "fabric/parameters/switch_parameters.hpp"
#include "fabric/probes/depth_histogram.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "routing/routing_algorithm.hpp"
#include "transport/congestion_control.hpp"
#include "transport/receiver_table.hpp"
#include "transport/reliable_receiver.hpp"
#include "transport/reliable_sender.hpp"
#include "transport/send_waits.hpp"

namespace weft {

/// A queue pair of a host with all that decides when it sends.
struct Connection {
  Connection(std::uint32_t destination, std::uint32_t number) : sender(destination, number) {}

  ReliableSender sender;
  std::unique_ptr<CongestionControl> control;
  Allowance allowance;
  std::uint32_t path_profile = 0;
  std::uint32_t port = 0;  ///< local port of the host
  std::uint8_t lane = 0;
  bool listed = false;                  ///< in a list of the port: ready or held
  bool pacing_pending = false;          ///< an event will look at it when it may send again
  std::int64_t timeout_at = INT64_MAX;  ///< when an event looks at its retransmission timer
  std::int64_t next_send = 0;           ///< not before, by its rate
  std::int64_t last_send = 0;
  std::int64_t last_wire = 0;            ///< bytes
  std::int64_t held_since = 0;           ///< a packet might go if its lane were not stopped
  std::int64_t held = 0;                 ///< ps of that since the last packet
  std::int64_t next_sample = INT64_MAX;  ///< its state is recorded then
  std::int64_t sampled_bytes = 0;        ///< sent until the last sample
  std::uint64_t messages = 0;            ///< posted
  std::int64_t message_bytes = 0;        ///< posted
  std::int64_t timer_at = 0;             ///< pending event of the congestion control
  std::int64_t sent_bytes = 0;           ///< wire bytes
  std::uint32_t cnps = 0;                ///< received
  std::uint32_t credits = 0;             ///< received in all, modulo 2^32, if they can be lost
  std::uint32_t pulls = 0;               ///< the same of pulls
  SendWaits waits;
  std::unique_ptr<SenderBalancer> balancer;  ///< null where senders do not choose paths
};

/// What a port of a host has to send.
struct NicPort {
  std::vector<Packet> urgent;  ///< ACKs, NACKs, CNPs and credits, in order
  std::size_t urgent_head = 0;
  std::vector<std::uint32_t> ready;  ///< ring of connections that may send
  std::size_t ready_head = 0;
  std::vector<std::uint32_t> held;            ///< connections whose lane is stopped
  bool frames_turn = false;                   ///< of the class of data, after the last packet: frames or connections
  std::unique_ptr<ReceiverControl> receiver;  ///< null unless receivers pull
  std::int64_t pull_at = INT64_MAX;           ///< when an event sends the next pull

  bool has_urgent() const { return urgent_head < urgent.size(); }
  bool has_ready() const { return ready_head < ready.size(); }
};

struct ReceivingConnection {
  std::uint64_t key = 0;  ///< sender host << 32 | sender's queue pair
  bool used = false;
  std::uint32_t credits = no_slot;  ///< position in ReliableHost::credits, once one was given
  std::uint32_t pulled = 0;         ///< packets in all, modulo 2^32
  ReliableReceiver receiver;
};

/// The credits of a connection at its receiver, on a network that can lose them. A credit tells how many there were in
/// all, so that the latest makes up for all before; like the RDMA write that it stands for (NCCL
/// src/transport/net_ib.cc) it is sent again until it is acknowledged.
struct GivenCredits {
  std::uint32_t to = 0;  ///< host that sends the data
  std::uint32_t queue_pair = 0;
  std::uint32_t given = 0;              ///< in all, modulo 2^32
  std::uint32_t known = 0;              ///< acknowledged, modulo 2^32
  std::int64_t sent_at = 0;             ///< ps, the latest
  std::int64_t timeout_at = INT64_MAX;  ///< when an event looks whether it was lost
};

struct ReliableHost {
  std::vector<Connection> connections;
  std::vector<NicPort> ports;  ///< [ports of the host]
  ReceiverTable<ReceivingConnection> receivers;
  std::vector<GivenCredits> credits;  ///< by connection, as they first gave one
};

/// What switches know of each other's queues, if routing asks for that: `slots` is above 0 then.
struct ReportedQueues {
  std::uint32_t slots = 0;            ///< most queues that a node reports
  std::int64_t interval = 0;          ///< ps
  std::int64_t delay = 0;             ///< ps, beyond a frame's on the link
  std::vector<QueueReports> of_node;  ///< [local nodes] what it reports
  std::vector<bool> pending;          ///< [local nodes] an event will report
  std::vector<std::int64_t> told;     ///< [local ports] bytes, in the last report
  std::vector<std::int64_t> heard;    ///< [local ports][slots] bytes, as the other end has last told
};

/// Ports of a switch that have something to send. While the switch stops none of its senders, a port that sends
/// concerns no other one: what it gives back to the memory is looked at by those alone that find little room. So its
/// departures are worked out when a packet comes to that port, when the memory runs short, or at the end of the window,
/// without any event. See decision 13.
struct DeferredPorts {
  std::vector<std::uint32_t> ports;  ///< local ports, in no order
  std::int64_t next = INT64_MAX;     ///< the first time at which one of them is to be looked at, after a window
  std::uint32_t stopped = 0;         ///< classes of ports whose sender this switch has stopped
  bool on = false;                   ///< else ports are looked at by events, in the order of time
};

struct BufferedState {
  ClassPlan plan;
  RecoveryRules rules;
  Services services;
  std::int64_t largest_frame = 0;
  std::int64_t header = 0;
  std::int64_t xoff_quanta_bits = 0;      ///< bit times of a pause frame's quanta
  std::uint32_t bypass = 0;               ///< classes that no limit concerns, bit per class
  bool finite = false;                    ///< there may be no room for a packet
  bool limited = false;                   ///< switches have a packet memory of limited size
  bool pauses = false;                    ///< some links do
  bool credits = false;                   ///< some links have them
  bool loses_credits = false;             ///< those of collectives may get lost, in queues or on links
  std::vector<FlowControl> flow_control;  ///< [link classes]
  std::int64_t queue_limit = INT64_MAX;

  std::vector<PortState> ports;        ///< [local ports]
  std::vector<ClassQueue> classes;     ///< [local ports][plan.count]
  std::vector<DepthHistogram> depths;  ///< [local ports][plan.count], empty unless they are kept
  /// [local ports][plan.count], empty if nothing is marked; null at hosts.
  std::vector<std::unique_ptr<QueueMarker>> markers;
  std::vector<std::unique_ptr<PortScheduler>> schedulers;  ///< [local ports], empty if no classes share links
  OutputBlocks blocks;
  std::vector<std::uint32_t> buffer_of;                    ///< [local nodes] -> buffers, or no_slot
  std::vector<SharedBuffer> buffers;                       ///< [local switches], empty if memory is unlimited
  std::vector<EventHeap> events;                           ///< [local nodes]
  std::vector<DeferredPorts> deferred;                     ///< [local nodes], of switches
  std::vector<ReliableHost> hosts;                         ///< [owned hosts]
  std::vector<std::unique_ptr<SwitchBalancer>> balancers;  ///< [local nodes], empty if switches do not choose
  TelemetryPool telemetry;
  ReportedQueues reports;
  std::vector<std::int64_t> queued;  ///< scratch: bytes waiting at each port of a node
  std::uint64_t dropped = 0;         ///< packets for which there was no room

  /// Sent by a port, link-control frames included; `overhead`: of each frame.
  std::int64_t wire_bytes(std::uint32_t port, std::int64_t overhead) const {
    std::int64_t bytes = ports[port].link_frame_bytes;
    for (std::uint32_t lane = 0; lane < plan.count; ++lane) {
      const ClassQueue& queue = queue_of(port, lane);
      bytes += queue.frame_bytes + static_cast<std::int64_t>(queue.packets) * overhead;
    }
    return bytes;
  }
  std::size_t queue_number(std::uint32_t port, std::uint32_t lane) const { return port * plan.count + lane; }
  ClassQueue& queue_of(std::uint32_t port, std::uint32_t lane) { return classes[queue_number(port, lane)]; }
  const ClassQueue& queue_of(std::uint32_t port, std::uint32_t lane) const { return classes[queue_number(port, lane)]; }
};

}  // namespace weft
