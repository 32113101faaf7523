// SPDX-License-Identifier: GPL-2.0-only
// The changes that `workload.transform` can make, each as a workload before another one.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// Whether a name fits a pattern of a shell: `*`, `?`, `[a-z]` (POSIX.1-2017, XCU 2.13).
bool fits_pattern(const std::string& pattern, const std::string& name);

/// Whether a computation is meant: by its label, or what it computes.
bool is_kernel(const Operation& operation, const std::string& pattern);

/// Which calls are meant. All that is given has to fit.
struct CallChoice {
  std::string pattern = "*";                 ///< of the call's label or its kind
  std::vector<std::uint32_t> communicators;  ///< by their numbers; empty: all
  bool fits(const CollectiveCall& call) const;
};

/// Computations of devices, or of hosts, take `factor` times as long: those of `ranks`, or of all if there are none.
std::unique_ptr<Workload> with_scaled_kernels(std::unique_ptr<Workload> inner, Worker worker,
                                              const std::string& pattern, double factor,
                                              const std::set<std::uint32_t>& ranks);
/// Computations or collectives are not there: what waited for one waits for what it waited for. Exactly one of both is
/// given.
std::unique_ptr<Workload> without_kernels(std::unique_ptr<Workload> inner, const std::string& pattern);
std::unique_ptr<Workload> without_calls(std::unique_ptr<Workload> inner, const CallChoice& choice);
/// Computations that stand next to each other on a stream are one, `factor` times as long as all of them.
std::unique_ptr<Workload> with_fused_kernels(std::unique_ptr<Workload> inner, const std::string& pattern,
                                             double factor);
/// Collectives of `factor` times the bytes. Throws InputError at `where` if an algorithm cannot do such a call.
std::unique_ptr<Workload> with_resized_calls(std::unique_ptr<Workload> inner, const CallChoice& choice, double factor,
                                             const Spec& where);
/// All again, `times` in all: a rank begins again when it has done everything. Throws InputError at `where`.
std::unique_ptr<Workload> repeated(std::unique_ptr<Workload> inner, std::uint32_t times, const Spec& where);

}  // namespace weft
