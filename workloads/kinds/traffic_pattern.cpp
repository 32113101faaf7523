// SPDX-License-Identifier: GPL-2.0-only
// Patterns of synthetic traffic: which rank sends to which.
#include "workloads/kinds/traffic_pattern.hpp"

#include <numeric>
#include <utility>

#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

/// Entities of random numbers below this one belong to ranks (arrival times).
constexpr std::uint64_t permutation_entity = std::uint64_t{1} << 40;
/// From here on: destinations of each rank, drawn at each start.
constexpr std::uint64_t destination_entity = std::uint64_t{1} << 56;
/// From here on: destinations of incasts, then the sources of each start.
constexpr std::uint64_t incast_entity = std::uint64_t{1} << 58;

/// One shuffle, or false as soon as it cannot be without fixed points: position i is final once it has been swapped.
bool shuffle_without_fixed_points(std::vector<std::uint32_t>& order, std::uint64_t seed, std::uint64_t entity) {
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = order.size(); i-- > 0;) {
    std::swap(order[i], order[random_below(i + 1, seed, entity, i)]);
    if (order[i] == i) return false;
  }
  return true;
}

class Permutation : public TrafficPattern {
 public:
  explicit Permutation(std::vector<std::uint32_t> destinations) : destinations_(std::move(destinations)) {}
  std::uint32_t flows(std::uint32_t) const override { return 1; }
  std::uint32_t destination(std::uint32_t source, std::uint32_t) const override { return destinations_[source]; }
  std::uint64_t all_flows() const override { return destinations_.size(); }

 private:
  std::vector<std::uint32_t> destinations_;
};

/// Rank i sends to i + first, i + first + 1, ...: the shift and the all-to-all.
class Rotation : public TrafficPattern {
 public:
  Rotation(std::uint32_t ranks, std::uint32_t first, std::uint32_t count)
      : ranks_(ranks), first_(first), count_(count) {}
  std::uint32_t flows(std::uint32_t) const override { return count_; }
  std::uint32_t destination(std::uint32_t source, std::uint32_t index) const override {
    return static_cast<std::uint32_t>((std::uint64_t{source} + first_ + index) % ranks_);
  }
  std::uint64_t all_flows() const override { return std::uint64_t{ranks_} * count_; }

 private:
  std::uint32_t ranks_, first_, count_;
};

class Uniform : public TrafficPattern {
 public:
  Uniform(std::uint32_t ranks, std::uint32_t group, std::uint32_t shift, std::uint64_t seed)
      : ranks_(ranks), group_(group), shift_(shift % (ranks / group)), seed_(seed) {}
  std::uint32_t flows(std::uint32_t) const override { return 1; }
  std::uint32_t destination(std::uint32_t source, std::uint32_t index) const override {
    return destination_at(source, index, 0);
  }
  std::uint32_t destination_at(std::uint32_t source, std::uint32_t, std::uint64_t start) const override {
    const std::uint64_t first = (std::uint64_t{source / group_} + shift_) % (ranks_ / group_) * group_;
    const std::uint32_t others = shift_ == 0 ? 1 : 0;  // it is one of the group itself
    const auto drawn =
        static_cast<std::uint32_t>(first + random_below(group_ - others, seed_, destination_entity + source, start));
    return others == 1 && drawn >= source ? drawn + 1 : drawn;
  }
  std::uint64_t all_flows() const override { return ranks_; }

 private:
  std::uint32_t ranks_, group_, shift_;
  std::uint64_t seed_;
};

class Incast : public TrafficPattern {
 public:
  Incast(std::uint32_t ranks, std::uint32_t destination, std::uint32_t sources)
      : ranks_(ranks), destination_(destination), sources_(sources) {}
  std::uint32_t flows(std::uint32_t source) const override {
    const auto distance = (std::uint64_t{source} + ranks_ - destination_) % ranks_;
    return distance >= 1 && distance <= sources_ ? 1 : 0;
  }
  std::uint32_t destination(std::uint32_t, std::uint32_t) const override { return destination_; }
  std::uint64_t all_flows() const override { return sources_; }

 private:
  std::uint32_t ranks_, destination_, sources_;
};

