// SPDX-License-Identifier: GPL-2.0-only
// Topologies of htsim: fat-trees of two or three tiers (github.com/Broadcom/csg-htsim,
// sim/datacenter/fat_tree_topology.cpp).
#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

#include "topologies/families/tree_assembly.hpp"
#include "topologies/files/listed_machine.hpp"
#include "topologies/files/machine_file.hpp"

namespace weft {
namespace {

struct Tier {
  std::map<std::string, std::pair<std::uint64_t, SourceLine>> values;
  SourceLine where;
};

std::string lower(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

/// Tier 0 are the switches of the hosts. Podsize are the hosts below one set of tier-1 switches.
class HtsimReader {
 public:
  HtsimReader(const std::string& text, std::string path) : path_(std::move(path)) { parse(text); }

  Topology read() {
    const SourceLine file{path_, 0};
    if (tiers_.size() != 2 && tiers_.size() != 3)
      throw InputError(file, fmt::format("found {} tiers; expected 2 or 3", tiers_.size()));
    if (heads_.count("nodes") == 0) throw InputError(file, "'Nodes' is missing: the number of hosts");
    const std::uint64_t nodes = head("nodes");
    const bool three = tiers_.size() == 3;
    const std::uint64_t pod = three ? head("podsize") : nodes;
    const std::uint64_t tor_down = value(0, "radix_down");
    divide(pod, tor_down, 0, "radix_down", three ? "Podsize" : "Nodes");
    TreeShape shape;
    shape.m = {narrow(tor_down), narrow(pod / tor_down)};
    shape.p = {1, bundle(1)};
    shape.w = {1, narrow(divide(value(0, "radix_up"), bundle(1), 0, "radix_up", "Bundle of tier 1"))};
    expect(1, "radix_down", pod / tor_down * bundle(1), "switches of tier 0 below it, times its Bundle");
    if (three) {
      shape.m.push_back(narrow(divide(nodes, pod, 0, "radix_down", "Podsize")));
      shape.p.push_back(bundle(2));
      shape.w.push_back(narrow(divide(value(1, "radix_up"), bundle(2), 1, "radix_up", "Bundle of tier 2")));
      expect(2, "radix_down", nodes / pod * bundle(2), "pods, times its Bundle");
    }
    return assemble_tree(
        std::move(shape), links(), class_names(three),
        three ? std::vector<std::string>{"edge", "aggregation", "core"} : std::vector<std::string>{"leaf", "spine"});
  }

 private:
  void parse(const std::string& text) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      const SourceLine where{path_, ++number};
      const auto words = split_words(line, '#');
      if (words.empty()) continue;
      if (words.size() != 2)
        throw InputError(where, fmt::format("found {} words; expected 'Key number'", words.size()));
      const std::string key = lower(words[0]);
      const std::uint64_t value = whole_number(words[1], 0, std::uint64_t{1} << 40, words[0], where);
      if (key == "tier") {
        if (value != tiers_.size())
          throw InputError(where,
                           fmt::format("found tier {}; expected tier {}, in ascending order", value, tiers_.size()));
        tiers_.push_back({{}, where});
      } else {
        add(words[0], key, value, where);
      }
    }
    if (heads_.count("tiers") != 0 && head("tiers") != tiers_.size())
      throw InputError(heads_["tiers"].second,
                       fmt::format("says {} tiers, but there are {}", head("tiers"), tiers_.size()));
  }

  void add(const std::string& word, const std::string& key, std::uint64_t value, const SourceLine& where) {
    static const std::vector<std::string> of_file = {"nodes", "tiers", "podsize"};
    // Queues are the network's (network.buffer), not the machine's.
    static const std::vector<std::string> of_tier = {
        "downlink_speed_gbps", "radix_down", "radix_up",          "queue_down",         "queue_up",
        "oversubscribed",      "bundle",     "switch_latency_ns", "downlink_latency_ns"};
    const auto& known = tiers_.empty() ? of_file : of_tier;
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw InputError(where, fmt::format("unknown key '{}'{}", word, did_you_mean(key, known)));
    auto& place = tiers_.empty() ? heads_ : tiers_.back().values;
    if (!place.emplace(key, std::pair(value, where)).second)
      throw InputError(where, fmt::format("'{}' is given twice", word));
    if (key == "switch_latency_ns" && value != 0)
      throw InputError(where, fmt::format("found {} ns; the latency of switches is network.switch_latency of the "
                                          "experiment; expected 0",
                                          value));
  }

  std::uint64_t head(const std::string& key) const {
    const auto at = heads_.find(key);
    if (at == heads_.end()) throw InputError(SourceLine{path_, 0}, fmt::format("'{}' is missing", key));
    return at->second.first;
  }
  std::uint64_t value(std::size_t tier, const std::string& key) const {
    const auto at = tiers_[tier].values.find(key);
    if (at == tiers_[tier].values.end())
      throw InputError(tiers_[tier].where, fmt::format("tier {} does not say its '{}'", tier, key));
    if (at->second.first == 0) throw InputError(at->second.second, "found 0; expected 1 or more");
    return at->second.first;
  }
  std::uint32_t bundle(std::size_t tier) const {
    return tiers_[tier].values.count("bundle") != 0 ? narrow(value(tier, "bundle")) : 1;
  }
  static std::uint32_t narrow(std::uint64_t number) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, max_nodes));
  }

  std::uint64_t divide(std::uint64_t number, std::uint64_t by, std::size_t tier, const std::string& key,
                       const std::string& what) const {
    if (number == 0 || number % by != 0) {
      const auto at = tiers_[tier].values.find(key);
      throw InputError(at != tiers_[tier].values.end() ? at->second.second : tiers_[tier].where,
                       fmt::format("{} and {} of tier {} do not divide: {} by {}", what, key, tier, number, by));
    }
    return number / by;
  }
  void expect(std::size_t tier, const std::string& key, std::uint64_t expected, const std::string& what) const {
    if (value(tier, key) != expected)
      throw InputError(tiers_[tier].values.at(key).second,
                       fmt::format("found {}; expected {}: {}", value(tier, key), expected, what));
  }

  std::vector<LinkSpec> links() const {
    std::vector<LinkSpec> result;
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier)
      result.push_back({Bandwidth::from_gbps(static_cast<std::int64_t>(value(tier, "downlink_speed_gbps"))),
                        Time::from_ns(static_cast<std::int64_t>(value(tier, "downlink_latency_ns")))});
    return result;
  }
  static std::vector<std::string> class_names(bool three) {
    std::vector<std::string> names = {"host", "tier 0-1"};
    if (three) names.emplace_back("tier 1-2");
    return names;
  }

  std::string path_;
  std::map<std::string, std::pair<std::uint64_t, SourceLine>> heads_;
  std::vector<Tier> tiers_;
};

class Htsim final : public MachineFormat {
 public:
  std::string ending() const override { return ".topo"; }
  Topology read(const std::string& text, const std::string& path) const override {
    return HtsimReader(text, path).read();
  }
};

const Registration<MachineFormat, Htsim> read_htsim_registration("htsim", "fat-tree of htsim, two or three tiers");

}  // namespace
}  // namespace weft
