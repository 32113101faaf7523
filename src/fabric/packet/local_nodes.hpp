// SPDX-License-Identifier: GPL-2.0-only
// What a process keeps of its own nodes and hosts, and of the processes next to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/message.hpp"
#include "transport/queue_pair.hpp"
#include "transport/receiver_table.hpp"

namespace weft {

struct LocalNode {
  std::uint32_t id = 0;
  std::uint32_t first_port = 0;
  std::uint32_t ports = 0;
  std::uint32_t host = no_slot;  ///< of a host: index of its LocalHost
};

/// What the software of a host has asked to be woken for.
struct HostTimer {
  std::int64_t time;
  std::uint64_t number;  ///< order of setting at this host
  std::uint64_t token;
  bool operator>(const HostTimer& other) const {
    return time != other.time ? time > other.time : number > other.number;
  }
};

struct LocalHost {
  static constexpr std::int64_t never = INT64_MAX;

  std::int64_t send_time = never;  ///< next decision of the NIC
  std::uint64_t messages = 0;      ///< posted so far: message numbers
  std::uint64_t timers_set = 0;
  std::vector<HostTimer> timers;  ///< binary heap, earliest first
  std::vector<Packet> control;    ///< ACKs and credits to send, in order
  std::size_t control_head = 0;
  std::vector<std::uint32_t> ready;  ///< ring of ready queue pairs
  std::size_t ready_head = 0;
  std::vector<QueuePair> queue_pairs;
  ReceiverTable<ReceiverState> receivers;
};

/// Where a cut link ends here.
struct CutEnd {
  std::uint32_t port = 0;
  std::uint32_t node = 0;  ///< of that port
};

/// A process to and from which cut links lead.
struct Neighbour {
  int process = 0;
  std::vector<CutEnd> ends;                ///< [cut links], in the same order there
  unsigned link_bits = 0;                  ///< of a record's key: enough for no_link()
  std::uint64_t reach = 0;                 ///< times from `origin` to this much later fit in a record
  std::int64_t origin = 0;                 ///< of the times in the records on their way there, ps
  std::int64_t first_arrival = INT64_MAX;  ///< of what is on its way there

  /// Stands for no cut link in a record.
  std::uint64_t no_link() const { return (std::uint64_t{1} << link_bits) - 1; }
};

}  // namespace weft
