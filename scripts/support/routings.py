# SPDX-License-Identifier: GPL-2.0-only
"""Routings that may serve a run better than its own (docs/reference/topologies.md)."""


# Those that look at queues, for those that take one shortest path for each pair.
BY_QUEUES = {"dragonfly_minimal": "dragonfly_ugal", "dragonfly_minimal_lanes": "dragonfly_ugal",
             "dragonfly_plus_minimal": "dragonfly_plus_ugal", "dimension_order": "minimal_adaptive",
             "dimension_order_lanes": "minimal_adaptive"}

# Those that choose between the dimensions of a torus or a grid, in which traffic along one dimension has no choice.
BETWEEN_DIMENSIONS = ("minimal_adaptive",)

# Those that know the queues of all global links of a group, for those that know the queues of one router: without flow control,
# which fills the buffers on the way to a busy global link, one router sees none of its queue (UGAL-G and UGAL-L).
BY_REPORTS = {
    **dict.fromkeys(("dragonfly_ugal", "dragonfly_ugal_local", "dragonfly_progressive"), "dragonfly_ugal_g"),
    **dict.fromkeys(("dragonfly_plus_ugal", "dragonfly_plus_progressive"), "dragonfly_plus_ugal_g")}

# Those that choose a port for each packet by themselves, so that `network.load_balancing` may only be `ecmp` or `spray`. Of the
# first ones each flow has its path by its hash, so that `spray` gives the flow more paths.
BY_HASH = ("dragonfly_valiant", "dragonfly_plus_valiant", "shortest_path_valiant", "shortest_path_lanes", "dragonfly_minimal_lanes",
           "dimension_order_lanes")
BY_THEMSELVES = (*BY_HASH, *BY_REPORTS, *BY_REPORTS.values(), "minimal_adaptive", "shortest_path_ugal")


def alternatives(routing):
    """Names of routings to try in place of `routing`."""
    first = BY_QUEUES.get(routing)
    names = [first, BY_REPORTS.get(first), BY_REPORTS.get(routing)]
    return list(dict.fromkeys(name for name in names if name))
