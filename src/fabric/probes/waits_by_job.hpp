// SPDX-License-Identifier: GPL-2.0-only
// Waits of each job's packets for those of other jobs, link by link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

/// Jobs of hosts, as results number them.
struct JobsOfHosts {
  static constexpr std::uint16_t no_job = 0xffff;  ///< none, or several
  PerNode<std::vector<std::uint16_t>> job;         ///< [hosts]
  std::uint32_t count = 0;                         ///< jobs of the run
};

/// Waits of packets of `waiter` at a link while packets of `ahead` were sent.
struct JobWait {
  std::uint16_t waiter = JobsOfHosts::no_job;
  std::uint16_t ahead = JobsOfHosts::no_job;  ///< also: nothing was sent, for flow control had stopped the link
  std::uint64_t waits = 0;                    ///< packets that waited for them
  Time time;
  Time first;  ///< when the first of them began to wait
  Time last;   ///< when the last of them had waited
};

/// Counts the waits of the last packets of messages: they decide when messages end. With a single job in the run nobody
/// else stands in front, and what ports send need not be kept.
class WaitsByJob {
 public:
  WaitsByJob(JobsOfHosts jobs, std::size_t ports);

  bool several() const { return jobs_.count > 1; }
  /// Records what a port sends, in order of `start`; with several jobs only. Times before `needed` will not be
  /// requested any more.
  void sent(PortId port, NodeId source, Time start, Time end, Time needed);
  /// A packet has waited from `from` until `until`, and leaves then. Before sent() of it.
  void waited(PortId port, NodeId source, Time from, Time until);

  std::span<const JobWait> of_port(PortId port) const { return waits_[port]; }
  std::uint64_t memory_bytes() const;

 private:
  /// Packets of a job, one right behind the other.
  struct Run {
    Time start;
    Time end;
    std::uint16_t job;
  };
  struct Runs {
    std::vector<Run> runs;
    std::size_t first = 0;
  };
  static void forget_before(Runs& sent, Time needed);
  void add(PortId port, std::uint16_t waiter, std::uint16_t ahead, Time time, Time from, Time until);

  JobsOfHosts jobs_;
  PerPort<std::vector<Runs>> sent_;                   // [local ports], empty for a single job
  PerPort<std::vector<std::vector<JobWait>>> waits_;  // [local ports]; few each
  std::vector<JobWait> found_;                        // scratch: of one packet
};

}  // namespace weft
