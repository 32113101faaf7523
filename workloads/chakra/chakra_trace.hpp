// SPDX-License-Identifier: GPL-2.0-only
// A Chakra trace of all ranks: what its nodes mean as operations, and what all files together have to agree on.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/program/workload.hpp"
#include "workloads/chakra/chakra_order.hpp"
#include "workloads/chakra/open_messages.hpp"
#include "workloads/reading/device.hpp"
#include "workloads/reading/message_lanes.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {

using NamedGroup = std::pair<std::string, std::vector<std::uint32_t>>;  ///< a process group's name, and its ranks

/// The experiment's settings of a trace.
struct ChakraOptions {
  bool as_astra_sim = true;      ///< `issue`; otherwise by dependencies and streams
  bool ready_first = false;      ///< `issue: ready`: one computation at a time, the first that is ready
  bool in_time = false;          ///< `issue: times`: by dependencies and streams, in the order of `not_before`
  std::optional<bool> control;   ///< `dependencies`: all or data; absent: as the schema has it
  std::optional<Device> device;  ///< for compute nodes with num_ops and without a duration
  std::string precision;         ///< of the device
  Time memory_latency;           ///< of memory nodes
  std::optional<Bandwidth> memory_rate;
  CollectiveSettings collectives;
  std::map<CollectiveKind, std::string> algorithms;  ///< instead of that of `collectives`
  std::vector<NamedGroup> groups;                    ///< for all ranks, in the order of the file
  std::size_t read_ahead = 4096;
};

/// A file of the trace: of one rank.
struct ChakraFile {
  std::string path;
  std::string content;  ///< instead of the path's file, if not empty: of tests
  ByteSource open() const { return content.empty() ? ByteSource(path) : ByteSource(path, content); }
};

/// A collective as a node has it: position of its communicator, kind, size and root.
struct ChakraShape {
  std::uint32_t communicator = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t size = 0;
  std::uint32_t root = 0;
  auto operator<=>(const ChakraShape&) const = default;
};

