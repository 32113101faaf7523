// SPDX-License-Identifier: GPL-2.0-only
// The contract of the interface, for every registered congestion control: possible allowances, timers in the future,
// the same state for timers on time and put off, no stalling, parameters checked.
#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/conformance/samples.hpp"
#include "tests/transport/bottleneck_loop.hpp"

namespace weft::congestion_control_test {
namespace {

const FlowPath paths[] = {
    {Bandwidth::from_gbps(1), Time::from_us(100), Bytes(1500), Bytes(82), 2},
    {Bandwidth::from_gbps(100), Time::from_us(4), Bytes(1000), Bytes(48), 2},
    {Bandwidth::from_gbps(400), Time::from_us(12), Bytes(4096), Bytes(82), 6},
    {Bandwidth::from_gbps(1'600), Time::from_us(2), Bytes(9000), Bytes(82), 4},
};

const std::vector<std::string>& variants(const std::string& name) {
  static const std::vector<std::string> plain{""};
  static const std::map<std::string, std::vector<std::string>> more{
      {"dcqcn", {"", "preset: connectx"}}, {"timely", {"", "variant: patched"}}, {"nscc", {"", "trimming: true"}}};
  const auto at = more.find(name);
  return at == more.end() ? plain : at->second;
}

class Controls : public ::testing::TestWithParam<std::string> {
 protected:
  static void on_every_path(const std::function<void(const CongestionControlKind&, const FlowPath&)>& check) {
    for (const std::string& variant : variants(GetParam()))
      for (const FlowPath& path : paths) {
        SCOPED_TRACE(variant + " at " + std::to_string(path.nic_rate.bps()));
        check(*congestion_control(GetParam(), variant), path);
      }
  }
};

/// A queue pair whose events are a function of a seed: answers of a network, plausible or not.
class RandomLife {
 public:
  RandomLife(const CongestionControlKind& kind, const FlowPath& path, std::uint64_t seed)
      : path_(path), services_(kind.services()), control_(kind.make(path)), seed_(seed) {
    obey(control_->start(Time()));
  }
  /// All timers up to `now`, each at its time.
  void run_timers(Time now) {
    while (allowance_.next_timer <= now) {
      at_.now = allowance_.next_timer;
      obey(control_->on_timer(at_));
    }
  }
  /// Event number i: `now` is a function of i alone.
  const Allowance& event(std::uint64_t i, Time now) {
    at_.now = now;
    switch (random_below(8, seed_, 1, i)) {
      case 0:
        if (services_.cnp_interval > Time()) obey(control_->on_cnp(at_));
        break;
      case 1:
        lose(i);
        break;
      case 2:
        send(i);
        break;
      default:
        acknowledge(i);
    }
    return allowance_;
  }
  const Allowance& allowance() const { return allowance_; }

 private:
  void obey(const Allowance& allowance) {
    ASSERT_GE(allowance.window, Bytes(1));
    ASSERT_GE(allowance.rate, Bandwidth());
    ASSERT_LE(allowance.rate, path_.nic_rate);
    ASSERT_GT(allowance.next_timer, at_.now);
    ASSERT_GT(allowance.next_bytes, at_.sent);
    ASSERT_TRUE(allowance.window != Bytes::max() || allowance.rate > Bandwidth() || !services_.acks)
        << "nothing limits it";
    allowance_ = allowance;
  }
  void send(std::uint64_t i) {
    if (allowance_.next_timer <= at_.now) obey(control_->on_timer(at_));  // before the first packet
    at_.sent += Bytes(static_cast<std::int64_t>(random_below(20'000'000, seed_, 2, i)));
    if (at_.sent >= allowance_.next_bytes) obey(control_->on_bytes_sent(at_));
  }
  void lose(std::uint64_t i) {
    LossEvent loss;
    loss.at = at_;
    loss.lost = path_.mtu;
    loss.acked_psn = acked_;
    loss.next_psn = acked_ + 20;
    loss.in_flight = 20 * path_.mtu;
    loss.timeout = random_below(4, seed_, 3, i) == 0;
    obey(control_->on_loss(loss));
  }
  void acknowledge(std::uint64_t i) {
    AckEvent ack;
    ack.at = at_;
    ack.acked = static_cast<std::int64_t>(random_below(3, seed_, 4, i)) * path_.mtu;
    ack.acked_psn = acked_ += random_below(3, seed_, 4, i);
    ack.next_psn = acked_ + 20;
    ack.ecn = services_.ecn && random_below(2, seed_, 5, i) == 0;
    if (random_below(5, seed_, 6, i) != 0)
      ack.rtt = path_.base_rtt + Time::from_ps(static_cast<std::int64_t>(random_below(1'000'000'000, seed_, 7, i) >>
                                                                         random_below(20, seed_, 8, i)));
    ack.in_flight = Bytes(static_cast<std::int64_t>(random_below(1'000'000, seed_, 9, i)));
    if (services_.telemetry) {
      transmitted_ += Bytes(static_cast<std::int64_t>(random_below(1'000'000, seed_, 11, i)));
      const Time time = at_.now - Time::from_ps(static_cast<std::int64_t>(random_below(1'000'000, seed_, 10, i)));
      const Bytes queued(static_cast<std::int64_t>(random_below(1'000'000, seed_, 12, i)));
      hops_.assign(path_.hops, {time, transmitted_, queued, PortLabel(0, 0)});
      ack.hops = hops_;
      ack.rates = std::span(&path_.nic_rate, 1);
    }
    obey(control_->on_ack(ack));
  }

  const FlowPath path_;
  const Services services_;
  std::unique_ptr<CongestionControl> control_;
  const std::uint64_t seed_;
  Moment at_;
  Allowance allowance_;
  std::uint64_t acked_ = 0;
  Bytes transmitted_;
  std::vector<HopTelemetry> hops_;
};

Time pause(std::uint64_t seed, std::uint64_t i) {
  return Time::from_ps(
      static_cast<std::int64_t>(random_below(10'000'000'000, seed, 20, i) >> random_below(16, seed, 21, i)));
}

TEST_P(Controls, allowances_are_possible_whatever_comes) {
  on_every_path([](const CongestionControlKind& kind, const FlowPath& path) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      RandomLife life(kind, path, seed);
      Time now;
      for (std::uint64_t i = 0; i < 500 && !testing::Test::HasFatalFailure(); ++i) {
        now += pause(seed, i);
        life.run_timers(now);
        life.event(i, now);
      }
    }
  });
}

TEST_P(Controls, timers_that_are_put_off_change_nothing) {
  on_every_path([](const CongestionControlKind& kind, const FlowPath& path) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      RandomLife on_time(kind, path, seed);
      RandomLife late(kind, path, seed);
      Time now;
      for (std::uint64_t i = 0; i < 500 && !testing::Test::HasFatalFailure(); ++i) {
        now += pause(seed, i);
        on_time.run_timers(now);
        ASSERT_EQ(on_time.event(i, now), late.event(i, now)) << "event " << i << " of life " << seed;
      }
    }
  });
}

TEST_P(Controls, an_idle_queue_pair_falls_asleep_or_recovers) {
  // After a burst of all bad events, timers alone end within a second of simulated time or finally allow a packet at
  // least every 10 s: nothing waits for ever.
  on_every_path([](const CongestionControlKind& kind, const FlowPath& path) {
    RandomLife life(kind, path, 1);
    for (std::uint64_t i = 0; i < 200; ++i) life.event(i, static_cast<std::int64_t>(i) * Time::from_us(1));
    life.run_timers(Time::from_s(20));
    EXPECT_EQ(life.allowance().next_timer, Time::max());
    const Bandwidth rate = life.allowance().rate;
    if (rate > Bandwidth()) {
      EXPECT_LT(serialization_time(path.wire_packet(), rate), Time::from_s(10));
    }
  });
}

TEST_P(Controls, a_new_queue_pair_may_fill_its_path) {
  // RDMA senders start at line rate, and do not probe for it: the window holds the bandwidth-delay product.
  on_every_path([](const CongestionControlKind& kind, const FlowPath& path) {
    const auto control = kind.make(path);
    const Allowance allowance = control->start(Time::from_ps(5));
    const double product = static_cast<double>(path.nic_rate.bps()) * path.base_rtt.seconds() / 8 *
                           static_cast<double>(path.mtu.count()) / static_cast<double>(path.wire_packet().count());
    EXPECT_GE(static_cast<double>(allowance.window.count()), product - 1);
    EXPECT_TRUE(allowance.rate == Bandwidth() || allowance.rate == path.nic_rate);
  });
}

TEST_P(Controls, defaults_suit_every_path_and_marking_is_possible) {
  on_every_path([](const CongestionControlKind& kind, const FlowPath& path) {
    EXPECT_NO_THROW(kind.check(path));
    const EcnMarking marking = kind.default_marking(path.nic_rate, path.base_rtt);
    EXPECT_LE(marking.min, marking.max);
    EXPECT_GE(marking.probability, 0);
    EXPECT_LE(marking.probability, 1);
    EXPECT_TRUE(!kind.services().ecn || marking.max > Bytes(0));
    EXPECT_TRUE(kind.services().ecn || kind.services().cnp_interval == Time()) << "CNPs come from marks";
  });
}

TEST_P(Controls, unknown_parameters_are_refused_with_their_place) {
  const std::string& name = GetParam();
  try {
    congestion_control(name, "# a comment\nzzzzzzzz: 1");
    ADD_FAILURE() << name << " accepts any key";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(name + ".yaml:2: ", 0), 0) << error.what();
  }
  EXPECT_THROW(congestion_control(name, "[1, 2]"), InputError) << name;
  EXPECT_NO_THROW(congestion_control(name, "{}")) << name;
}

INSTANTIATE_TEST_SUITE_P(Registered, Controls, ::testing::ValuesIn(CongestionControlRegistry::instance().names()),
                         conformance::test_name);

}  // namespace
}  // namespace weft::congestion_control_test
