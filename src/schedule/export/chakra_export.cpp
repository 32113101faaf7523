// SPDX-License-Identifier: GPL-2.0-only
// Writing Chakra execution traces: schema/protobuf/et_def.proto of github.com/mlcommons/chakra, in protobuf's wire
// format (protobuf.dev/programming-guides/encoding).
#include "schedule/export/chakra_export.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/export/draft_file.hpp"

namespace weft {
namespace {

enum ChakraNodeNumber : std::uint64_t { metadata_node = 1, comp_node = 4, send_node = 5, recv_node = 6, coll_node = 7 };
enum ChakraField : std::uint64_t {
  node_id = 1,
  node_name = 2,
  node_type = 3,
  node_data_deps = 5,
  node_duration_micros = 7,
  node_inputs = 8,
  node_attr = 10,
  attr_name = 1,
  attr_int64 = 9,
  attr_bool = 27,
  attr_string = 29,
};

/// One message in the making.
class WireWriter {
 public:
  static std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes += static_cast<char>(value);
    return bytes;
  }
  void number(std::uint64_t field, std::uint64_t value) { bytes_ += varint(field << 3) + varint(value); }
  void text(std::uint64_t field, const std::string& content) {
    bytes_ += varint((field << 3) | 2) + varint(content.size()) + content;
  }
  void attribute(const std::string& name, std::int64_t value) {
    WireWriter inner;
    inner.text(attr_name, name);
    inner.number(attr_int64, static_cast<std::uint64_t>(value));
    text(node_attr, inner.bytes_);
  }
  void attribute(const std::string& name, const std::string& value) {
    WireWriter inner;
    inner.text(attr_name, name);
    inner.text(attr_string, value);
    text(node_attr, inner.bytes_);
  }
  void flag(const std::string& name, bool value) {
    WireWriter inner;
    inner.text(attr_name, name);
    inner.number(attr_bool, value ? 1 : 0);
    text(node_attr, inner.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// CollectiveCommType.
std::int64_t chakra_number(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::reduce:
      return 1;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::gather:
      return 3;
    case CollectiveKind::scatter:
      return 4;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
    case CollectiveKind::barrier:
      return 9;
    case CollectiveKind::send_recv:
      break;
  }
  return -1;
}

class ChakraWriter {
 public:
  ChakraWriter(const Workload& workload, std::uint32_t rank, const std::string& experiment, std::ostream& file)
      : workload_(workload), rank_(rank), experiment_(experiment), file_(file) {}

  void write() {
    WireWriter head;
    head.text(1, "0.0.4");
    put(head.bytes());
    write_groups();
    const auto program = workload_.program(Rank(rank_));
    for (Operation operation; program->next(operation); operation = Operation()) put(node(operation));
  }

 private:
  [[noreturn]] void refuse_export(const std::string& what) const {
    throw InputError(SourceLine{experiment_, 0}, fmt::format("rank {} has {}", rank_, what));
  }

  void put(const std::string& message) { file_ << WireWriter::varint(message.size()) << message; }

  /// Groups of this rank in a node after its last operation, as in PyTorch's traces.
  void write_groups() {
    const auto program = workload_.program(Rank(rank_));
    if (program->accepts_unexpected())
      refuse_export(
          "one-sided messages, as `kind: traffic` sends them: no operation receives them, and a Chakra trace has a "
          "node for "
          "each receive; expected a workload whose ranks receive what they are sent");
    if (program->takes_what_is_ready())
      refuse_export("streams that take whatever operation is ready; those of an exported trace take theirs in order");
    if (workload_.start(Rank(rank_)) > Time()) refuse_export("a start later than 0, which a trace cannot have");
    std::map<std::uint32_t, std::string> groups;
    std::uint64_t last = 0;
    for (Operation operation; program->next(operation); operation = Operation()) {
      last = operation.id;
      if (!operation.call) continue;
      const Communicator& members = *operation.call->communicator;
      std::vector<std::uint32_t> ranks;
      for (std::uint32_t i = 0; i < members.size(); ++i) ranks.push_back(members.rank(i).value());
      groups.try_emplace(members.id(), fmt::format(R"({{"pg_name": "{}", "ranks": [{}]}})", group_name(members),
                                                   fmt::join(ranks, ", ")));
      if (is_all(members)) of_all_ = std::min(of_all_, members.id());
    }
    groups.erase(of_all_);
    if (groups.empty()) return;
    std::vector<std::string> texts;
    for (const auto& [id, text] : groups) texts.push_back(text);
    WireWriter inputs, message;
    inputs.text(1, fmt::format("['[{}]']", fmt::join(texts, ", ")));
    message.number(node_id, last + 1);
    message.text(node_name, "process groups");
    message.number(node_type, metadata_node);
    message.text(node_inputs, inputs.bytes());
    put(message.bytes());
  }

  bool is_all(const Communicator& members) const {
    if (members.size() != workload_.ranks()) return false;
    for (std::uint32_t i = 0; i < members.size(); ++i)
      if (members.rank(i).value() != i) return false;
    return true;
  }
  /// ASTRA-sim wants numbers above 0.
  static std::string group_name(const Communicator& members) { return std::to_string(members.id() + 1); }

  std::string node(const Operation& operation) {
    if (operation.not_before > Time()) refuse_export("an operation that starts at a given time; a trace has none");
    WireWriter message;
    if (operation.id > 0) message.number(node_id, operation.id);
    message.text(node_name, operation.label.empty() ? "operation" : operation.label.text());
    const bool computes = operation.kind == Operation::Kind::compute;
    message.number(node_type, computes                                  ? comp_node
                              : operation.kind == Operation::Kind::send ? send_node
                              : operation.kind == Operation::Kind::recv ? recv_node
                                                                        : coll_node);
    if (!operation.after_start.empty())
      refuse_export("an operation that waits for the start of another one; Chakra's nodes wait for ends");
    std::string ids;
    for (const std::uint64_t before : operation.after) ids += WireWriter::varint(before);
    if (!ids.empty()) message.text(node_data_deps, ids);
    if (computes) {
      constexpr std::int64_t microsecond = 1'000'000;
      message.number(node_duration_micros,
                     static_cast<std::uint64_t>((operation.duration.ps() + microsecond / 2) / microsecond));
      message.attribute("duration_ps", operation.duration.ps());
      if (operation.flops > 0 && operation.flops < 9e18)
        message.attribute("num_ops", static_cast<std::int64_t>(operation.flops));
    } else if (operation.any_source || operation.any_tag) {
      refuse_export("a recv from any rank or with any tag; Chakra's nodes name both");
    } else if (operation.call) {
      add_collective(*operation.call, message);
    } else {
      const bool sends = operation.kind == Operation::Kind::send;
      if (operation.queue_pair > 0)
        refuse_export("sends on several queue pairs to a rank; a trace does not tell them apart");
      message.attribute("comm_size", operation.bytes.count());
      message.attribute("comm_src", sends ? rank_ : operation.peer.value());
      message.attribute("comm_dst", sends ? operation.peer.value() : rank_);
      message.attribute("comm_tag", std::int64_t{operation.tag});
    }
    message.flag("is_cpu_op", operation.worker == Worker::host);
    // Negative: of no stream.
    if (computes || operation.stream != Stream::none)
      message.attribute("stream", operation.stream == Stream::none ? -1 : static_cast<std::int64_t>(operation.stream));
    return message.bytes();
  }

  void add_collective(const CollectiveCall& call, WireWriter& message) const {
    const std::uint32_t n = call.communicator->size();
    if (call.blocks) refuse_export("collectives whose blocks differ in size, which Chakra does not have");
    const std::int64_t number = chakra_number(call.kind);
    if (number < 0) refuse_export("a send_recv, which Chakra does not have");
    const bool gathers = call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::gather;
    if (gathers && call.size.count() % n != 0)
      refuse_export(
          fmt::format("a gathering of {} B over {} ranks; Chakra counts the bytes of a rank, which are the same "
                      "for all",
                      call.size.count(), n));
    message.attribute("comm_type", number);
    message.attribute("weft_call", std::int64_t{call.id});
    message.attribute("comm_size", gathers ? call.size.count() / n : call.size.count());
    if (has_root(call.kind)) message.attribute("root", std::int64_t{call.root});
    if (call.communicator->id() != of_all_) message.attribute("pg_name", group_name(*call.communicator));
  }

  const Workload& workload_;
  std::uint32_t rank_;
  std::uint32_t of_all_ = 0xffffffffU;  // the first communicator of all ranks, which needs no name
  const std::string& experiment_;
  std::ostream& file_;
};

}  // namespace

void export_chakra(const Workload& workload, const std::string& prefix, const std::string& experiment) {
  std::vector<std::unique_ptr<DraftFile>> files;
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank) {
    files.push_back(std::make_unique<DraftFile>(fmt::format("{}.{}.et", prefix, rank)));
    ChakraWriter(workload, rank, experiment, files.back()->stream()).write();
    files.back()->close();
  }
  for (const auto& file : files) file->take_name();
}

}  // namespace weft
