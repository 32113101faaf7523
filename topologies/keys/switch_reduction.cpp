// SPDX-License-Identifier: GPL-2.0-only
// Switches that reduce and multicast: `switch_reduction:` beside the parameters of any family.
//
// A unit for reductions is a host on a separate link to its switch: the packets to and from the members cross the same
// links as in the hardware; the separate link represents the path to the arithmetic unit of the switch. NVLink SHARP:
// NVIDIA H100 Tensor Core GPU Architecture (2022). InfiniBand SHARP: R. Graham et al., "Scalable Hierarchical
// Aggregation Protocol (SHArP)", COMHPC 2016, doi:10.1109/COMHPC.2016.006.
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "graph/shapes/reduction_shape.hpp"
#include "graph/shapes/server_shape.hpp"

namespace weft {
namespace {

/// Roles of a machine with units after its hosts; units have no role.
class RolesWithUnits final : public NodeRoles {
 public:
  RolesWithUnits(std::shared_ptr<const Topology> machine, std::uint32_t units)
      : machine_(std::move(machine)), units_(units) {}
  std::string name(NodeId node) const override {
    const ClusterGraph& graph = machine_->graph;
    if (node.value() >= graph.host_count() && node.value() < graph.host_count() + units_) return {};
    const NodeId of_machine(node.value() < graph.host_count() ? node.value() : node.value() - units_);
    return graph.name(of_machine);
  }

 private:
  std::shared_ptr<const Topology> machine_;
  std::uint32_t units_;
};

const char* const places[] = {"nvswitch", "leaf", "top"};

/// What the map says.
struct UnitsAsked {
  std::vector<std::string> at = {std::begin(places), std::end(places)};
  std::optional<Spec> all_there;  ///< a place without switches is an error here
  Bandwidth rate;
  Time delay;

  explicit UnitsAsked(std::vector<std::string> words) : at(std::move(words)) {}
  explicit UnitsAsked(const Spec& spec) {
    if (const auto wanted = spec.find("at")) {
      at.clear();
      for (const Spec& item : wanted->items()) at.push_back(item.one_of({std::begin(places), std::end(places)}));
      all_there = wanted;
    }
    if (const auto value = spec.find("rate")) rate = value->bandwidth();
    if (const auto value = spec.find("delay")) delay = value->wait();
    spec.finish();
  }
};

class UnitsInSwitches {
 public:
  UnitsInSwitches(UnitsAsked asked, Topology machine)
      : asked_(std::move(asked)),
        machine_(std::make_shared<const Topology>(std::move(machine))),
        graph_(machine_->graph) {
    for (std::uint32_t node = graph_.host_count(); node < graph_.node_count(); ++node)
      if (!is_inside_a_server(NodeId(node))) {
        leaf_tier_ = leaf_tier_ == 0 ? tier(NodeId(node)) : std::min(leaf_tier_, tier(NodeId(node)));
        top_tier_ = std::max(top_tier_, tier(NodeId(node)));
      }
  }

  Topology build() {
    find_switches();
    find_levels();
    copy_machine();
    return std::move(result_);
  }

 private:
  std::uint8_t tier(NodeId node) const { return graph_.node(node).tier; }
  bool is_inside_a_server(NodeId node) const { return graph_.node(node).block != no_block; }
  /// GPU crossbars are on tier 1, NICs on tier 3.
  bool is_nvswitch(NodeId node) const {
    if (graph_.is_host(node) || !is_inside_a_server(node) || tier(node) != 2) return false;
    const auto ports = graph_.ports(node);
    return std::all_of(ports.begin(), ports.end(), [this](const PortEnd& port) {
      return machine_->link_classes[machine_->link_class[port.link.value()]] == "nvlink";
    });
  }
  bool is_leaf(NodeId node) const {
    return !graph_.is_host(node) && !is_inside_a_server(node) && tier(node) == leaf_tier_;
  }
  bool is_top(NodeId node) const {
    return !graph_.is_host(node) && !is_inside_a_server(node) && tier(node) == top_tier_;
  }

