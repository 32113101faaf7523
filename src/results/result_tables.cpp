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

}  // namespace

Table<MessageRecord> message_table() {
  using Row = MessageRecord;
  return {"messages",
          "One row per delivered message, in ascending order of (delivered, id)",
          [](const Row& row) {
            return RowKey{static_cast<std::uint64_t>(row.delivered), row.id};
          },
          {
              column<Row>("id", "id", "source << 32 | number of the message at its source", &Row::id),
              column<Row>("source", "id", "sending rank", &Row::source),
              column<Row>("destination", "id", "receiving rank", &Row::destination),
              column<Row>("bytes", "B", "payload", &Row::bytes),
              column<Row>("issued", "ps", "handed to the queue pair", &Row::issued),
              column<Row>("delivered", "ps", "last byte at the destination", &Row::delivered),
              column<Row>("ideal", "ps", "duration alone on an idle network, without window limit", &Row::ideal),
              column<Row>("packets", "1", "data packets it was cut into", &Row::packets),
              column<Row>("collective", "id", "collective it belongs to, -1 if none",
                          [](const Row& row) { return collective_or_none(row.collective); }),
              column<Row>("tag", "id", "matching tag", &Row::tag),
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
              column<Row>("dropped", "1", "packets dropped", &Row::dropped),
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
          "One row per rank of the job, in ascending order",
          [](const Row& row) {
            return RowKey{row.rank, 0};
          },
          {
              column<Row>("rank", "id", "rank of the job", &Row::rank),
              column<Row>("node", "id", "host it runs on", &Row::node),
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
