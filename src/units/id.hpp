// SPDX-License-Identifier: GPL-2.0-only
// Typed identifiers: a NodeId cannot be passed where a LinkId is expected.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

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

/// All of a kind from `first` to before `end`, for loops: `for (const NodeId host : graph.hosts())`.
template <class Tag>
class IdRange {
 public:
  class Iterator {
   public:
    using value_type = Id<Tag>;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator() = default;
    constexpr explicit Iterator(std::uint32_t at) : at_(at) {}
    constexpr Id<Tag> operator*() const { return Id<Tag>(at_); }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    std::uint32_t at_ = 0;
  };
  constexpr IdRange(std::uint32_t first, std::uint32_t end) : first_(first), end_(end) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  std::uint32_t first_;
  std::uint32_t end_;
};

/// A vector with one entry for each of the first nodes of a machine (hosts come first); nothing else finds an entry.
template <class Vector>
class PerNode : public Vector {
 public:
  using Vector::Vector;
  PerNode(Vector other) : Vector(std::move(other)) {}  // NOLINT(google-explicit-constructor): it says more, not less
  typename Vector::reference operator[](Id<struct NodeTag> node) { return Vector::operator[](node.value()); }
  typename Vector::const_reference operator[](Id<struct NodeTag> node) const {
    return Vector::operator[](node.value());
  }
};

using NodeId = Id<struct NodeTag>;  ///< vertex of the cluster graph (host or switch)
using LinkId = Id<struct LinkTag>;  ///< undirected edge of the cluster graph
using Rank = Id<struct RankTag>;    ///< rank of the simulated job (one accelerator), not an MPI rank

}  // namespace weft

template <class Tag>
struct std::hash<weft::Id<Tag>> {
  std::size_t operator()(weft::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>()(id.value()); }
};
