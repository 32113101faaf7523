// SPDX-License-Identifier: GPL-2.0-only
// Ports of a process: numbers that are no numbers of anything else.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace weft {

/// A port of this process, by its position among all of them: node by node, in the order of the machine. The port of a
/// node, as graph and routing number it, is the distance from the node's first one.
class PortId {
 public:
  constexpr PortId() = default;
  constexpr explicit PortId(std::uint32_t value) : value_(value) {}
  static constexpr PortId none() { return {}; }

  constexpr std::uint32_t value() const { return value_; }
  constexpr PortId& operator++() {
    ++value_;
    return *this;
  }
  friend constexpr PortId operator+(PortId port, std::uint32_t distance) { return PortId(port.value_ + distance); }
  friend constexpr std::uint32_t operator-(PortId a, PortId b) { return a.value_ - b.value_; }
  friend constexpr auto operator<=>(PortId, PortId) = default;

 private:
  std::uint32_t value_ = 0xffffffffU;
};

/// Ports next to each other.
class ConsecutivePorts {
 public:
  constexpr ConsecutivePorts(PortId first, std::uint32_t count) : first_(first), end_(first + count) {}

  struct Iterator {
    PortId port;
    constexpr PortId operator*() const { return port; }
    constexpr Iterator& operator++() {
      ++port;
      return *this;
    }
    // Not just different: from "less" the compiler sees that numbers do not wrap around.
    friend constexpr bool operator!=(Iterator a, Iterator b) { return a.port < b.port; }
  };
  constexpr Iterator begin() const { return {first_}; }
  constexpr Iterator end() const { return {end_}; }

 private:
  PortId first_;
  PortId end_;
};

/// A vector with one entry for each port of this process; nothing else finds an entry.
template <class Vector>
class PerPort : public Vector {
 public:
  using Vector::Vector;
  typename Vector::reference operator[](PortId port) { return Vector::operator[](port.value()); }
  typename Vector::const_reference operator[](PortId port) const { return Vector::operator[](port.value()); }
};

}  // namespace weft
