// SPDX-License-Identifier: GPL-2.0-only
// Machines that a file lists node by node and link by link.
#include "topologies/files/listed_machine.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "support/documents/text_file.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

class ListedAssembler {
 public:
  explicit ListedAssembler(const ListedMachine& machine) : machine_(machine) {}

  Topology assemble() {
    check_links();
    add_nodes();
    host_class_ = topology_.add_class("host");
    for (const auto& [number, rate] : own_rate_)
      topology_.add(host_class_, host_of_.at(number), switch_of_.at(number), rate, own_delay_.at(number));
    for (const ListedMachine::Link& link : machine_.links) {
      const bool of_host = !switch_of_.count(link.a) || !switch_of_.count(link.b);
      const std::string name = !link.link_class.empty() ? link.link_class : of_host ? "host" : "switch";
      topology_.add(class_number(name), end(link.a), end(link.b), link.link.rate, link.link.delay);
    }
    topology_.routing = "shortest_path";
    return std::move(topology_);
  }

 private:
  void check_links() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, SourceLine> seen;
    for (const ListedMachine::Link& link : machine_.links) {
      for (const std::uint32_t node : {link.a, link.b})
        if (machine_.nodes.count(node) == 0) throw InputError(link.where, fmt::format("there is no node {}", node));
      if (link.a == link.b) throw InputError(link.where, fmt::format("node {} is linked to itself", link.a));
      const auto [place, is_new] = seen.emplace(std::minmax(link.a, link.b), link.where);
      if (!is_new && !machine_.parallel_links)
        throw InputError(link.where,
                         fmt::format("nodes {} and {} are linked already (at {}); expected one link between "
                                     "two nodes, with the rate of all",
                                     link.a, link.b, place->second.text()));
      ++degree_[link.a];
      ++degree_[link.b];
    }
    for (const auto& [number, node] : machine_.nodes)
      if (degree_[number] == 0)
        throw InputError(node.where, fmt::format("{} {} has no link", node.host ? "host" : "switch", number));
  }

  void add_nodes() {
    for (const auto& [number, node] : machine_.nodes)
      if (node.host) host_of_[number] = topology_.graph.add_host(no_group, block(number, node));
    for (const auto& [number, node] : machine_.nodes) {
      if (!node.host) {
        switch_of_[number] = topology_.graph.add_switch(1, no_group, node.block);
      } else if (degree_[number] > 1) {
        switch_of_[number] = topology_.graph.add_switch(1, no_group, block(number, node));
        own_rate_[number] = Bandwidth();
        own_delay_[number] = Time::max();
      }
    }
    for (const ListedMachine::Link& link : machine_.links) {
      for (const std::uint32_t number : {link.a, link.b}) {
        if (own_rate_.count(number) == 0) continue;
        own_rate_[number] = Bandwidth::from_bps(own_rate_[number].bps() + link.link.rate.bps());
        own_delay_[number] = std::min(own_delay_[number], link.link.delay);
      }
    }
  }
  /// A host and its own switch are never taken apart.
  std::uint32_t block(std::uint32_t number, const ListedMachine::Node& node) {
    if (node.block != no_block || degree_[number] <= 1) return node.block;
    constexpr std::uint32_t beyond_servers = 1U << 30;
    return beyond_servers + number;
  }

  NodeId end(std::uint32_t number) const {
    const auto own = switch_of_.find(number);
    return own != switch_of_.end() ? own->second : host_of_.at(number);
  }

  std::uint8_t class_number(const std::string& name) {
    const auto& names = topology_.link_classes;
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? topology_.add_class(name) : static_cast<std::uint8_t>(at - names.begin());
  }

  const ListedMachine& machine_;
  std::map<std::uint32_t, std::uint32_t> degree_;
  std::map<std::uint32_t, NodeId> host_of_;
  std::map<std::uint32_t, NodeId> switch_of_;  ///< of switches, and of hosts with several links
  std::map<std::uint32_t, Bandwidth> own_rate_;
  std::map<std::uint32_t, Time> own_delay_;
  std::uint8_t host_class_ = 0;
  Topology topology_;
};

}  // namespace

Topology assemble_listed(const ListedMachine& machine) { return ListedAssembler(machine).assemble(); }

std::vector<std::string> split_words(const std::string& line, char comment) {
  std::istringstream text(line.substr(0, line.find(comment)));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

std::string read_text_file(const Spec& name, std::string& path) {
  path = (std::filesystem::path(name.where().file).parent_path() / name.text()).string();
  if (const std::string reason = why_closed(path); !reason.empty()) throw name.error(path + ": " + reason);
  return text_of_file(path);
}

std::uint64_t whole_number(const std::string& word, std::uint64_t min, std::uint64_t max, const std::string& what,
                           const SourceLine& where) {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc() || end != word.data() + word.size() || value < min || value > max)
    throw InputError(where, fmt::format("{}: found '{}'; expected a whole number from {} to {}", what, word, min, max));
  return value;
}

Bandwidth listed_rate(const std::string& word, const SourceLine& where) {
  QuantityError error;
  const auto rate = parse_bandwidth(word, error);
  if (!rate || *rate <= Bandwidth())
    throw InputError(where, fmt::format("rate: found '{}'; expected a rate above 0, such as 400Gbps", word));
  return *rate;
}

Time listed_delay(const std::string& word, const SourceLine& where) {
  QuantityError error;
  const auto delay = parse_time(word, error);
  if (!delay) throw InputError(where, fmt::format("delay: found '{}'; expected a time, such as 0.0005ms", word));
  if (*delay <= Time())
    throw InputError(where, "delay: zero delay links cannot be simulated in parallel; write at least '1ps'");
  return *delay;
}

}  // namespace weft
