// SPDX-License-Identifier: GPL-2.0-only
// What a workload knows of itself beyond its operations: parameters, model FLOPs, memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Memory of the ranks of one kind (Workload::kind_of), at the worst moment of a step.
struct MemoryOfRanks {
  std::vector<std::pair<std::string, std::int64_t>>
      parts;             ///< ("parameters", bytes), ...; the same names for all kinds
  std::int64_t sum = 0;  ///< bytes of the device
};

/// A kernel of a part of the model, for people.
struct KernelLine {
  std::string part;   ///< "block", "embedding", "head", "step"
  std::string pass;   ///< "forward", "backward", ...
  std::string place;  ///< the segment of the pass
  std::string kernel;
  double flops = 0;
  double bytes = 0;
  Time time;
};

/// All numbers are of one step, and of the ranks that are simulated.
struct WorkloadReport {
  std::uint32_t steps = 1;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  ///< that one token passes
  double sequences = 0;                ///< of a step, over all ranks
  double tokens = 0;                   ///< the same
  double copies = 1;  ///< jobs of these ranks that make up the whole one: data-parallel copies may stand for others
  /// Forward pass and twice as much backward, without what is computed again; scores of attention counted in full, or
  /// only those that a causal mask leaves.
  double model_flops = 0;
  double model_flops_causal = 0;
  std::vector<MemoryOfRanks> memory;  ///< by kind of ranks
  Bytes device_memory;                ///< of one rank's device; 0: not known
  /// Idle share of a step by the pipeline schedule's closed form, if there is one; and the form, for people.
  std::optional<double> bubble;
  std::string bubble_formula;

  /// The kind of ranks that needs most.
  std::uint32_t fullest() const;
  bool fits() const {
    return memory.empty() || device_memory == Bytes(0) || Bytes(memory[fullest()].sum) <= device_memory;
  }
  /// One line: "memory: 68.9 GB of 80.0 GB on the fullest rank; it fits" or "OUT OF MEMORY: ...".
  std::string verdict() const;
};

}  // namespace weft
