// SPDX-License-Identifier: GPL-2.0-only
// Names of collectives and primitives, and bus-bandwidth factors.
#include "schedule/collective/collective.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::collective_test {
namespace {

TEST(CollectiveKind, NamesRoundTrip) {
  std::set<CollectiveKind> kinds;
  for (const std::string& name : collective_kind_names()) {
    const auto kind = parse_collective_kind(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(to_text(*kind), name);
    kinds.insert(*kind);
  }
  EXPECT_EQ(kinds.size(), 10u);
  EXPECT_EQ(to_text(CollectiveKind::reduce_scatter), "reduce_scatter");
  EXPECT_FALSE(parse_collective_kind("allreduce").has_value());
  EXPECT_FALSE(parse_collective_kind("").has_value());
}

TEST(BusBandwidthFactor, NcclTests) {
  for (const std::uint32_t n : {1u, 2u, 3u, 8u, 16384u}) {
    const double others = (n - 1.0) / n;
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_reduce, n), 2 * others);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_gather, n), others);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::reduce_scatter, n), others);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_to_all, n), others);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::broadcast, n), 1);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::reduce, n), 1);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::gather, n), others);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::scatter, n), others);
    EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::send_recv, n), 1);
  }
  EXPECT_THROW(bus_bandwidth_factor(CollectiveKind::all_reduce, 0), InternalError);
}

TEST(Primitive, NameSaysWhatItDoes) {
  for (const Primitive p :
       {Primitive::send, Primitive::recv, Primitive::copy, Primitive::recv_copy_send, Primitive::recv_reduce_send,
        Primitive::recv_reduce_copy, Primitive::recv_reduce_copy_send}) {
    const std::string name(to_text(p));
    EXPECT_EQ(sends(p), name.ends_with("send")) << name;
    EXPECT_EQ(receives(p), name.starts_with("recv")) << name;
    EXPECT_EQ(reduces(p), name.find("reduce") != std::string::npos) << name;
    EXPECT_EQ(stores(p), name.find("copy") != std::string::npos || name == "recv") << name;
  }
}

TEST(WireBytes, FlagsBesideData) {
  // ll: 4 bytes of data and 4 of flag, in lines of 16; ll128: 120 of data in lines of 128.
  EXPECT_EQ(wire_bytes(Protocol::simple, Bytes(1000)), Bytes(1000));
  EXPECT_EQ(wire_bytes(Protocol::ll, Bytes(1000)), Bytes(2000));
  EXPECT_EQ(wire_bytes(Protocol::ll, Bytes(1)), Bytes(16));
  EXPECT_EQ(wire_bytes(Protocol::ll128, Bytes(1200)), Bytes(1280));
  EXPECT_EQ(wire_bytes(Protocol::ll128, Bytes(121)), Bytes(256));
}

TEST(BlockTable, OffsetsAreSumsOfWhatLiesBefore) {
  const BlockTable row(3, {5, 0, 7});
  EXPECT_EQ(row.input_offset(0, 2), 5);
  EXPECT_EQ(row.bytes(0, 2), 7);
  EXPECT_EQ(row.total(), 12);
  const BlockTable pairs(2, {1, 2, 3, 4});
  EXPECT_EQ(pairs.input_offset(1, 1), 3);
  EXPECT_EQ(pairs.output_offset(1, 1), 2);
  EXPECT_EQ(pairs.total(), 10);
}

// A file gives the same values as memory, for all ranks and any order of requests. Ranks beside the sizes of a line of
// the file (31 blocks), and more than TemporaryFile keeps in memory.
TEST(BlockTable, ManyPairsStandInAFileAndAreTheSame) {
  for (const std::uint32_t ranks : {BlockTable::ranks_in_memory + 1, 155U, 156U, 217U}) {
    std::vector<std::int64_t> bytes;
    for (std::uint64_t i = 0; i < std::uint64_t{ranks} * ranks; ++i)
      bytes.push_back(static_cast<std::int64_t>(random_bits(7, ranks, i) >> (i % 5 == 0 ? 16 : 60)));
    const BlockTable memory(ranks, bytes);
    const auto file = BlockTable::of_rows(ranks, [&](std::uint32_t from, std::vector<std::int64_t>& row) {
      std::copy_n(bytes.begin() + std::ptrdiff_t{from} * ranks, ranks, row.begin());
    });
    EXPECT_TRUE(file->of_pairs());
    EXPECT_EQ(file->total(), memory.total());
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const bool walks = i % 3 == 0;  // as ranks do it, and anywhere
      const auto from = static_cast<std::uint32_t>((walks ? i / 600 : random_bits(1, ranks, i)) % ranks);
      const auto to = static_cast<std::uint32_t>((walks ? i / 3 : random_bits(2, ranks, i)) % ranks);
      if (i % 7 < 3) {
        ASSERT_EQ(file->bytes(from, to), memory.bytes(from, to)) << from << " to " << to;
      }
      if (i % 7 > 1) {
        ASSERT_EQ(file->input_offset(from, to), memory.input_offset(from, to)) << from << " to " << to;
      }
      if (i % 7 > 3) {
        ASSERT_EQ(file->output_offset(from, to), memory.output_offset(from, to)) << from << " to " << to;
      }
      ASSERT_EQ(file->bytes(from, to), memory.bytes(from, to)) << from << " to " << to;
    }
  }
}

}  // namespace
}  // namespace weft::collective_test