  bool wanted(const char* place) const {
    return std::find(asked_.at.begin(), asked_.at.end(), place) != asked_.at.end();
  }
  void find_switches() {
    const bool nvswitches = wanted("nvswitch");
    const bool leaves = wanted("leaf");
    const bool tops = wanted("top");
    for (std::uint32_t number = graph_.host_count(); number < graph_.node_count(); ++number) {
      const NodeId node(number);
      if ((nvswitches && is_nvswitch(node)) || (leaves && is_leaf(node)) || (tops && is_top(node))) {
        unit_of_[number] = static_cast<std::uint32_t>(shape_->units.size());
        shape_->units.push_back({node, static_cast<std::uint32_t>(graph_.ports(node).size()), 0, 0});
      }
    }
    if (!asked_.all_there) return;
    for (const std::string& word : asked_.at) {
      const bool there = std::any_of(shape_->units.begin(), shape_->units.end(), [&](const auto& unit) {
        return word == "nvswitch" ? is_nvswitch(unit.at) : word == "leaf" ? is_leaf(unit.at) : is_top(unit.at);
      });
      if (!there) throw asked_.all_there->error(fmt::format("this machine has no switch of the kind '{}'", word));
    }
  }

  /// Switches above a host, nearest first, with their distance: upwards only, from tier to tier, and as far as there
  /// are units.
  std::vector<std::pair<NodeId, std::uint32_t>> above(NodeId host) const {
    std::vector<std::pair<NodeId, std::uint32_t>> found = {{host, 0}};
    std::map<std::uint32_t, bool> seen;
    const bool outside = wanted("leaf") || wanted("top");
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto [node, distance] = found[i];
      if (!outside && !is_inside_a_server(node)) continue;
      for (const PortEnd& port : graph_.ports(node))
        if (!graph_.is_host(port.peer) && tier(port.peer) > tier(node) && !std::exchange(seen[port.peer.value()], true))
          found.emplace_back(port.peer, distance + 1);
    }
    return found;
  }

  static void enter(ReductionShape::Level& level, std::map<std::vector<std::uint32_t>, std::uint32_t>& known,
                    std::vector<std::uint32_t> units) {
    std::sort(units.begin(), units.end());
    const auto [at, fresh] = known.try_emplace(units, static_cast<std::uint32_t>(level.lists.size()));
    if (fresh) level.lists.push_back(std::move(units));
    level.list_of_host.push_back(at->second);
  }

  void find_levels() {
    std::map<std::vector<std::uint32_t>, std::uint32_t> known[3];
    for (auto& lists : known) lists[{}] = 0;
    for (std::uint32_t host = 0; host < graph_.host_count(); ++host) {
      std::vector<std::uint32_t> nvswitches;
      std::vector<std::uint32_t> leaves;
      std::vector<std::uint32_t> tops;
      for (const auto& [node, distance] : above(NodeId(host))) {
        const auto found = unit_of_.find(node.value());
        if (found == unit_of_.end()) continue;
        ReductionShape::Unit& unit = shape_->units[found->second];
        if (unit.radius == 0) unit.below = host;
        unit.radius = std::max(unit.radius, distance);
        if (is_nvswitch(node)) nvswitches.push_back(found->second);
        if (is_leaf(node)) leaves.push_back(found->second);
        if (is_top(node)) tops.push_back(found->second);
      }
      enter(shape_->server, known[0], nvswitches.empty() && !is_inside_a_server(NodeId(host)) ? leaves : nvswitches);
      enter(shape_->leaf, known[1], leaves);
      enter(shape_->top, known[2], tops);
    }
  }

  std::uint32_t block_of(NodeId node) {
    const NodeProperties& properties = graph_.node(node);
    if (properties.block != no_block || !unit_of_.contains(node.value())) return properties.block;
    return next_block_ + unit_of_.at(node.value());
  }

