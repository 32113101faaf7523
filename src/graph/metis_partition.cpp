// SPDX-License-Identifier: GPL-2.0-only
// Partitioning any machine by METIS.
#include "graph/metis_partition.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <metis.h>

#include "support/contract.hpp"

namespace weft {
namespace {

/// A graph in METIS's compressed form: the neighbours of vertex v are adjacent[begin[v]] .. adjacent[begin[v + 1] - 1].
struct MetisGraph {
  std::vector<idx_t> begin;
  std::vector<idx_t> adjacent;
  std::vector<idx_t> edge_weight;
  std::vector<idx_t> vertex_weight;
};

/// Vertex of each node. With `keep_hosts` a host shares the vertex of its switch (which is then one per switch).
std::vector<std::uint32_t> vertices_of_nodes(const ClusterGraph& graph, bool keep_hosts) {
  std::vector<std::uint32_t> vertex(graph.node_count());
  std::iota(vertex.begin(), vertex.end(), 0U);
  if (!keep_hosts) return vertex;
  const std::uint32_t hosts = graph.host_count();
  for (std::uint32_t node = hosts; node < graph.node_count(); ++node) vertex[node] = node - hosts;
  for (std::uint32_t host = 0; host < hosts; ++host)
    vertex[host] = vertex[graph.ports(NodeId(host)).front().peer.value()];
  return vertex;
}

MetisGraph compress(const ClusterGraph& graph, const std::vector<std::uint32_t>& vertex, std::uint32_t vertices) {
  MetisGraph result;
  result.vertex_weight.assign(vertices, 0);
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    result.vertex_weight[vertex[node]] += static_cast<idx_t>(graph.ports(NodeId(node)).size());

  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  edges.reserve(2ULL * graph.link_count());
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    const std::uint32_t a = vertex[link.ends[0].value()];
    const std::uint32_t b = vertex[link.ends[1].value()];
    if (a == b) continue;
    edges.emplace_back(a, b);
    edges.emplace_back(b, a);
  }
  std::sort(edges.begin(), edges.end());

  result.begin.reserve(vertices + 1);
  std::size_t next = 0;
  for (std::uint32_t v = 0; v < vertices; ++v) {
    result.begin.push_back(static_cast<idx_t>(result.adjacent.size()));
    for (; next < edges.size() && edges[next].first == v; ++next) {
      if (next > 0 && edges[next] == edges[next - 1]) {
        ++result.edge_weight.back();  // parallel links
        continue;
      }
      result.adjacent.push_back(static_cast<idx_t>(edges[next].second));
      result.edge_weight.push_back(1);
    }
  }
  result.begin.push_back(static_cast<idx_t>(result.adjacent.size()));
  return result;
}

std::vector<idx_t> run_metis(MetisGraph& graph, std::uint32_t vertices, std::uint32_t parts) {
  // METIS's manual advises recursive bisection below 8 parts and the faster k-way partitioning from there on; but k-way
  // leaves parts empty when there are only a few vertices for each.
  constexpr std::uint32_t few_parts = 8;
  constexpr std::uint32_t few_vertices_per_part = 4;
  const bool bisect = parts < few_parts || vertices / parts < few_vertices_per_part;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_NCUTS] = 4;
  idx_t count = static_cast<idx_t>(vertices);
  idx_t constraints = 1;
  idx_t wanted = static_cast<idx_t>(parts);
  idx_t cut = 0;
  std::vector<idx_t> part(vertices, 0);
  const auto partition = bisect ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  const int status =
      partition(&count, &constraints, graph.begin.data(), graph.adjacent.data(), graph.vertex_weight.data(), nullptr,
                graph.edge_weight.data(), &wanted, nullptr, nullptr, options, &cut, part.data());
  WEFT_EXPECT(status == METIS_OK, "METIS status {} for {} vertices, {} parts", status, vertices, parts);
  return part;
}

}  // namespace

std::vector<std::uint16_t> metis_partition(const ClusterGraph& graph, std::uint32_t parts) {
  const bool keep_hosts = graph.switch_count() >= parts;
  const std::uint32_t vertices = keep_hosts ? graph.switch_count() : graph.node_count();
  const std::vector<std::uint32_t> vertex = vertices_of_nodes(graph, keep_hosts);
  std::vector<idx_t> part(vertices);
  if (parts >= vertices) {
    std::iota(part.begin(), part.end(), idx_t{0});  // METIS wants fewer parts than vertices
  } else if (parts > 1) {
    MetisGraph compressed = compress(graph, vertex, vertices);
    part = run_metis(compressed, vertices, parts);
  }
  std::vector<std::uint16_t> owners(graph.node_count());
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    owners[node] = static_cast<std::uint16_t>(part[vertex[node]]);
  return owners;
}

}  // namespace weft
