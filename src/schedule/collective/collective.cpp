// SPDX-License-Identifier: GPL-2.0-only
// Names of collective kinds, primitives and buffers, and nccl-tests' bus-bandwidth factors.
#include "schedule/collective/collective.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/basics/kept_for_command.hpp"

namespace weft {
namespace {

constexpr std::array<std::pair<CollectiveKind, std::string_view>, 10> kind_names{{
    {CollectiveKind::all_reduce, "all_reduce"},
    {CollectiveKind::all_gather, "all_gather"},
    {CollectiveKind::reduce_scatter, "reduce_scatter"},
    {CollectiveKind::broadcast, "broadcast"},
    {CollectiveKind::reduce, "reduce"},
    {CollectiveKind::all_to_all, "all_to_all"},
    {CollectiveKind::gather, "gather"},
    {CollectiveKind::scatter, "scatter"},
    {CollectiveKind::barrier, "barrier"},
    {CollectiveKind::send_recv, "send_recv"},
}};

}  // namespace

std::string_view to_text(CollectiveKind kind) {
  for (const auto& [known, name] : kind_names)
    if (known == kind) return name;
  WEFT_EXPECT(false, "collective kind {}", static_cast<int>(kind));
  return {};
}

std::optional<CollectiveKind> parse_collective_kind(std::string_view text) {
  for (const auto& [kind, name] : kind_names)
    if (name == text) return kind;
  return std::nullopt;
}

std::vector<std::string> collective_kind_names() {
  std::vector<std::string> names;
  for (const auto& [kind, name] : kind_names) names.emplace_back(name);
  return names;
}

double bus_bandwidth_factor(CollectiveKind kind, std::uint32_t ranks) {
  WEFT_EXPECT(ranks > 0, "{} of no ranks", to_text(kind));
  const double others = static_cast<double>(ranks) - 1;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * others / ranks;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return others / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::barrier:
    case CollectiveKind::send_recv:
      return 1;
  }
  WEFT_EXPECT(false, "collective kind {}", static_cast<int>(kind));
  return 0;
}

std::string_view to_text(Primitive primitive) {
  switch (primitive) {
    case Primitive::send:
      return "send";
    case Primitive::recv:
      return "recv";
    case Primitive::copy:
      return "copy";
    case Primitive::recv_copy_send:
      return "recv_copy_send";
    case Primitive::recv_reduce_send:
      return "recv_reduce_send";
    case Primitive::recv_reduce_copy:
      return "recv_reduce_copy";
    case Primitive::recv_reduce_copy_send:
      return "recv_reduce_copy_send";
    case Primitive::reduce:
      return "reduce";
    case Primitive::nop:
      return "nop";
  }
  WEFT_EXPECT(false, "primitive {}", static_cast<int>(primitive));
  return {};
}

std::string_view to_text(Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::scratch:
      return "scratch";
  }
  WEFT_EXPECT(false, "buffer {}", static_cast<int>(buffer));
  return {};
}

std::string_view to_text(Protocol protocol) {
  switch (protocol) {
    case Protocol::simple:
      return "simple";
    case Protocol::ll:
      return "ll";
    case Protocol::ll128:
      return "ll128";
  }
  WEFT_EXPECT(false, "protocol {}", static_cast<int>(protocol));
  return {};
}

std::optional<Protocol> parse_protocol(std::string_view text) {
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128})
    if (to_text(protocol) == text) return protocol;
  return std::nullopt;
}

std::string_view to_text(DimensionAlgorithm algorithm) {
  switch (algorithm) {
    case DimensionAlgorithm::ring:
      return "ring";
    case DimensionAlgorithm::direct:
      return "direct";
    case DimensionAlgorithm::halving_doubling:
      return "halving_doubling";
    case DimensionAlgorithm::double_binary_tree:
      return "double_binary_tree";
    case DimensionAlgorithm::one_ring:
      return "one_ring";
    case DimensionAlgorithm::one_direct:
      return "one_direct";
    case DimensionAlgorithm::one_halving_doubling:
      return "one_halving_doubling";
  }
  WEFT_EXPECT(false, "algorithm {}", static_cast<int>(algorithm));
  return {};
}

namespace {
constexpr std::array all_dimension_algorithms = {DimensionAlgorithm::ring,
                                                 DimensionAlgorithm::direct,
                                                 DimensionAlgorithm::halving_doubling,
                                                 DimensionAlgorithm::double_binary_tree,
                                                 DimensionAlgorithm::one_ring,
                                                 DimensionAlgorithm::one_direct,
                                                 DimensionAlgorithm::one_halving_doubling};
}  // namespace

std::vector<std::string> dimension_algorithm_names() {
  std::vector<std::string> names;
  for (const DimensionAlgorithm one : all_dimension_algorithms) names.emplace_back(to_text(one));
  return names;
}

std::optional<DimensionAlgorithm> parse_dimension_algorithm(std::string_view text) {
  for (const DimensionAlgorithm one : all_dimension_algorithms)
    if (to_text(one) == text) return one;
  return std::nullopt;
}

