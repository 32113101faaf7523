// SPDX-License-Identifier: GPL-2.0-only
// `weft run --verify`: the same experiment once more, in the plainest way there is.
#pragma once

#include <cstdint>
#include <string>

#include "app/running/experiment.hpp"
#include "engine/process_group.hpp"

namespace weft {

/// Collective: process 0 alone simulates the experiment under ns-3's own engine (one ns-3 event per packet arrival, no
/// epochs) and compares every row with the results in `output`, whose fingerprint is `fingerprint`. Throws
/// AgreedFailure with the first differences and exit code 70 if they differ, and leaves the other file beside `output`.
void verify_against_reference(const Experiment& experiment, const std::string& output, std::uint64_t fingerprint,
                              ProcessGroup& group);

}  // namespace weft
