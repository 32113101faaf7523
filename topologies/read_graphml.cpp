// SPDX-License-Identifier: GPL-2.0-only
// GraphML (http://graphml.graphdrawing.org), as `weft topology --export graphml` and other programs write it.
#include <fmt/format.h>

#include "topologies/listed_machine.hpp"
#include "topologies/machine_file.hpp"
#include "topologies/xml_lines.hpp"

namespace weft {
namespace {

using Tree = boost::property_tree::ptree;

/// Nodes: attribute kind (or type) "host", "gpu" or "switch"; without it, nodes of one edge are hosts. Edges: rate_bps,
/// or rate with a unit; delay_ps, or delay with a unit.
class GraphmlReader {
 public:
  GraphmlReader(const std::string& text, std::string path) : text_(text), path_(std::move(path)) {}

  Topology read() {
    const Tree document = parse_xml(text_, path_);
    const auto root = document.get_child_optional("graphml");
    if (!root) throw InputError({path_, 1}, "no <graphml>; a GraphML file begins with it");
    read_keys(*root);
    const auto graph = root->get_child_optional("graph");
    if (!graph) throw InputError({path_, 1}, "no <graph> in <graphml>");
    read_nodes(*graph);
    read_edges(*graph);
    guess_hosts();
    machine_.parallel_links = true;
    return assemble_listed(machine_);
  }

 private:
  void read_keys(const Tree& root) {
    for (const auto& [tag, key] : root)
      if (tag == "key")
        names_[key.get("<xmlattr>.id", "")] = key.get(Tree::path_type("<xmlattr>/attr.name", '/'), std::string());
  }

  std::map<std::string, std::string> attributes(const Tree& element) const {
    std::map<std::string, std::string> result;
    for (const auto& [tag, data] : element) {
      if (tag != "data") continue;
      const std::string key = data.get("<xmlattr>.key", "");
      const auto name = names_.find(key);
      result[name == names_.end() || name->second.empty() ? key : name->second] = data.data();
    }
    return result;
  }

  void read_nodes(const Tree& graph) {
    const auto lines = lines_of_tag(text_, "node");
    std::size_t count = 0;
    for (const auto& [tag, element] : graph) {
      if (tag != "node") continue;
      const SourceLine where{path_, count < lines.size() ? lines[count] : 0};
      const auto number = static_cast<std::uint32_t>(count++);
      const std::string id = element.get("<xmlattr>.id", "");
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
        throw InputError(where, fmt::format("unknown kind '{}'; host or switch is due", kind->second));
      }
    }
  }

  void read_edges(const Tree& graph) {
    const auto lines = lines_of_tag(text_, "edge");
    std::size_t count = 0;
    for (const auto& [tag, element] : graph) {
      if (tag != "edge") continue;
      ListedMachine::Link link;
      link.where = {path_, count < lines.size() ? lines[count] : 0};
      ++count;
      link.a = end(element, "source", link.where);
      link.b = end(element, "target", link.where);
      const auto data = attributes(element);
      link.link.rate = rate(data, link.where);
      link.link.delay = delay(data, link.where);
      if (const auto name = data.find("class"); name != data.end()) link.link_class = name->second;
      machine_.links.push_back(link);
    }
  }

  std::uint32_t end(const Tree& edge, const std::string& which, const SourceLine& where) const {
    const std::string id = edge.get("<xmlattr>." + which, "");
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

  /// What does not say its kind is a host if it has one edge.
  void guess_hosts() {
    std::map<std::uint32_t, std::uint32_t> degree;
    for (const auto& link : machine_.links) {
      ++degree[link.a];
      ++degree[link.b];
    }
    for (const std::uint32_t number : unknown_) machine_.nodes[number].host = degree[number] == 1;
  }

  const std::string& text_;
  std::string path_;
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
