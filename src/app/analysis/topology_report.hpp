// SPDX-License-Identifier: GPL-2.0-only
// What `weft topology` finds out about a machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/machine/distances.hpp"
#include "graph/partition/cuts.hpp"
#include "graph/partition/partition.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Links of one class, rate and delay.
struct LinkCount {
  std::string link_class;
  Bandwidth rate;
  Time delay;
  std::uint64_t count = 0;
  std::uint64_t network_ends = 0;  ///< ends at switches outside servers, of all of them
};

/// What would be bought: the hosts are accelerators and storage hosts.
struct BillOfMaterials {
  std::uint64_t servers = 0;                            ///< 0 if the machine says nothing of servers
  std::uint64_t nics = 0;                               ///< of servers; hosts without a server have one at each link
  std::map<std::uint32_t, std::uint64_t> switch_ports;  ///< of switches outside servers: number of ports -> switches
};

struct TopologyReport {
  std::string kind;
  std::string routing;
  std::uint64_t hosts = 0;
  std::uint64_t storage_hosts = 0;    ///< of the hosts
  std::uint64_t reduction_units = 0;  ///< in switches; neither they nor their links are in any other number
  std::uint64_t switches = 0;
  std::uint64_t links = 0;
  std::uint64_t switch_links = 0;  ///< between switches
  std::vector<LinkCount> classes;
  std::map<std::uint32_t, std::uint64_t> switch_ports;  ///< number of ports -> switches
  std::map<std::string, std::uint64_t> cables;          ///< length class -> links
  BillOfMaterials bill;
  HostDistances distances;
  std::map<std::uint32_t, std::uint64_t> routed;  ///< pairs by links of the way that the routing gives flow 0
  unsigned lanes = 1;                             ///< virtual lanes of the routing
  bool deadlock_searched = false;                 ///< not on large machines
  bool deadlock_possible = false;                 ///< on lossless links
  std::string deadlock_cycle;                     ///< channels that wait for each other
  std::int64_t formula_bps = 0;                   ///< bisection by the family's formula, 0 if there is none
  Bisection estimate;
  std::uint32_t fewest_disjoint = 0;  ///< edge-disjoint paths between switches with hosts, of sampled pairs
  std::uint32_t max_disjoint = 0;
  std::vector<Partition> partitions;

  /// The formula's value, or the estimate if that is less: formulas of families count the links of one kind, and others
  /// may be what limits.
  std::int64_t bisection_bps() const;
};

/// `processes`: numbers of MPI ranks for which to partition; `routing`: empty for the machine's own. Throws InputError
/// if the routing does not suit.
TopologyReport report_topology(const Topology& topology, const std::vector<std::uint32_t>& processes,
                               const std::string& routing);

/// One JSON object; distances in links between different hosts, histograms over ordered pairs.
std::string to_json(const TopologyReport& report);
/// Text for people.
std::string to_table(const TopologyReport& report);

}  // namespace weft
