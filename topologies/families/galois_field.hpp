// SPDX-License-Identifier: GPL-2.0-only
// Arithmetic in the finite field of q elements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft {

/// GF(q) for a prime power q = r^n: polynomials over the integers mod r, modulo an irreducible one of degree n. Element
/// i represents the polynomial whose coefficients are the digits of i to the base r; 0 and 1 are zero and one of the
/// field.
class GaloisField {
 public:
  /// Nothing if q is no prime power.
  static std::optional<GaloisField> of_size(std::uint32_t q);

  std::uint32_t size() const { return q_; }
  std::uint32_t add(std::uint32_t a, std::uint32_t b) const;
  std::uint32_t subtract(std::uint32_t a, std::uint32_t b) const;
  std::uint32_t multiply(std::uint32_t a, std::uint32_t b) const;
  /// The smallest element whose powers are all elements except 0.
  std::uint32_t primitive_element() const;

 private:
  GaloisField(std::uint32_t q, std::uint32_t prime, std::uint32_t degree) : q_(q), prime_(prime), degree_(degree) {}
  std::vector<std::uint32_t> digits(std::uint32_t a) const;
  std::uint32_t number(const std::vector<std::uint32_t>& digits) const;
  std::uint32_t order(std::uint32_t a) const;

  std::uint32_t q_;
  std::uint32_t prime_;
  std::uint32_t degree_;
  std::vector<std::uint32_t> modulus_;  ///< [degree] x^degree = sum modulus_[i] x^i
};

}  // namespace weft