/// Read from end to end when it is made: what does not agree is an InputError then. Processes that share the reading
/// read the files of a block of ranks each, and give each other what all have to know. Memory: a few bytes for each
/// collective call and process group of all ranks, and for each (source, destination, tag) that ends at the block;
/// nothing for a node.
class ChakraTrace {
 public:
  ChakraTrace(std::vector<ChakraFile> files, ChakraOptions options, const Spec& where, const WorkloadContext& context);

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(files_.size()); }
  const ChakraOptions& options() const { return options_; }
  std::uint64_t call_count() const { return call_count_; }
  CollectiveCall call(std::uint32_t id) const;
  /// The same one for all ranks that have it at the time.
  std::shared_ptr<const CollectiveCall> shared_call(std::uint32_t id) const;
  WorkloadEstimate estimate() const;
  std::vector<std::pair<std::string, std::string>> description() const;

  /// The operations of one rank, node by node.
  class Walk {
   public:
    Walk(const ChakraTrace& trace, std::uint32_t rank);
    /// False at the end. A collective's `call` is not set: `shape` says what it is, and `number` which of its
    /// communicator's it is on this rank.
    bool next(Operation& operation, ChakraNode& node, std::optional<ChakraShape>& shape, std::uint32_t& number);

   private:
    void translate(const ChakraNode& node, Operation& operation, std::optional<ChakraShape>& shape);
    void translate_compute(const ChakraNode& node, Operation& operation) const;
    void translate_memory(const ChakraNode& node, Operation& operation) const;
    void translate_message(const ChakraNode& node, Operation& operation) const;
    void translate_collective(const ChakraNode& node, Operation& operation, std::optional<ChakraShape>& shape) const;
    std::uint32_t peer_of(const ChakraNode& node, const std::optional<std::int64_t>& given) const;
    void choose_stream(const ChakraNode& node, Operation& operation);
    InputError error(const ChakraNode& node, const std::string& message) const;

    const ChakraTrace& trace_;
    std::uint32_t rank_;
    Time latest_;  // not_before
    const std::map<std::string, std::uint32_t>& groups_;
    Worker processor_;  // which the processor's time counts as: without an accelerator, it is what computes
    ChakraOrder order_;
    std::map<std::uint32_t, std::uint32_t> collectives_;                     // communicator -> so far
    std::map<std::pair<bool, std::int64_t>, std::uint64_t> last_of_stream_;  // on the processor, number -> operation
  };

  std::uint32_t call_id(const ChakraShape& shape, std::uint32_t number) const {
    const std::uint32_t place = first_call_[shape.communicator] + number;
    return id_of_place_.empty() ? place : id_of_place_[place];
  }

 private:
  using Group = NamedGroup;  ///< no members: all ranks
  struct RankFacts {
    bool control = true;
    bool in_order = false;    // ChakraSurvey::in_order
    bool has_device = false;  // a compute node of an accelerator
    std::vector<std::uint64_t> missing;
    std::vector<Group> listed;                    // in the order of the file
    std::map<std::string, std::uint32_t> groups;  // name -> communicator
    /// Messages without a peer: process group, tag, bytes, whether they are sent -> how many.
    std::map<std::tuple<std::string, std::int64_t, std::int64_t, bool>, std::uint64_t> open;
  };
  /// Whether a node does not say what to communicate, or is on the processor: then it only takes its duration.
  static bool is_only_time(const ChakraNode& node) {
    return node.type == ChakraType::collective && (node.on_cpu || (!node.comm_type && !node.comm_size));
  }
  RankFacts survey(std::uint32_t rank) const;
  void survey_block();
  void share_groups();
  void find_groups(RankFacts& facts) const;
  void find_open_peers();
  const RankFacts& facts(std::uint32_t rank) const;
  void read_groups(const ChakraNode& node, std::uint32_t rank, std::vector<Group>& listed) const;
  bool is_world(const Group& group) const;
  std::uint32_t communicator_of(Group group);
  std::optional<std::uint32_t> find_group(const std::map<std::string, std::uint32_t>& own,
                                          const std::string& name) const;
  static std::string kind_text(const ChakraNode& node);
  std::vector<std::pair<ChakraNode, std::int64_t>> messages_of(std::uint32_t rank, const MessageLanes::Key& key,
                                                               Operation::Kind kind) const;
  void walk_block(const Spec& where, const WorkloadContext& context);
  void walk(std::uint32_t rank, const Spec& where, const WorkloadContext& context);
  void count_call(std::uint32_t rank, const ChakraNode& node, const ChakraShape& shape, std::uint32_t number,
                  const Spec& where, const WorkloadContext& context);
  void share_calls(const Spec& where, const WorkloadContext& context);
  void share_counts();
  [[noreturn]] void complain_of_call(std::uint32_t communicator, std::uint32_t number, const ChakraShape& other) const;
  InputError other_call(std::uint32_t rank, const ChakraNode& node, std::uint32_t number, const ChakraShape& mine,
                        const ChakraShape& other) const;
  std::uint32_t settled(const ChakraShape& shape, const std::function<InputError(const std::string&)>& error,
                        const std::string& file, const Spec& where, const WorkloadContext& context);
  void number_calls(const Spec& where);
  void estimate_calls();
  void require_all_members() const;
  void require_matching() const;
  std::string text_of(const ChakraShape& shape) const;

  friend class Walk;
  std::vector<ChakraFile> files_;
  ChakraOptions options_;
  std::shared_ptr<const SharedReading> sharing_;
  SharedReading::Block block_;                          // of ranks, whose files this process has read
  mutable std::map<std::uint32_t, RankFacts> facts_;    // of these, and of others that have been asked for
  std::map<std::string, std::uint32_t> groups_of_all_;  // name -> communicator
  std::deque<Communicator> communicators_;              // addresses stay; [0] is all ranks
  std::vector<std::string> names_;                      // of communicators
  std::map<Group, std::uint32_t> known_;
  OpenMessages open_messages_;
  std::vector<std::vector<std::uint32_t>> calls_;  // [communicator] number -> settled_
  std::vector<std::uint32_t> first_call_;          // [communicator]
  std::uint64_t call_count_ = 0;
  // If all nodes say which call theirs is: by place, which is first_call_ and the number in the communicator.
  std::vector<std::uint32_t> id_of_place_, place_of_id_;
  std::map<ChakraShape, std::uint32_t> shapes_;  // -> settled_
  std::deque<CollectiveCall> settled_;           // without id and label
  std::vector<ChakraShape> settled_shapes_;
  std::vector<std::uint64_t> times_settled_;  // [settled_] calls

  // While it runs: calls that operations have.
  mutable std::unordered_map<std::uint32_t, std::weak_ptr<const CollectiveCall>> live_calls_;
  mutable std::size_t most_live_calls_ = 64;  // with as many, those are removed that nobody has any more

  // While it is read
  std::vector<std::vector<std::uint32_t>> given_ids_;  // [communicator] number -> id that the node says, or no_id
  static constexpr std::uint32_t no_id = 0xffffffffU;
  std::vector<std::map<std::uint32_t, std::uint32_t>> calls_of_members_;  // [communicator] rank -> calls
  MessageLanes lanes_;

  std::map<std::string, std::uint64_t> counted_;  // what the nodes are -> how many
  std::uint64_t missing_dependencies_ = 0;
  std::uint64_t without_control_ = 0;  // files
  std::uint64_t messages_ = 0;
  unsigned __int128 bytes_ = 0;
  Time busiest_;
};

}  // namespace weft
