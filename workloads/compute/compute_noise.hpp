// SPDX-License-Identifier: GPL-2.0-only
// Compute times that are not all the same: jitter, a spread between ranks, slow ranks, and temporary stragglers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/program.hpp"
#include "support/documents/spec.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

/// The map `compute_noise` of a workload. No state: a stretched time is a function of the seed and the arguments, so it
/// is the same on any number of MPI processes and in any order of asking.
class ComputeNoise {
 public:
  enum class Shape : std::uint8_t {
    lognormal,  ///< exp(s z - s^2/2) with s^2 = ln(1 + d^2): mean 1, standard deviation d
    normal,     ///< 1 + d z, z cut to +-3, at least 0
  };
  struct Stragglers {
    double probability = 0;  ///< of a rank to be slow in an interval
    double factor = 1;
    Time interval;  ///< time is cut into intervals of this length, from 0 on
  };

  ComputeNoise() = default;
  /// Reads and finishes the map. `ranks`: how many there are. `copies`: how many ranks of the job each of them stands
  /// for, at least 1, maybe not a whole number. Throws InputError.
  ComputeNoise(const Spec& map, std::uint32_t ranks, std::uint64_t seed, double copies = 1);

  /// Nothing is stretched.
  bool none() const { return jitter_ == 0 && spread_ == 0 && slow_ranks_.empty() && !stragglers_; }
  /// `duration` times the factors of the rank (`slow_ranks`, and the one that `spread` draws for the whole run), that
  /// of jitter (drawn for each operation), and that of a straggler if the rank is one in the interval in which the
  /// operation starts. Rounded to ps, at most 2^62 ps.
  Time stretched(Rank rank, std::uint64_t operation, Time duration, Time now) const;
  /// Lines for Workload::description(): the rank of the first `ranks` that `spread` and `slow_ranks` make slowest,
  /// which a step of ranks that wait for each other takes as long as; none without these.
  std::vector<std::pair<std::string, std::string>> description(std::uint32_t ranks) const;

 private:
  /// What holds for the whole run: `spread` and `slow_ranks`.
  double factor_of_rank(Rank rank) const;
  /// Of a standard normal number: a factor of mean 1 and this standard deviation, distributed as `shape_` says.
  double factor_of(double z, double deviation) const;

  std::uint64_t seed_ = 0;
  double jitter_ = 0;
  double spread_ = 0;  ///< standard deviation of the ranks' factors
  double copies_ = 1;  ///< a rank's factor is the largest of so many
  Shape shape_ = Shape::lognormal;
  std::map<std::uint32_t, double> slow_ranks_;
  std::optional<Stragglers> stragglers_;
};

/// A program whose compute operations are lengthened by the noise; the program itself if there is none. The noise
/// outlives it.
std::unique_ptr<RankProgram> with_noise(std::unique_ptr<RankProgram> program, Rank rank, const ComputeNoise& noise);

/// A standard normal number made the largest of `copies` of them: z with Phi(result) = Phi(z)^(1/copies), because the
/// largest of k is below x with the probability Phi(x)^k (David and Nagaraja, Order Statistics, section 2.1). So the
/// largest of n results is distributed as the largest of n * copies numbers.
double largest_of_copies(double z, double copies);

/// "2 %" or 0.02 -> 0.02; between 0 and `max`. Throws InputError.
double read_share(const Spec& value, double max);

}  // namespace weft
