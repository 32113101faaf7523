// SPDX-License-Identifier: GPL-2.0-only
// Calls whose steps can be counted in a moment.
#pragma once

#include "schedule/collective/collective.hpp"

namespace weft {

/// A call, and how many of it the one that was asked for amounts to.
struct CountableCall {
  CollectiveCall call;
  double times = 1;
};

/// The call itself if a member of it has some million steps at most. Otherwise one of fewer bytes: what is done chunk
/// by chunk is done alike from chunk to chunk, so that counts of it, taken so many times, are those of the call to
/// within what its last chunks are shorter.
CountableCall countable(const CollectiveCall& call);

}  // namespace weft
