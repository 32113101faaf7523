# SPDX-License-Identifier: GPL-2.0-only
"""Routings that look at queues, for those that take one shortest path for each pair (docs/reference/topologies.md)."""

BY_QUEUES = {"dragonfly_minimal": "dragonfly_ugal", "dragonfly_minimal_lanes": "dragonfly_ugal",
             "dragonfly_plus_minimal": "dragonfly_plus_ugal", "dimension_order": "minimal_adaptive",
             "dimension_order_lanes": "minimal_adaptive"}
