// SPDX-License-Identifier: GPL-2.0-only
// GOAL schedules in binary form, as txt2bin of LogGOPSim writes them (github.com/spcl/LogGOPSim
// src/LogGOPSim/Parser.hpp, Graph::serialize_mmap): little endian, without gaps.
#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "workloads/importers/goal_file.hpp"
#include "workloads/importers/goal_order.hpp"

namespace weft {
namespace {

constexpr std::uint64_t goal_magic = 4223;
constexpr std::uint64_t goal_magic_of_used_up = 2342;
constexpr std::uint64_t before_goal_offsets = 8;  ///< offsets count from behind the magic number
constexpr std::uint64_t goal_head_bytes = 14;     ///< magic number, ranks, largest cpu, largest nic
constexpr std::uint64_t goal_node_bytes = 39;

/// Bytes of a rank's part of the file.
struct GoalExtent {
  std::uint64_t begin = 0, end = 0;
};

/// Fixed-width numbers one after another.
class GoalFields {
 public:
  explicit GoalFields(ByteSource source) : source_(std::move(source)) {}
  void go_to(std::uint64_t byte) { source_.skip_to(byte); }
  std::uint64_t take(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) {
      const int byte = source_.get();
      if (byte == ByteSource::end) throw source_.error("the file ends in the middle; it has been cut off");
      value |= static_cast<std::uint64_t>(byte) << (8 * i);
    }
    return value;
  }
  std::uint32_t word() { return static_cast<std::uint32_t>(take(4)); }
  InputError error(const std::string& message) const { return source_.error(message); }
  const std::string& name() const { return source_.name(); }

 private:
  ByteSource source_;
};

InputError goal_node_error(const std::string& file, std::uint32_t rank, std::uint32_t node,
                           const std::string& message) {
  return InputError({file, 0}, fmt::format("rank {}, node {}: {}", rank, node, message));
}

/// A node and the nodes that wait for it.
struct GoalNode {
  std::uint32_t dependencies = 0;
  GoalOperation operation;
  std::vector<std::uint32_t> dependents;  ///< with goal_at_start
};

/// The nodes of one rank in the order of the file: two places in it move on side by side, that of the nodes and that of
/// the lists of those that wait for them.
class GoalNodes {
 public:
  GoalNodes(const GoalContent& content, const GoalExtent& extent, std::uint32_t rank, std::uint32_t ranks)
      : nodes_(content()), lists_(content()), rank_(rank), ranks_(ranks) {
    nodes_.go_to(extent.begin);
    count_ = nodes_.word();
    const std::uint64_t roots = nodes_.word();
    const std::uint64_t first = extent.begin + 8 + 4 * roots, lists = first + goal_node_bytes * count_;
    if (count_ > max_goal_operations || lists > extent.end || (extent.end - lists) % 4 != 0)
      throw InputError({nodes_.name(), 0},
                       fmt::format("rank {}: {} nodes, {} of them without dependencies, do not fit into the {} bytes "
                                   "that the file's table gives the rank",
                                   rank, count_, roots, extent.end - extent.begin));
    edges_ = (extent.end - lists) / 4;
    nodes_.go_to(first);
    lists_.go_to(lists);
  }

  bool next(GoalNode& node) {
    if (number_ == count_) {
      if (listed_ != edges_)
        throw InputError(
            {nodes_.name(), 0},
            fmt::format("rank {}: its nodes have {} dependents, and {} are in the file", rank_, listed_, edges_));
      return false;
    }
    node.dependencies = nodes_.word();
    node.operation = operation();
    node.dependents.clear();
    add_dependents(node, 0);
    add_dependents(node, goal_at_start);
    ++number_;
    return true;
  }

 private:
  InputError error(const std::string& message) const { return goal_node_error(nodes_.name(), rank_, number_, message); }

