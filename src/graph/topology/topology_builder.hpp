// SPDX-License-Identifier: GPL-2.0-only
// A family of machines: reads its part of the experiment and builds the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/machine/cluster_graph.hpp"
#include "graph/machine/static_paths.hpp"
#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// What routing by formula and pictures know about a family beyond its graph: coordinates, groups, levels. Each family
/// has its own class, which algorithms for this family use: `shape_of<TorusShape>(topology)`.
class Shape {
 public:
  virtual ~Shape() = default;
};

/// A built machine.
struct Topology {
  ClusterGraph graph;
  std::string kind;
  std::string
      routing;  ///< routing algorithm of this family by default ("fat_tree" for fat_tree, "shortest_path" in general)
  std::uint32_t radix = 0;  ///< family parameter of structured routings (k of a fat-tree), 0 if none
  /// Class of each link ("host", "edge-aggregation", "aggregation-core", "switch"), as index into link_classes.
  std::vector<std::uint8_t> link_class;
  std::vector<std::string> link_classes;
  std::shared_ptr<const Shape> shape;        ///< nothing if the family has none
  std::shared_ptr<const StaticPaths> paths;  ///< written down for the routing "static"; nothing if there are none
  std::vector<std::uint32_t> storage;        ///< what storage_hosts() gives
  /// Bandwidth across the narrowest cut into two halves, one direction, in bit/s, by the family's formula; 0 if there
  /// is none.
  std::int64_t bisection_bps = 0;

  /// Hosts that are storage and not accelerators, ascending: `storage_hosts:` of the machine. Storage targets are
  /// placed on them; computing ranks only if the experiment lists these hosts.
  const std::vector<std::uint32_t>& storage_hosts() const { return storage; }
  /// Hosts that are no storage.
  std::uint32_t compute_hosts() const { return graph.host_count() - static_cast<std::uint32_t>(storage.size()); }

  /// Adds a class of links; add() refers to it.
  std::uint8_t add_class(const std::string& name);
  LinkId add(std::uint8_t link_class, NodeId a, NodeId b, Bandwidth rate, Time delay);
  LinkId connect(std::uint8_t link_class, NodeId a, std::uint32_t port_a, NodeId b, std::uint32_t port_b,
                 Bandwidth rate, Time delay);
};

/// The machine's shape if it is of this family, else nullptr.
template <class Family>
const Family* shape_of(const Topology& topology) {
  return dynamic_cast<const Family*>(topology.shape.get());
}

/// Registered under the value of `topology.kind`.
class TopologyBuilder {
 public:
  virtual ~TopologyBuilder() = default;
  /// Reads and finishes the `topology:` map (kind has been read). Throws InputError for impossible machines.
  virtual Topology build(const Spec& spec) const = 0;
};
using TopologyRegistry = Registry<TopologyBuilder>;

/// A key that any machine may have beside its family's parameters: registered under that key of the `topology:` map,
/// and called when the key is present.
class TopologyExtension {
 public:
  virtual ~TopologyExtension() = default;
  /// Returns the machine, changed as the value of the key says. Reads and finishes that value. Throws InputError.
  virtual Topology extend(const Spec& value, Topology machine) const = 0;
  /// The whole machine where the key is absent: changed only if its parts say so.
  virtual Topology by_default(Topology machine) const { return machine; }
};
using ExtensionRegistry = Registry<TopologyExtension>;

/// Machines beyond this many nodes are refused before they fill the memory.
constexpr std::uint32_t max_nodes = 1U << 24;

/// Look up `kind`, build, check what every machine must obey (connected, every host has one port, positive rates and
/// delays, at least one host, at most `max_nodes` nodes). `spec` is the `topology:` map. Throws InputError at its
/// place.
Topology build_topology(const Spec& spec);
/// The same without these checks: a part of a machine.
Topology build_part(const Spec& spec);

}  // namespace weft
