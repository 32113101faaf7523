// SPDX-License-Identifier: GPL-2.0-only
#include "internet/internet.hpp"

#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-interface-address.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/ipv4.h>
#include <ns3/node-container.h>
#include <ns3/rng-seed-manager.h>

#include "fabric/frames/ethernet.hpp"
#include "support/basics/contract.hpp"

namespace weft {

Internet::Internet(Ns3View& view, std::uint64_t seed) : view_(view) {
  view_.carry_packets();
  // L'Ecuyer's generator takes seeds from 1 to 4,294,944,442 (its second modulus is 2^32 - 22,853).
  ns3::RngSeedManager::SetSeed(static_cast<std::uint32_t>(seed % 4'294'944'442U + 1));
  ns3::RngSeedManager::SetRun(1);
}

void Internet::install(NodeId host) {
  const ns3::Ptr<ns3::Node> node = this->node(host);
  if (!node) return;
  WEFT_EXPECT(!node->GetObject<ns3::Ipv4>(), "host {} has an IP stack already", host.value());
  ns3::InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.SetRoutingHelper(ns3::Ipv4StaticRoutingHelper());
  stack.Install(node);
  // By number of the host: numbers that ns-3 assigns itself would follow the order in which objects are made.
  stack.AssignStreams(ns3::NodeContainer(node), stream(host) - streams_of_stack);
  const auto ip = node->GetObject<ns3::Ipv4>();
  const std::uint32_t interface = ip->AddInterface(view_.device(host, 0));
  ip->AddAddress(interface, ns3::Ipv4InterfaceAddress(address(host), ns3::Ipv4Mask(host_mask)));
  ip->SetMetric(interface, 1);
  ip->SetUp(interface);
}

void Internet::install_everywhere() {
  for (std::uint32_t host = 0; host < view_.host_count(); ++host) install(NodeId(host));
}

}  // namespace weft
