// SPDX-License-Identifier: GPL-2.0-only
// Partitioning any machine by METIS.
#include "graph/partition/metis_partition.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <metis.h>
#include <unistd.h>

#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"

namespace {

struct sigaction on_termination {};

}  // namespace

/// Replaces the handler that METIS sets: METIS's own (GKlib, error.c) would treat SIGTERM as an error of METIS and jump
/// to its beginning, even if another thread has received the signal.
extern "C" void gk_sigthrow(int number) {
  // METIS is out of memory, or the process was asked to end and has no handler.
  if (number != SIGTERM || on_termination.sa_handler == SIG_DFL || on_termination.sa_handler == SIG_IGN)
    _exit(number == SIGTERM ? weft::exit_interrupted : weft::exit_environment);
  sigaction(SIGTERM, &on_termination, nullptr);  // METIS sets handlers that work once
  on_termination.sa_handler(number);
}

namespace weft {
namespace {

/// A graph in METIS's compressed form: the neighbours of vertex v are adjacent[begin[v]] .. adjacent[begin[v + 1] - 1].
struct MetisGraph {
  std::vector<idx_t> begin;
  std::vector<idx_t> adjacent;
  std::vector<idx_t> edge_weight;
  std::vector<idx_t> vertex_weight;
};

/// Vertex of each node: the nodes of a block share one, and with `keep_hosts` a host shares that of its switch.
struct Vertices {
  std::vector<std::uint32_t> of_node;
  std::uint32_t count = 0;
};

Vertices vertices_of_nodes(const ClusterGraph& graph, bool keep_hosts) {
  Vertices vertices;
  vertices.of_node.assign(graph.node_count(), 0);
  std::map<std::uint32_t, std::uint32_t> of_block;
  const auto number = [&](std::uint32_t node) {
    const std::uint32_t block = graph.node(NodeId(node)).block;
    if (block == no_block) return vertices.count++;
    const auto [place, is_new] = of_block.emplace(block, vertices.count);
    if (is_new) ++vertices.count;
    return place->second;
  };
  const std::uint32_t hosts = graph.host_count();
  for (std::uint32_t node = keep_hosts ? hosts : 0; node < graph.node_count(); ++node)
    vertices.of_node[node] = number(node);
  for (std::uint32_t host = 0; keep_hosts && host < hosts; ++host)
    vertices.of_node[host] = vertices.of_node[graph.ports(NodeId(host)).front().peer.value()];
  return vertices;
}

/// The weight of an edge is the sum of those of its parallel links.
template <class LinkWeight>
MetisGraph compress(const ClusterGraph& graph, const std::vector<std::uint32_t>& vertex, std::uint32_t vertices,
                    const LinkWeight& link_weight) {
  MetisGraph result;
  result.vertex_weight.assign(vertices, 0);
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    result.vertex_weight[vertex[node]] += static_cast<idx_t>(graph.ports(NodeId(node)).size());

  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
    idx_t weight;
    bool operator<(const Edge& other) const { return std::tie(from, to) < std::tie(other.from, other.to); }
  };
  std::vector<Edge> edges;
  edges.reserve(2ULL * graph.link_count());
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const LinkProperties& link = graph.link(LinkId(i));
    const std::uint32_t a = vertex[link.ends[0].value()];
    const std::uint32_t b = vertex[link.ends[1].value()];
    if (a == b) continue;
    const idx_t weight = link_weight(link);
    edges.push_back({a, b, weight});
    edges.push_back({b, a, weight});
  }
  std::sort(edges.begin(), edges.end());

  result.begin.reserve(vertices + 1);
  std::size_t next = 0;
  for (std::uint32_t v = 0; v < vertices; ++v) {
    const std::size_t first = result.adjacent.size();
    result.begin.push_back(static_cast<idx_t>(first));
    for (; next < edges.size() && edges[next].from == v; ++next) {
      const auto to = static_cast<idx_t>(edges[next].to);
      if (result.adjacent.size() > first && result.adjacent.back() == to) {
        result.edge_weight.back() += edges[next].weight;
        continue;
      }
      result.adjacent.push_back(to);
      result.edge_weight.push_back(edges[next].weight);
    }
  }
  result.begin.push_back(static_cast<idx_t>(result.adjacent.size()));
  return result;
}

/// While this lives, METIS may set handlers of signals. Afterwards they are as they were: METIS gives them back so that
/// they work once only.
class OwnHandlers {
 public:
  OwnHandlers() {
    sigaction(SIGTERM, nullptr, &on_termination);
    sigaction(SIGABRT, nullptr, &on_abort_);
  }
  ~OwnHandlers() {
    sigaction(SIGTERM, &on_termination, nullptr);
    sigaction(SIGABRT, &on_abort_, nullptr);
  }
  OwnHandlers(const OwnHandlers&) = delete;
  OwnHandlers& operator=(const OwnHandlers&) = delete;

