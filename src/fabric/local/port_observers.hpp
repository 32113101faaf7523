// SPDX-License-Identifier: GPL-2.0-only
// Observers of single ports: taps, observers of arrivals, waits by job, and counters of other traffic.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/probes/arrival_observer.hpp"
#include "fabric/probes/port_tap.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "transport/messages/packet.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Frames that were sent beside the packets.
struct OtherTraffic {
  std::uint64_t packets = 0;
  Bytes bytes;
};

/// The observers of all ports of one process.
class PortObservers {
 public:
  void add_tap(PortId port, std::shared_ptr<PortTap> tap, std::size_t ports) {
    taps_.resize(ports);
    taps_[port].push_back(std::move(tap));
  }
  bool has_taps() const { return !taps_.empty(); }
  /// A packet leaves through a port that has taps; `start`: of its first bit.
  void transmitted(PortId port, Time start, const Packet& packet) const {
    for (const auto& tap : taps_[port]) tap->transmitted(start, packet);
  }

  void add_arrival_observer(PortId port, ArrivalObserver observer) { arrivals_[port].push_back(std::move(observer)); }
  bool observes_arrivals() const { return !arrivals_.empty(); }
  /// A packet arrives from another process; `latency`: of the node, included in the packet's time.
  void arrived(PortId port, const Packet& packet, Time latency) const {
    const auto observers = arrivals_.find(port);
    if (observers == arrivals_.end()) return;
    for (const ArrivalObserver& observer : observers->second) observer(packet.time - latency, packet);
  }

  void count_waits(JobsOfHosts jobs, std::size_t ports) {
    waits_ = std::make_unique<WaitsByJob>(std::move(jobs), ports);
    several_jobs_ = waits_->several();
  }
  /// Null where they are not counted.
  WaitsByJob* waits() const { return waits_.get(); }
  /// Packets that ports send are also recorded.
  bool several_jobs() const { return several_jobs_; }

  void count_other(PortId port, Bytes bytes, std::size_t ports) {
    others_.resize(ports);
    ++others_[port].packets;
    others_[port].bytes += bytes;
  }
  OtherTraffic other(PortId port) const { return others_.empty() ? OtherTraffic{} : others_[port]; }

  std::uint64_t memory_bytes() const { return waits_ ? waits_->memory_bytes() : 0; }

 private:
  std::unique_ptr<WaitsByJob> waits_;
  bool several_jobs_ = false;
  PerPort<std::vector<std::vector<std::shared_ptr<PortTap>>>> taps_;  // [local ports], empty if no tap at all
  PerPort<std::vector<OtherTraffic>> others_;                         // [local ports], empty if there is none
  std::map<PortId, std::vector<ArrivalObserver>> arrivals_;
};

}  // namespace weft
