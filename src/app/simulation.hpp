// SPDX-License-Identifier: GPL-2.0-only
// One experiment on the processes of a group, from building to the end of simulated time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/experiment.hpp"
#include "engine/process_group.hpp"
#include "fabric/fabric.hpp"
#include "graph/partition.hpp"
#include "runtime/runtime.hpp"

namespace weft {

enum class EngineChoice { weft, ns3_default };

/// How a run went on this process.
struct RunFacts {
  bool interrupted = false;
  Time simulated;           ///< time of the last event of any process
  double wall_seconds = 0;  ///< of the run itself, without building
  double build_seconds = 0;
  std::uint64_t packet_hops = 0;  ///< of all processes
  std::uint64_t events = 0;       ///< of all processes: packet arrivals, timers and decisions of NICs
  std::uint64_t messages = 0;     ///< delivered, of all processes
  std::uint64_t bytes_delivered = 0;
  std::uint64_t windows = 0;
  std::uint64_t critical_events = 0;  ///< events / this: how many MPI ranks could work at the same time
  double wait_seconds = 0;            ///< of this process for others
};

/// Builds this process's part and runs it. Collective over the group in every function.
class Simulation {
 public:
  Simulation(const Experiment& experiment, ProcessGroup group, EngineChoice engine);
  ~Simulation();

  Fabric& fabric() { return *fabric_; }
  Runtime& runtime() { return *runtime_; }
  const Partition& partition() const { return partition_; }
  ProcessGroup& group() { return group_; }

  /// `look` is called now and then with the simulated time; if it returns true on any process, the run is interrupted.
  /// Throws InternalError if conservation is broken. Call once.
  RunFacts run(const std::function<bool(Time)>& look);
  /// Ranks of the job, on all processes, that have not done all they should. 0: complete.
  std::uint64_t unfinished_ranks() const;

 private:
  void run_windows(const std::function<bool(Time)>& look, RunFacts& facts);
  void run_reference(const std::function<bool(Time)>& look, RunFacts& facts);

  ProcessGroup group_;
  EngineChoice engine_;
  Partition partition_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Runtime> runtime_;
  double build_seconds_ = 0;
};

}  // namespace weft
