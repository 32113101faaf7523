// SPDX-License-Identifier: GPL-2.0-only
// Turns the nodes of a Chakra trace into operations of a rank.
#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "units/text.hpp"
#include "workloads/chakra/chakra_trace.hpp"

namespace weft {
namespace {

/// CollectiveCommType of et_def.proto, in its order; REDUCE_SCATTER_BLOCK is a reduce-scatter.
constexpr CollectiveKind kinds_of_chakra[] = {CollectiveKind::all_reduce,     CollectiveKind::reduce,
                                              CollectiveKind::all_gather,     CollectiveKind::gather,
                                              CollectiveKind::scatter,        CollectiveKind::broadcast,
                                              CollectiveKind::all_to_all,     CollectiveKind::reduce_scatter,
                                              CollectiveKind::reduce_scatter, CollectiveKind::barrier};

}  // namespace

ChakraTrace::Walk::Walk(const ChakraTrace& trace, std::uint32_t rank)
    : trace_(trace),
      rank_(rank),
      groups_(trace.facts(rank).groups),
      processor_(trace.facts(rank).has_device ? Worker::host : Worker::device),
      order_(open_chakra(trace.files_[rank].open()),
             {trace.facts(rank).control, trace.facts(rank).missing,
              trace.facts(rank).in_order ? 1 : ChakraOrder::Options().window},
             trace.files_[rank].path) {}

InputError ChakraTrace::Walk::error(const ChakraNode& node, const std::string& message) const {
  return node_error(trace_.files_[rank_].path, node, message);
}

bool ChakraTrace::Walk::next(Operation& operation, ChakraNode& node, std::optional<ChakraShape>& shape,
                             std::uint32_t& number) {
  operation = Operation();
  shape.reset();
  if (!order_.next(node, operation.id, operation.after)) return false;
  operation.label = printable_name(node);
  operation.not_before = node.not_before;
  if (trace_.options_.in_time && node.not_before < latest_)
    throw error(node,
                fmt::format("it may start at {}, and a node before it at {}; with `issue: times` they stand in the "
                            "order of their times",
                            to_text(node.not_before), to_text(latest_)));
  latest_ = node.not_before;
  if (node.id != operation.id) operation.label += fmt::format(" (node {})", node.id);
  translate(node, operation, shape);
  if (shape) number = collectives_[shape->communicator]++;
  choose_stream(node, operation);
  return true;
}

void ChakraTrace::Walk::translate(const ChakraNode& node, Operation& operation, std::optional<ChakraShape>& shape) {
  operation.kind = Operation::Kind::compute;
  operation.worker = node.on_cpu ? processor_ : Worker::device;
  switch (node.type) {
    case ChakraType::invalid:
    case ChakraType::metadata:
      return;
    case ChakraType::memory_load:
    case ChakraType::memory_store:
      return translate_memory(node, operation);
    case ChakraType::compute:
    case ChakraType::storage:
    case ChakraType::batch:
    case ChakraType::checkpoint:  // work of the processor (settle_host_work)
      return translate_compute(node, operation);
    case ChakraType::send:
    case ChakraType::recv:
      return translate_message(node, operation);
    case ChakraType::collective:
      operation.duration = node.duration;
      if (!is_only_time(node)) translate_collective(node, operation, shape);
      return;
  }
}

void ChakraTrace::Walk::translate_compute(const ChakraNode& node, Operation& operation) const {
  operation.duration = node.duration;
  operation.flops = static_cast<double>(node.operations.value_or(0));
  if (node.duration > Time() || node.on_cpu || node.operations.value_or(0) == 0) return;
  const ChakraOptions& options = trace_.options_;
  if (!options.device)
    throw error(node, fmt::format("it has {} operations (num_ops) and no duration; give the workload a `device`, whose "
                                  "roofline says how long they take",
                                  *node.operations));
  operation.duration =
      roofline_time(*options.device, options.precision, operation.flops, Bytes(node.tensor_size.value_or(0)));
}

void ChakraTrace::Walk::translate_memory(const ChakraNode& node, Operation& operation) const {
  const ChakraOptions& options = trace_.options_;
  operation.duration = node.duration;
  if (!options.memory_rate) {
    if (node.duration > Time()) return;
    throw error(node,
                "a memory node without a duration; give the workload `memory: {latency: 1 us, bandwidth: 400 Gb/s}`");
  }
  operation.duration = bounded_sum(options.memory_latency,
                                   serialization_time(Bytes(node.tensor_size.value_or(0)), *options.memory_rate));
}

// The converter of PyTorch traces writes no peers. In a group of two there is only one, in others one may be certain.
std::uint32_t ChakraTrace::Walk::peer_of(const ChakraNode& node, const std::optional<std::int64_t>& given) const {
  const bool sends = node.type == ChakraType::send;
  const char* name = sends ? "comm_dst" : "comm_src";
  if (given) {
    if (*given >= trace_.ranks())
      throw error(node, fmt::format("'{}' is {}; the trace has ranks 0 to {}", name, *given, trace_.ranks() - 1));
    if (*given == rank_)
      throw error(node, fmt::format("'{}' is {}, the rank itself; expected another one", name, *given));
    return static_cast<std::uint32_t>(*given);
  }
  const auto group = trace_.find_group(groups_, node.group);
  const Communicator* members = group ? &trace_.communicators_[*group] : nullptr;
  if (members != nullptr && members->size() == 2) return members->rank(members->rank(0) == Rank(rank_) ? 1 : 0).value();
  const OpenMessages::Kind kind{group.value_or(0), node.comm_tag.value_or(0), node.comm_size.value_or(0)};
  const auto certain = group ? trace_.open_messages_.peer(rank_, kind, sends) : std::nullopt;
  if (certain) return *certain;
  throw error(
      node,
      fmt::format("it has no '{}', and who the other one is is not certain: its process group '{}' does not "
                  "have two ranks, and for all its {} with tag {} and of {} B there is not just one rank "
                  "left with as many {}",
                  name, node.group, sends ? "sends" : "receives", kind.tag, kind.bytes, sends ? "receives" : "sends"));
}

void ChakraTrace::Walk::translate_message(const ChakraNode& node, Operation& operation) const {
  const bool sends = node.type == ChakraType::send;
  operation.kind = sends ? Operation::Kind::send : Operation::Kind::recv;
  const auto& own = sends ? node.comm_source : node.comm_destination;
  if (own && *own != rank_)
    throw error(node, fmt::format("a {} of rank {} in the file of rank {}", sends ? "send" : "recv", *own, rank_));
  operation.peer = Rank(peer_of(node, sends ? node.comm_destination : node.comm_source));
  if (!node.comm_size) throw error(node, "it has no 'comm_size'");
  operation.bytes = Bytes(*node.comm_size);
  if (node.comm_tag.value_or(0) > std::numeric_limits<std::uint32_t>::max())
    throw error(node, fmt::format("'comm_tag' is {}; expected less than 2^32", *node.comm_tag));
  operation.tag = static_cast<std::uint32_t>(node.comm_tag.value_or(0));
}

void ChakraTrace::Walk::translate_collective(const ChakraNode& node, Operation& operation,
                                             std::optional<ChakraShape>& shape) const {
  operation.kind = Operation::Kind::collective;
  operation.duration = Time();
  if (!node.comm_type) throw error(node, "it has no 'comm_type'");
  if (*node.comm_type >= static_cast<std::int64_t>(std::size(kinds_of_chakra)))
    throw error(node,
                fmt::format("'comm_type' is {}; 0 to {} are known", *node.comm_type, std::size(kinds_of_chakra) - 1));
  if (node.leaves_out_dimensions)
    throw error(node,
                "'involved_dim' leaves out dimensions; this machine has none: give the node a process group "
                "('pg_name') of the ranks that take part");
  shape.emplace();
  shape->kind = kinds_of_chakra[*node.comm_type];
  if (!node.comm_size && shape->kind != CollectiveKind::barrier) throw error(node, "it has no 'comm_size'");
  const auto group = trace_.find_group(groups_, node.group);
  if (!group)
    throw error(node,
                fmt::format("its process group '{}' is not known; a metadata node of this rank, or the workload's "
                            "`groups` file, has to say which ranks it has",
                            node.group));
  shape->communicator = *group;
  const Communicator& members = trace_.communicators_[*group];
  if (members.index_of(Rank(rank_)) == members.size())
    throw error(node, fmt::format("rank {} is no member of its process group '{}'", rank_, node.group));
  // comm_size is the contribution of each rank; weft counts all blocks of a gathering.
  const bool gathers = shape->kind == CollectiveKind::all_gather || shape->kind == CollectiveKind::gather;
  const auto size = static_cast<__int128>(node.comm_size.value_or(0)) * (gathers ? members.size() : 1);
  if (size > std::numeric_limits<std::int64_t>::max())
    throw error(node,
                fmt::format("{} ranks gather {} each, which is more than 2^63 bytes", members.size(), *node.comm_size));
  shape->size = static_cast<std::int64_t>(size);
  if (!has_root(shape->kind)) return;
  const std::int64_t root = node.root.value_or(0);
  if (root < 0 || root >= members.size())
    throw error(node, fmt::format("its root is {}; the process group has members 0 to {}", root, members.size() - 1));
  shape->root = static_cast<std::uint32_t>(root);
}

void ChakraTrace::Walk::choose_stream(const ChakraNode& node, Operation& operation) {
  if (node.type == ChakraType::metadata || node.type == ChakraType::invalid) return;
  const bool memory = node.type == ChakraType::memory_load || node.type == ChakraType::memory_store;
  const bool communicates = operation.kind != Operation::Kind::compute || node.type == ChakraType::collective;
  if (trace_.options_.as_astra_sim) {
    // One at a time each: HardwareResource of ASTRA-sim. Any number of receives, and of operations in a custom
    // algorithm.
    if (operation.kind == Operation::Kind::recv || node.stream.value_or(0) < 0) return;
    operation.stream = node.on_cpu    ? Stream::host
                       : memory       ? Stream::storage
                       : communicates ? Stream::communication
                                      : Stream::compute;
    return;
  }
  const auto& named = node.stream ? node.stream : node.thread;
  if (!named || trace_.options_.ready_first) {
    if (communicates) return;  // those of a process group have an order in any case
    operation.stream = node.on_cpu ? Stream::host : memory ? Stream::storage : Stream::compute;
    return;
  }
  if (*named < 0) return;
  const auto [last, fresh] = last_of_stream_.try_emplace({node.on_cpu, *named}, operation.id);
  if (!fresh && std::find(operation.after.begin(), operation.after.end(), last->second) == operation.after.end())
    operation.after.push_back(last->second);
  last->second = operation.id;
}

}  // namespace weft
