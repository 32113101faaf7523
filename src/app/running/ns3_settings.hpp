// SPDX-License-Identifier: GPL-2.0-only
// `network.ns3_attributes` of an experiment.
#pragma once

#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"

namespace weft {

/// Collective: sets the experiment's ns-3 attributes on the simulation's nodes, ports and links. Before the run. Throws
/// AgreedFailure if one names nothing or has a wrong value.
void apply_ns3_attributes(const Experiment& experiment, Simulation& simulation);

}  // namespace weft
