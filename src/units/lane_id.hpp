// SPDX-License-Identifier: GPL-2.0-only
// Traffic classes at ports, which also number the virtual lanes of routing.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace weft {

constexpr std::size_t max_classes = 8;  ///< of a port (IEEE 802.1Q)

/// A traffic class, by its position in the plan of the fabric: the most urgent first. Sets of them are numbers with a
/// bit for each.
class LaneId {
 public:
  constexpr LaneId() = default;
  constexpr explicit LaneId(std::uint32_t value) : value_(value) {}
  /// Of a set that is not empty.
  static constexpr LaneId first_of(std::uint32_t lanes) {
    return LaneId(static_cast<std::uint32_t>(std::countr_zero(lanes)));
  }

  constexpr std::uint32_t value() const { return value_; }
  constexpr std::uint32_t bit() const { return 1U << value_; }
  constexpr bool in(std::uint32_t lanes) const { return (lanes & bit()) != 0; }
  constexpr LaneId& operator++() {
    ++value_;
    return *this;
  }
  friend constexpr LaneId operator+(LaneId lane, std::uint32_t distance) { return LaneId(lane.value_ + distance); }
  friend constexpr std::uint32_t operator-(LaneId a, LaneId b) { return a.value_ - b.value_; }
  friend constexpr auto operator<=>(LaneId, LaneId) = default;

 private:
  std::uint32_t value_ = 0;
};

/// An array with one entry for each class; nothing else finds an entry.
template <class Value>
struct PerLane : std::array<Value, max_classes> {
  Value& operator[](LaneId lane) { return std::array<Value, max_classes>::operator[](lane.value()); }
  const Value& operator[](LaneId lane) const { return std::array<Value, max_classes>::operator[](lane.value()); }
};

}  // namespace weft
