// SPDX-License-Identifier: GPL-2.0-only
// The tables of a result file: each is declared here and nowhere else. The recorder, the fingerprint, the comparison of
// files and the tables of docs/reference/hdf5_schema.md follow (tests/results/result_tables_test.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "results/tables/collective_results.hpp"
#include "results/tables/records.hpp"
#include "results/tables/table.hpp"

namespace weft {

// A declaration has a name (of the group in the file), a description, a key (the order of rows; its first word also
// decides which MPI rank writes the row) and columns. With a salt that is not 0 and that no other table has, the table
// is part of the fingerprint, with the columns that are counted, in their order; `counts`, if there, says for which
// rows. To move, add or leave out a counted column changes all fingerprints. Descriptions stand in the documentation as
// they are: Markdown.

namespace detail {

constexpr double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

/// The last interval of a series ends with the run.
constexpr std::int64_t end_of_interval(std::uint32_t interval, const TableContext& context) {
  return std::min((static_cast<std::int64_t>(interval) + 1) * context.interval, context.simulated_time);
}

template <class Row, TimePart part>
constexpr std::int64_t time_part(const Row& row) {
  return row.parts[part];
}

/// Columns `part_...` of `row.parts`, optional.
template <class Row, TimePart... parts>
constexpr auto time_part_columns() {
  return Columns(optional_column(time_part_texts[static_cast<std::size_t>(parts)].column, "ps",
                                 time_part_texts[static_cast<std::size_t>(parts)].description,
                                 &time_part<Row, parts>)...);
}
template <class Row>
constexpr auto message_part_columns() {
  return time_part_columns<Row, TimePart::transfer, TimePart::slowed, TimePart::queueing, TimePart::nic,
                           TimePart::ahead, TimePart::window, TimePart::pacing, TimePart::paused,
                           TimePart::retransmission, TimePart::reordering>();
}
template <class Row>
constexpr auto rank_part_columns() {
  return Columns(time_part_columns<Row, TimePart::compute, TimePart::launch, TimePart::handling, TimePart::sending>(),
                 message_part_columns<Row>(),
                 time_part_columns<Row, TimePart::credits, TimePart::peers, TimePart::host, TimePart::idle>());
}

}  // namespace detail

template <>
struct ResultTable<MessageRecord> {
  using Row = MessageRecord;
  static constexpr std::string_view name = "messages";
  static constexpr std::string_view description =
      "One row per delivered message, in ascending order of (delivered, id)";
  static constexpr std::uint64_t salt = 1;
  static constexpr RowKey key(const Row& row) { return {static_cast<std::uint64_t>(row.delivered), row.id}; }
  static constexpr auto columns() {
    return Columns(
        counted("id", "id", "sending host << 32 | number of the message at that host", &Row::id),
        counted("source", "id", "sending rank, not its host", &Row::source),
        counted("destination", "id", "receiving rank, not its host", &Row::destination),
        counted("bytes", "B", "payload", &Row::bytes),
        counted("issued", "ps", "handed to the queue pair", &Row::issued),
        counted("delivered", "ps", "last byte at the destination", &Row::delivered),
        counted("ideal", "ps", "duration alone on an idle network, on one way, without window limit", &Row::ideal),
        counted("packets", "1", "data packets it was cut into", &Row::packets),
        counted_as(
            "collective", "id", "`/collectives/id`, -1 if none",
            [](const Row& row) { return collective_or_none(row.collective); }, &Row::collective),
        counted("tag", "id", "matching tag", &Row::tag),
        column("slowdown", "1",
               "duration / `ideal`; below 1 if its packets took several ways at once, or a shorter one",
               [](const Row& row) { return detail::ratio(row.delivered - row.issued, row.ideal); }),
        column("queueing", "ps", "its last packet waited in queues", &Row::queueing),
        column("paused", "ps", "flow control held its packets at their host, or its last packet in switches",
               &Row::paused),
        column("retransmission", "ps",
               "from the sending of a packet that was lost until it was sent again, overlaps once",
               &Row::retransmission),
        column("slow_link_1", "id", "`/links/id` for which its last packet waited longest, -1 if it never waited",
               [](const Row& row) { return row.slow_link(0); }),
        column("slow_link_2", "id", "second", [](const Row& row) { return row.slow_link(1); }),
        column("slow_link_3", "id", "third", [](const Row& row) { return row.slow_link(2); }),
        column("slow_wait_1", "ps", "wait for `slow_link_1`", [](const Row& row) { return row.slowest_waits[0]; }),
        column("slow_wait_2", "ps", "wait for `slow_link_2`", [](const Row& row) { return row.slowest_waits[1]; }),
        column("slow_wait_3", "ps", "wait for `slow_link_3`", [](const Row& row) { return row.slowest_waits[2]; }),
        optional_column("cause", "id",
                        "`id` of the message that had to come to its sender before it, that its sender had to send "
                        "before, or that had its slot at the receiver; -1 if it was sent when its operation began",
                        [](const Row& row) { return message_or_none(row.cause); }),
        detail::message_part_columns<Row>());
  }
};

template <>
struct ResultTable<CollectiveResult> {
  using Row = CollectiveResult;
  static constexpr std::string_view name = "collectives";
  static constexpr std::string_view description = "One row per collective, in ascending order of id";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.info.id, 0}; }
  static constexpr auto columns() {
    return Columns(
        column("id", "id", "number of the collective in the workload", [](const Row& row) { return row.info.id; }),
        column("job", "id", "`/jobs/job` it belongs to", [](const Row& row) { return row.info.job; }),
        column("kind", "text", "`all_reduce`, `all_gather`, ...", [](const Row& row) { return row.info.kind; }),
        column("algorithm", "text", "`ring`, ...", [](const Row& row) { return row.info.algorithm; }),
        column("label", "text", "name in the workload", [](const Row& row) { return row.info.label; }),
        column("ranks", "1", "ranks that take part", [](const Row& row) { return row.info.ranks; }),
        column("finished_ranks", "1", "ranks that finished their part; fewer than `ranks` if the run was interrupted",
               &Row::finished_ranks),
        column("bytes", "B",
               "size by nccl-tests' definition; of an all_to_all with blocks that differ, the mean input of its ranks",
               [](const Row& row) { return row.info.bytes; }),
        column("start", "ps", "its first rank started, -1 if no rank finished", &Row::start),
        column("end", "ps", "its last rank ended, -1 if no rank finished", &Row::end),
        column("last_start", "ps",
               "its last rank started: before, others may have waited for it; -1 if no rank finished",
               &Row::last_start),
        column("time", "ps", "`end` - `start`, -1 if not all ranks finished", &Row::time),
        column("algbw", "GB/s", "`bytes` / `time`, 0 if `time` is not above 0", &Row::algorithm_bandwidth),
        column("busbw", "GB/s", "`algbw` times the bus factor, such as 2 (n - 1) / n for all_reduce",
               &Row::bus_bandwidth),
        column("messages", "1", "sent by all of its ranks", &Row::messages),
        column("sent_bytes", "B", "payload sent by all of its ranks", &Row::sent_bytes),
        detail::time_part_columns<Row, TimePart::launch, TimePart::handling>(), detail::message_part_columns<Row>(),
        detail::time_part_columns<Row, TimePart::credits, TimePart::peers>());
  }
};

