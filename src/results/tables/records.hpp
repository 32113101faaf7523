// SPDX-License-Identifier: GPL-2.0-only
// Plain rows of what happened. All times are integer picoseconds of simulated time, all sizes bytes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "support/basics/time_parts.hpp"

namespace weft {

constexpr std::uint32_t no_collective = 0xffffffffU;
/// For people: -1 reads better than 4294967295.
constexpr std::int64_t collective_or_none(std::uint32_t collective) {
  return collective == no_collective ? -1 : static_cast<std::int64_t>(collective);
}

constexpr std::int64_t message_or_none(std::uint64_t message) {
  return message == UINT64_MAX ? -1 : static_cast<std::int64_t>(message);
}

/// One message. id = sending host << 32 | number of the message at that host.
struct MessageRecord {
  std::uint64_t id = 0;
  std::uint32_t source = 0;       ///< rank
  std::uint32_t destination = 0;  ///< rank
  std::int64_t bytes = 0;         ///< payload
  std::int64_t issued = 0;        ///< handed to the queue pair
  std::int64_t delivered = 0;     ///< last byte at the destination
  std::int64_t ideal = 0;         ///< time it would take alone on an idle network, without window limit
  std::uint64_t packets = 0;
  std::uint32_t collective = no_collective;
  std::uint32_t tag = 0;
  // Why it took longer. Not part of the fingerprint.
  std::int64_t paused = 0;          ///< flow control held its packets at their host, or its last one in a switch
  std::int64_t retransmission = 0;  ///< from the sending of a packet that was lost until it was sent again
  // Of its last packet: what it has met on its way.
  std::int64_t queueing = 0;                     ///< in queues of switches and of its NIC's port
  std::array<std::uint32_t, 3> slowest_links{};  ///< LinkRecord::id where it has waited longest, the longest first
  std::array<std::int64_t, 3> slowest_waits{};   ///< how long; 0: there are no more
  TimeParts parts;                               ///< of delivered - issued
  std::uint64_t cause = UINT64_MAX;              ///< id of the message that had to come before it; UINT64_MAX: none

  /// -1: there are no more.
  std::int64_t slow_link(std::size_t which) const {
    return slowest_waits[which] > 0 ? static_cast<std::int64_t>(slowest_links[which]) : -1;
  }
};

/// One rank's part in one collective.
struct CollectivePart {
  std::uint32_t collective = 0;
  std::uint32_t rank = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t messages = 0;  ///< sent by this rank
  std::int64_t bytes = 0;      ///< sent by this rank
  auto operator<=>(const CollectivePart&) const = default;
};

/// What the rank that ended last in a collective has spent its part of it on.
struct CollectiveTimes {
  std::int64_t start = 0;
  std::int64_t end = -1;
  std::uint32_t rank = 0;
  TimeParts parts;  ///< of end - start

