// SPDX-License-Identifier: GPL-2.0-only
// What a workload will put on which links, without running it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/running/experiment.hpp"
#include "support/system/progress.hpp"

namespace weft {

/// Totals over all ranks but those of background jobs, from walking the programs and the steps of every collective.
struct Volume {
  std::uint64_t messages = 0;
  std::uint64_t connections = 0;  ///< of a communicator's channel from one rank to another, or of sends
  Bytes payload;
  std::uint64_t data_packets = 0;
  std::uint64_t control_packets = 0;      ///< ACKs and credits
  std::uint64_t packet_hops = 0;          ///< expected: all shortest paths of a pair have the same length
  std::uint64_t hops_inside_servers = 0;  ///< of these, between hosts of one server
  std::vector<Bytes> wire_by_class;       ///< [link classes], both directions, with headers and overheads
  Time busiest_compute;                   ///< compute time of the rank that has most
  std::uint64_t operations = 0;
  std::map<std::string, std::uint64_t> operations_of_kind;  ///< "compute", "all_reduce", ..., "send", "recv"
  std::uint32_t walked = 0;  ///< ranks whose programs were walked, if not all; they stand for the others of their kinds
};

/// Walks all ranks if they are few, or each of a kind of its own with not too many messages in all; else some of each
/// kind, or of each job, evenly spread over it.
Volume expected_volume(const Experiment& experiment, Progress& progress);

}  // namespace weft
