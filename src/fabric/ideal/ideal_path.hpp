// SPDX-License-Identifier: GPL-2.0-only
// The way of a flow on the ideal network, and when messages that follow each other on it arrive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric/parameters/network_parameters.hpp"
#include "routing/algorithm/path.hpp"
#include "routing/algorithm/routing_algorithm.hpp"

namespace weft {

/// One link of a path.
struct IdealLink {
  Bandwidth rate;
  Time full;   ///< serialisation of a full packet
  Time delay;  ///< from a packet's last bit to the next node's output: propagation and switch latency
  Time head;   ///< cut through: from its first bit until the next node may send it on; 0: it is stored
  // Of a link with a framing of its own (LinkFraming): payload of a frame and bytes beyond it. 0: packets are as they
  // are.
  std::uint32_t frame_payload = 0;
  std::uint32_t frame_overhead = 0;
  friend bool operator==(const IdealLink&, const IdealLink&) = default;
};

/// A message as a link sees it: all packets but the last are full.
struct IdealMessage {
  std::int64_t packets = 1;
  Bytes last;  ///< wire bytes of the last packet
  Bytes last_payload;
  Bytes full_payload;  ///< of packets before
};

/// When a message's packets begin on the link that has been reached: the first, the last full and the last one.
struct IdealFront {
  Time first;
  Time last_full;
  Time last;
};

/// All links of a flow, and the two at which its endpoints' ports are: `out`, where messages of the source's flows take
/// turns, and `in`, where those for its destination wait for each other (links.size(): nowhere).
struct IdealPath {
  std::vector<IdealLink> links;
  std::uint32_t out = 0;
  std::uint32_t in = 0;
  Bytes mtu;
  friend bool operator==(const IdealPath&, const IdealPath&) = default;
};

/// Serialisation of the last packet on `link`, and of the whole message.
Time last_packet_time(const IdealLink& link, const IdealMessage& message);
inline Time work_on(const IdealLink& link, const IdealMessage& message, Time last_time) {
  return (message.packets - 1) * link.full + last_time;
}

/// From a packet's first bit on a link until it may begin on the next one.
inline Time onward(const IdealLink& link, Time serialization) {
  return (link.head > Time() ? std::min(link.head, serialization) : serialization) + link.delay;
}

/// Takes the front of a message from link `at - 1` to link `at`, where the flow's message before has ended at `free`.
/// `last_before`: serialisation of its last packet on link `at - 1`. The recurrence S(i,j) = max(S(i-1,j) + h(i-1,j) +
/// delay(i-1), S(i,j-1) + s(j-1)/C(i)) of ideal_time.hpp for messages that follow each other: as a function of the
/// packet j it is convex on every link, so that the first and the last full packet determine where it is largest.
inline IdealFront next_link(const IdealPath& path, std::uint32_t at, const IdealFront& before, std::int64_t packets,
                            Time last_before, Time free) {
  const IdealLink& link = path.links[at - 1];
  const Time last_arrives = before.last + onward(link, last_before);
  IdealFront here;
  if (packets == 1) {
    here.first = here.last_full = here.last = std::max(last_arrives, free);
    return here;
  }
  const Time full = path.links[at].full;
  const Time stored = onward(link, link.full);
  here.first = std::max(before.first + stored, free);
  here.last_full = std::max(before.last_full + stored, here.first + (packets - 2) * full);
  here.last = std::max(last_arrives, here.last_full + full);
  return here;
}

/// From the first bit at the source to the last bit at the destination, alone on an idle network.
Time idle_time(const IdealPath& path, const IdealMessage& message);

/// Finds the paths of flows. One object for all flows of a process.
class IdealPaths {
 public:
  IdealPaths(const Topology& topology, const NetworkParameters& parameters, const RoutingAlgorithm& routing);

  struct Found {
    IdealPath path;
    std::vector<std::uint32_t> directed_links;
  };
  Found find(const RouteRequest& flow) const;
  /// How long an ACK or a credit takes from flow.source to flow.destination: it leaves at once and never waits.
  Time control_time(const RouteRequest& flow) const;
  /// A host and the switch that only it is attached to, or two nodes of one server: events between them are not visible
  /// to other hosts or servers.
  bool at_one_end(NodeId a, NodeId b) const;

 private:
  bool own_switch(NodeId node, NodeId host) const;
  bool belongs(NodeId node, NodeId host, bool with_server) const;
  Time head_time(NodeId node, Bandwidth rate) const;

  const Topology& topology_;
  const NetworkParameters& parameters_;
  const RoutingAlgorithm& routing_;
  std::vector<bool> lonely_;  // [nodes] a switch with one host
};

/// [hosts] -> MPI process. Hosts of one server share its NICs: all of them are on the process of the first one.
std::vector<std::uint16_t> owners_of_hosts(const Topology& topology, const std::vector<std::uint16_t>& owner_of_node);

/// The shortest time between a decision of a host and its effect on a host of another process: the smallest sum of
/// delays between two such hosts, without links at_one_end(). Time::max() if there are no two. The same on all
/// processes.
Time ideal_lookahead(const Topology& topology, const IdealPaths& paths,
                     const std::vector<std::uint16_t>& owner_of_host);

}  // namespace weft
