// SPDX-License-Identifier: GPL-2.0-only
// Nodes of a Chakra trace in an order in which each node follows those that it depends on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "workloads/chakra/chakra_node.hpp"
#include "workloads/chakra/id_set.hpp"

namespace weft {

/// Of the nodes at hand, always the one with the smallest id whose dependencies have all been given. At hand are the
/// `window` next ones of the file, and more if none of these can go. Ids may be in any order, so long as no node stands
/// further than `farthest` nodes before one that it depends on.
class ChakraOrder {
 public:
  struct Options {
    bool control_dependencies = true;
    std::vector<std::uint64_t> missing;  ///< ascending: ids that are not in the file and count as done
    std::size_t window = 1024;
    std::size_t farthest = std::size_t{1} << 20;
  };
  ChakraOrder(std::unique_ptr<ChakraStream> stream, Options options, std::string file);

  /// False at the end. `after` are numbers that earlier calls have given. Throws InputError for two nodes of one id,
  /// and for nodes that wait for each other.
  bool next(ChakraNode& node, std::uint64_t& number, std::vector<std::uint64_t>& after);

 private:
  struct Waiting {
    ChakraNode node;
    std::size_t unresolved = 0;
  };
  void fill();
  void add(ChakraNode node);
  std::vector<std::uint64_t> dependencies_of(const ChakraNode& node) const;
  std::uint64_t give_number(std::uint64_t id);
  [[noreturn]] void complain() const;

  std::unique_ptr<ChakraStream> stream_;
  Options options_;
  std::string file_;
  bool exhausted_ = false;
  std::unordered_map<std::uint64_t, Waiting> waiting_;                        // looked up by id
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> dependents_;  // id -> nodes at hand that wait for it
  std::map<std::uint64_t, ChakraNode> ready_;
  IdSet given_;
  std::uint64_t next_number_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> renumbered_;  // ids whose number is another one
};

/// Facts from a first pass over all nodes of a file.
struct ChakraSurvey {
  std::uint64_t nodes = 0;
  /// Ids increase, and each node stands behind those that it depends on: this is also the order of ChakraOrder, which
  /// then has nothing to look ahead for.
  bool in_order = true;
  /// Ascending: ids that nodes depend on for control and that are not in the file: the converters leave out callers
  /// that they do not convert.
  std::vector<std::uint64_t> missing;
};

/// Throws InputError for a data dependency that is not in the file, and two nodes of one id. `look` sees each node.
ChakraSurvey survey_chakra(ChakraStream& stream, bool control_dependencies, const std::string& file,
                           const std::function<void(const ChakraNode&)>& look);

}  // namespace weft
