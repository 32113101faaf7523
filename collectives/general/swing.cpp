// SPDX-License-Identifier: GPL-2.0-only
// Swing: an all-reduce for tori whose partners are nearer than those of recursive doubling.
//
// D. De Sensi, T. Bonato, D. Saam, T. Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce", NSDI 2024,
// arXiv:2401.09356: in step s even ranks exchange with r + rho(s), odd ones with r - rho(s), rho(s) = (1 -
// (-2)^(s+1))/3 = 1, -1, 3, -5, 11, ... The bandwidth-optimal variant: a reduce-scatter and an all-gather over the same
// partners. On a torus of D dimensions (tuning.dimensions) steps take the dimensions in turn; channel c starts with
// dimension c mod D, and mirrored (-rho) if c/D is odd: 2D channels use all links. Which part of the vector a rank
// keeps is free, so the parts are numbered such that each exchange is one range. Other sizes than powers of two are
// folded as in MPICH.
#include <array>
#include <bit>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "collectives/steps/exchange.hpp"
#include "collectives/steps/partner_rounds.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::uint32_t max_dimensions = 8;

std::int64_t rho(std::uint32_t step) {
  std::int64_t power = -2;
  for (std::uint32_t i = 0; i < step; ++i) power *= -2;
  return (1 - power) / 3;
}

/// Which dimension each step works in, and the step's number within it.
class Swings {
 public:
  Swings(const CollectiveCall& call, std::uint32_t channel, std::uint32_t positions) {
    sizes_[0] = positions;
    const auto& dimensions = call.tuning.dimensions;
    if (!dimensions.empty()) {
      count_ = static_cast<std::uint32_t>(dimensions.size());
      for (std::uint32_t d = 0; d < count_; ++d) sizes_[d] = dimensions[d];
    }
    first_ = channel % count_;
    mirrored_ = channel / count_ % 2 == 1;
  }

  std::uint32_t partner(std::uint32_t position, std::uint32_t step) const {
    const auto [dimension, level] = turn(step);
    return with(position, dimension, neighbour(coordinate(position, dimension), dimension, level));
  }

  /// Whether the position keeps the upper half in this step. Those that go on together agree in it: their even members
  /// are congruent modulo 2^(level+1), so the next bit of the even one of each pair of the next level distinguishes
  /// them.
  bool upper(std::uint32_t position, std::uint32_t step) const {
    const auto [dimension, level] = turn(step);
    const std::uint32_t x = coordinate(position, dimension);
    if ((2U << level) == sizes_[dimension]) return x % 2 == 1;
    const std::uint32_t even = x % 2 == 0 ? x : neighbour(x, dimension, level + 1);
    return ((even >> (level + 1)) & 1U) != 0;
  }

 private:
  struct Turn {
    std::uint32_t dimension = 0;
    std::uint32_t level = 0;
  };
  Turn turn(std::uint32_t step) const {
    for (std::uint32_t level = 0;; ++level) {
      for (std::uint32_t i = 0; i < count_; ++i) {
        const std::uint32_t dimension = (first_ + i) % count_;
        if ((1U << level) >= sizes_[dimension]) continue;
        if (step-- == 0) return {dimension, level};
      }
    }
  }
  std::uint32_t stride(std::uint32_t dimension) const {
    std::uint32_t product = 1;
    for (std::uint32_t d = 0; d < dimension; ++d) product *= sizes_[d];
    return product;
  }
  std::uint32_t coordinate(std::uint32_t position, std::uint32_t dimension) const {
    return position / stride(dimension) % sizes_[dimension];
  }
  std::uint32_t with(std::uint32_t position, std::uint32_t dimension, std::uint32_t value) const {
    return position - coordinate(position, dimension) * stride(dimension) + value * stride(dimension);
  }
  std::uint32_t neighbour(std::uint32_t x, std::uint32_t dimension, std::uint32_t level) const {
    const std::int64_t size = sizes_[dimension];
    const std::int64_t away = (x % 2 == 0) == mirrored_ ? -rho(level) : rho(level);
    return static_cast<std::uint32_t>(((x + away) % size + size) % size);
  }

  std::array<std::uint32_t, max_dimensions> sizes_{};
  std::uint32_t count_ = 1;
  std::uint32_t first_ = 0;
  bool mirrored_ = false;
};

class SwingStream final : public HalvingAllReduce {
 public:
  SwingStream(const CollectiveCall& call, std::uint32_t index, std::uint32_t channel)
      : HalvingAllReduce(call, index, channel), swings_(call, channel, fold().power) {}

 private:
  std::uint32_t partner(std::uint32_t position, std::uint32_t level) const override {
    return swings_.partner(position, level);
  }
  bool keeps_upper(std::uint32_t position, std::uint32_t level) const override {
    return swings_.upper(position, level);
  }

  Swings swings_;
};

class Swing final : public CollectiveAlgorithm {
 public:
  bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  std::uint32_t credits(const CollectiveCall& call) const override { return ExchangeSizes(call).credits; }
  std::string refuses(const CollectiveCall& call) const override {
    std::uint64_t product = 1;
    for (const std::uint32_t size : call.tuning.dimensions) {
      product *= size;
      if (!std::has_single_bit(size)) return fmt::format("a dimension of {}, which is no power of two", size);
    }
    if (call.tuning.dimensions.size() > max_dimensions)
      return fmt::format("{} dimensions; at most {}", call.tuning.dimensions.size(), max_dimensions);
    if (!call.tuning.dimensions.empty() && product != call.communicator->size())
      return fmt::format("the dimensions have {} nodes, but there are {} ranks", product, call.communicator->size());
    return CollectiveAlgorithm::refuses(call);
  }
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t channel) const override {
    expect_valid_lane(*this, call, index, channel);
    return std::make_unique<SwingStream>(call, index, channel);
  }
};

const Registration<CollectiveAlgorithm, Swing> swing_registration(
    "swing", "all-reduce for tori: short-cut rings, 2 log2 P rounds");

}  // namespace
}  // namespace weft
