// SPDX-License-Identifier: GPL-2.0-only
// The step between two epochs: processes exchange packets and agree on the next epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/batch.hpp"
#include "engine/process_group.hpp"
#include "units/time.hpp"

namespace weft {

class CoreTurns;
class Gate;

/// The vote of a process between two epochs, and the combination of all votes.
struct EpochVote {
  Time next = Time::max();     ///< earliest thing to do, also of what is being handed over; min over processes
  bool stop = false;           ///< end the run here; any
  bool pause = false;          ///< do something together before the next epoch; any
  std::uint64_t critical = 0;  ///< events on the longest chain of the last epoch; max
};

/// One barrier of all processes per epoch, which carries the batches for the neighbours too. Processes of one host wait
/// in an MPI shared-memory window: each writes its vote and batches there and reads those of the others, twice the time
/// of a cache miss per process. Batches that do not fit there, and batches to other hosts, travel as MPI messages;
/// votes between hosts are reduced by one process per host.
class EpochExchange {
 public:
  struct Options {
    /// Memory of a host for batches, all of its processes together. OpenMPI keeps it in /dev/shm, of which containers
    /// have 64 MiB by default.
    std::size_t shared_bytes = std::size_t{32} << 20;
    /// Assume that a host has at most this many processes (0: as many as there are): for tests of the other path.
    int processes_per_host = 0;
    /// Let processes that share cores take turns (CoreTurns); otherwise the kernel schedules them.
    bool turns = true;
  };

  /// Collective. `neighbours`: ranks with which batches are exchanged; both sides list each other, once.
  EpochExchange(ProcessGroup& group, std::span<const int> neighbours, const Options& options);
  EpochExchange(ProcessGroup& group, std::span<const int> neighbours) : EpochExchange(group, neighbours, Options()) {}
  /// Collective, unless an exception is on its way.
  ~EpochExchange();
  EpochExchange(const EpochExchange&) = delete;
  EpochExchange& operator=(const EpochExchange&) = delete;

  /// Receives the batch of neighbours[i]; valid during the call.
  using Take = std::function<void(std::size_t i, std::span<const std::byte> batch)>;
  /// Whether this process may arrive at the next barrier before it has done its part of the epoch.
  bool may_arrive_early() const;
  /// Arrives at the next barrier, without waiting: publishes the vote `mine`, and sends outgoing[i] to neighbours[i].
  void arrive(const EpochVote& mine, std::span<const Batch> outgoing);
  /// Collective. Waits until all have arrived; returns the combined vote. Unless the vote is to stop, to pause, or that
  /// nothing is left to do, processes may continue one after another, and wait for each other only at the next barrier.
  /// `outgoing`, as it was when this process arrived, is empty afterwards; packets that are added next are already in
  /// shared memory, as far as they fit. So the batches must be the same at each barrier, and exist until end_loans() is
  /// called or this object is destroyed. `take` is called for each batch that is not empty, in the order of neighbours.
  EpochVote wait(std::span<Batch> outgoing, const Take& take);
  /// Outgoing batches need not exist any more until the next barrier.
  void end_loans();

  /// Wall-clock seconds that this process has waited for others.
  double wait_seconds() const { return wait_seconds_; }
  /// Batches, or parts of them, that travelled as MPI messages.
  std::uint64_t mpi_batches() const { return mpi_batches_; }

 private:
  struct SharedMemory;
  struct Board;

  void join_hosts(const Options& options);
  void build_shared_memory(std::size_t bytes);
  void send(std::span<const Batch> outgoing);
  void lend_slots(std::span<Batch> batches);
  void take_turns();
  /// A separate function, so that counts of instructions can exclude it: how long it waits varies from run to run.
  [[gnu::noinline]] void await_others();
  void wait_for_all();
  void wait_for_turn();
  void wait_for(const std::uint64_t& counter, Gate& gate);
  EpochVote reduce_here() const;
  EpochVote reduce_everywhere(const EpochVote& here);
  void receive(const Take& take);

  ProcessGroup& group_;
  std::vector<int> neighbours_;
  std::unique_ptr<SharedMemory> shared_;  // none if this process is alone on its host
  MPI_Comm leaders_ = MPI_COMM_NULL;      // one process per host; null elsewhere
  bool several_hosts_ = false;
  int spin_limit_ = 0;                // looks before going to sleep
  std::unique_ptr<CoreTurns> turns_;  // if all processes are on this host and share its cores
  std::uint64_t barriers_ = 0;        // at which this process has arrived
  bool last_ = false;                 // it has arrived last of its host, or is alone
  EpochVote mine_;                    // what it has said
  std::span<Batch> lent_;             // those to which slots of the shared memory have been lent
  std::vector<std::byte> assembled_;
  std::uint64_t mpi_batches_ = 0;
  double wait_seconds_ = 0;
};

}  // namespace weft
