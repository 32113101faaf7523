// SPDX-License-Identifier: GPL-2.0-only
// ns-3's TCP/IP stack on hosts of a fabric, whose switches carry its packets like all others.
#pragma once

#include <cstdint>

#include <ns3/application-container.h>
#include <ns3/ipv4-address.h>
#include <ns3/node.h>
#include <ns3/ptr.h>

#include "fabric/ns3/ns3_view.hpp"

namespace weft {

/// Installs stacks and addresses. All hosts are in one subnet, 10.0.0.0/8, and the fabric is its layer 2: host n has
/// the address 10.n.n.n, as in RoCE frames, and any host reaches any other over all switches between them. Addresses
/// are known by formula, so that no ARP is needed and no table grows with the machine.
///
/// The same calls are made on every MPI process, for any hosts: what they install exists on the process that owns the
/// host. Results do not depend on the number of processes, provided that applications take their random numbers from
/// stream().
///
/// A packet's priority is the IP precedence in its type of service (ns3::Socket::SetIpTos): with
/// `network.priorities.data` in its three highest bits it travels in the class of RDMA data, otherwise in that of other
/// traffic. Not supported: IPv6, broadcast, multicast (such packets are dropped by the sender's device: MacTxDrop).
class Internet {
 public:
  /// Before the run; the view outlives this. `seed` becomes ns-3's seed. Throws InputError with `ack: none`.
  Internet(Ns3View& view, std::uint64_t seed);

  /// IPv4 with TCP, UDP and ICMP on a host; once each.
  void install(NodeId host);
  /// On the hosts that this process owns.
  void install_everywhere();
  /// What an ns-3 application helper makes for a host; empty if another process owns it. install(host) comes first.
  template <class Helper>
  ns3::ApplicationContainer add(const Helper& helper, NodeId host) {
    const ns3::Ptr<ns3::Node> node = this->node(host);
    return node ? helper.Install(node) : ns3::ApplicationContainer();
  }

  static ns3::Ipv4Address address(NodeId host) { return ns3::Ipv4Address(0x0a00'0000U + host.value()); }
  /// nullptr if another process owns the host.
  ns3::Ptr<ns3::Node> node(NodeId host) const { return view_.node(host); }
  /// First of the 1,000 random streams (ns3::RandomVariableStream) of a host that are for its applications. Those of
  /// its stack come before them.
  static std::int64_t stream(NodeId host) { return streams_of_stack + streams_per_host * std::int64_t{host.value()}; }

 private:
  static constexpr std::int64_t streams_of_stack = 1'000;
  static constexpr std::int64_t streams_per_host = 2'000;
  Ns3View& view_;
};

}  // namespace weft