/// Written as what all parts of a collective add up to, CollectiveResult; these are what the fingerprint counts of it.
template <>
struct ResultTable<CollectivePart> {
  using Row = CollectivePart;
  static constexpr std::string_view name = "collectives";
  static constexpr std::string_view description = "What one rank did in one collective";
  static constexpr std::uint64_t salt = 2;
  static constexpr RowKey key(const Row& row) { return {row.collective, row.rank}; }
  static constexpr auto columns() {
    return Columns(counted("collective", "id", "`/collectives/id`", &Row::collective),
                   counted("rank", "id", "`/ranks/rank`", &Row::rank),
                   counted("start", "ps", "it started", &Row::start), counted("end", "ps", "it ended", &Row::end),
                   counted("messages", "1", "sent by the rank", &Row::messages),
                   counted("bytes", "B", "payload sent by the rank", &Row::bytes));
  }
};

template <>
struct ResultTable<LinkRecord> {
  using Row = LinkRecord;
  static constexpr std::string_view name = "links";
  static constexpr std::string_view description = "One row per direction of a link, in ascending order of id";
  static constexpr std::uint64_t salt = 3;
  static constexpr RowKey key(const Row& row) { return {row.id, 0}; }
  static constexpr auto columns() {
    return Columns(
        counted("id", "id", "2 * link + direction", &Row::id), counted("from", "id", "node it leaves", &Row::from),
        counted("to", "id", "node it reaches", &Row::to),
        counted("from_port", "id", "port number at `from`", &Row::from_port),
        column("from_name", "text", "name of `from`, such as `host3` or `server0/gpu3`", &Row::from_name),
        column("to_name", "text", "name of `to`, such as `switch0` or `leaf2`", &Row::to_name),
        column("link_class", "text", "what links are summed up by", &Row::link_class),
        counted("rate", "bit/s", "line rate", &Row::rate), counted("delay", "ps", "propagation delay", &Row::delay),
        counted("bytes", "B",
                "frames with their wire overhead, as on the network, also on links with a [framing](topologies.md) of "
                "their own",
                &Row::bytes),
        counted("payload_bytes", "B", "message bytes", &Row::payload_bytes),
        counted("packets", "1", "all packets", &Row::packets),
        counted("data_packets", "1", "packets that carry message bytes", &Row::data_packets),
        counted("busy", "ps", "time spent transmitting", &Row::busy),
        column("utilization", "1", "`busy` / simulated time",
               [](const Row& row, const TableContext& context) {
                 return detail::ratio(row.busy, context.simulated_time);
               }),
        column("slowed", "ps", "of `busy`: longer because `network.failures` had lowered its rate", &Row::slowed),
        counted("peak_queue", "B", "most bytes not yet transmitted", &Row::peak_queue),
        column("mean_queue", "B", "bytes waiting, averaged over the simulated time", &Row::mean_queue),
        counted("dropped", "1", "packets that found no room on their way to this link", &Row::dropped),
        column("lost", "1", "packets that were sent and did not arrive", &Row::lost));
  }
};

