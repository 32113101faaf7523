// SPDX-License-Identifier: GPL-2.0-only
// A 64-bit fingerprint of what happened that does not depend on the order of rows nor on who holds them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "results/records.hpp"
#include "support/random.hpp"

namespace weft {

namespace detail {

/// Mix of one row: `salt` tells the record types apart, the chain tells the fields apart. Equal rows do not cancel,
/// because rows are added and not xor-ed.
constexpr std::uint64_t mix_row(std::uint64_t salt, std::initializer_list<std::uint64_t> fields) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = mix64(salt + golden);
  for (const std::uint64_t field : fields) mixed = mix64(mixed ^ mix64(field + golden));
  return mixed;
}

constexpr std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace detail

/// The summand of one row: a mix of all of its integer fields (texts and floating-point averages are left out).
inline std::uint64_t fingerprint(const MessageRecord& row) {
  using detail::word;
  return detail::mix_row(1, {row.id, row.source, row.destination, word(row.bytes), word(row.issued),
                             word(row.delivered), word(row.ideal), row.packets, row.collective, row.tag});
}

inline std::uint64_t fingerprint(const CollectivePart& row) {
  using detail::word;
  return detail::mix_row(2, {row.collective, row.rank, word(row.start), word(row.end), row.messages, word(row.bytes)});
}

inline std::uint64_t fingerprint(const LinkRecord& row) {
  using detail::word;
  return detail::mix_row(
      3, {row.id, row.from, row.to, row.from_port, word(row.rate), word(row.delay), word(row.bytes),
          word(row.payload_bytes), row.packets, row.data_packets, word(row.busy), word(row.peak_queue), row.dropped});
}

/// Classes in which nothing has happened but packets count for nothing, so that the same packets give the same
/// fingerprint with and without queues by class.
inline std::uint64_t fingerprint(const LinkClassRecord& row) {
  using detail::word;
  if (row.marked == 0 && row.dropped == 0 && row.trimmed == 0 && row.paused == 0 && row.stopped == 0) return 0;
  return detail::mix_row(7, {row.link, row.lane, row.priority, row.packets, word(row.bytes), row.marked, row.dropped,
                             row.trimmed, word(row.paused), row.pauses_received, word(row.stopped), row.pauses_sent});
}

inline std::uint64_t fingerprint(const LinkSample& row) {
  using detail::word;
  return detail::mix_row(4, {row.link, row.interval, word(row.time), word(row.busy), word(row.queue)});
}

inline std::uint64_t fingerprint(const RankRecord& row) {
  using detail::word;
  return detail::mix_row(
      5, {row.rank, row.node, word(row.finished), word(row.compute), word(row.communication), word(row.exposed),
          word(row.idle), row.messages_sent, row.messages_received, word(row.bytes_sent), word(row.bytes_received)});
}

inline std::uint64_t fingerprint(const OperationRecord& row) {
  using detail::word;
  return detail::mix_row(6, {row.rank, row.operation, word(row.start), word(row.end), row.kind, row.collective});
}

inline std::uint64_t fingerprint(const TransferRecord& row) {
  using detail::word;
  return detail::mix_row(
      8, {row.transfer, row.source, row.destination, row.priority, word(row.size), word(row.start), word(row.connected),
          word(row.first), word(row.last), word(row.bytes), word(row.repeated)});
}

/// Sum of all rows modulo 2^64. The fingerprint of a run is the sum over its record types and MPI ranks.
template <class Row>
std::uint64_t fingerprint_sum(const std::span<const Row> rows) {
  std::uint64_t sum = 0;
  for (const Row& row : rows) sum += fingerprint(row);
  return sum;
}

}  // namespace weft