  /// Of two that have ended at the same time, the one with the lower number is the last.
  bool before(const CollectiveTimes& other) const { return end != other.end ? end < other.end : rank > other.rank; }
};

/// What of a collective is known beforehand, the same on every MPI rank.
struct CollectiveInfo {
  std::uint32_t id = 0;
  std::string kind;
  std::string algorithm;
  std::string label;
  std::uint32_t ranks = 0;
  std::int64_t bytes = 0;
  double bus_factor = 1;  ///< busbw / algbw
  std::uint32_t job = 0;  ///< JobRecord::job
};

/// All collectives of a run: ids are 0 to count - 1.
struct CollectiveDirectory {
  std::uint64_t count = 0;
  std::function<CollectiveInfo(std::uint32_t)> info;
};

/// One direction of a link. id = 2 * link + direction.
struct LinkRecord {
  std::uint32_t id = 0;
  std::uint32_t from = 0;          ///< node
  std::uint32_t to = 0;            ///< node
  std::uint32_t from_port = 0;     ///< port number at `from`
  std::int64_t rate = 0;           ///< bit/s
  std::int64_t delay = 0;          ///< propagation, ps
  std::int64_t bytes = 0;          ///< frames with their wire overhead
  std::int64_t payload_bytes = 0;  ///< message bytes
  std::uint64_t packets = 0;       ///< all
  std::uint64_t data_packets = 0;
  std::int64_t busy = 0;        ///< time spent transmitting
  std::int64_t slowed = 0;      ///< of `busy`: longer than at its rate
  std::int64_t peak_queue = 0;  ///< bytes not yet transmitted, largest
  double mean_queue = 0;        ///< bytes waiting, averaged over the simulated time
  std::uint64_t dropped = 0;    ///< found no room in the switch on their way to this link
  std::uint64_t lost = 0;       ///< were sent and did not arrive: faults
  std::string from_name;        ///< "host3"
  std::string to_name;          ///< "switch0"
  std::string link_class;       ///< what links are summed up by: "host-edge", "edge-aggregation", ...
};

/// One traffic class at one direction of a link, where ports keep queues by class.
struct LinkClassRecord {
  std::uint32_t link = 0;      ///< LinkRecord::id
  std::uint32_t lane = 0;      ///< 0 is the most urgent
  std::uint32_t priority = 0;  ///< IEEE 802.1Q
  std::uint64_t packets = 0;   ///< sent
  std::int64_t bytes = 0;      ///< of their frames, without preamble and gap
  std::int64_t peak_queue = 0;
  std::uint64_t marked = 0;  ///< ECN
  std::uint64_t dropped = 0;
  std::uint64_t trimmed = 0;
  std::int64_t paused = 0;            ///< the receiver of the link had stopped this class, or had no room for it
  std::uint64_t pauses_received = 0;  ///< pause frames that stop
  std::int64_t stopped = 0;           ///< this end had stopped the class of the other direction
  std::uint64_t pauses_sent = 0;
};

/// What messages of one job have waited for at one direction of a link while packets of another job were sent.
struct LinkWaitRecord {
  std::uint32_t link = 0;   ///< LinkRecord::id
  std::int64_t job = -1;    ///< JobRecord::job of the messages; -1: their host has several
  std::int64_t ahead = -1;  ///< of the packets in front; -1: none, or of a host that has several
  std::uint64_t waits = 0;  ///< last packets of messages that waited for them
  std::int64_t time = 0;    ///< ps, of all these
  std::int64_t first = 0;   ///< ps, the first of them began to wait
  std::int64_t last = 0;    ///< ps, the last of them had waited
};

/// What has stopped one traffic class at one direction of a link, by the link that its packets waited for.
struct LinkPauseRecord {
  std::uint32_t link = 0;   ///< LinkRecord::id, of the link that was stopped
  std::uint32_t lane = 0;   ///< LinkClassRecord::lane
  std::uint32_t cause = 0;  ///< LinkRecord::id, of a link that begins where the stopped one ends
  std::uint64_t stops = 0;
  std::int64_t time = 0;   ///< ps, of all these
  std::int64_t first = 0;  ///< ps, the first of them began
  std::int64_t last = 0;   ///< ps, the last of them ended
};

/// How deep the queue of one traffic class at one direction of a link was, over the simulated time.
struct QueueDepthRecord {
  std::uint32_t link = 0;      ///< LinkRecord::id
  std::uint32_t lane = 0;      ///< LinkClassRecord::lane
  std::uint32_t priority = 0;  ///< IEEE 802.1Q
  std::int64_t occupied = 0;   ///< ps during which something waited
  std::int64_t peak = 0;       ///< bytes of frames
  double mean = 0;
  std::int64_t p50 = 0;  ///< not exceeded for half of the time, and so on
  std::int64_t p90 = 0;
  std::int64_t p99 = 0;
  std::int64_t p999 = 0;
};

/// The sending half of a queue pair, where connections recover losses.
struct QueuePairRecord {
  std::uint32_t host = 0;
  std::uint32_t number = 0;  ///< of the host
  std::uint32_t destination = 0;
  std::uint64_t packets = 0;   ///< acknowledged
  std::uint64_t repeated = 0;  ///< sent again
  std::uint64_t timeouts = 0;
  std::uint64_t cnps = 0;
  std::int64_t rate = 0;       ///< bit/s at the end of the run; 0: not paced
  std::int64_t window = 0;     ///< bytes at the end of the run; -1: unlimited
  std::uint64_t messages = 0;  ///< posted
  std::int64_t bytes = 0;      ///< payload of them
};

/// One sampling interval of a sending half.
struct QueuePairRate {
  std::uint32_t host = 0;
  std::uint32_t number = 0;
  std::uint32_t destination = 0;
  std::uint32_t interval = 0;  ///< 0, 1, ...
  std::int64_t rate = 0;       ///< bit/s allowed at the end of the interval; 0: not paced
  std::int64_t window = 0;     ///< bytes allowed then; -1: unlimited
  std::int64_t in_flight = 0;  ///< payload bytes then
  std::int64_t sent = 0;       ///< bytes on the wire within the interval
};

/// The receiving half.
struct ReceiverRecord {
  std::uint32_t host = 0;
  std::uint32_t source = 0;
  std::uint32_t number = 0;  ///< of the source's queue pair
  std::uint64_t packets = 0;
  std::uint64_t out_of_order = 0;
  std::uint64_t widest_gap = 0;  ///< packets
  std::uint64_t duplicates = 0;
};

/// One transfer of an ns-3 application (`background:` of the experiment).
struct TransferRecord {
  std::uint32_t transfer = 0;  ///< 0, 1, ... in the order of the experiment
  std::string name;
  std::uint32_t source = 0;  ///< host
  std::uint32_t destination = 0;
  std::uint32_t priority = 0;  ///< IEEE 802.1Q
  std::int64_t size = -1;      ///< payload to send; -1: until the run ends
  std::int64_t start = 0;
  std::int64_t connected = 0;  ///< at the source; 0: never
  std::int64_t first = 0;      ///< bytes at the destination; 0: none
  std::int64_t last = 0;
  std::int64_t bytes = 0;     ///< of payload that the destination has read
  std::int64_t repeated = 0;  ///< bytes of payload that the source has sent again

