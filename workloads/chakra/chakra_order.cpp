// SPDX-License-Identifier: GPL-2.0-only
// Nodes of a Chakra trace in an order in which each node follows those that it depends on.
#include "workloads/chakra/chakra_order.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {
namespace {

/// Numbers of operations are below: the executor packs them.
constexpr std::uint64_t end_of_numbers = std::uint64_t{1} << 47;

InputError given_twice(const std::string& file, const ChakraNode& node) {
  return node_error(file, node, "another node has this id, too; ids of a file are all different");
}

}  // namespace

ChakraOrder::ChakraOrder(std::unique_ptr<ChakraStream> stream, Options options, std::string file)
    : stream_(std::move(stream)), options_(std::move(options)), file_(std::move(file)) {}

std::vector<std::uint64_t> ChakraOrder::dependencies_of(const ChakraNode& node) const {
  std::vector<std::uint64_t> all = node.data_dependencies;
  if (options_.control_dependencies)
    all.insert(all.end(), node.control_dependencies.begin(), node.control_dependencies.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::erase_if(all, [this](std::uint64_t id) {
    return std::binary_search(options_.missing.begin(), options_.missing.end(), id);
  });
  return all;
}

void ChakraOrder::add(ChakraNode node) {
  const std::uint64_t id = node.id;
  if (given_.contains(id) || waiting_.contains(id) || ready_.contains(id)) throw given_twice(file_, node);
  std::size_t unresolved = 0;
  for (const std::uint64_t dependency : dependencies_of(node)) {
    if (dependency == id) throw node_error(file_, node, "it depends on itself");
    if (given_.contains(dependency)) continue;
    dependents_[dependency].push_back(id);
    ++unresolved;
  }
  if (unresolved == 0)
    ready_.emplace(id, std::move(node));
  else
    waiting_.emplace(id, Waiting{std::move(node), unresolved});
}

void ChakraOrder::fill() {
  while (!exhausted_ && (ready_.empty() || ready_.size() + waiting_.size() < options_.window)) {
    if (waiting_.size() >= options_.farthest) complain();
    ChakraNode node;
    exhausted_ = !stream_->next(node);
    if (!exhausted_) add(std::move(node));
  }
}

// The node with the smallest id, so that the message is always the same.
void ChakraOrder::complain() const {
  const Waiting* first = nullptr;
  for (const auto& [id, waiting] : waiting_)
    if (first == nullptr || id < first->node.id) first = &waiting;
  for (const std::uint64_t id : dependencies_of(first->node)) {
    if (given_.contains(id)) continue;
    if (!exhausted_)
      throw node_error(file_, first->node,
                       fmt::format("it depends on node {}, which does not come, or cannot start, within the next {} "
                                   "nodes; write the file in the order of dependencies",
                                   id, options_.farthest));
    throw node_error(
        file_, first->node,
        fmt::format(
            "it depends on node {}, and that one, directly or not, on it: {} nodes of the file can never start{}", id,
            waiting_.size(),
            options_.control_dependencies
                ? "; `dependencies: data` leaves out the control dependencies, as Chakra's own feeder did"
                : ""));
  }
  throw node_error(file_, first->node, "it can never start");
}

// Numbers increase and are the ids as long as these do.
std::uint64_t ChakraOrder::give_number(std::uint64_t id) {
  const std::uint64_t number = id >= next_number_ && id < end_of_numbers ? id : next_number_;
  if (number != id) renumbered_.emplace(id, number);
  next_number_ = number + 1;
  return number;
}

bool ChakraOrder::next(ChakraNode& node, std::uint64_t& number, std::vector<std::uint64_t>& after) {
  fill();
  if (ready_.empty()) {
    if (waiting_.empty()) return false;
    complain();
  }
  node = std::move(ready_.extract(ready_.begin()).mapped());
  after = dependencies_of(node);
  for (std::uint64_t& id : after)
    if (const auto other = renumbered_.find(id); other != renumbered_.end()) id = other->second;
  number = give_number(node.id);
  given_.insert(node.id);
  const auto dependents = dependents_.find(node.id);
  if (dependents == dependents_.end()) return true;
  for (const std::uint64_t id : dependents->second) {
    const auto waiting = waiting_.find(id);
    if (--waiting->second.unresolved > 0) continue;
    ready_.emplace(id, std::move(waiting->second.node));
    waiting_.erase(waiting);
  }
  dependents_.erase(dependents);
  return true;
}

ChakraSurvey survey_chakra(ChakraStream& stream, bool control_dependencies, const std::string& file,
                           const std::function<void(const ChakraNode&)>& look) {
  ChakraSurvey survey;
  IdSet seen;
  struct Wanted {
    bool data = false;
    std::uint64_t by = 0;
    std::string name;
  };
  std::map<std::uint64_t, Wanted> wanted;  // and not yet seen
  const auto want = [&](std::uint64_t id, const ChakraNode& by, bool data) {
    if (seen.contains(id)) return;
    Wanted& entry = wanted[id];
    if (!data || entry.data) return;
    entry = {true, by.id, printable_name(by)};
  };
  std::uint64_t last = 0;
  for (ChakraNode node; stream.next(node); ++survey.nodes) {
    if (!seen.insert(node.id)) throw given_twice(file, node);
    if (wanted.erase(node.id) > 0 || node.id < last) survey.in_order = false;
    last = node.id;
    for (const std::uint64_t id : node.data_dependencies) want(id, node, true);
    if (control_dependencies)
      for (const std::uint64_t id : node.control_dependencies) want(id, node, false);
    look(node);
  }
  for (const auto& [id, entry] : wanted) {
    if (entry.data)
      throw InputError({file, 0}, fmt::format("node {} '{}': it needs the data of node {}, which is not in the file",
                                              entry.by, entry.name, id));
    survey.missing.push_back(id);
  }
  return survey;
}

}  // namespace weft