  void copy_machine() {
    const std::uint32_t hosts = graph_.host_count();
    for (std::uint32_t node = 0; node < graph_.node_count(); ++node)
      if (is_inside_a_server(NodeId(node))) next_block_ = std::max(next_block_, graph_.node(NodeId(node)).block + 1);
    ClusterGraph& graph = result_.graph;
    for (std::uint32_t host = 0; host < hosts; ++host)
      graph.add_host(graph_.node(NodeId(host)).group, graph_.node(NodeId(host)).block);
    for (const auto& unit : shape_->units) graph.add_host(graph_.node(unit.at).group, block_of(unit.at));
    for (std::uint32_t node = hosts; node < graph_.node_count(); ++node)
      graph.set_in_server(graph.add_switch(tier(NodeId(node)), graph_.node(NodeId(node)).group, block_of(NodeId(node))),
                          graph_.node(NodeId(node)).in_server);
    graph.set_roles(std::make_shared<RolesWithUnits>(machine_, shape_->count()));
    const std::uint32_t shift = shape_->count();
    const auto there = [&](NodeId node) { return graph_.is_host(node) ? node : NodeId(node.value() + shift); };
    for (const std::string& name : machine_->link_classes) result_.add_class(name);
    for (std::uint32_t number = 0; number < graph_.link_count(); ++number) {
      const LinkProperties& link = graph_.link(LinkId(number));
      const LinkId copy = result_.connect(machine_->link_class[number], there(link.ends[0]), link.ports[0],
                                          there(link.ends[1]), link.ports[1], link.rate, link.delay);
      result_.graph.set_framing(copy, link.framing);
    }
    const std::uint8_t unit_class = result_.add_class("reduction");
    for (std::uint32_t number = 0; number < shift; ++number) {
      ReductionShape::Unit& unit = shape_->units[number];
      result_.connect(unit_class, NodeId(hosts + number), 0, there(unit.at), unit.port, rate_of(unit.at),
                      delay_of(unit.at));
      unit.at = there(unit.at);
    }
    result_.radix = machine_->radix;
    result_.bisection_bps = machine_->bisection_bps;
    result_.routing = "switch_reduction";
    shape_->routing = machine_->routing;
    shape_->machine = machine_;
    result_.shape = shape_;
  }
  /// By default the shortest of the switch's links: a shorter one would cut the run into shorter windows.
  Time delay_of(NodeId node) const {
    if (asked_.delay > Time()) return asked_.delay;
    Time shortest = Time::max();
    for (const PortEnd& port : graph_.ports(node)) shortest = std::min(shortest, graph_.link(port.link).delay);
    return shortest;
  }
  /// By default all links of the switch together: reductions never wait for it.
  Bandwidth rate_of(NodeId node) const {
    if (asked_.rate.bps() > 0) return asked_.rate;
    std::int64_t sum = 0;
    for (const PortEnd& port : graph_.ports(node)) sum += graph_.link(port.link).rate.bps();
    return Bandwidth::from_bps(sum);
  }

  UnitsAsked asked_;
  std::shared_ptr<const Topology> machine_;
  const ClusterGraph& graph_;
  std::uint8_t leaf_tier_ = 0;
  std::uint8_t top_tier_ = 0;
  std::uint32_t next_block_ = 0;
  std::map<std::uint32_t, std::uint32_t> unit_of_;  ///< by switch of the machine
  std::shared_ptr<ReductionShape> shape_ = std::make_shared<ReductionShape>();
  Topology result_;
};

class SwitchReduction final : public TopologyExtension {
 public:
  Topology extend(const Spec& value, Topology machine) const override {
    if (machine.paths) throw value.error("found together with `paths`, which names nodes of a machine without it");
    return UnitsInSwitches(UnitsAsked(value), std::move(machine)).build();
  }
  /// Servers with NVLink SHARP have it without being asked. `paths` are those of a machine without units.
  Topology by_default(Topology machine) const override {
    const auto* servers = shape_of<ServerShape>(machine);
    if (servers == nullptr || !servers->design.nvlink_sharp || machine.paths) return machine;
    return UnitsInSwitches(UnitsAsked({"nvswitch"}), std::move(machine)).build();
  }
};

// Extensions are made in the order of their names: servers are first.
const Registration<TopologyExtension, SwitchReduction> switch_reduction_registration(
    "switch_reduction", "switches that reduce and multicast");

}  // namespace
}  // namespace weft
