// SPDX-License-Identifier: GPL-2.0-only
// What the parts of settle_description() share, and these parts. Each one needs what those before it have settled.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "workloads/parallel/training_description.hpp"
#include "workloads/reading/device.hpp"

namespace weft {

/// Complaints about fields of a description, at the lines where these were said.
class Complaints {
 public:
  /// Largest number of anything that is counted: products of two stay within 64 bits.
  static constexpr std::int64_t max = std::int64_t{1} << 24;

  Complaints(const TrainingDescription& description, const SourceLine& otherwise)
      : description_(description), otherwise_(otherwise) {}

  /// Throws an InputError at the first of these fields that was said.
  [[noreturn]] void raise(std::initializer_list<const char*> fields, const std::string& message) const;
  void require(const char* field, std::int64_t value, std::int64_t min, std::int64_t largest = max) const;
  void require_precision(const char* field, const std::string& name,
                         const std::vector<std::string>& known = precision_names()) const;
  /// `ranks`, said by `field`, share out `amount` of something.
  void check_shares(const char* field, std::int64_t ranks, std::int64_t amount, const char* what) const;
  /// A product of ranks, at most `max`.
  std::int64_t ranks_of(std::initializer_list<std::int64_t> factors) const;

 private:
  const TrainingDescription& description_;
  const SourceLine& otherwise_;
};

/// "4 or 8": the divisors of `value` around `found`.
std::string near_divisors(std::int64_t value, std::int64_t found);
/// "8 or 16": the multiples of `unit` around `found`.
std::string near_multiples(std::int64_t unit, std::int64_t found);

/// `hosts`: accelerators of the machine, or 0 if there is none.
void settle_ranks_and_batches(TrainingDescription& description, std::int64_t hosts, const Complaints& complaints);
/// Sequences, heads, widths and experts by ranks.
void check_shapes(const TrainingDescription& description, const Complaints& complaints);
/// Stages, and the layers of multi-token prediction.
void settle_pipeline(TrainingDescription& description, const Complaints& complaints);
/// Names modules that no block has in `ignored`.
void check_recompute(TrainingDescription& description, const Complaints& complaints);

}  // namespace weft