std::string to_text(const DimensionAlgorithms::Entry& entry) {
  return std::string(to_text(entry.algorithm)) + (entry.window > 0 ? std::to_string(entry.window) : "");
}

std::optional<DimensionAlgorithms::Entry> parse_dimension_entry(std::string_view text) {
  constexpr std::size_t max_digits = 9;
  const std::size_t end = text.find_last_not_of("0123456789") + 1;  // 0 if there are digits alone
  const auto algorithm = parse_dimension_algorithm(text.substr(0, end));
  if (!algorithm) return std::nullopt;
  if (end == text.size()) return DimensionAlgorithms::Entry{*algorithm, 0};
  const bool has_window = *algorithm == DimensionAlgorithm::direct || *algorithm == DimensionAlgorithm::one_direct;
  if (!has_window || text[end] == '0' || text.size() - end > max_digits) return std::nullopt;
  return DimensionAlgorithms::Entry{*algorithm, static_cast<std::uint32_t>(std::stoul(std::string(text.substr(end))))};
}

Bytes wire_bytes(Protocol protocol, Bytes data) {
  const std::int64_t bytes = data.count();
  switch (protocol) {
    case Protocol::simple:
      return data;
    case Protocol::ll:
      return Bytes((bytes + 7) / 8 * 16);
    case Protocol::ll128:
      return Bytes((bytes + 119) / 120 * 128);
  }
  WEFT_EXPECT(false, "protocol {}", static_cast<int>(protocol));
  return data;
}

namespace {

std::int64_t equal_block(const CollectiveCall& call) {
  const std::int64_t ranks = call.communicator->size();
  return call.size.count() / ranks + (call.size.count() % ranks != 0 ? 1 : 0);
}
std::int64_t equal_block_bytes(const CollectiveCall& call, std::uint32_t block) {
  const std::int64_t whole = equal_block(call);
  return std::clamp<std::int64_t>(call.size.count() - block * whole, 0, whole);
}

std::string ending(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(dot + 1);
}

}  // namespace

std::int64_t block_begin(const CollectiveCall& call, std::uint32_t block) {
  if (call.blocks) return call.blocks->input_offset(0, block);
  return std::min(call.size.count(), block * equal_block(call));
}
std::int64_t block_bytes(const CollectiveCall& call, std::uint32_t block) {
  return call.blocks ? call.blocks->bytes(0, block) : equal_block_bytes(call, block);
}
std::int64_t pair_bytes(const CollectiveCall& call, std::uint32_t from, std::uint32_t to) {
  return call.blocks ? call.blocks->bytes(from, to) : equal_block_bytes(call, to);
}
std::int64_t pair_input(const CollectiveCall& call, std::uint32_t from, std::uint32_t to) {
  return call.blocks ? call.blocks->input_offset(from, to) : std::min(call.size.count(), to * equal_block(call));
}
std::int64_t pair_output(const CollectiveCall& call, std::uint32_t from, std::uint32_t to) {
  return call.blocks ? call.blocks->output_offset(from, to) : from * equal_block(call);
}

void Step::add_send(std::uint32_t peer) {
  WEFT_EXPECT(more_sends < more_send_peers.size(), "a step sends to {} peers", more_sends + 2);
  more_send_peers[more_sends++] = peer;
}
void Step::add_receive(std::uint32_t peer) {
  WEFT_EXPECT(more_receives < more_receive_peers.size(), "a step receives from {} peers", more_receives + 2);
  more_receive_peers[more_receives++] = peer;
}

std::string CollectiveAlgorithm::refuses(const CollectiveCall& call) const {
  if (call.blocks && !takes_block_tables(call.kind))
    return fmt::format("it has no {} of blocks that differ in size", to_text(call.kind));
  return {};
}

bool CollectiveAlgorithm::takes_block_tables(CollectiveKind /*kind*/) const { return false; }

std::string CollectiveAlgorithm::name_step(const CollectiveCall& call, std::uint32_t /*index*/, std::uint32_t lane,
                                           std::uint64_t step) const {
  const std::uint32_t of_channel = lanes(call) / channels(call);
  if (of_channel == 1) return fmt::format("channel {}, step {}", lane, step);
  return fmt::format("channel {}, lane {}, step {}", lane % channels(call), lane / channels(call), step);
}

bool is_schedule_file(const std::string& name) {
  return ScheduleReaderRegistry::instance().find(ending(name)) != nullptr;
}

std::shared_ptr<const CollectiveAlgorithm> find_collective(const std::string& name) {
  static KeptForCommand<std::string, std::shared_ptr<const CollectiveAlgorithm>> kept;
  auto& made = kept.values();
  if (const auto known = made.find(name); known != made.end()) return known->second;
  std::shared_ptr<const CollectiveAlgorithm> algorithm;
  if (const auto* entry = CollectiveRegistry::instance().find(name)) {
    algorithm = entry->make();
  } else if (const auto* reader = ScheduleReaderRegistry::instance().find(ending(name))) {
    algorithm = reader->make()->read(name);
  } else {
    return nullptr;
  }
  return made[name] = algorithm;
}

}  // namespace weft
