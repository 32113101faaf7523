// SPDX-License-Identifier: GPL-2.0-only
// Tests of the strong types and of exact serialisation time.
#include <concepts>
#include <unordered_set>
#include <utility>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft::quantities_test {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

// Like goes with like ...
static_assert(Addable<Time, Time> && Addable<Bytes, Bytes>);
static_assert(Comparable<Time, Time> && Comparable<Bytes, Bytes> && Comparable<Bandwidth, Bandwidth>);
static_assert(Multipliable<Time, int> && Multipliable<int, Bytes>);
// ... and with nothing else.
static_assert(!Addable<Bytes, Time> && !Addable<Time, Bytes> && !Addable<Time, Bandwidth>);
static_assert(!Addable<Time, int> && !Addable<int, Bytes> && !Addable<Bandwidth, Bandwidth>);
static_assert(!Comparable<Time, Bytes> && !Comparable<Time, int> && !Comparable<Bandwidth, Bytes>);
static_assert(!Multipliable<Time, Time> && !Multipliable<Bytes, Bytes> && !Multipliable<Bytes, Bandwidth>);
// A bare number is no quantity.
static_assert(!std::convertible_to<int, Time> && !std::constructible_from<Time, std::int64_t>);
static_assert(!std::convertible_to<std::int64_t, Bytes>);
static_assert(!std::convertible_to<int, Bandwidth> && !std::constructible_from<Bandwidth, std::int64_t>);
static_assert(!std::convertible_to<Time, std::int64_t> && !std::convertible_to<Bytes, std::int64_t>);
// Neither is an identifier of another kind an identifier of this kind.
static_assert(!std::convertible_to<NodeId, LinkId> && !std::constructible_from<NodeId, LinkId>);
static_assert(!Comparable<NodeId, Rank> && Comparable<NodeId, NodeId>);
static_assert(!std::convertible_to<std::uint32_t, NodeId> && !Addable<NodeId, NodeId>);
// They cost as much as the integer.
static_assert(sizeof(Time) == 8 && sizeof(Bytes) == 8 && sizeof(Bandwidth) == 8 && sizeof(NodeId) == 4);