template <>
struct ResultTable<LinkClassRecord> {
  using Row = LinkClassRecord;
  static constexpr std::string_view name = "link_classes";
  static constexpr std::string_view description =
      "One row per traffic class and direction of a link, in ascending order of (link, lane)";
  static constexpr std::uint64_t salt = 7;
  static constexpr RowKey key(const Row& row) { return {row.link, row.lane}; }
  /// Classes in which nothing has happened but packets count for nothing, so that the same packets give the same
  /// fingerprint with and without queues by class.
  static constexpr bool counts(const Row& row) {
    return row.marked != 0 || row.dropped != 0 || row.trimmed != 0 || row.paused != 0 || row.stopped != 0;
  }
  static constexpr auto columns() {
    return Columns(counted("link", "id", "`/links/id`", &Row::link),
                   counted("lane", "id", "number of the class, the most urgent first", &Row::lane),
                   counted("priority", "id", "IEEE 802.1Q priority", &Row::priority),
                   counted("packets", "1", "sent", &Row::packets),
                   counted("bytes", "B", "their frames, without preamble and gap", &Row::bytes),
                   column("peak_queue", "B", "most frames waiting", &Row::peak_queue),
                   counted("marked", "1", "packets marked by ECN", &Row::marked),
                   counted("dropped", "1", "packets for which there was no room", &Row::dropped),
                   counted("trimmed", "1", "packets that lost their payload", &Row::trimmed),
                   counted("paused", "ps", "the other end had stopped the class or had no room for it", &Row::paused),
                   counted("pauses_received", "1", "pause frames that stop the class", &Row::pauses_received),
                   counted("stopped", "ps", "this end had stopped the class of the other direction", &Row::stopped),
                   counted("pauses_sent", "1", "pause frames sent to stop it", &Row::pauses_sent));
  }
};