  GoalOperation operation() {
    GoalOperation result;
    result.place = number_;
    const auto type = nodes_.take(1);
    result.peer = nodes_.word();
    const std::uint64_t size = nodes_.take(8);
    result.tag = nodes_.word();
    result.cpu = static_cast<std::uint8_t>(nodes_.take(1));
    result.nic = static_cast<std::uint8_t>(nodes_.take(1));
    if (type < 1 || type > 3)
      throw error(fmt::format("found the type {}; 1 (send), 2 (recv) and 3 (calc) are known", type));
    result.kind = type == 1 ? Operation::Kind::send : type == 2 ? Operation::Kind::recv : Operation::Kind::compute;
    if (size >= std::uint64_t{1} << 63) throw error(fmt::format("the size is {}; expected less than 2^63", size));
    result.size = static_cast<std::int64_t>(size);
    if (result.kind == Operation::Kind::compute) {
      result.peer = result.tag = result.nic = 0;
      return result;
    }
    if (result.kind == Operation::Kind::send && result.tag == goal_any)
      throw error("a send with any tag (-1); a recv alone may have that");
    if (result.kind == Operation::Kind::recv && result.peer == goal_any) return result;
    if (result.peer >= ranks_)
      throw error(fmt::format("rank {} is out of range: the file has ranks 0 to {}", result.peer, ranks_ - 1));
    if (result.peer == rank_) throw error("a message of a rank to itself; expected another one");
    return result;
  }

  // A list without entries may have any beginning.
  void add_dependents(GoalNode& node, std::uint32_t kind) {
    const std::uint32_t count = nodes_.word(), first = nodes_.word();
    if (count == 0) return;
    if (first != listed_)
      throw error(fmt::format("its dependents begin at {}; expected {}: the lists stand in the order of the nodes",
                              first, listed_));
    if (count > edges_ - listed_) throw error(fmt::format("it has {} dependents, more than the file", count));
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t dependent = lists_.word();
      if (dependent >= count_)
        throw error(fmt::format("node {} waits for it; there are nodes 0 to {}", dependent, count_ - 1));
      if (dependent == number_) throw error("the operation waits, through others or directly, for itself");
      node.dependents.push_back(dependent | kind);
    }
    listed_ += count;
  }

  GoalFields nodes_, lists_;
  std::uint32_t rank_, ranks_;
  std::uint32_t count_ = 0;
  std::uint32_t number_ = 0;
  std::uint64_t edges_ = 0;
  std::uint64_t listed_ = 0;
};

InputError wrong_goal_count(const std::string& file, std::uint32_t rank, std::uint32_t node, std::uint32_t said,
                            std::size_t found) {
  return goal_node_error(file, rank, node, fmt::format("it says that it waits for {} nodes; {} say so", said, found));
}

/// Nodes that all follow those that they wait for. Memory: waits of nodes that have not been read yet.
class GoalNodeStream final : public GoalStream {
 public:
  GoalNodeStream(GoalNodes nodes, std::string file, std::uint32_t rank)
      : nodes_(std::move(nodes)), file_(std::move(file)), rank_(rank) {}

  bool next(GoalOperation& operation, std::vector<std::uint32_t>& dependencies) override {
    if (!nodes_.next(node_)) return false;
    operation = node_.operation;
    dependencies.clear();
    if (const auto found = waits_.find(operation.place); found != waits_.end()) {
      dependencies = std::move(found->second);
      waits_.erase(found);
    }
    if (dependencies.size() != node_.dependencies)
      throw wrong_goal_count(file_, rank_, operation.place, node_.dependencies, dependencies.size());
    for (const std::uint32_t dependent : node_.dependents)
      waits_[dependent & ~goal_at_start].push_back(operation.place | (dependent & goal_at_start));
    return true;
  }

 private:
  GoalNodes nodes_;
  std::string file_;
  std::uint32_t rank_;
  GoalNode node_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> waits_;  // looked up by node
};

