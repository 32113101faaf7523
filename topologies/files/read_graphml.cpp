// SPDX-License-Identifier: GPL-2.0-only
// GraphML (http://graphml.graphdrawing.org), as `weft topology --export graphml` and other programs write it.
#include <deque>

#include <fmt/format.h>

#include "support/documents/xml.hpp"
#include "topologies/files/listed_machine.hpp"
#include "topologies/files/machine_file.hpp"

namespace weft {
namespace {

/// Nodes: attribute kind (or type) "host", "gpu" or "switch"; without it, nodes of one edge are hosts. Edges: rate_bps,
/// or rate with a unit; delay_ps, or delay with a unit. In a directed graph the edges of both directions are one link,
/// as links have both.
class GraphmlReader {
 public:
  GraphmlReader(const std::string& text, const std::string& path) : file_(text, path) {}

  Topology read() {
    const pugi::xml_node root = file_.root("graphml", "a GraphML file");
    for (const auto& key : root.children("key")) read_key(key);
    const pugi::xml_node graph = root.child("graph");
    if (!graph) throw InputError({file_.path(), 1}, "no <graph> in <graphml>");
    for (const auto& element : graph.children("node")) read_node(element);
    directed_ = graph.attribute("edgedefault").value() == std::string_view("directed");
    for (const auto& element : graph.children("edge")) read_edge(element);
    require_both_directions();
    guess_hosts();
    machine_.parallel_links = true;
    return assemble_listed(machine_);
  }

 private:
  void read_key(const pugi::xml_node& key) {
    const std::string id = key.attribute("id").value();
    const std::string name = key.attribute("attr.name").value();
    names_[id] = name.empty() ? id : name;
    const std::string of = key.attribute("for").value();
    if (const pugi::xml_node preset = key.child("default"))
      for (const char* kind : {"node", "edge"})
        if (of == kind || of == "all" || of.empty()) defaults_[kind][names_[id]] = trimmed(preset.child_value());
  }

  static std::string trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return "";
    return std::string(text.substr(begin, text.find_last_not_of(blanks) - begin + 1));
  }

  /// Of a node or an edge; what it does not say, its key's default says.
  std::map<std::string, std::string> attributes(const pugi::xml_node& element) const {
    const auto preset = defaults_.find(element.name());
    std::map<std::string, std::string> result;
    if (preset != defaults_.end()) result = preset->second;
    for (const auto& data : element.children("data")) {
      const std::string key = data.attribute("key").value();
      const auto name = names_.find(key);
      result[name == names_.end() ? key : name->second] = trimmed(data.child_value());
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
    const pugi::xml_attribute own = element.attribute("directed");
    if (!(own ? own.as_bool() : directed_))
      machine_.links.push_back(link);
    else if (!is_way_back(link))
      machine_.links.push_back(link);
  }

  /// Whether an edge is the other direction of one before it.
  bool is_way_back(const ListedMachine::Link& link) {
    auto& opposite = one_way_[{link.b, link.a}];
    if (opposite.empty()) {
      one_way_[{link.a, link.b}].push_back(machine_.links.size());
      return false;
    }
    const ListedMachine::Link& there = machine_.links[opposite.front()];
    if (there.link.rate != link.link.rate || there.link.delay != link.link.delay)
      throw InputError(link.where,
                       fmt::format("an edge with {} and {}, and the one in the other direction ({}) has {} and {}; a "
                                   "link has the same rate and delay in both",
                                   to_text(link.link.rate), to_text(link.link.delay), there.where.text(),
                                   to_text(there.link.rate), to_text(there.link.delay)));
    opposite.pop_front();
    ++both_ways_;
    return true;
  }

  /// If some links have both directions, none may lack one.
  void require_both_directions() const {
    if (both_ways_ == 0) return;
    for (const auto& [ends, edges] : one_way_)
      if (!edges.empty())
        throw InputError(machine_.links[edges.front()].where,
                         "no edge leads back, and other links of this directed graph have edges in both directions; "
                         "expected both of each link, or one of each");
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
  std::map<std::string, std::string> names_;                            ///< id of a <key> -> attr.name, or the id
  std::map<std::string, std::map<std::string, std::string>> defaults_;  ///< node or edge -> attribute -> value
  bool directed_ = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<std::size_t>> one_way_;  ///< directed edges
  std::size_t both_ways_ = 0;                                                           ///< links of two edges
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