template <>
struct ResultTable<LinkWaitRecord> {
  using Row = LinkWaitRecord;
  static constexpr std::string_view name = "link_waits";
  static constexpr std::string_view description =
      "One row per direction of a link and pair of jobs of which one has waited for the other there, in ascending "
      "order of (link, job, ahead)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) {
    return {row.link, static_cast<std::uint64_t>(row.job + 1) << 32 | static_cast<std::uint64_t>(row.ahead + 1)};
  }
  static constexpr auto columns() {
    return Columns(
        column("link", "id", "`/links/id`", &Row::link),
        column("job", "id", "`/jobs/job` of the messages, -1 if their host has several", &Row::job),
        column("ahead", "id", "`/jobs/job` of the packets in front, -1 if there was none or their host has several",
               &Row::ahead),
        column("waits", "1", "last packets of messages that waited for them", &Row::waits),
        column("time", "ps", "that they waited, summed up; 2^63 - 1 stands for that and more", &Row::time),
        column("first", "ps", "the first of them began to wait", &Row::first),
        column("last", "ps", "the last of them had waited", &Row::last));
  }
};

template <>
struct ResultTable<LinkPauseRecord> {
  using Row = LinkPauseRecord;
  static constexpr std::string_view name = "link_pauses";
  static constexpr std::string_view description =
      "One row per class and direction of a link that a switch has stopped with pause frames, or that had no credit "
      "for "
      "a full frame left, and per cause, in ascending order of (link, lane, cause)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) {
    return {row.link, static_cast<std::uint64_t>(row.lane) << 32 | row.cause};
  }
  static constexpr auto columns() {
    return Columns(
        column("link", "id", "`/links/id` of the link that was stopped", &Row::link),
        column("lane", "id", "`/link_classes/lane`", &Row::lane),
        column("cause", "id", "`/links/id`: most of what had come over `link` waited for this one then", &Row::cause),
        column("stops", "1", "how often `link` was stopped for it", &Row::stops),
        column("time", "ps", "that it stayed stopped, summed up", &Row::time),
        column("first", "ps", "the first of these stops began", &Row::first),
        column("last", "ps", "the last of them ended", &Row::last));
  }
};

template <>
struct ResultTable<QueueDepthRecord> {
  using Row = QueueDepthRecord;
  static constexpr std::string_view name = "queue_depths";
  static constexpr std::string_view description =
      "One row per queue in which something has waited, in ascending order of (link, lane)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.link, row.lane}; }
  static constexpr auto columns() {
    return Columns(column("link", "id", "`/links/id`", &Row::link),
                   column("lane", "id", "`/link_classes/lane`", &Row::lane),
                   column("priority", "id", "IEEE 802.1Q priority", &Row::priority),
                   column("occupied", "ps", "something waited", &Row::occupied),
                   column("peak", "B", "most bytes of frames that waited", &Row::peak),
                   column("mean", "B", "averaged over the simulated time", &Row::mean),
                   column("p50", "B", "not exceeded for 50 % of the simulated time", &Row::p50),
                   column("p90", "B", "for 90 %", &Row::p90), column("p99", "B", "for 99 %", &Row::p99),
                   column("p999", "B", "for 99.9 %", &Row::p999));
  }
};

template <>
struct ResultTable<QueuePairRecord> {
  using Row = QueuePairRecord;
  static constexpr std::string_view name = "queue_pairs";
  static constexpr std::string_view description =
      "One row per sending queue pair, in ascending order of (host, number)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.host, row.number}; }
  static constexpr auto columns() {
    return Columns(column("host", "id", "sending host", &Row::host),
                   column("number", "id", "of the queue pair at its host", &Row::number),
                   column("destination", "id", "receiving host", &Row::destination),
                   column("messages", "1", "posted", &Row::messages),
                   column("bytes", "B", "payload of the messages posted", &Row::bytes),
                   column("packets", "1", "acknowledged", &Row::packets),
                   column("repeated", "1", "packets sent again", &Row::repeated),
                   column("timeouts", "1", "times that nothing came back for too long", &Row::timeouts),
                   column("cnps", "1", "congestion notifications received", &Row::cnps),
                   column("rate", "bit/s", "allowed at the end, 0 if not paced", &Row::rate),
                   column("window", "B", "allowed at the end, -1 if unlimited", &Row::window));
  }
};

