// SPDX-License-Identifier: GPL-2.0-only
// Tests of quantities from and to text.
#include "units/text.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/basics/random.hpp"

namespace weft::text_test {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// The value in the base unit; fails the test if there is none.
std::int64_t ps(const std::string& text) {
  QuantityError error;
  const auto value = parse_time(text, error);
  EXPECT_TRUE(value.has_value()) << text << ": " << error.what;
  return value.value_or(Time::from_ps(-1)).ps();
}
std::int64_t count(const std::string& text) {
  QuantityError error;
  const auto value = parse_bytes(text, error);
  EXPECT_TRUE(value.has_value()) << text << ": " << error.what;
  return value.value_or(Bytes(-1)).count();
}
std::int64_t bps(const std::string& text) {
  QuantityError error;
  const auto value = parse_bandwidth(text, error);
  EXPECT_TRUE(value.has_value()) << text << ": " << error.what;
  return value.value_or(Bandwidth::from_bps(-1)).bps();
}

/// The complaint about a text; fails the test if there is none.
std::string time_error(const std::string& text) {
  QuantityError error;
  EXPECT_FALSE(parse_time(text, error).has_value()) << text;
  return error.what;
}
std::string bytes_error(const std::string& text) {
  QuantityError error;
  EXPECT_FALSE(parse_bytes(text, error).has_value()) << text;
  return error.what;
}
std::string bandwidth_error(const std::string& text) {
  QuantityError error;
  EXPECT_FALSE(parse_bandwidth(text, error).has_value()) << text;
  return error.what;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ParseQuantity, EveryUnit) {
  std::int64_t scale = 1;
  for (const char* unit : {"ps", "ns", "us", "ms", "s"}) {
    EXPECT_EQ(ps(std::string("3 ") + unit), 3 * scale) << unit;
    scale *= 1000;
  }
  scale = 1;
  for (const std::string prefix : {"", "k", "M", "G", "T"}) {
    EXPECT_EQ(count("3 " + prefix + "B"), 3 * scale) << prefix;
    EXPECT_EQ(bps("3 " + prefix + "b/s"), 3 * scale) << prefix;
    EXPECT_EQ(bps("3 " + prefix + "bps"), 3 * scale) << prefix;
    EXPECT_EQ(bps("3 " + prefix + "B/s"), 3 * 8 * scale) << prefix;
    scale *= 1000;
  }
  scale = 1024;
  for (const std::string prefix : {"Ki", "Mi", "Gi", "Ti"}) {
    EXPECT_EQ(count("3 " + prefix + "B"), 3 * scale) << prefix;
    EXPECT_EQ(bps("3 " + prefix + "B/s"), 3 * 8 * scale) << prefix;
    scale *= 1024;
  }
}

TEST(ParseQuantity, FormsOfTheNumber) {
  for (const char* text :
       {"2500 ns", "2500ns", "  2500   ns  ", "2.5 us", "2.50us", "002.5 us", "0.0025 ms", ".0025 ms", "2500. ns",
        "25e2 ns", "2.5e3 ns", "2.5E+3 ns", "2500000e-3 ns", "0.0000025 s", "2.5e-6s"}) {
    EXPECT_EQ(ps(text), 2'500'000) << text;
  }
  EXPECT_EQ(ps("1e-3 ns"), 1);
  for (const char* text : {"0 ns", "0.000 s", "0e99 s", "0e-99 ps", "000 us"}) EXPECT_EQ(ps(text), 0) << text;
}

TEST(ParseQuantity, FractionsAreExact) {
  // As doubles, 0.1 + 0.2, 83.56 and 4.35 are not what they seem.
  EXPECT_EQ(ps("83.56 ns"), 83'560);
  EXPECT_EQ(ps("4.35 us"), 4'350'000);
  EXPECT_EQ(ps("9007199254740993 ps"), 9'007'199'254'740'993);  // 2^53 + 1
  EXPECT_EQ(ps("9007.199254740993 s"), 9'007'199'254'740'993);
  EXPECT_EQ(count("1.5 KiB"), 1024 * 3 / 2);
  EXPECT_EQ(count("0.0009765625 KiB"), 1);                                // 2^-10
  EXPECT_EQ(count("0.0000000000009094947017729282379150390625 TiB"), 1);  // 2^-40
  EXPECT_EQ(bps("0.125 B/s"), 1);
}

TEST(ParseQuantity, NotWhole) {
  EXPECT_TRUE(contains(time_error("0.5 ps"), "not a whole number of ps"));
  EXPECT_TRUE(contains(time_error("1e-4 ns"), "not a whole number of ps"));
  EXPECT_TRUE(contains(time_error("1.0000000000000000000000000000000000000000001 s"), "not a whole number of ps"));
  EXPECT_TRUE(contains(time_error("1e-99999999999999999999 s"), "not a whole number of ps"));
  EXPECT_TRUE(contains(bytes_error("0.1 KiB"), "not a whole number of B"));
  EXPECT_TRUE(contains(bandwidth_error("2.5 b/s"), "not a whole number of b/s"));
}

TEST(ParseQuantity, LimitsOfSixtyFourBits) {
  EXPECT_EQ(ps("9223372036854775807 ps"), largest);
  EXPECT_EQ(ps("9223372.036854775807 s"), largest);
  EXPECT_EQ(count("9223372036854775807 B"), largest);
  for (const char* text : {"9223372036854775808 ps", "9223372.036854775808 s", "1e7 s", "1e99999999999999999999 ps",
                           "99999999999999999999999999999999999999999999 ps"}) {
    EXPECT_TRUE(contains(time_error(text), "too large; at most 9223372036854775807 ps")) << text;
  }
  EXPECT_TRUE(contains(bytes_error("8388608 TiB"), "too large"));  // 2^23 * 2^40 = 2^63
  EXPECT_EQ(count("8388607 TiB"), 8'388'607 * (std::int64_t{1} << 40));
}

TEST(ParseQuantity, BareNumber) {
  EXPECT_EQ(time_error("500"), "a number without a unit; write for example '500 ns'");
  EXPECT_EQ(bytes_error("64"), "a number without a unit; write for example '64 B'");
  EXPECT_EQ(bandwidth_error(" 400 "), "a number without a unit; write for example '400 Gb/s'");
  EXPECT_TRUE(contains(time_error("0"), "a number without a unit"));
  EXPECT_TRUE(contains(time_error("1e3"), "a number without a unit"));
}

TEST(ParseQuantity, UnknownUnit) {
  EXPECT_EQ(time_error("500 nss"), "unknown unit 'nss' (did you mean 'ns'?); known units: ps, ns, us, ms, s");
  EXPECT_EQ(time_error("5 hours"), "unknown unit 'hours'; known units: ps, ns, us, ms, s");
  EXPECT_TRUE(contains(time_error("5 e"), "unknown unit 'e'"));
  EXPECT_TRUE(contains(time_error("5 64 MiB"), "malformed number"));
  EXPECT_TRUE(contains(time_error("400 Gb/s"), "unknown unit 'Gb/s'"));
  EXPECT_TRUE(contains(bytes_error("64 MiB/s"), "unknown unit 'MiB/s'"));
  EXPECT_TRUE(contains(bandwidth_error("64 MiB"), "unknown unit 'MiB' (did you mean 'MiB/s'?)"));
  EXPECT_TRUE(contains(bandwidth_error("400 Gb"), "(did you mean 'Gb/s'?)"));
  EXPECT_TRUE(contains(bandwidth_error("400 Gbs"), "(did you mean 'Gb/s'?)"));
  EXPECT_TRUE(contains(bandwidth_error("400 gb/s"), "(did you mean 'Gb/s'?)"));
  EXPECT_TRUE(contains(bandwidth_error("50 GBps"), "(did you mean 'GB/s'?)"));
  EXPECT_TRUE(contains(bytes_error("64 mib"), "(did you mean 'MiB'?)"));
  EXPECT_TRUE(contains(bytes_error("64 KB"), "(did you mean 'kB'?)"));
  EXPECT_TRUE(contains(bytes_error("64 G"), "(did you mean 'GB'?)"));
  // Upper and lower case differ: bits are not bytes, and milli is not mega.
  EXPECT_TRUE(contains(time_error("5 MS"), "(did you mean 'ms'?)"));
}

TEST(ParseQuantity, NoQuantityAtAll) {
  EXPECT_TRUE(contains(time_error(""), "an empty text; write for example '500 ns'"));
  EXPECT_TRUE(contains(time_error("  "), "an empty text"));
  EXPECT_TRUE(contains(time_error("-5 ns"), "a negative time"));
  EXPECT_TRUE(contains(bytes_error("-5 B"), "a negative size"));
  EXPECT_TRUE(contains(bandwidth_error("-5 b/s"), "a negative rate"));
  for (const char* text : {"ns", "fast", ".", ". ns", "e5 ns", "+5 ns"}) {
    EXPECT_TRUE(contains(time_error(text), "no number in front")) << text;
  }
  for (const char* text : {"1,000 ns", "1_000 ns", "1.2.3 ns", "1e3e3 ns", "1e3.5 ns"}) {
    const std::string what = time_error(text);
    EXPECT_TRUE(contains(what, "a malformed number") || contains(what, "unknown unit")) << text << ": " << what;
  }
}

TEST(QuantityText, ShortestFirst) {
  EXPECT_EQ(to_text(Time::from_ps(83'560)), "83.56 ns");
  EXPECT_EQ(to_text(Time::from_ns(500)), "500 ns");
  EXPECT_EQ(to_text(Time::from_ns(1500)), "1.5 us");
  EXPECT_EQ(to_text(Time::from_ps(1)), "1 ps");
  EXPECT_EQ(to_text(Time()), "0 s");
  EXPECT_EQ(to_text(Bytes::mib(64)), "64 MiB");
  EXPECT_EQ(to_text(Bytes(1'000'000)), "1 MB");
  EXPECT_EQ(to_text(Bytes(4096)), "4 KiB");
  EXPECT_EQ(to_text(Bytes(62)), "62 B");
  EXPECT_EQ(to_text(Bytes()), "0 B");
  EXPECT_EQ(to_text(Bandwidth::from_gbps(400)), "400 Gb/s");
  EXPECT_EQ(to_text(Bandwidth::from_gbps(1600)), "1.6 Tb/s");
  EXPECT_EQ(to_text(Bandwidth()), "0 b/s");
  EXPECT_EQ(to_text(Time::from_ns(500) - Time::from_ns(1000)), "-500 ns");
  EXPECT_EQ(to_text(Time::from_ps(std::numeric_limits<std::int64_t>::min())).front(), '-');
}

/// Values of every magnitude, round ones and crooked ones.
std::vector<std::int64_t> many_values() {
  std::vector<std::int64_t> values{0, 1, largest, largest - 1};
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t power = std::int64_t{1} << bit;
    values.push_back(power);
    values.push_back(power - 1);
    for (std::uint64_t i = 0; i < 50; ++i) {
      values.push_back(static_cast<std::int64_t>(random_below(static_cast<std::uint64_t>(power), 7, 0, values.size())));
    }
  }
  for (std::int64_t power = 1; power <= largest / 10; power *= 10) {
    for (std::int64_t digit = 1; digit < 10; ++digit) values.push_back(power * digit);
  }
  return values;
}

TEST(QuantityText, RoundTrip) {
  QuantityError error;
  for (const std::int64_t value : many_values()) {
    ASSERT_EQ(parse_time(to_text(Time::from_ps(value)), error), Time::from_ps(value)) << to_text(Time::from_ps(value));
    ASSERT_EQ(parse_bytes(to_text(Bytes(value)), error), Bytes(value)) << to_text(Bytes(value));
    const Bandwidth rate = Bandwidth::from_bps(value);
    ASSERT_EQ(parse_bandwidth(to_text(rate), error), rate) << to_text(rate);
  }
}

TEST(QuantityText, NeverLongerThanTheBaseUnit) {
  for (const std::int64_t value : many_values()) {
    ASSERT_LE(to_text(Time::from_ps(value)).size(), std::to_string(value).size() + 3);
    ASSERT_LE(to_text(Bytes(value)).size(), std::to_string(value).size() + 2);
  }
}

TEST(ParseQuantity, AgreesWithPlainIntegers) {
  // <n> units = n * scale, for n up to where it overflows.
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto n = static_cast<std::int64_t>(random_below(std::uint64_t{1} << (i % 23), 3, 0, i));
    EXPECT_EQ(ps(std::to_string(n) + " s"), n * 1'000'000'000'000);
    EXPECT_EQ(count(std::to_string(n) + "TiB"), n << 40);
    EXPECT_EQ(bps(std::to_string(n) + " kB/s"), n * 8000);
  }
}

}  // namespace
}  // namespace weft::text_test
