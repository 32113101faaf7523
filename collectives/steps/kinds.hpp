// SPDX-License-Identifier: GPL-2.0-only
// Kinds of collectives that algorithms have in common.
#pragma once

#include "schedule/collective/collective.hpp"

namespace weft {

/// An all-reduce, or one of the two phases that it can be made of: reduce-scatter and all-gather (Rabenseifner's
/// algorithm; Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005).
constexpr bool is_all_reduce_or_phase(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_gather;
}

}  // namespace weft