template <>
struct ResultTable<QueuePairRate> {
  using Row = QueuePairRate;
  static constexpr std::string_view name = "rates_series";
  static constexpr std::string_view description =
      "One row per sampled queue pair and interval, in ascending order of (interval, host, number)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) {
    return {row.interval, static_cast<std::uint64_t>(row.host) << 32 | row.number};
  }
  static constexpr auto columns() {
    return Columns(
        column("host", "id", "sending host", &Row::host),
        column("number", "id", "of the queue pair at its host", &Row::number),
        column("destination", "id", "receiving host", &Row::destination),
        column("interval", "id", "0, 1, ...: number of the interval", &Row::interval),
        column(
            "time", "ps", "end of the interval; the last one ends with the run",
            [](const Row& row, const TableContext& context) { return detail::end_of_interval(row.interval, context); }),
        column("rate", "bit/s", "allowed at `time`, 0 if not paced", &Row::rate),
        column("window", "B", "allowed at `time`, -1 if unlimited", &Row::window),
        column("in_flight", "B", "payload sent and neither acknowledged nor lost at `time`", &Row::in_flight),
        column("sent", "B",
               "frames and gaps sent within the interval, so that 8 `sent` / interval is what it really had",
               &Row::sent));
  }
};

template <>
struct ResultTable<ReceiverRecord> {
  using Row = ReceiverRecord;
  static constexpr std::string_view name = "receivers";
  static constexpr std::string_view description =
      "One row per receiving half of a queue pair, in ascending order of (host, source, number)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) {
    return {row.host, static_cast<std::uint64_t>(row.source) << 32 | row.number};
  }
  static constexpr auto columns() {
    return Columns(column("host", "id", "receiving host", &Row::host),
                   column("source", "id", "sending host", &Row::source),
                   column("number", "id", "of the queue pair at the source", &Row::number),
                   column("packets", "1", "received in order", &Row::packets),
                   column("out_of_order", "1", "packets that arrived after a gap", &Row::out_of_order),
                   column("widest_gap", "1", "most packets by which one came too early", &Row::widest_gap),
                   column("duplicates", "1", "packets that were there already", &Row::duplicates));
  }
};

template <>
struct ResultTable<LinkSample> {
  using Row = LinkSample;
  static constexpr std::string_view name = "links_series";
  static constexpr std::string_view description =
      "One row per direction of a link and sampling interval, in ascending order of (interval, link)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.interval, row.link}; }
  static constexpr auto columns() {
    return Columns(column("link", "id", "`/links/id`", &Row::link),
                   column("interval", "id", "0, 1, ...: number of the interval", &Row::interval),
                   column("time", "ps", "end of the interval; the last one ends with the run",
                          [](const Row& row, const TableContext& context) {
                            return detail::end_of_interval(row.interval, context);
                          }),
                   column("utilization", "1", "share of the interval spent transmitting",
                          [](const Row& row, const TableContext& context) {
                            return detail::ratio(row.busy, detail::end_of_interval(row.interval, context) -
                                                               row.interval * context.interval);
                          }),
                   column("queue", "B", "bytes not yet transmitted at `time`", &Row::queue));
  }
};

template <>
struct ResultTable<RankRecord> {
  using Row = RankRecord;
  static constexpr std::string_view name = "ranks";
  static constexpr std::string_view description = "One row per rank of all jobs, in ascending order";
  static constexpr std::uint64_t salt = 5;
  static constexpr RowKey key(const Row& row) { return {row.rank, 0}; }
  static constexpr auto columns() {
    return Columns(
        counted("rank", "id", "rank of the workload", &Row::rank), counted("node", "id", "host it runs on", &Row::node),
        column("job", "id", "`/jobs/job` it belongs to", &Row::job),
        counted("finished", "ps", "its last operation ended", &Row::finished),
        counted("compute", "ps", "a compute operation was running", &Row::compute),
        counted("communication", "ps", "a send, receive or collective was running", &Row::communication),
        counted("exposed", "ps", "communication was running and compute was not", &Row::exposed),
        column("waiting", "ps", "part of `exposed`: it waited for ranks that had not come yet", &Row::waiting),
        column("host", "ps", "its host was launching kernels and collectives", &Row::host),
        counted("idle", "ps", "simulated time - `compute` - `exposed`", &Row::idle),
        counted("messages_sent", "1", "messages sent", &Row::messages_sent),
        counted("messages_received", "1", "messages received", &Row::messages_received),
        counted("bytes_sent", "B", "payload sent", &Row::bytes_sent),
        counted("bytes_received", "B", "payload received", &Row::bytes_received), detail::rank_part_columns<Row>());
  }
};

