// SPDX-License-Identifier: GPL-2.0-only
// GraphML (http://graphml.graphdrawing.org), as `weft topology --export graphml` and other programs write it.
#include <fmt/format.h>

#include "support/documents/xml.hpp"
#include "topologies/files/listed_machine.hpp"
#include "topologies/files/machine_file.hpp"

namespace weft {
namespace {

/// Nodes: attribute kind (or type) "host", "gpu" or "switch"; without it, nodes of one edge are hosts. Edges: rate_bps,
/// or rate with a unit; delay_ps, or delay with a unit.
class GraphmlReader {
 public:
  GraphmlReader(const std::string& text, const std::string& path) : file_(text, path) {}

  Topology read() {
    const pugi::xml_node root = file_.root("graphml", "a GraphML file");
    for (const auto& key : root.children("key"))
      names_[key.attribute("id").value()] = key.attribute("attr.name").value();
    const pugi::xml_node graph = root.child("graph");
    if (!graph) throw InputError({file_.path(), 1}, "no <graph> in <graphml>");
    for (const auto& element : graph.children("node")) read_node(element);
    for (const auto& element : graph.children("edge")) read_edge(element);
    guess_hosts();
    machine_.parallel_links = true;
    return assemble_listed(machine_);
  }

 private:
  std::map<std::string, std::string> attributes(const pugi::xml_node& element) const {
    std::map<std::string, std::string> result;
    for (const auto& data : element.children("data")) {
      const std::string key = data.attribute("key").value();
      const auto name = names_.find(key);
      result[name == names_.end() || name->second.empty() ? key : name->second] = data.child_value();
    }
    return result;
  }

  void read_node(const pugi::xml_node& element) {
    const SourceLine where = file_.where(element);
    const auto number = static_cast<std::uint32_t>(number_of_.size());
    const std::string id = element.attribute("id").value();
    if (id.empty() || !number_of_.emplace(id, number).second)
      throw InputError(where, fmt::format("node id '{}' is {}", id, id.empty() ? "missing" : "used already"));
    const auto data = attributes(element);
    auto kind = data.find("kind");
    if (kind == data.end()) kind = data.find("type");
    machine_.nodes[number] = {false, no_block, where};
    if (kind == data.end()) {
      unknown_.push_back(number);
    } else if (kind->second == "host" || kind->second == "gpu") {
      machine_.nodes[number].host = true;
    } else if (kind->second != "switch" && kind->second != "router") {
      throw InputError(where, fmt::format("unknown kind '{}'; expected host or switch", kind->second));
    }
  }

  void read_edge(const pugi::xml_node& element) {
    ListedMachine::Link link;
    link.where = file_.where(element);
    link.a = end(element, "source", link.where);
    link.b = end(element, "target", link.where);
    const auto data = attributes(element);
    link.link.rate = rate(data, link.where);
    link.link.delay = delay(data, link.where);
    if (const auto name = data.find("class"); name != data.end()) link.link_class = name->second;
    machine_.links.push_back(link);
  }

  std::uint32_t end(const pugi::xml_node& edge, const char* which, const SourceLine& where) const {
    const std::string id = edge.attribute(which).value();
    const auto at = number_of_.find(id);
    if (at == number_of_.end()) throw InputError(where, fmt::format("{} '{}' is no node of this file", which, id));
    return at->second;
  }
  static Bandwidth rate(const std::map<std::string, std::string>& data, const SourceLine& where) {
    if (const auto bps = data.find("rate_bps"); bps != data.end())
      return Bandwidth::from_bps(static_cast<std::int64_t>(whole_number(bps->second, 1, INT64_MAX, "rate_bps", where)));
    if (const auto text = data.find("rate"); text != data.end()) return listed_rate(text->second, where);
    throw InputError(where, "an edge without rate_bps or rate (with a unit, such as 400 Gb/s)");
  }
  static Time delay(const std::map<std::string, std::string>& data, const SourceLine& where) {
    if (const auto ps = data.find("delay_ps"); ps != data.end())
      return Time::from_ps(static_cast<std::int64_t>(whole_number(ps->second, 1, INT64_MAX, "delay_ps", where)));
    if (const auto text = data.find("delay"); text != data.end()) return listed_delay(text->second, where);
    throw InputError(where, "an edge without delay_ps or delay (with a unit, such as 500 ns)");
  }

  /// A node without a kind is a host if it has one edge.
  void guess_hosts() {
    std::map<std::uint32_t, std::uint32_t> degree;
    for (const auto& link : machine_.links) {
      ++degree[link.a];
      ++degree[link.b];
    }
    for (const std::uint32_t number : unknown_) machine_.nodes[number].host = degree[number] == 1;
  }

  XmlFile file_;
  std::map<std::string, std::string> names_;  ///< id of a <key> -> attr.name
  std::map<std::string, std::uint32_t> number_of_;
  std::vector<std::uint32_t> unknown_;
  ListedMachine machine_;
};

class Graphml final : public MachineFormat {
 public:
  std::string ending() const override { return ".graphml"; }
  Topology read(const std::string& text, const std::string& path) const override {
    return GraphmlReader(text, path).read();
  }
};

const Registration<MachineFormat, Graphml> read_graphml_registration("graphml",
                                                                     "GraphML with rates and delays of edges");

}  // namespace
}  // namespace weft
