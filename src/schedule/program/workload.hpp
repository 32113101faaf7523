// SPDX-License-Identifier: GPL-2.0-only
// A workload: the programs of all ranks, read from an experiment file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/placement.hpp"
#include "schedule/program/program.hpp"
#include "schedule/program/shared_reading.hpp"
#include "schedule/program/workload_report.hpp"
#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"

namespace weft {

using ChannelGraphs = std::function<std::shared_ptr<const ChannelGraph>(const Communicator&)>;

/// Facts about the machine and the run that a reader may need.
struct WorkloadContext {
  std::uint32_t hosts = 0;  ///< accelerators of the machine: ranks may not exceed it
  std::uint64_t seed = 1;
  Bandwidth host_rate;           ///< rate of a host's port
  Bytes mtu;                     ///< payload bytes per packet
  Bytes packet_overhead;         ///< wire bytes of a data packet beyond its payload
  bool endless = false;          ///< what is repeated may go on without an end: a background job
  std::string directory;         ///< of the experiment file: relative paths start there
  ServerGrid servers;            ///< if the machine has servers of several accelerators
  bool switches_reduce = false;  ///< some of its switches have units for reductions
  bool nccl = false;             ///< how fast NCCL runs on its servers is known: calls are its choice by default
  /// The channels of a communicator of this workload's ranks. Absent if no rank is placed yet, or if the machine has no
  /// servers of several accelerators; null for members without such a graph.
  ChannelGraphs channel_graphs;
  std::vector<std::uint32_t> storage;  ///< hosts that are storage and no accelerators, ascending; not in `hosts`
  /// When the last rank of this workload that is no storage target has done its last operation on the ideal network,
  /// without other workloads of the experiment, with some values of its map replaced (dotted path from there, YAML
  /// text). Runs the whole workload in this process. Absent where there is no experiment. Throws InputError.
  std::function<Time(const std::vector<std::pair<std::string, std::string>>& changes)> ideal_time;

  /// The other processes of the run, if they read the same at the same time.
  std::shared_ptr<const SharedReading> sharing = std::make_shared<ReadingAlone>();

  std::uint32_t all_hosts() const { return hosts + static_cast<std::uint32_t>(storage.size()); }
};

/// Expected volume, for `describe`, progress and partition weights.
struct WorkloadEstimate {
  std::uint64_t messages = 0;  ///< data messages of all ranks
  Bytes bytes;                 ///< payload bytes sent over the network by all ranks
  Time compute;                ///< compute time of the busiest rank
};

/// One of several jobs that run on a machine at the same time: consecutive ranks and collective calls of the workload.
struct JobInfo {
  std::string name;
  std::uint32_t first_rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t first_call = 0;
  std::uint32_t calls = 0;
  Time start;                       ///< of its ranks' programs
  std::uint64_t steps = 1;          ///< alike, one after another
  bool background = false;          ///< ends when all others have ended
  std::uint32_t storage_ranks = 0;  ///< the last so many of its ranks are storage targets
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::uint32_t ranks() const = 0;
  /// The last so many of the ranks are storage targets: on a machine with storage hosts they are placed on these.
  virtual std::uint32_t storage_ranks() const { return 0; }
  /// The program of one rank; called on the MPI rank that owns its host, once.
  virtual std::unique_ptr<RankProgram> program(Rank rank) const = 0;
  /// Collective calls of all ranks: ids from 0 to call_count() - 1.
  virtual std::uint64_t call_count() const = 0;
  /// A call by its id; created on demand. Its communicator lives as long as the workload.
  virtual CollectiveCall call(std::uint32_t id) const = 0;
  virtual WorkloadEstimate estimate() const = 0;
  /// Lines for `weft describe` below that of ranks(): ("parameters", "124,439,808"), ...
  virtual std::vector<std::pair<std::string, std::string>> description() const = 0;
  /// Iterations or training steps: parts of the work that are alike.
  virtual std::uint64_t steps() const { return 1; }
  /// In order of their ranks; every rank and every call belongs to one.
  virtual std::vector<JobInfo> jobs() const {
    return {{"job", 0, ranks(), 0, static_cast<std::uint32_t>(call_count()), Time(), steps(), false, storage_ranks()}};
  }
  /// With background jobs: how often to check whether the others have ended.
  virtual Time background_check() const { return Time::max(); }
  /// Ranks of one kind have the same operations, except for peers, communicators, and sizes and times that depend on
  /// uneven routing. Kinds are numbered from 0; the first rank of a kind stands for all in reports. Where kinds
  /// communicate with each other, their first ranks do. Unless a workload knows better, each rank is a kind of its own.
  virtual std::uint32_t kind_count() const { return ranks(); }
  virtual std::uint32_t kind_of(Rank rank) const { return rank.value(); }
  virtual Rank first_of_kind(std::uint32_t kind) const { return Rank(kind); }
  virtual std::uint32_t ranks_of_kind(std::uint32_t) const { return 1; }
  /// The workload's report on itself, if it has one.
  virtual std::optional<WorkloadReport> report() const { return std::nullopt; }
  /// The kernels of the workload's parts, if it knows them.
  virtual std::vector<KernelLine> kernels() const { return {}; }
  /// When a rank starts its program.
  virtual Time start(Rank) const { return Time(); }
  /// Hosts of the ranks if the workload places them itself, else nothing.
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