template <>
struct ResultTable<JobRecord> {
  using Row = JobRecord;
  static constexpr std::string_view name = "jobs";
  static constexpr std::string_view description = "One row per job, in ascending order";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.job, 0}; }
  static constexpr auto columns() {
    return Columns(
        column("job", "id", "0, 1, ... in order of ranks", &Row::job),
        column("name", "text", "name in the workload", &Row::name),
        column("first_rank", "id", "its first rank", &Row::first_rank),
        column("ranks", "1", "how many ranks it has", &Row::ranks),
        column("background", "1", "1 if it ends when all others have ended", &Row::background),
        column("start", "ps", "its programs started", &Row::start),
        column("end", "ps", "its last operation ended, or with one under way the run", &Row::end),
        column("time", "ps", "`end` - `start`", &Row::time),
        column("steps", "1", "iterations or training steps, those included that a run that was cut short has not done",
               &Row::steps),
        column("step_time", "ps", "`time` / `steps`; -1 if the job has not done all of them", &Row::step_time),
        column("compute", "ps", "a compute operation was running, average of its ranks",
               [](const Row& row) { return row.mean(row.compute); }),
        column("communication", "ps", "a send, receive or collective was running, average of its ranks",
               [](const Row& row) { return row.mean(row.communication); }),
        column("exposed", "ps", "communication was running and compute was not, average of its ranks",
               [](const Row& row) { return row.mean(row.exposed); }),
        column("waiting", "ps", "part of `exposed`: they waited for ranks that had not come yet, average of its ranks",
               [](const Row& row) { return row.mean(row.waiting); }),
        column("idle", "ps", "`time` - `compute` - `exposed`", &Row::idle),
        column("collectives", "1", "collective calls", &Row::collectives),
        column("messages", "1", "messages sent", &Row::messages), column("bytes", "B", "payload sent", &Row::bytes),
        detail::rank_part_columns<Row>());
  }
};

template <>
struct ResultTable<TransferRecord> {
  using Row = TransferRecord;
  static constexpr std::string_view name = "transfers";
  static constexpr std::string_view description =
      "One row per transfer of the experiment's background, in ascending order";
  static constexpr std::uint64_t salt = 8;
  static constexpr RowKey key(const Row& row) { return {row.transfer, 0}; }
  static constexpr auto columns() {
    return Columns(
        counted("transfer", "id", "0, 1, ... in the order of the experiment", &Row::transfer),
        column("name", "text", "name in the experiment; `NAME.0`, `NAME.1`, ... for several connections", &Row::name),
        counted("source", "id", "sending host", &Row::source),
        counted("destination", "id", "receiving host", &Row::destination),
        counted("priority", "id", "IEEE 802.1Q priority", &Row::priority),
        counted("size", "B", "payload to send, -1 if it goes on until the run ends", &Row::size),
        counted("start", "ps", "the sender begins to connect", &Row::start),
        counted("connected", "ps", "the connection stood at the sender, 0 if never", &Row::connected),
        counted("first", "ps", "the receiver read its first bytes, 0 if none", &Row::first),
        counted("last", "ps", "the receiver read its last bytes so far", &Row::last),
        counted("bytes", "B", "payload read by the receiver", &Row::bytes),
        counted("repeated", "B", "payload sent again", &Row::repeated),
        column("goodput", "bit/s", "`bytes` / (`last` - `start`)", &Row::goodput));
  }
};

template <>
struct ResultTable<TransferSample> {
  using Row = TransferSample;
  static constexpr std::string_view name = "transfers_series";
  static constexpr std::string_view description =
      "One row per transfer and sampling interval with payload, in ascending order of (transfer, interval)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.transfer, row.interval}; }
  static constexpr auto columns() {
    return Columns(column("transfer", "id", "`/transfers/transfer`", &Row::transfer),
                   column("interval", "id", "0, 1, ...: number of the interval", &Row::interval),
                   column("time", "ps", "end of the interval", &Row::time),
                   column("bytes", "B", "payload that the receiver read within the interval", &Row::bytes));
  }
};

