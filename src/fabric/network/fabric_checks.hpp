// SPDX-License-Identifier: GPL-2.0-only
// Checks that the packets of a network still move, and that all have arrived.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

struct PortModel;
class LocalNetwork;
class ProcessGroup;

/// Finds ports that wait for each other in a cycle.
class Deadlocks {
 public:
  Deadlocks(LocalNetwork& net, const std::unique_ptr<PortModel>& model) : net_(net), model_(model) {}

  /// Some link has been paused for longer than pfc.watchdog since the last call of take_suspicion().
  bool suspicious() const;
  bool take_suspicion();
  /// Packets wait in queues of owned nodes. O(ports).
  bool packets_wait() const;
  /// Collective: ports that wait for each other in a cycle and have all been stopped since `stopped_by` at the latest,
  /// as text; empty if there is none.
  std::string find(ProcessGroup& group, Time stopped_by) const;

 private:
  LocalNetwork& net_;
  const std::unique_ptr<PortModel>& model_;
};

/// Checks that every packet sent was received, per link, also over the cut, and that nothing is queued.
class Conservation {
 public:
  Conservation(const LocalNetwork& net, const std::unique_ptr<PortModel>& model) : net_(net), model_(model) {}

  /// Collective. Throws InternalError if a packet is missing.
  void check(ProcessGroup& group) const;

 private:
  std::uint64_t packets_delivered(PortId port) const;
  void check_links() const;
  void check_cut(ProcessGroup& group) const;
  void check_frames(ProcessGroup& group) const;

  const LocalNetwork& net_;
  const std::unique_ptr<PortModel>& model_;
};

}  // namespace weft
