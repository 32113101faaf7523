// SPDX-License-Identifier: GPL-2.0-only
// UGAL-G on a dragonfly: the first router compares the minimal way with a detour by the queues of the global links that
// they take, wherever in the group these links leave (J. Kim, W. Dally, S. Scott, D. Abts, ISCA 2008, section 4.2,
// doi:10.1109/ISCA.2008.19: "UGAL-G", which takes the queues of all global channels of the source's group for known).
//
// In the paper routers know these queues at once. Here each router reports the queues of its global links to the other
// routers of its group, over their local links: at multiples of `network.queue_reports.interval` a report of each queue
// that has changed, which takes effect when a frame of 84 B would have crossed the link, and `delay` later. So a router
// knows what was true one link's delay ago or earlier, as it could in a machine, and a report may cross from one
// process to another like a packet: results do not depend on the number of processes. A longer interval or delay shows
// the cost of old knowledge. Reports take no bandwidth. The queue of the router's own port towards that link is added.
#include "routing/dragonfly/dragonfly_lanes.hpp"

namespace weft {
namespace {

const Registration<RoutingAlgorithm, DragonflyLanesRouting<Detours::by_reported_queues>>
    dragonfly_global_routing_registration(
        "dragonfly_ugal_g",
        "dragonfly: minimal or over an intermediate group, by the queues of the group's global links (UGAL-G)");

}  // namespace
}  // namespace weft
