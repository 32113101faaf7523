// SPDX-License-Identifier: GPL-2.0-only
// A made-up run whose rows are functions of their ids, dealt out to processes in several ways.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "results/tables/records.hpp"
#include "support/basics/random.hpp"

namespace weft::sample {

constexpr std::uint32_t ranks = 5;
constexpr std::uint32_t links = 14;
constexpr std::uint32_t samples_per_link = 4;
constexpr std::uint32_t operations_per_rank = 3;
constexpr std::uint32_t collectives = 4;
constexpr std::int64_t simulated_time = 1'000'000;
constexpr std::int64_t interval = 300'000;  // the last of four intervals is shorter

/// Messages of a rank: rank 2 sends nothing, so that a block may be empty.
constexpr std::uint32_t messages_of(std::uint32_t rank) { return rank == 2 ? 0 : 3 + rank; }

inline MessageRecord message(std::uint32_t source, std::uint32_t number) {
  MessageRecord row;
  row.id = (static_cast<std::uint64_t>(source) << 32) | number;
  row.source = source;
  row.destination = (source + 1 + number) % ranks;
  row.bytes = (std::int64_t{5} << 30) + number;  // above 4 GiB
  row.issued = 1000 * number + source;
  row.delivered = row.issued + 777;
  row.ideal = 700 + source;
  row.packets = 10 + number;
  row.collective = number % 2 == 0 ? number % collectives : no_collective;
  row.tag = number;
  return row;
}

inline LinkRecord link(std::uint32_t id) {
  LinkRecord row;
  row.id = id;
  row.from = id / 2;
  row.to = id / 2 + 1;
  row.from_port = id % 2;
  row.rate = 400'000'000'000;
  row.delay = 500'000;
  row.bytes = 1000 * id;
  row.payload_bytes = 900 * id;
  row.packets = 20 * id;
  row.data_packets = 10 * id;
  row.busy = simulated_time * id / links;
  row.peak_queue = 50 * id;
  row.mean_queue = 0.25 * id;
  row.dropped = id % 3;
  row.from_name = fmt::format("switch{}", id / 2);
  row.to_name = id == 3 ? "λ-switch with a long name" : fmt::format("host{}", id);
  row.link_class = id % 2 == 0 ? "edge-host" : "";
  return row;
}

inline LinkSample sample(std::uint32_t link, std::uint32_t number) {
  return {link, number, 1000 * link + number, 64 * link * number};
}

/// Length of the interval within the run.
constexpr std::int64_t interval_length(std::uint32_t number) {
  const std::int64_t rest = simulated_time - number * interval;
  return rest < interval ? rest : interval;
}

inline RankRecord rank(std::uint32_t number) {
  return {number,      number + 100, 900'000 - number, 5 + number, 6 + number, 7 + number, 8 + number, 9 + number,
          10 + number, 11 + number,  12 + number,      0,          {},         0,          false};
}

inline JobRecord job(std::uint32_t number) {
  JobRecord row;
  row.job = number;
  row.name = fmt::format("job{}", number);
  row.first_rank = 4 * number;
  row.ranks = 4;
  row.start = 100;
  row.end = 1000 + 900 * number;
  row.steps = 1 + number;
  row.compute = 600 + 300 * number;
  row.exposed = 200;
  return row;
}

inline OperationRecord operation(std::uint32_t rank, std::uint32_t number) {
  return {rank,
          number,
          10 * number,
          10 * number + 5,
          static_cast<std::uint8_t>(number % 4),
          number % 4 == 1 ? number % collectives : no_collective,
          fmt::format("layer{}.forward", number),
          UINT64_MAX,
          "compute",
          "forward",
          "",
          UINT64_MAX};
}

inline CollectiveInfo collective(std::uint32_t id) {
  return {id, id % 2 == 0 ? "all_reduce" : "broadcast", "ring", fmt::format("bucket{}", id), ranks, 1 << 20, 1.6};
}

inline CollectiveDirectory directory(std::uint64_t count = collectives) { return {count, collective}; }
inline CollectivePart part(std::uint32_t collective, std::uint32_t rank) {
  return {collective, rank, 100 * collective + 10 * rank, 5000 + 100 * collective - rank, 2 + rank, 64 * (1 + rank)};
}

/// The distribution of entities: entity e of any kind is with process `holder(e)` of `processes`.
struct Deal {
  std::uint64_t salt = 0;
  std::uint32_t process = 0;
  std::uint32_t processes = 1;
  bool mine(std::uint64_t entity) const { return random_below(processes, salt, entity, 0) == process; }
};

/// All rows that the deal gives to this process, in descending order (the recorder must sort).
template <class Row, class Make>
std::vector<Row> dealt(const Deal& deal, std::uint32_t first, Make&& make, std::uint32_t second) {
  std::vector<Row> rows;
  for (std::uint32_t a = first; a-- > 0;)
    for (std::uint32_t b = second; b-- > 0;)
      if (deal.mine(1000 * a + b)) rows.push_back(make(a, b));
  return rows;
}

inline std::vector<MessageRecord> messages(const Deal& deal) {
  std::vector<MessageRecord> rows;
  for (std::uint32_t source = ranks; source-- > 0;)
    for (std::uint32_t number = messages_of(source); number-- > 0;)
      if (deal.mine(1000 * source + number)) rows.push_back(message(source, number));
  return rows;
}

}  // namespace weft::sample
