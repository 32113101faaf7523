// SPDX-License-Identifier: GPL-2.0-only
// Baseline of the benchmark: ns-3's own devices, protocol stack and engine on the same fat-tree with the same traffic.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

struct Ns3StackResult {
  std::uint64_t packet_hops = 0;        ///< receptions of data and acknowledgements, at switches and at hosts
  double wall_seconds = 0;              ///< of ns3::Simulator::Run() alone
  std::int64_t simulated_ps = 0;        ///< until the last event
  std::uint64_t packets_delivered = 0;  ///< data packets that reached their destination
};

/// Every host h of a k-ary fat-tree (three levels; k even, 4 to 128; k^3/4 hosts, numbered pod by pod and edge switch
/// by edge switch) sends `bytes_per_host` to destination_of_host[h] (nothing if that is h), over
/// ns3::PointToPointNetDevice, IPv4 with static routes, and UDP, under ns3::DefaultSimulatorImpl. Datagrams carry
/// `payload` bytes (at most 8,000) and are answered by one of 4 bytes each; at most `window_bytes` are unanswered. An
/// up-port is chosen by a hash of the switch and of the destination's pod (its edge switch within the own pod), so that
/// ns-3's linear routing tables stay short (about 2 k entries): the baseline at its best.
///
/// Destroys ns-3's simulation, if there is one, before and after; ns3::Time counts picoseconds. Throws InternalError if
/// not every byte arrives.
Ns3StackResult run_ns3_stack_permutation(unsigned k, const std::vector<std::uint32_t>& destination_of_host,
                                         std::uint64_t bytes_per_host, std::uint32_t payload = 4096,
                                         std::uint64_t window_bytes = 262144,
                                         std::uint64_t bits_per_second = 400'000'000'000,
                                         std::int64_t link_delay_ps = 500'000);

}  // namespace weft
