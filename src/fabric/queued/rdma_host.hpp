// SPDX-License-Identifier: GPL-2.0-only
// The state of a host with reliable connections. Plain data: RdmaNic, NicReceiver and SlotCredits work on it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/packet/host_timers.hpp"
#include "transport/congestion_control/congestion_control.hpp"
#include "transport/messages/receiver_table.hpp"
#include "transport/messages/send_waits.hpp"
#include "transport/messages/shared_link.hpp"
#include "transport/recovery/reliable_receiver.hpp"
#include "transport/recovery/reliable_sender.hpp"

namespace weft {

/// A queue pair of a host with all that decides when it sends.
struct Connection {
  Connection(NodeId destination, std::uint32_t number, Bytes mtu) : sender(destination, number, mtu) {}

  ReliableSender sender;
  std::unique_ptr<CongestionControl> control;
  Allowance allowance;
  std::uint32_t path_profile = 0;
  PortId port;  ///< of the host
  LaneId lane;
  bool listed = false;                 ///< in a list of the port: ready or held
  std::uint32_t timers_longer_ns = 0;  ///< RecoveryRules::longer_by(), at most 4.3 s; fits between its neighbours
  Time timeout_at = Time::max();       ///< when an event looks at its retransmission timer
  Time next_send;                      ///< not before, by its rate
  Time pacing_at = Time::max();        ///< when it will be looked at because it may send again
  Time last_send;
  Bytes last_wire;   ///< of the last packet
  Bytes paced_wire;  ///< takes `pace` at `paced_rate`
  Bandwidth paced_rate;
  Time pace;
  Time held_since;                 ///< a packet might go if its lane were not stopped
  Time held;                       ///< time of that since the last packet
  Time next_sample = Time::max();  ///< its state is recorded then
  Bytes sampled;                   ///< `sent` at the last sample
  std::uint64_t messages = 0;      ///< posted
  Bytes posted;                    ///< payload of them
  Time timer_at;                   ///< pending event of the congestion control
  Bytes sent;                      ///< on the wire
  std::uint32_t cnps = 0;          ///< received
  std::uint32_t credits = 0;       ///< received in all, modulo 2^32, if they can be lost
  std::uint32_t pulls = 0;         ///< the same of pulls
  SendWaits waits;
  std::uint32_t round_trip_packets = 0;      ///< full ones that fill the idle path there and back
  std::unique_ptr<SenderBalancer> balancer;  ///< null where senders do not choose paths
};

/// The requests for packets that come to a host by one link: pulls leave at the rate at which packets fill it.
struct PullQueue {
  std::uint32_t way_in = 0;  ///< LinkTable::way_in()
  std::unique_ptr<ReceiverControl> receiver;
};

/// The packets that a port of a host has to send.
struct NicPort {
  std::vector<Packet> urgent;  ///< ACKs, NACKs, CNPs and credits, in order
  std::size_t urgent_head = 0;
  std::vector<std::uint32_t> ready;  ///< ring of connections that may send
  std::size_t ready_head = 0;
  std::vector<std::uint32_t> held;  ///< connections whose lane is stopped
  bool frames_turn = false;         ///< of the class of data, after the last packet: frames or connections
  std::vector<PullQueue> pulls;     ///< empty unless receivers pull
  Time pull_at = Time::max();       ///< when an event sends the next pull

  bool has_urgent() const { return urgent_head < urgent.size(); }
  bool has_ready() const { return ready_head < ready.size(); }
};

struct ReceivingConnection {
  std::uint64_t key = 0;  ///< sender host << 32 | sender's queue pair
  bool used = false;
  std::uint32_t credits = no_slot;  ///< position in RdmaHost::credits, once one was given
  std::uint32_t pulled = 0;         ///< packets in all, modulo 2^32
  std::uint32_t way_in = no_slot;   ///< of PullQueue, once a packet has come
  ReliableReceiver receiver;
};

/// The credits of a connection at its receiver, on a network that can lose them. A credit carries the number of credits
/// so far, so that the latest replaces all earlier ones; like the RDMA write that it represents (NCCL
/// src/transport/net_ib.cc) it is sent again until it is acknowledged.
struct GivenCredits {
  NodeId to;  ///< host that sends the data
  std::uint32_t queue_pair = 0;
  std::uint32_t given = 0;        ///< in all, modulo 2^32
  std::uint32_t known = 0;        ///< acknowledged, modulo 2^32
  std::uint32_t late = 0;         ///< late_to_bits() of the receiver, with the latest
  Time sent_at;                   ///< the latest
  Time timeout_at = Time::max();  ///< when an event looks whether it was lost
};

/// When a connection that its rate holds back may send again, without an event: each packet has such a time.
struct PacingEnd {
  Time time = Time::max();       ///< or never
  std::uint32_t connection = 0;  ///< of the host
};

struct RdmaHost {
  std::uint64_t messages = 0;  ///< posted so far: message numbers
  PacingEnd pacing;            ///< of one connection; others that are held back at the same time have events
  HostTimers timers;
  SharedLinks shared_links;  ///< that its connections refer to
  std::vector<Connection> connections;
  std::vector<NicPort> ports;  ///< [ports of the host]
  ReceiverTable<ReceivingConnection> receivers;
  std::vector<GivenCredits> credits;  ///< by connection, as they first gave one
};

}  // namespace weft
