// SPDX-License-Identifier: GPL-2.0-only
// How topologies read the rates and delays of their links.
#pragma once

#include <string>

#include "support/spec.hpp"
#include "units/bandwidth.hpp"
#include "units/time.hpp"

namespace weft {

/// What a family of machines says of its links.
struct LinkSpec {
  Bandwidth rate;  ///< of each direction, > 0
  Time delay;      ///< propagation, > 0
};

/// A delay that is not 0, else InputError at its place. (Spec::bandwidth() refuses rates of 0 itself.)
Time read_link_delay(const Spec& value);

/// `link_rate` and `link_delay` of a map; both must be there.
LinkSpec read_link(const Spec& map);
/// `<prefix>_rate` and `<prefix>_delay` of a map; each may be absent and is then that of `otherwise`.
LinkSpec read_link(const Spec& map, const std::string& prefix, const LinkSpec& otherwise);

}  // namespace weft