TEST(Quantities, ConstructorsScale) {
  EXPECT_EQ(Time::from_ns(1), Time::from_ps(1000));
  EXPECT_EQ(Time::from_us(1), Time::from_ns(1000));
  EXPECT_EQ(Time::from_ms(1), Time::from_us(1000));
  EXPECT_EQ(Time::from_s(1), Time::from_ms(1000));
  EXPECT_EQ(Bytes::kib(1), Bytes(1024));
  EXPECT_EQ(Bytes::mib(1), Bytes::kib(1024));
  EXPECT_EQ(Bandwidth::from_gbps(1), Bandwidth::from_bps(1'000'000'000));
  EXPECT_DOUBLE_EQ(Time::from_ms(1500).seconds(), 1.5);
}

TEST(Quantities, Arithmetic) {
  Time time = Time::from_ns(3);
  time += Time::from_ns(4);
  time -= Time::from_ns(2);
  EXPECT_EQ(time, Time::from_ns(3 + 4 - 2));
  EXPECT_EQ(3 * time, time * 3);
  EXPECT_EQ(Time::from_ns(7) / Time::from_ns(2), 7 / 2);
  EXPECT_EQ(Time::from_ns(7) - Time::from_ns(9), Time::from_ns(7 - 9));
  Bytes amount(10);
  amount += Bytes(5);
  amount -= Bytes(1);
  EXPECT_EQ(amount, Bytes(10 + 5 - 1));
  EXPECT_EQ(amount / 4, Bytes(14 / 4));
  EXPECT_EQ(amount / Bytes(4), 14 / 4);
  EXPECT_EQ(Bytes(), Bytes(0));
  EXPECT_GT(Time::max(), Time::from_s(9'000'000));
}

TEST(Id, NoneIsInvalidAndTheDefault) {
  EXPECT_FALSE(NodeId().valid());
  EXPECT_EQ(NodeId(), NodeId::none());
  EXPECT_TRUE(NodeId(0).valid());
  EXPECT_EQ(NodeId(7).value(), 7U);
  EXPECT_LT(NodeId(7), NodeId(8));
  const std::unordered_set<NodeId> set{NodeId(1), NodeId(1), NodeId(2)};
  EXPECT_EQ(set.size(), 2U);
}

TEST(SerializationTime, HandComputed) {
  // 8e12 * bytes / bps: 4096 B at 400 Gb/s are 81.92 ns.
  EXPECT_EQ(serialization_time(Bytes(4096), Bandwidth::from_gbps(400)), Time::from_ps(81'920));
  EXPECT_EQ(serialization_time(Bytes(0), Bandwidth::from_gbps(400)), Time());
  // 1 B at 3 Gb/s are 2666.67 ps, rounded up.
  EXPECT_EQ(serialization_time(Bytes(1), Bandwidth::from_gbps(3)), Time::from_ps(2667));
  // A part of a picosecond is a whole one.
  EXPECT_EQ(serialization_time(Bytes(1), Bandwidth::from_bps(8'000'000'000'001)), Time::from_ps(1));
  EXPECT_EQ(serialization_time(Bytes(1), Bandwidth::from_bps(7'999'999'999'999)), Time::from_ps(2));
}

TEST(SerializationTime, IsTheLeastTimeInWhichTheRateCarriesTheBytes) {
  // ceil(x / y) is the only t with (t - 1) * y < x <= t * y; checked in 128 bits without dividing.
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random_below(std::uint64_t{1} << (i % 41), 1, 0, i));
    const auto bps = static_cast<std::int64_t>(1'000'000 + random_below(std::uint64_t{1} << (20 + i % 23), 1, 1, i));
    const __int128 work = static_cast<__int128>(bytes) * 8'000'000'000'000;
    const std::int64_t ps = serialization_time(Bytes(bytes), Bandwidth::from_bps(bps)).ps();
    ASSERT_GE(static_cast<__int128>(ps) * bps, work) << bytes << " B at " << bps << " bit/s";
    ASSERT_LT(static_cast<__int128>(ps - 1) * bps, work) << bytes << " B at " << bps << " bit/s";
  }
}

TEST(SerializationTime, LargeAmountsDoNotOverflow) {
  // 1 TiB at 1 Gb/s: 8e12 * 2^40 does not fit into 64 bits; the quotient 8000 * 2^40 does.
  EXPECT_EQ(serialization_time(Bytes(std::int64_t{1} << 40), Bandwidth::from_gbps(1)).ps(),
            8000 * (std::int64_t{1} << 40));
}

TEST(Times, BoundedSumsEndAtTheLimit) {
  const Time limit = Time::limit();
  EXPECT_EQ(limit.seconds(), 106.0 * 24 * 3600);
  EXPECT_EQ(bounded_sum(Time::from_s(1), Time::from_s(2)), Time::from_s(3));
  EXPECT_EQ(bounded_sum(limit - Time::from_ps(2), Time::from_ps(1)), limit - Time::from_ps(1));
  EXPECT_EQ(bounded_sum(limit - Time::from_ps(1), Time::from_ps(1)), limit);
  EXPECT_EQ(bounded_sum(limit, Time::max()), limit);
  EXPECT_EQ(bounded_sum(Time::max(), Time()), limit);
  EXPECT_EQ(bounded_product(3, Time::from_ps(5)), Time::from_ps(15));
  EXPECT_EQ(bounded_product(std::int64_t{1} << 62, Time::max()), limit);
  EXPECT_EQ(bounded_product(0, Time::max()), Time());
  // A few waits may be added to any time before the end.
  EXPECT_GT(Time::max() - limit, 10 * Time::longest_wait());
}

TEST(Times, SerializationIsNoLongerThanTheLimit) {
  EXPECT_EQ(serialization_time(Bytes(4178), Bandwidth::from_bps(1)), Time::from_s(33424));
  EXPECT_EQ(serialization_time(Bytes(std::int64_t{1} << 62), Bandwidth::from_bps(1)), Time::limit());
}

}  // namespace
}  // namespace weft::quantities_test
