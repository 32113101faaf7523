// SPDX-License-Identifier: GPL-2.0-only
// Setting ns-3 attributes by config path from an experiment.
#pragma once

#include <cstddef>
#include <string>

#include "support/documents/spec.hpp"

namespace weft {

/// Set one attribute, such as "/Names/host3/DeviceList/0/DataRate", on all objects of this process that the path leads
/// to, as ns3::Config::Set does; returns their number. Throws InputError at `value` for what is no path, names an
/// unknown type or attribute, or an attribute that cannot be set or not to this value. Rates, times and bytes are
/// written as elsewhere in an experiment.
std::size_t set_ns3_attribute(const std::string& path, const Spec& value);

}  // namespace weft
