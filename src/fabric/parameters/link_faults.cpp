// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/parameters/link_faults.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "graph/machine/node_name.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

NodeId node_at(const Spec& spec, const ClusterGraph& graph) {
  const std::string name = spec.text();
  const auto node = node_named(graph, name);
  if (!node) throw spec.error(fmt::format("there is no '{}'; this machine has {}", name, names_of_nodes(graph)));
  return *node;
}

// `link: all`, `link: [a, b]` (all links between two nodes), `class: NAME`, or `switch: NAME` (all of its links).
std::vector<std::uint32_t> read_links(const Spec& spec, const Topology& topology) {
  const ClusterGraph& graph = topology.graph;
  const auto link = spec.find("link");
  const auto link_class = spec.find("class");
  const auto whole_switch = spec.find("switch");
  if ((link ? 1 : 0) + (link_class ? 1 : 0) + (whole_switch ? 1 : 0) != 1)
    throw spec.error(
        "expected one of link, class and switch: link: all, link: [switch0, switch4], class: host, or "
        "switch: switch4");
  std::vector<std::uint32_t> links;
  if (link_class) {
    const std::string name = link_class->one_of(topology.link_classes);
    for (std::uint32_t l = 0; l < graph.link_count(); ++l)
      if (topology.link_classes[topology.link_class[l]] == name) links.push_back(l);
    return links;
  }
  if (whole_switch) {
    for (const PortEnd& end : graph.ports(node_at(*whole_switch, graph))) links.push_back(end.link.value());
    return links;
  }
  if (link->is_scalar()) {
    link->one_of({"all"});
    for (std::uint32_t l = 0; l < graph.link_count(); ++l) links.push_back(l);
    return links;
  }
  if (link->size() != 2)
    throw link->error(fmt::format("found {} names; expected the two ends of a link", link->size()));
  const NodeId a = node_at((*link)[0], graph);
  const NodeId b = node_at((*link)[1], graph);
  for (const PortEnd& end : graph.ports(a))
    if (end.peer == b) links.push_back(end.link.value());
  if (links.empty()) throw link->error(fmt::format("there is no link between {} and {}", graph.name(a), graph.name(b)));
  return links;
}

void read_loss(const Spec& spec, const Topology& topology, LinkFaults& faults) {
  const auto links = read_links(spec, topology);
  const auto probability = spec.find("probability");
  const auto errors = spec.find("bit_error_rate");
  if (!probability && !errors) throw spec.error("probability or bit_error_rate is missing");
  for (const std::uint32_t link : links) {
    if (probability) faults.links[link].loss = probability->number(0, 1);
    if (errors) faults.links[link].bit_error_rate = errors->number(0, 1);
  }
  spec.finish();
}

void read_failure(const Spec& spec, const Topology& topology, LinkFaults& faults) {
  const auto links = read_links(spec, topology);
  const Time at = spec.at("at").time();
  Time until = Time::max();
  if (const auto value = spec.find("until")) {
    until = value->time();
    if (until <= at)
      throw value->error(fmt::format("found {}, not after its beginning {}", to_text(until), to_text(at)));
  }
  const auto rate = spec.find("rate");
  for (const std::uint32_t link : links) {
    LinkFault& fault = faults.links[link];
    if (!rate) {
      fault.outages.push_back({at, until});
      continue;
    }
    const Bandwidth full = topology.graph.link(LinkId(link)).rate;
    const Bandwidth lower = rate->bandwidth();
    if (lower > full)
      throw rate->error(fmt::format("found {}; expected at most the link's own {}", to_text(lower), to_text(full)));
    fault.slowdowns.push_back({at, until, lower});
  }
  spec.finish();
}

}  // namespace

bool LinkFault::is_down_at(Time time) const {
  return std::any_of(outages.begin(), outages.end(),
                     [&](const Outage& outage) { return outage.from <= time && time < outage.until; });
}

std::vector<RateChange> rate_changes(const std::vector<Slowdown>& slowdowns, Bandwidth full) {
  std::set<Time> times;
  for (const Slowdown& slowdown : slowdowns) {
    times.insert(slowdown.from);
    if (slowdown.until < Time::max()) times.insert(slowdown.until);
  }
  std::vector<RateChange> changes;
  Bandwidth before = full;
  for (const Time time : times) {
    Bandwidth rate = full;
    for (const Slowdown& slowdown : slowdowns)
      if (slowdown.from <= time && time < slowdown.until) rate = std::min(rate, slowdown.rate);
    if (rate != before) changes.push_back({time, rate});
    before = rate;
  }
  return changes;
}

std::vector<LinkFaults::RoutingPeriod> LinkFaults::routing_periods(const Topology& topology) const {
  std::set<Time> times;
  for (const auto& [link, fault] : links) {
    for (const Outage& outage : fault.outages) {
      for (const Time wait : {known_at_ends(), reconvergence}) {
        times.insert(outage.from + wait);
        if (outage.until < Time::max()) times.insert(outage.until + wait);
      }
    }
  }
  std::vector<RoutingPeriod> result;
  for (const Time time : times) {
    const std::vector<bool> none(topology.graph.link_count(), false);
    RoutingPeriod period{time, none, none};
    for (const auto& [link, fault] : links) {
      period.dead[link] = fault.is_down_at(time - reconvergence);
      period.dead_at_ends[link] = !period.dead[link] && fault.is_down_at(time - known_at_ends());
    }
    result.push_back(std::move(period));
  }
  return result;
}

LinkFaults read_link_faults(const LinkFaultKeys& keys, const Topology& topology) {
  LinkFaults faults;
  if (keys.loss)
    for (const Spec& item : keys.loss->items()) read_loss(item, topology, faults);
  if (keys.failures)
    for (const Spec& item : keys.failures->items()) read_failure(item, topology, faults);
  for (auto& [link, fault] : faults.links)
    fault.rates = rate_changes(fault.slowdowns, topology.graph.link(LinkId(link)).rate);
  if (keys.reconvergence) {
    if (!keys.failures) throw keys.reconvergence->error("found without failures, after which routing reconverges");
    faults.reconvergence = keys.reconvergence->wait();
  }
  if (keys.local_repair) {
    if (!keys.failures) throw keys.local_repair->error("found without failures, which switches repair");
    faults.local_repair = keys.local_repair->wait();
    if (faults.known_at_ends() > faults.reconvergence)
      throw keys.local_repair->error(fmt::format("found {}; expected at most the reconvergence of {}",
                                                 to_text(faults.known_at_ends()), to_text(faults.reconvergence)));
  }
  if (keys.resilient_hashing) {
    if (!keys.failures)
      throw keys.resilient_hashing->error("found without failures, after which flows keep their ports");
    faults.resilient = keys.resilient_hashing->boolean();
  }
  return faults;
}

}  // namespace weft