/// A bijection of 0..n-1 that depends on (seed, entity): a Feistel network of four rounds over the next even power of
/// two (Luby, Rackoff, SIAM J. Computing 17(2), 1988, doi:10.1137/0217022), repeated until the value is below n.
std::uint32_t shuffled(std::uint32_t value, std::uint32_t n, std::uint64_t seed, std::uint64_t entity) {
  constexpr std::uint64_t rounds = 4;
  std::uint32_t half = 1;
  while ((std::uint64_t{1} << (2 * half)) < n) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  std::uint64_t x = value;
  do {
    std::uint64_t left = x >> half, right = x & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t next = left ^ (random_bits(seed, entity, round << 32 | right) & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= n);
  return static_cast<std::uint32_t>(x);
}

class RandomIncast : public TrafficPattern {
 public:
  RandomIncast(std::uint32_t ranks, std::uint32_t sources, std::uint64_t seed)
      : ranks_(ranks), sources_(sources), seed_(seed) {}
  std::uint32_t flows(std::uint32_t) const override { return 1; }
  std::uint32_t destination(std::uint32_t source, std::uint32_t index) const override {
    return destination_at(source, index, 0);
  }
  std::uint32_t destination_at(std::uint32_t, std::uint32_t, std::uint64_t start) const override {
    return static_cast<std::uint32_t>(random_below(ranks_, seed_, incast_entity, start));
  }
  bool sends_at(std::uint32_t source, std::uint64_t start) const override {
    const std::uint32_t to = destination_at(source, 0, start);
    if (source == to) return false;
    const std::uint32_t other = source < to ? source : source - 1;
    return shuffled(other, ranks_ - 1, seed_, incast_entity + 1 + start) < sources_;
  }
  bool common_starts() const override { return true; }
  std::uint64_t all_flows() const override { return sources_; }

 private:
  std::uint32_t ranks_, sources_;
  std::uint64_t seed_;
};

/// Compressed rows: the destinations of source s are destinations_[first_[s] .. first_[s + 1]).
class Pairs : public TrafficPattern {
 public:
  Pairs(std::uint32_t ranks, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs)
      : first_(std::size_t{ranks} + 1), destinations_(pairs.size()) {
    for (const auto& [source, destination] : pairs) ++first_[source + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    auto next = first_;
    for (const auto& [source, destination] : pairs) destinations_[next[source]++] = destination;
  }
  std::uint32_t flows(std::uint32_t source) const override { return first_[source + 1] - first_[source]; }
  std::uint32_t destination(std::uint32_t source, std::uint32_t index) const override {
    return destinations_[first_[source] + index];
  }
  std::uint64_t all_flows() const override { return destinations_.size(); }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> destinations_;
};

}  // namespace

std::vector<std::uint32_t> random_derangement(std::uint32_t ranks, std::uint64_t seed) {
  WEFT_EXPECT(ranks >= 2, "{} ranks", ranks);
  std::vector<std::uint32_t> order(ranks);
  std::uint64_t attempt = permutation_entity;
  while (!shuffle_without_fixed_points(order, seed, attempt)) ++attempt;
  return order;
}

std::unique_ptr<TrafficPattern> permutation_pattern(std::uint32_t ranks, std::uint64_t seed) {
  return std::make_unique<Permutation>(random_derangement(ranks, seed));
}

std::unique_ptr<TrafficPattern> shift_pattern(std::uint32_t ranks, std::uint32_t shift) {
  WEFT_EXPECT(shift > 0 && shift < ranks, "shift {} of {} ranks", shift, ranks);
  return std::make_unique<Rotation>(ranks, shift, 1);
}

std::unique_ptr<TrafficPattern> incast_pattern(std::uint32_t ranks, std::uint32_t destination, std::uint32_t sources) {
  WEFT_EXPECT(destination < ranks && sources < ranks, "{} sources to {} of {}", sources, destination, ranks);
  return std::make_unique<Incast>(ranks, destination, sources);
}

std::unique_ptr<TrafficPattern> random_incast_pattern(std::uint32_t ranks, std::uint32_t sources, std::uint64_t seed) {
  WEFT_EXPECT(sources > 0 && sources < ranks, "{} sources of {}", sources, ranks);
  return std::make_unique<RandomIncast>(ranks, sources, seed);
}

std::unique_ptr<TrafficPattern> uniform_pattern(std::uint32_t ranks, std::uint32_t group, std::uint32_t shift,
                                                std::uint64_t seed) {
  WEFT_EXPECT(group > 0 && ranks % group == 0 && (group > 1 || shift % (ranks / group) != 0),
              "{} ranks in groups of {}, shift {}", ranks, group, shift);
  return std::make_unique<Uniform>(ranks, group, shift, seed);
}

std::unique_ptr<TrafficPattern> all_to_all_pattern(std::uint32_t ranks) {
  return std::make_unique<Rotation>(ranks, 1, ranks - 1);
}

std::unique_ptr<TrafficPattern> pairs_pattern(std::uint32_t ranks,
                                              const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  return std::make_unique<Pairs>(ranks, pairs);
}

}  // namespace weft
