// SPDX-License-Identifier: GPL-2.0-only
// Names of collective kinds, primitives and buffers, and nccl-tests' bus-bandwidth factors.
#include "schedule/collective.hpp"

#include <array>
#include <utility>

#include "support/contract.hpp"

namespace weft {
namespace {

constexpr std::array<std::pair<CollectiveKind, std::string_view>, 6> kind_names{{
    {CollectiveKind::all_reduce, "all_reduce"},
    {CollectiveKind::all_gather, "all_gather"},
    {CollectiveKind::reduce_scatter, "reduce_scatter"},
    {CollectiveKind::broadcast, "broadcast"},
    {CollectiveKind::reduce, "reduce"},
    {CollectiveKind::all_to_all, "all_to_all"},
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
      return others / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
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

}  // namespace weft
