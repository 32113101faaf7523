// SPDX-License-Identifier: GPL-2.0-only
// Typed identifiers: a NodeId cannot be passed where a LinkId is expected.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace weft {

/// Index of one entity of a kind. `Tag` names the kind and is never defined.
template <class Tag>
class Id {
 public:
  using Value = std::uint32_t;
  constexpr Id() = default;
  constexpr explicit Id(Value value) : value_(value) {}
  static constexpr Id none() { return Id(std::numeric_limits<Value>::max()); }

  constexpr Value value() const { return value_; }
  constexpr bool valid() const { return value_ != std::numeric_limits<Value>::max(); }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Value value_ = std::numeric_limits<Value>::max();
};

using NodeId = Id<struct NodeTag>;  ///< vertex of the cluster graph (host or switch)
using LinkId = Id<struct LinkTag>;  ///< undirected edge of the cluster graph
using Rank = Id<struct RankTag>;    ///< rank of the simulated job (one accelerator), not an MPI rank

}  // namespace weft

template <class Tag>
struct std::hash<weft::Id<Tag>> {
  std::size_t operator()(weft::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>()(id.value()); }
};
