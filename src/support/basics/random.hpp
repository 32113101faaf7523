// SPDX-License-Identifier: GPL-2.0-only
// Counter-based random numbers: a value is a function of (seed, entity, count), never of the order of drawing.
#pragma once

#include <cstdint>

namespace weft {

/// Finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
/// doi:10.1145/2660193.2660195): a bijection of 64-bit words in which every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// 64 random bits of draw number `count` of `entity`.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  return mix64(mix64(mix64(seed + golden) ^ (entity + golden)) ^ (count + golden));
}

/// Uniform in (0, 1): never 0 or 1. 52 bits and a half: with 53 the largest value would round to 1.
constexpr double random_unit(std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  return (static_cast<double>(random_bits(seed, entity, count) >> 12) + 0.5) * 0x1p-52;
}

/// Uniform integer in [0, n). Multiply-shift (bias below n/2^64).
constexpr std::uint64_t random_below(std::uint64_t n, std::uint64_t seed, std::uint64_t entity, std::uint64_t count) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(random_bits(seed, entity, count)) * n) >> 64);
}

/// Exponential with the given mean. Integer-rounded by the caller. Defined out of line because it needs log().
double random_exponential(double mean, std::uint64_t seed, std::uint64_t entity, std::uint64_t count);

/// Standard normal, of draws 2 * count and 2 * count + 1. Box and Muller, "A note on the generation of random normal
/// deviates", doi:10.1214/aoms/1177706645.
double random_normal(std::uint64_t seed, std::uint64_t entity, std::uint64_t count);

}  // namespace weft
