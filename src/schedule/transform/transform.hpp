// SPDX-License-Identifier: GPL-2.0-only
// `workload.transform`: what if the operations were others (docs/reference/traces.md).
#pragma once

#include <memory>

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// The workload with all changes of the list, one after another, on the stream of its operations: `scale`, `remove`,
/// `fuse`, `resize` and `repeat`; `move` is for moved(). Reads and finishes the list. Throws InputError.
std::unique_ptr<Workload> transformed(std::unique_ptr<Workload> workload, const Spec& list);

/// Where the ranks are after all `move`s of the list. Throws InputError.
Placement moved(const Placement& placement, std::uint32_t ranks, const Spec& list);

}  // namespace weft
