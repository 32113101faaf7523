// SPDX-License-Identifier: GPL-2.0-only
// Which flow control the links of each class have.
#pragma once

#include <vector>

#include "fabric/parameters/switch_parameters.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Of each class of links of a machine, in the order of Topology::link_classes. Unless `network.link_classes` says
/// otherwise it is that of the network; but links inside servers have credits where the network has PFC: NVLink (Foley
/// and Danskin, "Ultra-performance Pascal GPU and NVLink interconnect", IEEE Micro 37(2), 2017, doi:10.1109/MM.2017.37)
/// and PCI Express (Base Specification 2.6) are credit-based and know no pause frames.
/// Throws InputError for a class that the machine does not have.
std::vector<FlowControl> flow_control_of_classes(const SwitchParameters& parameters, const Topology& topology);

}  // namespace weft
