// SPDX-License-Identifier: GPL-2.0-only
// The closed form of a message's time on an idle path against the packets themselves, one by one.
#include "transport/messages/ideal_time.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::ideal_time_test {
namespace {

constexpr Bytes overhead(82);

/// Departures of every packet from every link, by the recurrence of store and forward, or of cut-through.
Time packet_by_packet(const std::vector<PathLink>& path, Bytes message, Bytes mtu) {
  std::vector<Bytes> packets(1, std::min(message, mtu));
  for (Bytes rest = message - packets[0]; rest > Bytes(0); rest -= packets.back())
    packets.push_back(std::min(rest, mtu));
  std::vector<Time> ready(packets.size());  // at the output of the next link
  for (const PathLink& link : path) {
    Time free;
    for (std::size_t j = 0; j < packets.size(); ++j) {
      const Time begin = std::max(ready[j], free);
      const Time whole = serialization_time(packets[j] + overhead, link.rate);
      free = begin + whole;
      const bool stored = link.head == Time() || link.head > whole || &link == &path.back();
      ready[j] = begin + (stored ? whole : link.head) + link.delay;
    }
  }
  return ready.back();
}

std::vector<PathLink> random_path(std::uint64_t seed) {
  std::vector<PathLink> path(1 + random_below(7, seed, 0, 0));
  for (std::uint64_t i = 0; i < path.size(); ++i) {
    // From 1 Mb/s to 10 Tb/s, most of them with serialisation times that are rounded.
    std::int64_t scale = 1'000'000;
    for (std::uint64_t e = random_below(7, seed, 1, i); e > 0; --e) scale *= 10;
    path[i].rate = Bandwidth::from_bps(
        scale + static_cast<std::int64_t>(random_below(static_cast<std::uint64_t>(9 * scale), seed, 2, i)));
    path[i].delay = Time::from_ps(static_cast<std::int64_t>(random_below(3'000'000, seed, 3, i)));
  }
  return path;
}

TEST(ideal_time, random_paths_and_sizes_around_multiples_of_the_mtu) {
  const std::int64_t mtus[] = {1, 2, 64, 1000, 4096, 65'535};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto path = random_path(seed);
    const std::int64_t mtu = mtus[seed % std::size(mtus)];
    for (const std::int64_t multiple : {0, 1, 2, 3, 17}) {
      for (std::int64_t size = multiple * mtu - 1; size <= multiple * mtu + 1; ++size) {
        if (size < 0) continue;
        ASSERT_EQ(ideal_message_time(path, Bytes(size), Bytes(mtu), overhead),
                  packet_by_packet(path, Bytes(size), Bytes(mtu)))
            << size << " B in packets of " << mtu << " B, path " << seed << " of " << path.size() << " links";
      }
    }
  }
}

TEST(ideal_time, random_sizes) {
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    const auto path = random_path(seed);
    const Bytes mtu(1 + static_cast<std::int64_t>(random_below(5000, seed, 4, 0)));
    const Bytes size(static_cast<std::int64_t>(random_below(200'000, seed, 5, 0)));
    ASSERT_EQ(ideal_message_time(path, size, mtu, overhead), packet_by_packet(path, size, mtu)) << "seed " << seed;
  }
}

TEST(ideal_time, random_paths_with_cut_through_on_some_of_their_links) {
  for (std::uint64_t seed = 2000; seed < 2400; ++seed) {
    auto path = random_path(seed);
    for (std::uint64_t i = 0; i < path.size(); ++i)
      if (random_below(3, seed, 6, i) > 0) path[i].head = serialization_time(Bytes(62), path[i].rate);
    const Bytes mtu(1 + static_cast<std::int64_t>(random_below(5000, seed, 4, 0)));
    const Bytes size(static_cast<std::int64_t>(random_below(60'000, seed, 5, 0)));
    ASSERT_EQ(ideal_message_time(path, size, mtu, overhead), packet_by_packet(path, size, mtu)) << "seed " << seed;
  }
}

TEST(ideal_time, cut_through_pays_for_whole_packets_once) {
  // Kermani and Kleinrock 1979: (links - 1) heads and one message, instead of links messages.
  const PathLink link{Bandwidth::from_gbps(100), Time::from_ns(500), Time::from_ps(62 * 80)};
  for (const std::int64_t links : {1, 2, 6})
    for (const std::int64_t packets : {1, 2, 50})
      EXPECT_EQ(ideal_message_time(std::vector<PathLink>(static_cast<std::size_t>(links), link), Bytes(packets * 4096),
                                   Bytes(4096), overhead),
                (links - 1) * link.head + links * link.delay + packets * Time::from_ps(4178 * 80));
}

TEST(ideal_time, equal_packets_as_the_documentation_says) {
  // sum s_i + sum d_i + (P - 1) max s_i, with s = 8 (4096 + 82) / rate.
  const std::vector<PathLink> path{{Bandwidth::from_gbps(400), Time::from_ns(500)},
                                   {Bandwidth::from_gbps(100), Time::from_ns(700)},
                                   {Bandwidth::from_gbps(200), Time::from_us(2)}};
  const Time s400 = Time::from_ps(83'560);
  const Time s200 = 2 * s400;
  const Time s100 = 4 * s400;
  for (const std::int64_t packets : {1, 2, 3, 1000})
    EXPECT_EQ(ideal_message_time(path, packets * Bytes(4096), Bytes(4096), overhead),
              s400 + s100 + s200 + Time::from_ns(3200) + (packets - 1) * s100);
}

TEST(ideal_time, a_short_last_packet_waits_behind_the_one_before_it) {
  // 10 B/us, then 1 B/us, without delays: a full packet of 10 B of wire takes 1 us and 10 us, a short one of 5 B half.
  // The second leaves the first link at 1.5 us and the second link after the first packet: 11 us + 5 us.
  const std::vector<PathLink> path{{Bandwidth::from_bps(80'000'000), Time()}, {Bandwidth::from_bps(8'000'000), Time()}};
  EXPECT_EQ(ideal_message_time(path, Bytes(8 + 3), Bytes(8), Bytes(2)), Time::from_us(16));
  // In the other direction it travels alone: 10 us + 5 us on the slow link, 0.5 us on the fast one.
  EXPECT_EQ(ideal_message_time({path[1], path[0]}, Bytes(8 + 3), Bytes(8), Bytes(2)), Time::from_ns(15'500));
}

TEST(ideal_time, an_empty_message_is_one_packet_of_overhead) {
  const std::vector<PathLink> path{{Bandwidth::from_gbps(100), Time::from_ns(500)}};
  EXPECT_EQ(ideal_message_time(path, Bytes(0), Bytes(4096), overhead), Time::from_ps(82 * 80) + Time::from_ns(500));
}

TEST(ideal_time, beyond_32_bits) {
  // 2^40 B in packets of 4096 B at 80 ps per byte: 2^28 packets.
  const std::vector<PathLink> path{{Bandwidth::from_gbps(100), Time::from_ns(500)},
                                   {Bandwidth::from_gbps(100), Time::from_ns(500)}};
  const std::int64_t packets = std::int64_t{1} << 28;
  EXPECT_EQ(ideal_message_time(path, Bytes(packets * 4096), Bytes(4096), overhead),
            (packets + 1) * Time::from_ps(4178 * 80) + Time::from_us(1));
}

}  // namespace
}  // namespace weft::ideal_time_test
