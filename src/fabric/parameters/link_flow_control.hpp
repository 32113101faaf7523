// SPDX-License-Identifier: GPL-2.0-only
// Which flow control the links of each class have.
#pragma once

#include <vector>

#include "fabric/parameters/switch_parameters.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Whether links inside servers have credits unless `network.link_classes` says otherwise: where the network has PFC,
/// or no flow control and buffers that may overflow. NVLink (Foley and Danskin, "Ultra-performance Pascal GPU and
/// NVLink interconnect", IEEE Micro 37(2), 2017, doi:10.1109/MM.2017.37) and PCI Express (Base Specification 2.6) are
/// credit-based: they know no pause frames, and lose nothing for want of room. Where queues have no end, what waits
/// inside a server waits there with and without credits.
bool has_credits_inside_servers(const SwitchParameters& parameters);

/// Of each class of links of a machine, in the order of Topology::link_classes: that of the network, or credits inside
/// servers, or what `network.link_classes` says.
/// Throws InputError for a class that the machine does not have.
std::vector<FlowControl> flow_control_of_classes(const SwitchParameters& parameters, const Topology& topology);

}  // namespace weft
