// SPDX-License-Identifier: GPL-2.0-only
// `network.loggp`: what messages cost in the LogGOPS model.
#pragma once

#include "support/documents/spec.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// The LogGOPS model: T. Hoefler, T. Schneider, A. Lumsdaine, "LogGOPSim - Simulating Large-Scale Applications in the
/// LogGOPS Model" (HPDC 2010, doi:10.1145/1851476.1851564), which adds O and S to LogGP (Alexandrov, Ionescu, Schauser,
/// Scheiman, 1995, doi:10.1145/215399.215427). Defaults: those of LogGOPSim's simulator.ggo.
struct LogGpParameters {
  Time latency = Time::from_ns(2500);    ///< L
  Time overhead = Time::from_ns(1500);   ///< o: of the processor, for each message that it sends or receives
  Time gap = Time::from_ns(1000);        ///< g: from one message of a NIC to the next
  Time gap_per_byte = Time::from_ns(6);  ///< G: and for each byte but the first
  Time overhead_per_byte;                ///< O: of the processor, for each byte but the first
  Bytes eager{65535};                    ///< S: larger messages complete when their recv has met them
};

/// Reads and finishes the map. Throws InputError.
LogGpParameters read_loggp(const Spec& map);

}  // namespace weft
