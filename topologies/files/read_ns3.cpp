// SPDX-License-Identifier: GPL-2.0-only
// Physical topologies of ASTRA-sim's ns-3 backend, of HPCC's simulator, their origin, and of SimAI.
#include <sstream>

#include <fmt/format.h>

#include "topologies/files/listed_machine.hpp"
#include "topologies/files/machine_file.hpp"

namespace weft {
namespace {

/// HPCC (github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/mix): "nodes switches links", the numbers
/// of the switches, then "a b rate delay loss" per link. SimAI (github.com/aliyun/SimAI): "nodes gpus_per_server
/// nvswitches switches links gpu_type", the numbers of NVSwitches and then of switches, and the same links.
class Ns3TopologyReader {
 public:
  Ns3TopologyReader(const std::string& text, std::string path, bool simai)
      : lines_(text), path_(std::move(path)), simai_(simai) {}

  ListedMachine read() {
    read_counts();
    add_hosts();
    read_switches();
    for (std::uint64_t i = 0; i < links_; ++i) read_link(i);
    // ns-3 reads no further. Generators write an explanation of the format here.
    for (std::string line; std::getline(lines_, line);) {
      ++number_;
      const auto words = split_words(line, '#');
      if (words.size() == 5 && words[0].find_first_not_of("0123456789") == std::string::npos)
        throw InputError(here(), fmt::format("found more than the {} links of line 1", links_));
    }
    return std::move(machine_);
  }

 private:
  SourceLine here() const { return {path_, number_}; }

  /// The next line that is not empty.
  std::vector<std::string> next_words(const std::string& due) {
    for (std::string line; std::getline(lines_, line);) {
      ++number_;
      const auto words = split_words(line, '#');
      if (!words.empty()) return words;
    }
    throw InputError(here(), fmt::format("the file ends here; expected {}", due));
  }

  void read_counts() {
    const std::string due =
        simai_ ? "'nodes gpus_per_server nvswitches switches links gpu_type'" : "'nodes switches links'";
    const auto words = next_words(due);
    if (words.size() != (simai_ ? 6 : 3)) {
      const bool other = words.size() == (simai_ ? 3 : 6);
      throw InputError(
          here(), fmt::format("found {} words; expected {}{}", words.size(), due,
                              other ? fmt::format(" (format: {} reads such files)", simai_ ? "ns3" : "simai") : ""));
    }
    std::size_t at = 0;
    nodes_ = whole_number(words[at++], 1, max_nodes, "number of nodes", here());
    if (simai_) {
      gpus_per_server_ = whole_number(words[at++], 1, nodes_, "GPUs per server", here());
      nvswitches_ = whole_number(words[at++], 0, nodes_, "number of NVSwitches", here());
    }
    switches_ = whole_number(words[at++], 0, nodes_ - nvswitches_, "number of switches", here());
    links_ = whole_number(words[at++], 0, std::uint64_t{1} << 32, "number of links", here());
    if (nodes_ == nvswitches_ + switches_)
      throw InputError(here(), "all nodes are switches; at least 1 host is needed");
  }

  /// All nodes are hosts at first.
  void add_hosts() {
    for (std::uint32_t i = 0; i < nodes_; ++i) machine_.nodes[i] = {true, no_block, here()};
  }

  void read_switches() {
    const std::uint64_t count = nvswitches_ + switches_;
    for (std::uint64_t read = 0; read < count;) {
      for (const std::string& word : next_words(fmt::format("the numbers of {} switches", count))) {
        if (read == count)
          throw InputError(here(), fmt::format("found '{}' after the numbers of {} switches", word, count));
        const auto node = static_cast<std::uint32_t>(whole_number(word, 0, nodes_ - 1, "number of a switch", here()));
        if (!machine_.nodes[node].host) throw InputError(here(), fmt::format("switch {} is listed twice", node));
        machine_.nodes[node] = {false, no_block, here()};
        if (read < nvswitches_) nvswitch_numbers_.push_back(node);
        ++read;
      }
    }
    std::uint64_t hosts = 0;
    for (auto& [number, node] : machine_.nodes)
      if (simai_ && node.host) node.block = static_cast<std::uint32_t>(hosts++ / gpus_per_server_);
  }

  void read_link(std::uint64_t number) {
    const auto words = next_words(fmt::format("link {} of {}", number + 1, links_));
    if (words.size() != 5)
      throw InputError(here(),
                       fmt::format("found {} words; a link is 'node node rate delay loss', such as '0 8 400Gbps "
                                   "0.0005ms 0'",
                                   words.size()));
    ListedMachine::Link link;
    link.a = static_cast<std::uint32_t>(whole_number(words[0], 0, nodes_ - 1, "node", here()));
    link.b = static_cast<std::uint32_t>(whole_number(words[1], 0, nodes_ - 1, "node", here()));
    link.link = {listed_rate(words[2], here()), listed_delay(words[3], here())};
    if (words[4].find_first_not_of("0.") != std::string::npos)
      throw InputError(
          here(), fmt::format("found a loss rate of '{}'; expected 0, for machines are built without loss", words[4]));
    link.where = here();
    for (const std::uint32_t nvswitch : nvswitch_numbers_) {
      if (link.a != nvswitch && link.b != nvswitch) continue;
      link.link_class = "nvlink";
      // An NVSwitch belongs to the server of its GPUs.
      machine_.nodes[nvswitch].block = machine_.nodes[link.a == nvswitch ? link.b : link.a].block;
    }
    machine_.links.push_back(link);
  }

  std::istringstream lines_;
  std::string path_;
  bool simai_;
  int number_ = 0;
  std::uint64_t nodes_ = 0;
  std::uint64_t gpus_per_server_ = 1;
  std::uint64_t nvswitches_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t links_ = 0;
  std::vector<std::uint32_t> nvswitch_numbers_;
  ListedMachine machine_;
};

class Ns3 final : public MachineFormat {
 public:
  std::string ending() const override { return ".txt"; }
  Topology read(const std::string& text, const std::string& path) const override {
    return assemble_listed(Ns3TopologyReader(text, path, false).read());
  }
};

class Simai final : public MachineFormat {
 public:
  std::string ending() const override { return ""; }
  Topology read(const std::string& text, const std::string& path) const override {
    return assemble_listed(Ns3TopologyReader(text, path, true).read());
  }
};

const Registration<MachineFormat, Ns3> ns3("ns3", "physical topology of ASTRA-sim's ns-3 backend and of HPCC");
const Registration<MachineFormat, Simai> simai("simai", "topology of SimAI");

}  // namespace
}  // namespace weft
