// SPDX-License-Identifier: GPL-2.0-only
// Assigning nodes to MPI ranks, and the facts of the resulting cut.
#include "graph/partition/partition.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <boost/algorithm/string/join.hpp>
#include <fmt/format.h>

#include "graph/partition/metis_partition.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

using Owners = std::vector<std::uint16_t>;

std::uint64_t weight(const ClusterGraph& graph, std::uint32_t node) { return graph.ports(NodeId(node)).size(); }

/// Cut a row of weighted items into `parts` contiguous blocks of about equal weight: an item belongs to the block that
/// contains its middle. Equal weights give blocks whose sizes differ by at most 1.
Owners contiguous_blocks(const std::vector<std::uint64_t>& weights, std::uint32_t parts) {
  std::uint64_t total = 0;
  for (const std::uint64_t w : weights) total += w;
  Owners owners(weights.size());
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t middle = 2 * before + weights[i];  // in halves
    owners[i] =
        total == 0 ? 0 : static_cast<std::uint16_t>(std::min<std::uint64_t>(middle * parts / (2 * total), parts - 1));
    before += weights[i];
  }
  return owners;
}

/// Position of each group in ascending order of its number.
std::map<std::uint32_t, std::uint32_t> group_order(const ClusterGraph& graph) {
  std::map<std::uint32_t, std::uint32_t> order;
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    const std::uint32_t group = graph.node(NodeId(node)).group;
    if (group != no_group) order.emplace(group, 0);
  }
  std::uint32_t next = 0;
  for (auto& [group, position] : order) position = next++;
  return order;
}

/// Whole groups in contiguous blocks; ungrouped nodes likewise, on their own, servers whole. Without groups this is
/// blocks of all nodes.
Owners by_groups(const ClusterGraph& graph, std::uint32_t parts) {
  const auto order = group_order(graph);
  std::vector<std::uint64_t> group_weights(order.size(), 0);
  std::vector<std::uint64_t> loose_weights;
  std::vector<std::uint32_t> loose(graph.node_count(), 0);
  std::map<std::uint32_t, std::uint32_t> loose_of_block;
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    const NodeProperties& properties = graph.node(NodeId(node));
    if (properties.group != no_group) {
      group_weights[order.at(properties.group)] += weight(graph, node);
      continue;
    }
    const auto next = static_cast<std::uint32_t>(loose_weights.size());
    loose[node] = properties.block == no_block ? next : loose_of_block.emplace(properties.block, next).first->second;
    if (loose[node] == next) loose_weights.push_back(0);
    loose_weights[loose[node]] += weight(graph, node);
  }
  const Owners of_group = contiguous_blocks(group_weights, parts);
  const Owners of_loose = contiguous_blocks(loose_weights, parts);
  Owners owners(graph.node_count());
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) {
    const std::uint32_t group = graph.node(NodeId(node)).group;
    owners[node] = group == no_group ? of_loose[loose[node]] : of_group[order.at(group)];
  }
  return owners;
}

Owners at_random(const ClusterGraph& graph, std::uint32_t parts, std::uint64_t seed) {
  Owners owners(graph.node_count());
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    owners[node] = static_cast<std::uint16_t>(random_below(parts, seed, node, 0));
  return owners;
}

std::string resolve_method(const std::string& method) {
  const std::vector<std::string> known = {"auto", "groups", "metis", "pods", "random"};
  if (std::find(known.begin(), known.end(), method) == known.end()) {
    throw InputError(SourceLine{}, fmt::format("unknown partition method '{}'{}; known: {}", method,
                                               did_you_mean(method, known), boost::algorithm::join(known, ", ")));
  }
  return method == "pods" ? "groups" : method;
}

void describe_cut(const ClusterGraph& graph, Bytes min_frame, Partition& partition) {
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    if (partition.owner[link.ends[0].value()] == partition.owner[link.ends[1].value()]) continue;
    ++partition.cut_links;
    partition.lookahead = std::min(partition.lookahead, link.delay + serialization_time(min_frame, link.rate));
  }
  std::vector<std::uint64_t> weights(partition.parts, 0);
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) weights[partition.owner[node]] += weight(graph, node);
  const std::uint64_t total = 2ULL * graph.link_count();  // each link has a port at both ends
  const std::uint64_t heaviest = *std::max_element(weights.begin(), weights.end());
  if (total > 0) partition.balance = static_cast<double>(heaviest) * partition.parts / static_cast<double>(total);
}

Partition partition_by(const Topology& topology, std::uint32_t parts, const std::string& method, Bytes min_frame,
                       std::uint64_t seed) {
  const ClusterGraph& graph = topology.graph;
  Partition partition;
  partition.method = method;
  partition.parts = parts;
  if (parts == 1)
    partition.owner.assign(graph.node_count(), 0);
  else if (method == "groups")
    partition.owner = by_groups(graph, parts);
  else if (method == "metis")
    partition.owner = metis_partition(graph, parts);
  else
    partition.owner = at_random(graph, parts, seed);
  describe_cut(graph, min_frame, partition);
  return partition;
}

/// Time of a window relative to perfect sharing: the heaviest part's work, and for each link that is cut the packing
/// and unpacking of its packets, which take about 0.3 of the work of a port (docs/concepts/performance.md). A shorter
/// lookahead means as many more barriers.
double estimated_cost(const Topology& topology, const Partition& partition, Time longest) {
  const double cut = 0.3 * partition.cut_links / std::max(1.0, static_cast<double>(topology.graph.link_count()));
  constexpr double barrier = 0.02;
  const double barriers = partition.cut_links == 0 ? 0 : barrier * longest.seconds() / partition.lookahead.seconds();
  return partition.balance + cut + barriers;
}

}  // namespace

Partition make_partition(const Topology& topology, std::uint32_t parts, const std::string& method, Bytes min_frame,
                         std::uint64_t seed) {
  constexpr std::uint32_t max_parts = std::numeric_limits<std::uint16_t>::max();
  WEFT_EXPECT(parts > 0, "a partition into no parts");
  if (parts > max_parts)
    throw InputError(SourceLine{}, fmt::format("{} MPI ranks; at most {} can take part", parts, max_parts));
  const std::string resolved = resolve_method(method);
  if (resolved != "auto") return partition_by(topology, parts, resolved, min_frame, seed);
  Partition metis = partition_by(topology, parts, "metis", min_frame, seed);
  if (parts > 1 && group_order(topology.graph).empty()) return metis;
  Partition groups = partition_by(topology, parts, "groups", min_frame, seed);
  Time longest;
  for (const Partition* partition : {&metis, &groups})
    if (partition->cut_links > 0) longest = std::max(longest, partition->lookahead);
  return estimated_cost(topology, groups, longest) <= estimated_cost(topology, metis, longest) ? groups : metis;
}

}  // namespace weft
