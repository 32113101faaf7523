// SPDX-License-Identifier: GPL-2.0-only
// Channels of a server from NCCL's graph file.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topologies/listed_machine.hpp"
#include "topologies/read_nccl.hpp"
#include "topologies/xml_lines.hpp"

namespace weft {
namespace {

using Tree = boost::property_tree::ptree;
using Graph = ServerDesign::GivenGraph;

class GraphReader {
 public:
  GraphReader(const Spec& name, const ServerDesign& design) : design_(design) { text_ = read_text_file(name, path_); }

  std::vector<Graph> read() {
    const Tree document = parse_xml(text_, path_);
    const auto all = document.get_child_optional("graphs");
    if (!all) throw InputError({path_, 1}, "no <graphs>; a graph file of NCCL begins with it");
    for (const char* tag : {"graph", "channel", "gpu", "net"}) lines_[tag] = lines_of_tag(text_, tag);
    std::vector<Graph> graphs;
    for (const auto& [tag, child] : *all)
      if (tag == "graph") graphs.push_back(graph(child));
    const auto rings = [](const Graph& one) { return one.id == 0 && !one.channels.empty(); };
    if (std::none_of(graphs.begin(), graphs.end(), rings))
      throw InputError({path_, 1}, "no <graph id=\"0\"> with channels: the rings are missing");
    return graphs;
  }

 private:
  SourceLine next_line(const std::string& tag) {
    const auto& lines = lines_[tag];
    const std::size_t at = seen_[tag]++;
    return {path_, at < lines.size() ? lines[at] : 0};
  }
  static std::uint32_t number(const Tree& of, const char* key, std::uint64_t most, const SourceLine& where) {
    return static_cast<std::uint32_t>(whole_number(of.get(fmt::format("<xmlattr>.{}", key), ""), 0, most, key, where));
  }
  static double speed(const Tree& of, const char* key, const SourceLine& where) {
    const auto value = of.get_optional<double>(fmt::format("<xmlattr>.{}", key));
    if (!value || !(*value >= 0))
      throw InputError(where, fmt::format("{}: found '{}'; GB/s of a channel are due, such as {}=\"20\"", key,
                                          of.get(fmt::format("<xmlattr>.{}", key), ""), key));
    return *value;
  }

  Graph graph(const Tree& of) {
    const SourceLine where = next_line("graph");
    Graph graph;
    graph.id = number(of, "id", 15, where);
    graph.pattern = number(of, "pattern", 6, where);
    graph.cross_nic = number(of, "crossnic", 2, where);
    graph.intra = speed(of, "speedintra", where);
    graph.inter = speed(of, "speedinter", where);
    graph.intra_type = of.get("<xmlattr>.typeintra", "");
    graph.inter_type = of.get("<xmlattr>.typeinter", "");
    graph.same_channels = number(of, "samechannels", 1, where) != 0;
    for (const auto& [tag, child] : of)
      if (tag == "channel") graph.channels.push_back(channel(child));
    return graph;
  }

  /// A NIC, the GPUs in order, a NIC.
  Graph::Channel channel(const Tree& of) {
    const SourceLine where = next_line("channel");
    Graph::Channel channel;
    for (const auto& [tag, child] : of) {
      if (tag == "gpu") {
        channel.gpus.push_back(number(child, "dev", design_.gpus - 1, next_line("gpu")));
      } else if (tag == "net") {
        const SourceLine line = next_line("net");
        if (design_.nics.empty()) throw InputError(line, "a channel with a NIC, and the server has none");
        (channel.gpus.empty() ? channel.net_in : channel.net_out) = number(child, "dev", design_.nics.size() - 1, line);
      }
    }
    if (channel.gpus.empty()) throw InputError(where, "a channel without a <gpu>");
    return channel;
  }

  const ServerDesign& design_;
  std::string path_;
  std::string text_;
  std::map<std::string, std::vector<int>> lines_;
  std::map<std::string, std::size_t> seen_;
};

}  // namespace

std::vector<ServerDesign::GivenGraph> read_nccl_graphs(const Spec& name, const ServerDesign& design) {
  return GraphReader(name, design).read();
}

}  // namespace weft