  bool complete() const { return bytes == size; }
  /// Of payload, from the start to the last byte, bit/s.
  double goodput() const {
    return last > start ? 8e12 * static_cast<double>(bytes) / static_cast<double>(last - start) : 0;
  }
};

/// Payload that has come within one sampling interval, ending at `time`.
struct TransferSample {
  std::uint32_t transfer = 0;
  std::uint32_t interval = 0;  ///< 0, 1, ...
  std::int64_t time = 0;
  std::int64_t bytes = 0;
};

/// One sampling interval of one direction of a link.
struct LinkSample {
  std::uint32_t link = 0;      ///< LinkRecord::id
  std::uint32_t interval = 0;  ///< 0, 1, ...
  std::int64_t busy = 0;       ///< transmitting within the interval, ps
  std::int64_t queue = 0;      ///< bytes not yet transmitted at its end
};

/// One job over the run. Times of its ranks are summed up.
struct JobRecord {
  std::uint32_t job = 0;  ///< 0, 1, ... in order of ranks
  std::string name;
  std::uint32_t first_rank = 0;
  std::uint32_t ranks = 0;
  bool background = false;
  std::int64_t start = 0;    ///< of its programs
  std::int64_t end = 0;      ///< its last operation ended, or with one under way the run; not before start
  bool complete = true;      ///< all of its operations have ended. In no table.
  std::uint64_t steps = 1;   ///< iterations or training steps of a complete job
  std::int64_t compute = 0;  ///< of all its ranks
  std::int64_t communication = 0;
  std::int64_t exposed = 0;
  std::int64_t waiting = 0;  ///< of `exposed`
  std::uint64_t collectives = 0;
  std::uint64_t messages = 0;  ///< sent
  std::int64_t bytes = 0;      ///< sent
  TimeParts parts;             ///< of time() of all its ranks; all -1 if that sum does not fit