 private:
  struct sigaction on_abort_ {};
};

/// While this lives, nothing reaches the standard output: METIS reports there what it works around, such as halves of a
/// few vertices.
class SilentOutput {
 public:
  SilentOutput() {
    std::fflush(stdout);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0) return;
    output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (output_ >= 0) dup2(nowhere, STDOUT_FILENO);
    close(nowhere);
  }
  ~SilentOutput() {
    if (output_ < 0) return;
    std::fflush(stdout);
    dup2(output_, STDOUT_FILENO);
    close(output_);
  }
  SilentOutput(const SilentOutput&) = delete;
  SilentOutput& operator=(const SilentOutput&) = delete;

 private:
  int output_ = -1;
};

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
  const OwnHandlers own;
  const SilentOutput silent;
  const int status =
      partition(&count, &constraints, graph.begin.data(), graph.adjacent.data(), graph.vertex_weight.data(), nullptr,
                graph.edge_weight.data(), &wanted, nullptr, nullptr, options, &cut, part.data());
  WEFT_EXPECT(status == METIS_OK, "METIS status {} for {} vertices, {} parts", status, vertices, parts);
  return part;
}

}  // namespace

std::vector<std::uint16_t> metis_partition(const ClusterGraph& graph, std::uint32_t parts) {
  Vertices contracted = vertices_of_nodes(graph, graph.switch_count() > 0);
  if (contracted.count < parts) contracted = vertices_of_nodes(graph, false);
  const std::vector<std::uint32_t>& vertex = contracted.of_node;
  const std::uint32_t vertices = contracted.count;
  std::vector<idx_t> part(vertices);
  if (parts >= vertices) {
    std::iota(part.begin(), part.end(), idx_t{0});  // METIS wants fewer parts than vertices
  } else if (parts > 1) {
    MetisGraph compressed = compress(graph, vertex, vertices, [](const LinkProperties&) { return idx_t{1}; });
    part = run_metis(compressed, vertices, parts);
  }
  std::vector<std::uint16_t> owners(graph.node_count());
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    owners[node] = static_cast<std::uint16_t>(part[vertex[node]]);
  return owners;
}

namespace {

constexpr std::int64_t max_weight = 1 << 12;  ///< of a link

/// METIS allows itself some imbalance: hosts are moved until the halves are equal, those first that cost least.
void balance_hosts(const ClusterGraph& graph, std::vector<std::uint16_t>& half) {
  std::int64_t surplus = 0;  // of half 0 over half 1
  for (std::uint32_t host = 0; host < graph.host_count(); ++host) surplus += half[host] == 0 ? 1 : -1;
  const auto cost = [&](std::uint32_t host) {
    std::int64_t added = 0;
    for (const PortEnd& port : graph.ports(NodeId(host)))
      added += (half[port.peer.value()] == half[host] ? 1 : -1) * graph.link(port.link).rate.bps();
    return added;
  };
  const std::uint16_t from = surplus > 0 ? 0 : 1;
  std::vector<std::pair<std::int64_t, std::uint32_t>> candidates;
  for (std::uint32_t host = 0; host < graph.host_count(); ++host)
    if (half[host] == from) candidates.emplace_back(cost(host), host);
  std::sort(candidates.begin(), candidates.end());
  for (std::int64_t i = 0; i < std::abs(surplus) / 2; ++i)
    half[candidates[static_cast<std::size_t>(i)].second] = static_cast<std::uint16_t>(1 - from);
}

}  // namespace

std::vector<std::uint16_t> metis_halves_of_hosts(const ClusterGraph& graph) {
  std::vector<std::uint32_t> vertex(graph.node_count());
  std::iota(vertex.begin(), vertex.end(), 0U);
  // Bandwidth in units of the slowest link, but so that sums fit METIS's numbers.
  std::int64_t slowest = graph.link(LinkId(0)).rate.bps();
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) slowest = std::min(slowest, graph.link(LinkId(i)).rate.bps());
  MetisGraph compressed = compress(graph, vertex, graph.node_count(), [slowest](const LinkProperties& link) {
    return static_cast<idx_t>(std::min(link.rate.bps() / slowest, max_weight));
  });
  for (std::uint32_t node = 0; node < graph.node_count(); ++node)
    compressed.vertex_weight[node] = graph.is_host(NodeId(node)) ? 1 : 0;
  std::vector<std::uint16_t> half(graph.node_count());
  const std::vector<idx_t> part = run_metis(compressed, graph.node_count(), 2);
  for (std::uint32_t node = 0; node < graph.node_count(); ++node) half[node] = static_cast<std::uint16_t>(part[node]);
  balance_hosts(graph, half);
  return half;
}

}  // namespace weft
