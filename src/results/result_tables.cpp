// SPDX-License-Identifier: GPL-2.0-only
// Columns of the result tables.
#include "results/result_tables.hpp"

#include <algorithm>

namespace weft {

namespace {

/// -1 in the file reads better than 4294967295.
std::int64_t collective_or_none(std::uint32_t collective) {
  return collective == no_collective ? -1 : static_cast<std::int64_t>(collective);
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

/// The last interval ends with the run.
std::int64_t end_of(const LinkSample& sample, std::int64_t simulated_time) {
  return std::min(sample.time, simulated_time);
}

std::int64_t slow_link(const MessageRecord& row, std::size_t which) {
  return row.slowest_waits[which] > 0 ? static_cast<std::int64_t>(row.slowest_links[which]) : -1;
}

}  // namespace

Table<MessageRecord> message_table() {
  using Row = MessageRecord;
  return {
      "messages",
      "One row per delivered message, in ascending order of (delivered, id)",
      [](const Row& row) {
        return RowKey{static_cast<std::uint64_t>(row.delivered), row.id};
      },
      {
          column<Row>("id", "id", "sending host << 32 | number of the message at that host", &Row::id),
          column<Row>("source", "id", "sending rank, not its host", &Row::source),
          column<Row>("destination", "id", "receiving rank, not its host", &Row::destination),
          column<Row>("bytes", "B", "payload", &Row::bytes),
          column<Row>("issued", "ps", "handed to the queue pair", &Row::issued),
          column<Row>("delivered", "ps", "last byte at the destination", &Row::delivered),
          column<Row>("ideal", "ps", "duration alone on an idle network, without window limit", &Row::ideal),
          column<Row>("packets", "1", "data packets it was cut into", &Row::packets),
          column<Row>("collective", "id", "collective it belongs to, -1 if none",
                      [](const Row& row) { return collective_or_none(row.collective); }),
          column<Row>("tag", "id", "matching tag", &Row::tag),
          column<Row>("slowdown", "1", "duration / ideal",
                      [](const Row& row) { return ratio(row.delivered - row.issued, row.ideal); }),
          column<Row>("queueing", "ps", "its last packet waited in queues", &Row::queueing),
          column<Row>("paused", "ps", "flow control held its packets at their host, or its last packet in switches",
                      &Row::paused),
          column<Row>("retransmission", "ps", "from the sending of a packet that was lost until it was sent again",
                      &Row::retransmission),
          column<Row>("slow_link_1", "id", "link for which its last packet waited longest, -1 if it never waited",
                      [](const Row& row) { return slow_link(row, 0); }),
          column<Row>("slow_link_2", "id", "second", [](const Row& row) { return slow_link(row, 1); }),
          column<Row>("slow_link_3", "id", "third", [](const Row& row) { return slow_link(row, 2); }),
          column<Row>("slow_wait_1", "ps", "wait for slow_link_1", [](const Row& row) { return row.slowest_waits[0]; }),
          column<Row>("slow_wait_2", "ps", "wait for slow_link_2", [](const Row& row) { return row.slowest_waits[1]; }),
          column<Row>("slow_wait_3", "ps", "wait for slow_link_3", [](const Row& row) { return row.slowest_waits[2]; }),
      }};
}

Table<CollectiveResult> collective_table() {
  using Row = CollectiveResult;
  return {
      "collectives",
      "One row per collective, in ascending order of id",
      [](const Row& row) {
        return RowKey{row.info.id, 0};
      },
      {
          column<Row>("id", "id", "number of the collective in the job", [](const Row& row) { return row.info.id; }),
          column<Row>("job", "id", "/jobs/job it belongs to", [](const Row& row) { return row.info.job; }),
          column<Row>("kind", "text", "all_reduce, all_gather, ...", [](const Row& row) { return row.info.kind; }),
          column<Row>("algorithm", "text", "ring, ...", [](const Row& row) { return row.info.algorithm; }),
          column<Row>("label", "text", "name in the workload", [](const Row& row) { return row.info.label; }),
          column<Row>("ranks", "1", "ranks that take part", [](const Row& row) { return row.info.ranks; }),
          column<Row>("finished_ranks", "1",
                      "ranks that finished their part; fewer than ranks if the run was interrupted",
                      &Row::finished_ranks),
          column<Row>("bytes", "B", "size by nccl-tests' definition", [](const Row& row) { return row.info.bytes; }),
          column<Row>("start", "ps", "its first rank started, -1 if no rank finished", &Row::start),
          column<Row>("end", "ps", "its last rank ended, -1 if no rank finished", &Row::end),
          column<Row>("time", "ps", "end - start, -1 if not all ranks finished",
                      [](const Row& row) { return row.time(); }),
          column<Row>("algbw", "GB/s", "bytes / time as nccl-tests defines it, 0 if time is not above 0",
                      [](const Row& row) { return row.algorithm_bandwidth(); }),
          column<Row>("busbw", "GB/s", "algbw times the bus factor of nccl-tests",
                      [](const Row& row) { return row.bus_bandwidth(); }),
          column<Row>("messages", "1", "sent by all of its ranks", &Row::messages),
          column<Row>("sent_bytes", "B", "payload sent by all of its ranks", &Row::sent_bytes),
      }};
}

Table<LinkRecord> link_table(std::int64_t simulated_time) {
  using Row = LinkRecord;
  return {"links",
          "One row per direction of a link, in ascending order of id",
          [](const Row& row) {
            return RowKey{row.id, 0};
          },
          {
              column<Row>("id", "id", "2 * link + direction", &Row::id),
              column<Row>("from", "id", "node it leaves", &Row::from),
              column<Row>("to", "id", "node it reaches", &Row::to),
              column<Row>("from_port", "id", "port number at the node it leaves", &Row::from_port),
              column<Row>("from_name", "text", "name of the node it leaves", &Row::from_name),
              column<Row>("to_name", "text", "name of the node it reaches", &Row::to_name),
              column<Row>("link_class", "text", "what links are summed up by", &Row::link_class),
              column<Row>("rate", "bit/s", "line rate", &Row::rate),
              column<Row>("delay", "ps", "propagation delay", &Row::delay),
              column<Row>("bytes", "B", "frames with their wire overhead", &Row::bytes),
              column<Row>("payload_bytes", "B", "message bytes", &Row::payload_bytes),
              column<Row>("packets", "1", "all packets", &Row::packets),
              column<Row>("data_packets", "1", "packets that carry message bytes", &Row::data_packets),
              column<Row>("busy", "ps", "time spent transmitting", &Row::busy),
              column<Row>("utilization", "1", "busy / simulated time",
                          [simulated_time](const Row& row) { return ratio(row.busy, simulated_time); }),
              column<Row>("peak_queue", "B", "most bytes not yet transmitted", &Row::peak_queue),
              column<Row>("mean_queue", "B", "bytes waiting, averaged over the simulated time", &Row::mean_queue),
              column<Row>("dropped", "1", "packets that found no room on their way to this link", &Row::dropped),
              column<Row>("lost", "1", "packets that were sent and did not arrive", &Row::lost),
          }};
}

Table<LinkSample> link_series_table(std::int64_t interval, std::int64_t simulated_time) {
  using Row = LinkSample;
  return {"links_series",
          "One row per direction of a link and sampling interval, in ascending order of (interval, link)",
          [](const Row& row) {
            return RowKey{row.interval, row.link};
          },
          {
              column<Row>("link", "id", "/links/id", &Row::link),
              column<Row>("interval", "id", "0, 1, ...: number of the sampling interval", &Row::interval),
              column<Row>("time", "ps", "end of the interval; the last one ends with the run",
                          [simulated_time](const Row& row) { return end_of(row, simulated_time); }),
              column<Row>("utilization", "1", "share of the interval spent transmitting",
                          [interval, simulated_time](const Row& row) {
                            const std::int64_t start = static_cast<std::int64_t>(row.interval) * interval;
                            return ratio(row.busy, end_of(row, simulated_time) - start);
                          }),
              column<Row>("queue", "B", "bytes not yet transmitted at the end of the interval", &Row::queue),
          }};
}

Table<RankRecord> rank_table() {
  using Row = RankRecord;
  return {"ranks",
          "One row per rank of all jobs, in ascending order",
          [](const Row& row) {
            return RowKey{row.rank, 0};
          },
          {
              column<Row>("rank", "id", "rank of the workload", &Row::rank),
              column<Row>("node", "id", "host it runs on", &Row::node),
              column<Row>("job", "id", "/jobs/job it belongs to", &Row::job),
              column<Row>("finished", "ps", "its last operation ended", &Row::finished),
              column<Row>("compute", "ps", "a compute operation was running", &Row::compute),
              column<Row>("communication", "ps", "a send, receive or collective was running", &Row::communication),
              column<Row>("exposed", "ps", "communication was running and compute was not", &Row::exposed),
              column<Row>("idle", "ps", "simulated time - compute - exposed", &Row::idle),
              column<Row>("messages_sent", "1", "messages sent", &Row::messages_sent),
              column<Row>("messages_received", "1", "messages received", &Row::messages_received),
              column<Row>("bytes_sent", "B", "payload sent", &Row::bytes_sent),
              column<Row>("bytes_received", "B", "payload received", &Row::bytes_received),
          }};
}

Table<JobRecord> job_table() {
  using Row = JobRecord;
  return {"jobs",
          "One row per job, in ascending order",
          [](const Row& row) {
            return RowKey{row.job, 0};
          },
          {
              column<Row>("job", "id", "number of the job", &Row::job),
              column<Row>("name", "text", "name in the workload", &Row::name),
              column<Row>("first_rank", "id", "its first rank", &Row::first_rank),
              column<Row>("ranks", "1", "how many ranks it has", &Row::ranks),
              column<Row>("background", "1", "1 if it ends when all others have ended",
                          [](const Row& row) { return std::uint8_t{row.background}; }),
              column<Row>("start", "ps", "its programs started", &Row::start),
              column<Row>("end", "ps", "its last operation ended", &Row::end),
              column<Row>("time", "ps", "end - start", [](const Row& row) { return row.time(); }),
              column<Row>("steps", "1", "iterations or training steps", &Row::steps),
              column<Row>("step_time", "ps", "time / steps", [](const Row& row) { return row.step_time(); }),
              column<Row>("compute", "ps", "a compute operation was running, average of its ranks",
                          [](const Row& row) { return row.mean(row.compute); }),
              column<Row>("communication", "ps", "a send, receive or collective was running, average of its ranks",
                          [](const Row& row) { return row.mean(row.communication); }),
              column<Row>("exposed", "ps", "communication was running and compute was not, average of its ranks",
                          [](const Row& row) { return row.mean(row.exposed); }),
              column<Row>("idle", "ps", "time - compute - exposed", [](const Row& row) { return row.idle(); }),
              column<Row>("collectives", "1", "collective calls", &Row::collectives),
              column<Row>("messages", "1", "messages sent", &Row::messages),
              column<Row>("bytes", "B", "payload sent", &Row::bytes),
          }};
}

Table<TransferRecord> transfer_table() {
  using Row = TransferRecord;
  return {"transfers",
          "One row per transfer of the experiment's background, in ascending order",
          [](const Row& row) {
            return RowKey{row.transfer, 0};
          },
          {
              column<Row>("transfer", "id", "number of the transfer", &Row::transfer),
              column<Row>("name", "text", "name in the experiment", &Row::name),
              column<Row>("source", "id", "sending host", &Row::source),
              column<Row>("destination", "id", "receiving host", &Row::destination),
              column<Row>("priority", "id", "IEEE 802.1Q priority", &Row::priority),
              column<Row>("size", "B", "payload to send, -1 if it goes on until the run ends", &Row::size),
              column<Row>("start", "ps", "the sender begins to connect", &Row::start),
              column<Row>("connected", "ps", "the connection stood at the sender, 0 if never", &Row::connected),
              column<Row>("first", "ps", "the receiver read its first bytes, 0 if none", &Row::first),
              column<Row>("last", "ps", "the receiver read its last bytes so far", &Row::last),
              column<Row>("bytes", "B", "payload read by the receiver", &Row::bytes),
              column<Row>("repeated", "B", "payload sent again", &Row::repeated),
              column<Row>("goodput", "bit/s", "bytes / (last - start)", [](const Row& row) { return row.goodput(); }),
          }};
}

Table<TransferSample> transfer_series_table() {
  using Row = TransferSample;
  return {"transfers_series",
          "One row per transfer and sampling interval with payload, in ascending order of (transfer, interval)",
          [](const Row& row) {
            return RowKey{row.transfer, row.interval};
          },
          {
              column<Row>("transfer", "id", "/transfers/transfer", &Row::transfer),
              column<Row>("interval", "id", "0, 1, ...: number of the sampling interval", &Row::interval),
              column<Row>("time", "ps", "end of the interval", &Row::time),
              column<Row>("bytes", "B", "payload that the receiver read within the interval", &Row::bytes),
          }};
}

Table<LinkClassRecord> link_class_table() {
  using Row = LinkClassRecord;
  return {"link_classes",
          "One row per traffic class and direction of a link, in ascending order of (link, lane)",
          [](const Row& row) {
            return RowKey{row.link, row.lane};
          },
          {
              column<Row>("link", "id", "id in /links", &Row::link),
              column<Row>("lane", "id", "number of the class, the most urgent first", &Row::lane),
              column<Row>("priority", "id", "IEEE 802.1Q priority", &Row::priority),
              column<Row>("packets", "1", "sent", &Row::packets),
              column<Row>("bytes", "B", "their frames, without preamble and gap", &Row::bytes),
              column<Row>("peak_queue", "B", "most frames waiting", &Row::peak_queue),
              column<Row>("marked", "1", "packets marked by ECN", &Row::marked),
              column<Row>("dropped", "1", "packets for which there was no room", &Row::dropped),
              column<Row>("trimmed", "1", "packets that lost their payload", &Row::trimmed),
              column<Row>("paused", "ps", "the other end had stopped the class or had no room for it", &Row::paused),
              column<Row>("pauses_received", "1", "pause frames that stop the class", &Row::pauses_received),
              column<Row>("stopped", "ps", "this end had stopped the class of the other direction", &Row::stopped),
              column<Row>("pauses_sent", "1", "pause frames sent to stop it", &Row::pauses_sent),
          }};
}

Table<QueueDepthRecord> queue_depth_table() {
  using Row = QueueDepthRecord;
  return {"queue_depths",
          "One row per queue in which something has waited, in ascending order of (link, lane)",
          [](const Row& row) {
            return RowKey{row.link, row.lane};
          },
          {
              column<Row>("link", "id", "id in /links", &Row::link),
              column<Row>("lane", "id", "number of the class, the most urgent first", &Row::lane),
              column<Row>("priority", "id", "IEEE 802.1Q priority", &Row::priority),
              column<Row>("occupied", "ps", "something waited", &Row::occupied),
              column<Row>("peak", "B", "most bytes of frames that waited", &Row::peak),
              column<Row>("mean", "B", "averaged over the simulated time", &Row::mean),
              column<Row>("p50", "B", "not exceeded for 50 % of the simulated time", &Row::p50),
              column<Row>("p90", "B", "for 90 %", &Row::p90),
              column<Row>("p99", "B", "for 99 %", &Row::p99),
              column<Row>("p999", "B", "for 99.9 %", &Row::p999),
          }};
}

Table<QueuePairRecord> queue_pair_table() {
  using Row = QueuePairRecord;
  return {"queue_pairs",
          "One row per sending queue pair, in ascending order of (host, number)",
          [](const Row& row) {
            return RowKey{row.host, row.number};
          },
          {
              column<Row>("host", "id", "sending host", &Row::host),
              column<Row>("number", "id", "of the queue pair at its host", &Row::number),
              column<Row>("destination", "id", "receiving host", &Row::destination),
              column<Row>("messages", "1", "posted", &Row::messages),
              column<Row>("bytes", "B", "payload of the messages posted", &Row::bytes),
              column<Row>("packets", "1", "acknowledged", &Row::packets),
              column<Row>("repeated", "1", "packets sent again", &Row::repeated),
              column<Row>("timeouts", "1", "times that nothing came back for too long", &Row::timeouts),
              column<Row>("cnps", "1", "congestion notifications received", &Row::cnps),
              column<Row>("rate", "bit/s", "allowed at the end, 0 if not paced", &Row::rate),
              column<Row>("window", "B", "allowed at the end, -1 if unlimited", &Row::window),
          }};
}

Table<QueuePairRate> rate_series_table(std::int64_t interval, std::int64_t simulated_time) {
  using Row = QueuePairRate;
  const auto end = [interval, simulated_time](const Row& row) {
    return std::min((static_cast<std::int64_t>(row.interval) + 1) * interval, simulated_time);
  };
  return {"rates_series",
          "One row per sampled queue pair and interval, in ascending order of (interval, host, number)",
          [](const Row& row) {
            return RowKey{row.interval, static_cast<std::uint64_t>(row.host) << 32 | row.number};
          },
          {
              column<Row>("host", "id", "sending host", &Row::host),
              column<Row>("number", "id", "of the queue pair at its host", &Row::number),
              column<Row>("destination", "id", "receiving host", &Row::destination),
              column<Row>("interval", "id", "0, 1, ...: number of the sampling interval", &Row::interval),
              column<Row>("time", "ps", "end of the interval; the last one ends with the run", end),
              column<Row>("rate", "bit/s", "allowed then, 0 if not paced", &Row::rate),
              column<Row>("window", "B", "allowed then, -1 if unlimited", &Row::window),
              column<Row>("in_flight", "B", "payload sent and neither acknowledged nor lost then", &Row::in_flight),
              column<Row>("sent", "B", "frames and gaps sent within the interval", &Row::sent),
          }};
}

Table<ReceiverRecord> receiver_table() {
  using Row = ReceiverRecord;
  return {"receivers",
          "One row per receiving half of a queue pair, in ascending order of (host, source, number)",
          [](const Row& row) {
            return RowKey{row.host, static_cast<std::uint64_t>(row.source) << 32 | row.number};
          },
          {
              column<Row>("host", "id", "receiving host", &Row::host),
              column<Row>("source", "id", "sending host", &Row::source),
              column<Row>("number", "id", "of the queue pair at the source", &Row::number),
              column<Row>("packets", "1", "received in order", &Row::packets),
              column<Row>("out_of_order", "1", "packets that came behind a gap", &Row::out_of_order),
              column<Row>("widest_gap", "1", "most packets by which one came too early", &Row::widest_gap),
              column<Row>("duplicates", "1", "packets that were there already", &Row::duplicates),
          }};
}

Table<OperationRecord> operation_table() {
  using Row = OperationRecord;
  return {"operations",
          "One row per operation of a rank, in ascending order of (rank, operation)",
          [](const Row& row) {
            return RowKey{row.rank, row.operation};
          },
          {
              column<Row>("rank", "id", "rank of the job", &Row::rank),
              column<Row>("operation", "id", "number of the operation in the rank's program", &Row::operation),
              column<Row>("start", "ps", "it started", &Row::start),
              column<Row>("end", "ps", "it ended", &Row::end),
              column<Row>("kind", "id", "0 compute, 1 collective, 2 send, 3 receive", &Row::kind),
              column<Row>("collective", "id", "collective it is a part of, -1 if none",
                          [](const Row& row) { return collective_or_none(row.collective); }),
              column<Row>("label", "text", "name in the workload", &Row::label),
          }};
}

Table<ProcessRecord> process_table() {
  using Row = ProcessRecord;
  return {"manifest/parallel",
          "One row per MPI process",
          [](const Row& row) {
            return RowKey{row.process, 0};
          },
          {
              column<Row>("process", "id", "rank of the MPI process", &Row::process),
              column<Row>("nodes", "1", "nodes that it simulates", &Row::nodes),
              column<Row>("hosts", "1", "hosts among them", &Row::hosts),
              column<Row>("packet_hops", "1", "packets sent by its nodes", &Row::packet_hops),
              column<Row>("events", "1", "arrivals, timers and decisions of its nodes", &Row::events),
              column<Row>("wait", "s", "time that it waited for other processes", &Row::wait),
              column<Row>("wait_share", "1", "of the wall time of the run", &Row::wait_share),
              column<Row>("memory", "B", "its nodes, ports, queues and packets", &Row::memory),
              column<Row>("peak_memory", "B", "its largest resident set", &Row::peak),
          }};
}

}  // namespace weft