  std::int64_t time() const { return end - start; }
  /// -1 unless the job is complete: nobody counts the steps until then.
  double step_time() const {
    if (!complete) return -1;
    return static_cast<double>(time()) / static_cast<double>(steps);
  }
  double mean(std::int64_t of_all_ranks) const { return static_cast<double>(of_all_ranks) / ranks; }
  /// Of a rank on average: neither computing nor communicating between start and end. Exact until the division, so that
  /// rounding leaves nothing below 0.
  double idle() const {
    return static_cast<double>(static_cast<__int128>(time()) * ranks - compute - exposed) / static_cast<double>(ranks);
  }
};

/// One rank of the job over the run.
struct RankRecord {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
  std::int64_t finished = 0;       ///< its last operation ended
  std::int64_t compute = 0;        ///< a compute operation was running
  std::int64_t communication = 0;  ///< a send, recv or collective was running
  std::int64_t exposed = 0;        ///< communication was running and compute was not
  std::int64_t idle = 0;           ///< simulated time of the run - compute - exposed
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::uint32_t job = 0;  ///< JobRecord::job. Not part of the fingerprint.
  TimeParts parts;        ///< of the simulated time of the run. Not part of the fingerprint.
  /// Of `exposed`: it waited for ranks that had not come yet. Not part of the fingerprint.
  std::int64_t waiting = 0;
  std::int64_t host = 0;   ///< its host was launching. Not part of the fingerprint.
  bool under_way = false;  ///< an operation, when the run ended. In no table.
  bool complete = true;    ///< all of its operations have ended. In no table.
};

/// One operation of one rank, for timelines (`output.operations: true`).
struct OperationRecord {
  std::uint32_t rank = 0;
  std::uint64_t operation = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint8_t kind = 0;  ///< Operation::Kind, or 4: compute of the host or of nobody
  std::uint32_t collective = no_collective;
  std::string label;
  std::uint64_t cause = UINT64_MAX;    ///< id of the message with which it ended; UINT64_MAX: none
  std::string stream;                  ///< "compute", "communication", ...; "none"
  std::string phase;                   ///< part of a step, such as "forward"; may be empty
  std::string group;                   ///< whom it communicates with, such as "tensor"; may be empty
  std::uint64_t message = UINT64_MAX;  ///< send, recv: id of its message, of several the last; UINT64_MAX: none
};

/// Why an operation could not start earlier: an operation before it had to end, to start, or to leave its stream or
/// communicator.
enum class DependencyKind : std::uint8_t { end, start, stream, communicator };

/// What one operation had to wait for on its own rank (`output.operations: true`).
struct DependencyRecord {
  std::uint32_t rank = 0;
  std::uint64_t number = 0;     ///< of the rank's rows, in order
  std::uint64_t operation = 0;  ///< OperationRecord::operation
  std::uint64_t after = 0;      ///< the same, of the one before
  std::uint8_t kind = 0;        ///< DependencyKind
};

/// One MPI process of the run.
struct ProcessRecord {
  std::uint32_t process = 0;
  std::uint32_t nodes = 0;  ///< that it simulates
  std::uint32_t hosts = 0;  ///< of them
  std::uint64_t packet_hops = 0;
  std::uint64_t events = 0;
  double wait = 0;           ///< seconds that it waited for others
  double wait_share = 0;     ///< of the wall time of the run
  std::uint64_t memory = 0;  ///< bytes of nodes, ports, queues and packets
  std::uint64_t peak = 0;    ///< bytes of the process, its largest resident set
};

}  // namespace weft
