// SPDX-License-Identifier: GPL-2.0-only
// Reading and rounding that the congestion-control algorithms share; the static window.
#include "transport/congestion_control/congestion_parameters.hpp"

#include <gtest/gtest.h>

namespace weft::congestion_parameters_test {
namespace {

std::string message(const std::string& yaml, const std::function<void(const CongestionParameters&)>& read) {
  try {
    const CongestionParameters parameters(Spec::parse(yaml, "a.yaml"));
    read(parameters);
    parameters.finish();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(congestion_parameters, values_within_their_bounds_and_absent_ones) {
  const CongestionParameters parameters(
      Spec::parse("{gain: 0.5, stages: 3, period: 5 us, size: 2 kB, rate: 40 Mb/s}", "a"));
  double gain = 0;
  std::int64_t stages = 0;
  Time period;
  std::optional<Bytes> size;
  std::optional<Bandwidth> rate;
  std::optional<Bandwidth> other;
  parameters.read("gain", gain, 0, 1);
  parameters.read("stages", stages, 1, 3);
  parameters.read("period", period, Time::from_us(5), Time::from_us(5));
  parameters.read("size", size, Bytes(1), Bytes(4000));
  parameters.read("rate", rate, Bandwidth::from_bps(1), Bandwidth::from_gbps(1));
  parameters.read("other", other, Bandwidth::from_bps(1), Bandwidth::from_gbps(1));
  parameters.finish();
  EXPECT_EQ(gain, 0.5);
  EXPECT_EQ(stages, 3);
  EXPECT_EQ(period, Time::from_us(5));
  EXPECT_EQ(size, Bytes(2000));
  EXPECT_EQ(rate, Bandwidth::from_bps(40'000'000));
  EXPECT_EQ(other, std::nullopt);
}

TEST(congestion_parameters, errors_say_where_and_what_is_due) {
  Time time;
  double number = 0;
  EXPECT_EQ(
      message("x: 1\nperiod: 5 s", [&](const auto& p) { p.read("period", time, Time::from_us(1), Time::from_ms(1)); }),
      "a.yaml:2: `period`: found 5 s; expected 1 us to 1 ms");
  EXPECT_NE(message("gain: 2", [&](const auto& p) { p.read("gain", number, 0, 1); }).find("a.yaml:1: `gain`"),
            std::string::npos);
  EXPECT_NE(message("gian: 1", [&](const auto& p) { p.read("gain", number, 0, 1); }).find("did you mean 'gain'"),
            std::string::npos);
  EXPECT_NE(message("[1]", [](const auto&) {}).find("expected a map"), std::string::npos);
}

TEST(congestion_parameters, rounding_keeps_windows_and_rates_possible) {
  EXPECT_EQ(to_window(-5), Bytes(1));
  EXPECT_EQ(to_window(0.2), Bytes(1));
  EXPECT_EQ(to_window(1499.5), Bytes(1500));
  EXPECT_EQ(to_window(1e300), Bytes(std::int64_t{1} << 53));
  const Bandwidth nic = Bandwidth::from_gbps(100);
  EXPECT_EQ(to_rate(0, nic), Bandwidth::from_bps(1));
  EXPECT_EQ(to_rate(1e9 + 0.4, nic), Bandwidth::from_gbps(1));
  EXPECT_EQ(to_rate(1e12, nic), nic);
}

TEST(congestion_parameters, products_of_rate_and_time) {
  const FlowPath path{Bandwidth::from_gbps(100), Time::from_us(8), Bytes(4096), Bytes(82), 4};
  EXPECT_DOUBLE_EQ(wire_bdp(path), 100e9 * 8e-6 / 8);
  EXPECT_DOUBLE_EQ(payload_share(path), 4096.0 / 4178);
}

TEST(static_window, is_what_it_was_configured_to_be) {
  const FlowPath path{Bandwidth::from_gbps(100), Time::from_us(8), Bytes(4096), Bytes(82), 4};
  const auto* entry = CongestionControlRegistry::instance().find("none");
  ASSERT_NE(entry, nullptr);
  const auto unlimited = entry->make();
  unlimited->configure(std::nullopt);
  EXPECT_EQ(unlimited->make(path)->start(Time()), Allowance{});
  const auto limited = entry->make();
  limited->configure(Spec::parse("window: 64 KiB", "a"));
  const auto state = limited->make(path);
  EXPECT_EQ(state->start(Time()).window, Bytes(65'536));
  EXPECT_EQ(state->on_ack(AckEvent{}).window, Bytes(65'536));
  EXPECT_FALSE(limited->services().acks);
}

}  // namespace
}  // namespace weft::congestion_parameters_test
