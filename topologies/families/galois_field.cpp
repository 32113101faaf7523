// SPDX-License-Identifier: GPL-2.0-only
// Arithmetic in the finite field of q elements.
#include "topologies/families/galois_field.hpp"

namespace weft {

std::optional<GaloisField> GaloisField::of_size(std::uint32_t q) {
  if (q < 2) return std::nullopt;
  std::uint32_t prime = 2;
  while (q % prime != 0) ++prime;
  std::uint32_t degree = 0;
  std::uint32_t rest = q;
  for (; rest % prime == 0; rest /= prime) ++degree;
  if (rest != 1) return std::nullopt;
  GaloisField field(q, prime, degree);
  if (degree == 1) {
    field.modulus_ = {0};
    return field;
  }
  // A polynomial modulo which some element has q - 1 different powers makes every element but 0 invertible: a field.
  for (std::uint32_t candidate = 1; candidate < q; ++candidate) {
    field.modulus_ = field.digits(candidate);
    if (field.order(prime) == q - 1) return field;  // `prime` is the polynomial x; a primitive polynomial exists
  }
  return std::nullopt;
}

std::vector<std::uint32_t> GaloisField::digits(std::uint32_t a) const {
  std::vector<std::uint32_t> result(degree_);
  for (std::uint32_t& digit : result) {
    digit = a % prime_;
    a /= prime_;
  }
  return result;
}

std::uint32_t GaloisField::number(const std::vector<std::uint32_t>& digits) const {
  std::uint32_t result = 0;
  for (std::size_t i = digits.size(); i-- > 0;) result = result * prime_ + digits[i];
  return result;
}

std::uint32_t GaloisField::add(std::uint32_t a, std::uint32_t b) const {
  auto sum = digits(a);
  const auto other = digits(b);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = (sum[i] + other[i]) % prime_;
  return number(sum);
}

std::uint32_t GaloisField::subtract(std::uint32_t a, std::uint32_t b) const {
  auto difference = digits(a);
  const auto other = digits(b);
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] = (difference[i] + prime_ - other[i]) % prime_;
  return number(difference);
}

std::uint32_t GaloisField::multiply(std::uint32_t a, std::uint32_t b) const {
  if (degree_ == 1) return static_cast<std::uint32_t>(std::uint64_t{a} * b % prime_);
  // Horner's rule: b's digits from the highest, times x in between.
  const auto factor = digits(a);
  const auto other = digits(b);
  std::vector<std::uint32_t> product(degree_, 0);
  for (std::size_t i = degree_; i-- > 0;) {
    const std::uint32_t overflow = product.back();
    for (std::size_t j = degree_; j-- > 0;)
      product[j] = ((j > 0 ? product[j - 1] : 0) + overflow * modulus_[j] + factor[j] * other[i]) % prime_;
  }
  return number(product);
}

std::uint32_t GaloisField::order(std::uint32_t a) const {
  std::uint32_t power = a;
  for (std::uint32_t n = 1; n < q_; ++n) {
    if (power == 1) return n;
    power = multiply(power, a);
  }
  return 0;  // never 1: not invertible
}

std::uint32_t GaloisField::primitive_element() const {
  for (std::uint32_t a = 1; a < q_; ++a)
    if (order(a) == q_ - 1) return a;
  return 0;
}

}  // namespace weft
