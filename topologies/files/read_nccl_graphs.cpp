// SPDX-License-Identifier: GPL-2.0-only
// Channels of a server from NCCL's graph file.
#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "support/documents/xml.hpp"
#include "topologies/files/listed_machine.hpp"
#include "topologies/files/read_nccl.hpp"

namespace weft {
namespace {

using Graph = ServerDesign::GivenGraph;

class GraphReader {
 public:
  GraphReader(const XmlFile& file, const ServerDesign& design) : file_(file), design_(design) {}

  std::vector<Graph> read() {
    std::vector<Graph> graphs;
    for (const auto& child : file_.root("graphs", "a graph file of NCCL").children("graph"))
      graphs.push_back(graph(child));
    const auto rings = [](const Graph& one) { return one.id == 0 && !one.channels.empty(); };
    if (std::none_of(graphs.begin(), graphs.end(), rings))
      throw InputError({file_.path(), 1}, "no <graph id=\"0\"> with channels: the rings are missing");
    return graphs;
  }

 private:
  static std::uint32_t number(const pugi::xml_node& of, const char* key, std::uint64_t max, const SourceLine& where) {
    return static_cast<std::uint32_t>(whole_number(of.attribute(key).value(), 0, max, key, where));
  }
  static double speed(const pugi::xml_node& of, const char* key, const SourceLine& where) {
    const char* const text = of.attribute(key).value();
    double value = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
    if (error != std::errc() || *end != '\0' || !(value >= 0))
      throw InputError(where,
                       fmt::format("{}: found '{}'; expected GB/s of a channel, such as {}=\"20\"", key, text, key));
    return value;
  }

  Graph graph(const pugi::xml_node& of) {
    const SourceLine where = file_.where(of);
    Graph graph;
    graph.id = number(of, "id", 15, where);
    graph.pattern = number(of, "pattern", 6, where);
    graph.cross_nic = number(of, "crossnic", 2, where);
    graph.intra = speed(of, "speedintra", where);
    graph.inter = speed(of, "speedinter", where);
    graph.intra_type = of.attribute("typeintra").value();
    graph.inter_type = of.attribute("typeinter").value();
    graph.same_channels = number(of, "samechannels", 1, where) != 0;
    for (const auto& child : of.children("channel")) graph.channels.push_back(channel(child));
    return graph;
  }

  /// A NIC, the GPUs in order, a NIC.
  Graph::Channel channel(const pugi::xml_node& of) {
    const SourceLine where = file_.where(of);
    Graph::Channel channel;
    for (const auto& child : of.children()) {
      const std::string_view tag = child.name();
      const SourceLine line = file_.where(child);
      if (tag == "gpu") {
        channel.gpus.push_back(number(child, "dev", design_.gpus - 1, line));
      } else if (tag == "net") {
        if (design_.nics.empty()) throw InputError(line, "a channel with a NIC, and the server has none");
        (channel.gpus.empty() ? channel.net_in : channel.net_out) = number(child, "dev", design_.nics.size() - 1, line);
      }
    }
    if (channel.gpus.empty()) throw InputError(where, "a channel without a <gpu>");
    return channel;
  }

  const XmlFile& file_;
  const ServerDesign& design_;
};

}  // namespace

std::vector<ServerDesign::GivenGraph> read_nccl_graphs(const Spec& name, const ServerDesign& design) {
  std::string path;
  const std::string text = read_text_file(name, path);
  return GraphReader(XmlFile(text, path), design).read();
}

}  // namespace weft
