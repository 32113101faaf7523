// SPDX-License-Identifier: GPL-2.0-only
// A workload: the programs of all ranks, read from an experiment file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedule/placement.hpp"
#include "schedule/program.hpp"
#include "support/registry.hpp"
#include "support/spec.hpp"

namespace weft {

/// What a reader may need to know of the machine and the run.
struct WorkloadContext {
  std::uint32_t hosts = 0;  ///< accelerators of the machine: ranks may not exceed it
  std::uint64_t seed = 1;
  Bandwidth host_rate;    ///< rate of a host's port
  Bytes mtu;              ///< payload bytes per packet
  Bytes packet_overhead;  ///< wire bytes of a data packet beyond its payload
  std::string directory;  ///< of the experiment file: relative paths start there
  ServerGrid servers;     ///< if the machine has servers of several accelerators
};

/// Expected volume, for `describe`, progress and partition weights.
struct WorkloadEstimate {
  std::uint64_t messages = 0;  ///< data messages of all ranks
  Bytes bytes;                 ///< payload bytes sent over the network by all ranks
  Time compute;                ///< compute time of the busiest rank
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::uint32_t ranks() const = 0;
  /// The program of one rank; called on the MPI rank that owns its host, once.
  virtual std::unique_ptr<RankProgram> program(Rank rank) const = 0;
  /// Collective calls of all ranks: ids from 0 to call_count() - 1.
  virtual std::uint64_t call_count() const = 0;
  /// A call by its id; made when asked for. Its communicator lives as long as the workload.
  virtual CollectiveCall call(std::uint32_t id) const = 0;
  virtual WorkloadEstimate estimate() const = 0;
  /// Lines for `weft describe`: ("parameters", "124,439,808"), ...
  virtual std::vector<std::pair<std::string, std::string>> description() const = 0;
  /// When a rank starts its program.
  virtual Time start(Rank) const { return Time(); }
  /// Hosts of the ranks if the workload itself says so, else nothing.
  virtual const Placement* placement() const { return nullptr; }
  /// The operations are the user's own: if they wait for each other for ever, the input is wrong, not weft.
  virtual bool from_user() const { return false; }
};

/// Reads the `workload:` map of an experiment whose `kind` is the name it is registered by (kind itself has been read).
class WorkloadReader {
 public:
  virtual ~WorkloadReader() = default;
  virtual std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const = 0;
};
using WorkloadRegistry = Registry<WorkloadReader>;

}  // namespace weft
