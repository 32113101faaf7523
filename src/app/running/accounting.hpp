// SPDX-License-Identifier: GPL-2.0-only
// `accounting:` of an experiment: what costs, energy and emissions are counted with (docs/reference/accounting.md). A
// run does not need it; `weft account`, studies and reports do.
#pragma once

#include <string>
#include <vector>

#include "support/documents/spec.hpp"

namespace weft {

/// Looks at every key and value of the map. Figures, accelerators and regions are those of
/// `workloads/accounting/figures.yaml`. Throws InputError with the line of what is wrong.
void check_accounting(const Spec& spec);

/// Looks whether each class of `cable_lengths` is one of the topology's.
void check_cable_lengths(const Spec& spec, const std::vector<std::string>& link_classes);

}  // namespace weft