class BinaryGoal final : public GoalFile {
 public:
  explicit BinaryGoal(GoalContent content) : content_(std::move(content)) {
    GoalFields fields(content_());
    name_ = fields.name();
    if (fields.take(8) == goal_magic_of_used_up)
      throw fields.error(
          "a simulator has overwritten the file (LogGOPSim --save-mem writes into it); make it again from its text");
    const std::uint32_t ranks = fields.word();
    if (ranks == 0 || ranks > max_goal_operations)
      throw fields.error(fmt::format("{} ranks; expected 1 to {}", ranks, max_goal_operations));
    fields.take(2);
    const std::uint64_t first = goal_head_bytes + 16 * std::uint64_t{ranks};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      GoalExtent extent{fields.take(8), fields.take(8)};
      constexpr std::uint64_t max = std::uint64_t{1} << 62;
      if (extent.begin > extent.end || extent.end > max || extent.begin + before_goal_offsets < first)
        throw fields.error(
            fmt::format("the part of rank {} is from {} to {}, which cannot be", rank, extent.begin, extent.end));
      extents_.push_back({extent.begin + before_goal_offsets, extent.end + before_goal_offsets});
    }
    order_.resize(ranks, Order::unknown);
  }

  std::uint32_t ranks() const override { return static_cast<std::uint32_t>(extents_.size()); }

  std::unique_ptr<GoalStream> stream(std::uint32_t rank) override {
    if (order_[rank] == Order::unknown) order_[rank] = look(rank);
    if (order_[rank] == Order::by_dependencies) return std::make_unique<GoalNodeStream>(nodes(rank), name_, rank);
    const auto [at, fresh] = sorted_.try_emplace(rank);
    if (fresh) at->second = sort(rank);
    return goals_.stream(at->second);
  }

  InputError error(std::uint32_t rank, const GoalOperation& operation, const std::string& message) const override {
    return goal_node_error(name_, rank, operation.place, message);
  }
  std::string text_of_place(const GoalOperation& operation) const override {
    return fmt::format("node {}", operation.place);
  }

 private:
  enum class Order : std::uint8_t { unknown, by_dependencies, any };

  GoalNodes nodes(std::uint32_t rank) const { return {content_, extents_[rank], rank, ranks()}; }

  Order look(std::uint32_t rank) const {
    GoalNodes all = nodes(rank);
    for (GoalNode node; all.next(node);)
      for (const std::uint32_t dependent : node.dependents)
        if ((dependent & ~goal_at_start) < node.operation.place) return Order::any;
    return Order::by_dependencies;
  }

  /// A node and one that it waits for, with goal_at_start.
  struct Wait {
    std::uint32_t node, before;
    auto operator<=>(const Wait&) const = default;
  };
  /// Lists of dependents become lists of dependencies, on disk.
  SortedRecords<Wait> waits_of(std::uint32_t rank) const {
    SortedRecords<Wait> waits;
    GoalNodes all = nodes(rank);
    for (GoalNode node; all.next(node);)
      for (const std::uint32_t dependent : node.dependents)
        waits.add({dependent & ~goal_at_start, node.operation.place | (dependent & goal_at_start)});
    waits.sort();
    return waits;
  }

  ConvertedGoals::Part sort(std::uint32_t rank) {
    SortedRecords<Wait> waits = waits_of(rank);
    GoalSorting sorting;
    Wait wait{};
    bool more = waits.next(wait);
    std::vector<std::uint32_t> before;
    GoalNodes all = nodes(rank);
    for (GoalNode node; all.next(node);) {
      before.clear();
      for (; more && wait.node == node.operation.place; more = waits.next(wait)) before.push_back(wait.before);
      if (before.size() != node.dependencies)
        throw wrong_goal_count(name_, rank, node.operation.place, node.dependencies, before.size());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      sorting.add(node.operation, before);
    }
    return sorting.write(goals_, [this, rank](const GoalOperation& one, const std::string& message) {
      return error(rank, one, message);
    });
  }

  GoalContent content_;
  std::string name_;
  std::vector<GoalExtent> extents_;
  std::vector<Order> order_;
  ConvertedGoals goals_;                                  // that are not in order
  std::map<std::uint32_t, ConvertedGoals::Part> sorted_;  // [rank]
};

}  // namespace

std::unique_ptr<GoalFile> open_goal_binary(const GoalContent& content) { return std::make_unique<BinaryGoal>(content); }

}  // namespace weft
