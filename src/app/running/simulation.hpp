// SPDX-License-Identifier: GPL-2.0-only
// One experiment on the processes of a group, from building to the end of simulated time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/running/experiment.hpp"
#include "engine/parallel_simulator_impl.hpp"
#include "engine/process_group.hpp"
#include "fabric/client/host_network.hpp"
#include "fabric/network/fabric.hpp"
#include "graph/partition/partition.hpp"
#include "internet/transfer_log.hpp"
#include "runtime/execution/runtime.hpp"

namespace weft {

class Ns3View;

enum class EngineChoice { weft, ns3_default };

/// How a run went on this process.
struct RunFacts {
  bool interrupted = false;
  bool cut_short = false;  ///< by simulation.until, with packets or operations under way
  bool outlived = false;   ///< complete; what background jobs still had to do was left undone
  Time simulated;  ///< time of the last event of any process, or when the run was ended with something still to do
  double wall_seconds = 0;  ///< of the run itself, without building
  double build_seconds = 0;
  double processor_seconds = 0;   ///< of this process, for both
  std::uint64_t packet_hops = 0;  ///< of all processes
  std::uint64_t events = 0;       ///< of all processes: packet arrivals, timers and decisions of NICs
  std::uint64_t messages = 0;     ///< delivered, of all processes
  std::uint64_t bytes_delivered = 0;
  std::uint64_t operations = 0;  ///< executed by all ranks
  std::uint64_t epochs = 0;
  std::uint64_t critical_events = 0;  ///< events / this: how many MPI ranks could work at the same time
  double wait_seconds = 0;            ///< of this process for others
  CongestionTotals congestion;        ///< of all processes

  double hops_per_epoch() const {
    return epochs == 0 ? 0 : static_cast<double>(packet_hops) / static_cast<double>(epochs);
  }
  /// Events per event of the busiest node of each epoch: more MPI processes than this give no speed-up. 0 if not known
  /// (ns-3's own engine).
  double parallelism() const {
    return critical_events == 0 ? 0 : static_cast<double>(events) / static_cast<double>(critical_events);
  }
};

/// Builds this process's part and runs it. Collective over the group in every function.
class Simulation {
 public:
  Simulation(const Experiment& experiment, ProcessGroup group, EngineChoice engine);
  ~Simulation();

  HostNetwork& network() { return *network_; }
  /// The network moves packets, and is fabric().
  bool has_fabric() const { return fabric_ != nullptr; }
  Fabric& fabric();
  Runtime& runtime() { return *runtime_; }
  const Partition& partition() const { return partition_; }
  ProcessGroup& group() { return group_; }

  using Look = ParallelSimulatorImpl::Look;
  using Looker = std::function<Look(Time)>;
  /// `look` is called from time to time with the simulated time: `stop` on any process interrupts the run; if any
  /// process returns `pause`, all call the function of set_on_pause() (not under ns-3's own engine, which does not know
  /// when everything before a time has happened). Throws InternalError if conservation is broken. Call once.
  RunFacts run(const Looker& look);
  void set_on_pause(std::function<void(Time now)> action) { on_pause_ = std::move(action); }
  /// Ranks of all jobs but those in the background, on all processes, that have not done all they should. 0: complete.
  std::uint64_t unfinished_ranks() const;
  /// Of the experiment's background; no rows without one. Whole rows after the run.
  const TransferLog& transfers() const { return transfers_; }

 private:
  void build_network(const Experiment& experiment);
  void start_background();
  bool transfers_unfinished();
  void refuse_deadlock(Time stopped_by);
  void refuse_path(Time time);
  CongestionTotals congestion();
  void run_epochs(const Looker& look, RunFacts& facts);
  void run_reference(const Looker& look, RunFacts& facts);
  void run_events(RunFacts& facts);
  void run_engine();

  ProcessGroup group_;
  EngineChoice engine_;
  Time until_;
  Time background_check_;
  Partition partition_;
  std::unique_ptr<HostNetwork> network_;
  Fabric* fabric_ = nullptr;  // the same if its fidelity is packet
  std::unique_ptr<Runtime> runtime_;
  const Experiment& experiment_;
  TransferLog transfers_;
  std::unique_ptr<Ns3View> view_;  // of the background; goes before the network
  std::function<void(Time)> on_pause_;
  double build_seconds_ = 0;
  double processor_seconds_ = 0;
};

}  // namespace weft
