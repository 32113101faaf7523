// SPDX-License-Identifier: GPL-2.0-only
// Routing of a dragonfly with virtual lanes: minimal, Valiant, UGAL with local queues, and progressive adaptive (J.
// Kim, W. Dally, S. Scott, D. Abts, ISCA 2008, section 4, doi:10.1109/ISCA.2008.19; N. Jiang, J. Kim, W. Dally,
// "Indirect adaptive routing on large scale interconnection networks", ISCA 2009, doi:10.1145/1555754.1555783).
#include "routing/dragonfly/dragonfly_lanes.hpp"

namespace weft {
namespace {

const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::never>> minimal_lanes(
    "dragonfly_minimal_lanes", "dragonfly: the minimal way in two virtual lanes, free of deadlock");
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::always>> valiant(
    "dragonfly_valiant", "dragonfly: over an intermediate group, chosen by the flow's hash");
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::by_queues>> ugal(
    "dragonfly_ugal", "dragonfly: minimal or over an intermediate group, by the queues of the first router (UGAL-L)");
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::progressive>> progressive(
    "dragonfly_progressive", "dragonfly: UGAL that may turn away at the second router of the first group, too (PAR)");
// Local links saturate, too, where many hosts of one router send to those of another (M. García, E. Vallejo, R.
// Beivide, et al., "On-the-fly adaptive routing for dragonfly interconnection networks", Journal of Supercomputing 71,
// 2015, doi:10.1007/s11227-014-1357-9); Slingshot's routers also choose among minimal and other paths (D. De Sensi et
// al., "An in-depth analysis of the Slingshot interconnect", SC 2020, arXiv:2008.08886).
const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::within_groups>> ugal_local(
    "dragonfly_ugal_local", "dragonfly: UGAL-L that makes detours within a group, too, over another of its routers");

}  // namespace
}  // namespace weft