template <>
struct ResultTable<OperationRecord> {
  using Row = OperationRecord;
  static constexpr std::string_view name = "operations";
  static constexpr std::string_view description =
      "One row per operation of a rank, in ascending order of (rank, operation)";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.rank, row.operation}; }
  static constexpr auto columns() {
    return Columns(
        column("rank", "id", "rank of the workload", &Row::rank),
        column("operation", "id", "number of the operation in the rank's program", &Row::operation),
        column("start", "ps", "it started", &Row::start), column("end", "ps", "it ended", &Row::end),
        column(
            "kind", "id",
            "0 compute, 1 collective, 2 send, 3 receive, 4 host: launches and other work of the processor, and pauses",
            &Row::kind),
        column("collective", "id", "`/collectives/id`, -1 if none",
               [](const Row& row) { return collective_or_none(row.collective); }),
        column("label", "text", "name in the workload", &Row::label),
        column("cause", "id",
               "`/messages/id` with which it ended, -1 if none; with `output.attribution: full` also where a slot was "
               "missing",
               [](const Row& row) { return message_or_none(row.cause); }),
        column("stream", "text", "what it runs on: `compute`, `communication`, ..., or `none`", &Row::stream),
        column("phase", "text", "part of a step, such as `forward`, if the workload says", &Row::phase),
        column("group", "text", "whom it communicates with, such as `tensor`, if the workload says", &Row::group),
        column("message", "id", "`/messages/id` that it sent or received, the last if several, -1 if none",
               [](const Row& row) { return message_or_none(row.message); }));
  }
};

template <>
struct ResultTable<DependencyRecord> {
  using Row = DependencyRecord;
  static constexpr std::string_view name = "dependencies";
  static constexpr std::string_view description =
      "One row per operation and operation of the same rank that it had to wait for, in ascending order of rank, then "
      "in "
      "the order in which operations started";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.rank, row.number}; }
  static constexpr auto columns() {
    return Columns(
        column("rank", "id", "rank of the workload", &Row::rank),
        column("operation", "id", "`/operations/operation` that waited", &Row::operation),
        column("after", "id", "`/operations/operation` that it waited for", &Row::after),
        column("kind", "id", "what it waited for: 0 that it ended, 1 that it started, 2 its stream, 3 its communicator",
               &Row::kind));
  }
};

/// Facts of the very run, which no comparison takes: below /manifest.
template <>
struct ResultTable<ProcessRecord> {
  using Row = ProcessRecord;
  static constexpr std::string_view name = "manifest/parallel";
  static constexpr std::string_view description = "One row per MPI process";
  static constexpr std::uint64_t salt = 0;
  static constexpr RowKey key(const Row& row) { return {row.process, 0}; }
  static constexpr auto columns() {
    return Columns(column("process", "id", "rank of the MPI process", &Row::process),
                   column("nodes", "1", "nodes that it simulates", &Row::nodes),
                   column("hosts", "1", "hosts among them", &Row::hosts),
                   column("packet_hops", "1", "packets sent by its nodes", &Row::packet_hops),
                   column("events", "1", "arrivals, timers and decisions of its nodes", &Row::events),
                   column("wait", "s", "time that it waited for other processes", &Row::wait),
                   column("wait_share", "1", "of the wall time of the run", &Row::wait_share),
                   column("memory", "B", "its nodes, ports, queues and packets", &Row::memory),
                   column("peak_memory", "B", "its largest resident set", &Row::peak));
  }
};

/// All tables, in the order of the documentation.
using AllTables =
    std::tuple<ProcessRecord, MessageRecord, CollectiveResult, LinkRecord, LinkClassRecord, LinkWaitRecord,
               LinkPauseRecord, QueueDepthRecord, QueuePairRecord, QueuePairRate, ReceiverRecord, LinkSample,
               RankRecord, JobRecord, TransferRecord, TransferSample, OperationRecord, DependencyRecord>;

/// The declarations of AllTables.
std::vector<TableInfo> declared_tables();

}  // namespace weft
