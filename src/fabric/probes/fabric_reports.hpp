// SPDX-License-Identifier: GPL-2.0-only
// Reports of a fabric on links, queues and queue pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "fabric/probes/pause_causes.hpp"
#include "fabric/probes/waits_by_job.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/port_id.hpp"
#include "units/time.hpp"

namespace weft {

/// Counters of one traffic class at one direction of a link.
struct LinkClassCounters {
  std::uint32_t directed_link = 0;
  std::uint32_t lane = 0;
  std::uint32_t priority = 0;
  std::uint64_t packets = 0;
  Bytes frame_bytes;
  Bytes peak_queue_bytes;
  std::uint64_t marked = 0;
  std::uint64_t dropped = 0;
  std::uint64_t trimmed = 0;
  Time paused;
  std::uint64_t pauses_received = 0;
  Time stopped;
  std::uint64_t pauses_sent = 0;
};

/// The depth of a queue over time. Bytes of frames that waited; `occupied`: time during which there were any.
struct QueueDepth {
  std::uint32_t directed_link = 0;
  std::uint32_t lane = 0;
  std::uint32_t priority = 0;
  Time occupied;
  Bytes peak;
  double mean = 0;
  Bytes p50;
  Bytes p90;
  Bytes p99;
  Bytes p999;
};

/// Both halves of a queue pair; a half that is not here has no host.
struct QueuePairCounters {
  NodeId host;
  std::uint32_t number = 0;
  NodeId destination;
  std::uint64_t packets = 0;
  std::uint64_t repeated = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t cnps = 0;
  Bandwidth rate;
  Bytes window;                ///< Bytes::max(): unlimited
  std::uint64_t messages = 0;  ///< posted
  Bytes bytes;                 ///< of them
};
struct ReceiverCounters {
  NodeId host;
  NodeId source;
  std::uint32_t number = 0;
  std::uint64_t packets = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t widest_gap = 0;
  std::uint64_t duplicates = 0;
};

/// Totals of the effects of congestion and faults.
struct CongestionTotals {
  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t marked = 0;
  std::uint64_t pauses = 0;  ///< pause frames that stop
  std::uint64_t repeated = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t cnps = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t duplicates = 0;  ///< packets that the receiver had already
};

/// Waits of the last packets of a job's messages at a link, by cause.
struct LinkJobWait {
  std::uint32_t directed_link = 0;
  JobWait wait;
};

/// The cause of stops of a class at one direction of a link: the output that filled the queue at the end of the link.
struct LinkPause {
  std::uint32_t directed_link = 0;
  std::uint32_t lane = 0;
  std::uint32_t cause_link = 0;  ///< directed link of the output
  PauseCause cause;
};

/// Waits at a link that have been counted and lie after the end of the run. Plain data: it travels between processes.
struct WaitBeyond {
  unsigned __int128 byte_ps = 0;  ///< sum of bytes * time, B ps
  std::uint32_t directed_link = 0;
};

/// Where packets have waited. Plain data: it travels between processes.
struct HotLink {
  std::uint32_t directed_link = 0;
  PortId port;  ///< here; none in what hot_links() gives
  Time busy;
  Bytes peak_queue_bytes;
  double queue_byte_ps = 0;     ///< integral over time of the bytes that waited
  Bytes p99_queue = Bytes(-1);  ///< of its fullest class, bytes; -1 unless depths are kept
  bool own_queue = false;       ///< packets that wait for it are those of the host or server that it leaves
};

/// A sample of a port for one interval; intervals in which it was idle have none.
struct PortSample {
  std::uint32_t directed_link = 0;
  std::uint32_t interval = 0;
  Time busy;
  Bytes queue_bytes;
};

/// What a queue pair was allowed and did at the end of one sampling interval; intervals in which it had nothing to send
/// or to wait for have none.
struct QueuePairSample {
  NodeId host;
  std::uint32_t number = 0;
  NodeId destination;
  std::uint32_t interval = 0;
  Bandwidth rate;   ///< allowed; 0: not paced
  Bytes window;     ///< allowed; Bytes::max(): unlimited
  Bytes in_flight;  ///< payload bytes sent and neither acknowledged nor lost
  Bytes sent;       ///< bytes on the wire within the interval
};

/// Moves the samples of the intervals 0 .. intervals - 1 out, in their order.
template <class Sample>
std::vector<Sample> take_of_intervals_before(std::vector<Sample>& samples, std::int64_t intervals) {
  const auto later = std::stable_partition(samples.begin(), samples.end(),
                                           [intervals](const Sample& one) { return one.interval < intervals; });
  std::vector<Sample> rest(later, samples.end());
  samples.erase(later, samples.end());
  return std::exchange(samples, std::move(rest));
}

}  // namespace weft
