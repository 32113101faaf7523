// SPDX-License-Identifier: GPL-2.0-only
// The packet memory of a switch: thresholds, reserves, headroom, pauses.
#include "fabric/packet/shared_buffer.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/basics/random.hpp"
#include "tests/literals.hpp"

namespace weft::shared_buffer_test {
namespace {

using namespace literals;
using Place = SharedBuffer::Place;

constexpr Bandwidth slow = Bandwidth::from_gbps(100);
constexpr Bandwidth fast = Bandwidth::from_gbps(400);

/// A buffer whose queues are all filled by links of 100 Gb/s; with `mixed` every other one by a link of 400 Gb/s.
SharedBuffer make_buffer(const BufferRules& rules, std::size_t queues, bool mixed = false) {
  SharedBuffer buffer(rules, queues);
  for (std::size_t q = 0; q < queues; ++q) buffer.set_rate(q, mixed && q % 2 == 1 ? fast : slow);
  return buffer;
}

/// Dynamic thresholds with `alpha` for links of 100 Gb/s, or a static one where `alpha` is 0. Disciplines live as long
/// as the tests.
BufferRules rules_of(Bytes shared, double alpha, Bytes threshold = Bytes::max()) {
  static std::vector<std::unique_ptr<BufferSharing>> made;
  made.push_back(BufferSharingRegistry::instance().find(alpha > 0 ? "dynamic_threshold" : "static_threshold")->make());
  made.back()->configure(Spec::parse(alpha > 0 ? fmt::format("{{alpha: {}, alpha_rate: 100 Gb/s}}", alpha)
                                               : fmt::format("{{threshold: {} B}}", threshold.count()),
                                     "test.yaml"));
  BufferRules rules;
  rules.shared = shared;
  rules.sharing = made.back().get();
  return rules;
}

// Choudhury and Hahne 1998, equation 4: with N queues that take all they get, each ends at alpha B / (1 + alpha N), the
// fixed point of T = alpha (B - N T). A queue stops within one frame below it, and the threshold above it is within the
// alpha times N frames that are missing.
TEST(shared_buffer, greedy_queues_share_as_the_fixed_point_says) {
  const Bytes shared = 10'000'000_B;
  for (const double alpha : {0.0625, 0.125, 0.5, 1.0, 2.0, 8.0}) {
    for (const int greedy : {1, 2, 3, 7, 16, 64}) {
      const Bytes frame = 1000_B;
      SharedBuffer buffer = make_buffer(rules_of(shared, alpha), 64);
      bool more = true;
      while (more) {
        more = false;
        for (int q = 0; q < greedy; ++q) more |= buffer.admit(static_cast<std::size_t>(q), frame) == Place::shared;
      }
      const double exact = alpha * static_cast<double>(shared.count()) / (1 + alpha * greedy);
      // The sum of the memory in use: each queue q is refused at q + frame > alpha (B - sum): at most the fixed point,
      // and the last ones miss it by less than a frame, which raises the threshold by less than alpha N frames.
      for (int q = 0; q < greedy; ++q) {
        const auto held = static_cast<double>(buffer.held(static_cast<std::size_t>(q)).count());
        EXPECT_LE(held, exact + static_cast<double>(frame.count()) * alpha * greedy / (1 + alpha * greedy) + 1);
        EXPECT_GT(held, exact - static_cast<double>(frame.count()) - 1)
            << "alpha " << alpha << ", " << greedy << " queues";
      }
    }
  }
}

// The same with queues of links of two rates, whose alphas are in proportion to the rates: T_i = alpha_i (B - sum) with
// all T_i taken, so that sum = A (B - sum) with A the sum of all alphas, and each ends at alpha_i B / (1 + A). The
// authors' switches of HPCC have alphas of 1/8 and 1/2. Links bring 4 B in the time of 1 B, so that no queue is ahead
// of the others. The fixed point is missed by a frame, and by alpha times what the others miss.
TEST(shared_buffer, queues_share_in_proportion_to_the_rates_of_their_links) {
  const Bytes shared = 1'000'000_B;
  for (const int pairs : {1, 2, 8}) {
    const auto queues = static_cast<std::size_t>(2 * pairs);
    SharedBuffer buffer = make_buffer(rules_of(shared, 0.125), queues, true);
    bool more = true;
    while (more) {
      more = false;
      for (std::size_t q = 0; q < queues; ++q) more |= buffer.admit(q, q % 2 == 1 ? 4_B : 1_B) == Place::shared;
    }
    const double free = static_cast<double>(shared.count()) / (1 + pairs * (0.125 + 0.5));
    for (std::size_t q = 0; q < queues; ++q)
      EXPECT_NEAR(static_cast<double>(buffer.held(q).count()), (q % 2 == 1 ? 0.5 : 0.125) * free, 4 + 2.5 * pairs) << q;
  }
}

// One greedy queue with alpha = 1 gets half of the memory; when it is full another one still finds space (the purpose
// of dynamic thresholds), and the first one is over its threshold then.
TEST(shared_buffer, a_newcomer_finds_room_and_lowers_the_threshold_of_the_old) {
  SharedBuffer buffer = make_buffer(rules_of(1000_B, 1), 2);
  while (buffer.admit(0, 100_B) == Place::shared) {
  }
  EXPECT_EQ(buffer.held(0), 500_B);
  EXPECT_EQ(buffer.threshold(1), 500_B);
  EXPECT_EQ(buffer.admit(1, 100_B), Place::shared);
  EXPECT_EQ(buffer.threshold(1), 400_B);
  EXPECT_EQ(buffer.admit(0, 1_B), Place::none);
}

TEST(shared_buffer, a_static_threshold_is_exact) {
  SharedBuffer buffer = make_buffer(rules_of(10'000_B, 0, 1000_B), 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(buffer.admit(0, 100_B), Place::shared);
  EXPECT_EQ(buffer.admit(0, 1_B), Place::none);
  EXPECT_EQ(buffer.held(0), 1000_B);
  EXPECT_EQ(buffer.admit(1, 1000_B), Place::shared);
  EXPECT_EQ(buffer.admit(1, 1_B), Place::none);
}

TEST(shared_buffer, the_memory_itself_is_a_limit_of_static_thresholds) {
  SharedBuffer buffer = make_buffer(rules_of(1500_B, 0, 1000_B), 2);
  EXPECT_EQ(buffer.admit(0, 1000_B), Place::shared);
  EXPECT_EQ(buffer.admit(1, 501_B), Place::none);
  EXPECT_EQ(buffer.admit(1, 500_B), Place::shared);
}

TEST(shared_buffer, the_reserve_is_its_owners_and_is_used_first) {
  BufferRules rules = rules_of(1000_B, 0, 1000_B);
  rules.reserve = 200_B;
  SharedBuffer buffer = make_buffer(rules, 2);
  EXPECT_EQ(buffer.admit(0, 150_B), Place::shared);
  EXPECT_EQ(buffer.shared_used(), 0_B);
  EXPECT_EQ(buffer.admit(0, 150_B), Place::shared);  // 50 of the reserve, 100 shared
  EXPECT_EQ(buffer.shared_used(), 100_B);
  EXPECT_EQ(buffer.admit(0, 900_B), Place::shared);
  EXPECT_EQ(buffer.shared_used(), 1000_B);
  // All shared memory is taken, and the reserve of the other is there.
  EXPECT_EQ(buffer.admit(1, 200_B), Place::shared);
  EXPECT_EQ(buffer.admit(1, 1_B), Place::none);
  // A departure frees shared memory first.
  buffer.release(0, 150_B);
  EXPECT_EQ(buffer.shared_used(), 850_B);
  buffer.release(0, 900_B);
  EXPECT_EQ(buffer.shared_used(), 0_B);
  EXPECT_EQ(buffer.held(0), 150_B);
  buffer.release(0, 150_B);
  buffer.release(1, 200_B);
  EXPECT_EQ(buffer.shared_used(), 0_B);
}

TEST(shared_buffer, headroom_is_taken_last_and_given_back_first) {
  SharedBuffer buffer = make_buffer(rules_of(10'000_B, 0, 1000_B), 2);
  buffer.set_headroom(0, 250_B);
  EXPECT_TRUE(buffer.lossless(0));
  EXPECT_FALSE(buffer.lossless(1));
  EXPECT_EQ(buffer.admit(0, 1000_B), Place::shared);
  EXPECT_EQ(buffer.admit(0, 100_B), Place::headroom);
  EXPECT_EQ(buffer.admit(0, 100_B), Place::headroom);
  EXPECT_EQ(buffer.admit(0, 51_B), Place::none);
  EXPECT_EQ(buffer.admit(0, 50_B), Place::headroom);
  EXPECT_EQ(buffer.in_headroom(0), 250_B);
  EXPECT_EQ(buffer.shared_used(), 1000_B);
  // Another queue has its own.
  EXPECT_EQ(buffer.admit(1, 1000_B), Place::shared);
  EXPECT_EQ(buffer.admit(1, 1_B), Place::none);
  buffer.release(0, 300_B);  // 250 of headroom, 50 shared
  EXPECT_EQ(buffer.in_headroom(0), 0_B);
  EXPECT_EQ(buffer.shared_used(), 1950_B);
  EXPECT_EQ(buffer.held(0), 950_B);
}

// A frame behind others that are in headroom goes there too, so that frames leave the headroom in turn.
TEST(shared_buffer, what_comes_behind_headroom_goes_to_headroom) {
  SharedBuffer buffer = make_buffer(rules_of(10'000_B, 0, 1000_B), 1);
  buffer.set_headroom(0, 500_B);
  EXPECT_EQ(buffer.admit(0, 950_B), Place::shared);
  EXPECT_EQ(buffer.admit(0, 100_B), Place::headroom);
  EXPECT_EQ(buffer.admit(0, 10_B), Place::headroom);
  EXPECT_EQ(buffer.held(0), 1060_B);
}

TEST(shared_buffer, pauses_one_full_frame_early_and_resumes_with_hysteresis) {
  BufferRules rules = rules_of(10'000_B, 0, 1000_B);
  rules.xon_offset = 300_B;
  const Bytes largest = 150_B;
  rules.largest_frame = largest;
  SharedBuffer buffer = make_buffer(rules, 1);
  buffer.set_headroom(0, 500_B);
  Bytes held;
  for (; held < 900_B; held += 50_B) {
    EXPECT_EQ(buffer.must_pause(0), held + largest > 1000_B) << held.count();
    EXPECT_EQ(buffer.admit(0, 50_B), Place::shared);
  }
  EXPECT_TRUE(buffer.must_pause(0));
  EXPECT_FALSE(buffer.may_resume(0));
  EXPECT_EQ(buffer.admit(0, 150_B), Place::headroom);
  for (held = 1050_B; held > 0_B;) {
    buffer.release(0, 50_B);
    held -= 50_B;
    EXPECT_EQ(buffer.may_resume(0), held <= 700_B) << held.count();
  }
}

// However far below zero an offset or another queue pushes the limit, an empty queue resumes.
TEST(shared_buffer, an_empty_queue_always_resumes) {
  BufferRules rules = rules_of(1000_B, 0.01);
  rules.xon_offset = 500_B;
  SharedBuffer buffer = make_buffer(rules, 2);
  buffer.set_headroom(0, 500_B);
  EXPECT_EQ(buffer.admit(0, 100_B), Place::headroom);
  EXPECT_FALSE(buffer.may_resume(0));
  buffer.release(0, 100_B);
  EXPECT_TRUE(buffer.may_resume(0));
}

TEST(shared_buffer, nothing_is_lost_or_made_under_random_operations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t count = 0;
    const auto below = [&](std::uint64_t end) { return mix64(mix64(seed) + ++count) % end; };
    BufferRules rules = rules_of(50'000_B, seed % 2 == 0 ? 0.5 : 0, seed % 2 == 0 ? Bytes::max() : 9000_B);
    rules.reserve = seed % 3 == 0 ? 3000_B : 0_B;
    const std::size_t queues = 6;
    const Bytes headroom = 4000_B;
    SharedBuffer buffer = make_buffer(rules, queues);
    for (std::size_t q = 0; q < 3; ++q) buffer.set_headroom(q, headroom);
    std::vector<std::vector<Bytes>> frames(queues);
    std::vector<Bytes> held(queues);
    std::uint64_t refused = 0;
    for (int step = 0; step < 20'000; ++step) {
      const std::size_t q = below(queues);
      const Bytes before = buffer.threshold(q);
      if (below(100) < 55) {
        const Bytes frame(static_cast<std::int64_t>(60 + below(4100)));
        const Place place = buffer.admit(q, frame);
        if (place != Place::none) {
          frames[q].push_back(frame);
          held[q] += frame;
        }
        refused += place == Place::none ? 1 : 0;
        if (place == Place::shared) {
          ASSERT_LE(held[q] - rules.reserve, std::max(before, 0_B));
        }
        if (place == Place::headroom) {
          ASSERT_LT(q, 3U);
        }
      } else if (!frames[q].empty()) {
        buffer.release(q, frames[q].front());
        held[q] -= frames[q].front();
        frames[q].erase(frames[q].begin());
      }
      Bytes shared;
      for (std::size_t i = 0; i < queues; ++i) {
        ASSERT_EQ(buffer.held(i), held[i]);
        ASSERT_LE(buffer.in_headroom(i), i < 3 ? headroom : 0_B);
        ASSERT_GE(buffer.in_headroom(i), 0_B);
        shared += std::max(0_B, held[i] - buffer.in_headroom(i) - rules.reserve);
      }
      ASSERT_EQ(buffer.shared_used(), shared);
      ASSERT_LE(shared, rules.shared);
    }
    EXPECT_GT(refused, 100U);
    for (std::size_t q = 0; q < queues; ++q)
      for (const Bytes frame : frames[q]) buffer.release(q, frame);
    EXPECT_EQ(buffer.shared_used(), 0_B);
  }
}

// admit_easily() is the common case of admit() and must_pause(), never anything else: two buffers with the same history
// stay equal for either way of admission.
TEST(shared_buffer, easy_admission_is_admission_without_a_pause) {
  std::uint64_t draw = 0;
  const auto random = [&draw](std::uint64_t below) { return mix64(++draw) % below; };
  int easy = 0;
  int hard = 0;
  for (int variant = 0; variant < 8; ++variant) {
    const double alpha = std::array{0.0, 0.125, 1.0, 8.0}[static_cast<std::size_t>(variant) / 2];
    const bool mixed = variant % 2 == 1;
    BufferRules rules = rules_of(60'000_B, alpha, alpha > 0 ? Bytes::max() : 20'000_B);
    rules.reserve = 1'500_B;
    constexpr std::size_t queues = 5;
    rules.largest_frame = 4158_B;
    SharedBuffer plain = make_buffer(rules, queues, mixed);
    SharedBuffer quick = make_buffer(rules, queues, mixed);
    for (std::size_t q = 0; q < 3; ++q) {
      plain.set_headroom(q, 10'000_B);
      quick.set_headroom(q, 10'000_B);
    }
    std::vector<std::vector<Bytes>> held(queues);
    for (int step = 0; step < 20'000; ++step) {
      const std::size_t q = random(queues);
      if (random(2) == 0 && !held[q].empty()) {
        plain.release(q, held[q].back());
        quick.release(q, held[q].back());
        held[q].pop_back();
        continue;
      }
      const Bytes frame(static_cast<std::int64_t>(64 + random(4095)));
      const bool in = plain.admit(q, frame) != Place::none;
      const bool at_ease = quick.admit_easily(q, frame);
      ++(at_ease ? easy : hard);
      if (at_ease) {
        ASSERT_TRUE(in);
        ASSERT_FALSE(plain.must_pause(q));
      } else {
        // Either it is not admitted, or its sender has to pause.
        ASSERT_EQ(quick.admit(q, frame) != Place::none, in);
        ASSERT_TRUE(!in || plain.must_pause(q));
      }
      if (in) held[q].push_back(frame);
      ASSERT_EQ(quick.held(q), plain.held(q));
      ASSERT_EQ(quick.in_headroom(q), plain.in_headroom(q));
      ASSERT_EQ(quick.shared_used(), plain.shared_used());
    }
  }
  EXPECT_GT(easy, 1000);
  EXPECT_GT(hard, 1000);
}

// A burst that stays_small() or stays_within() has promised space for is admitted without headroom and without a pause,
// in any order, and take() counts it as admit() does.
TEST(shared_buffer, a_burst_with_room_for_all_needs_no_pause) {
  std::uint64_t draw = 0;
  const auto random = [&draw](std::uint64_t below) { return mix64(++draw) % below; };
  constexpr std::size_t queues = 5;
  const Bytes largest = 4158_B;
  int small = 0;
  int within = 0;
  int neither = 0;
  for (int variant = 0; variant < 8; ++variant) {
    const double alpha = std::array{0.0, 0.125, 1.0, 8.0}[static_cast<std::size_t>(variant) / 2];
    const bool mixed = variant % 2 == 1;
    BufferRules rules = rules_of(300'000_B, alpha, alpha > 0 ? Bytes::max() : 50'000_B);
    rules.reserve = 1'500_B;
    rules.largest_frame = largest;
    for (int round = 0; round < 2'000; ++round) {
      SharedBuffer buffer = make_buffer(rules, queues, mixed);
      for (std::size_t q = 0; q < 3; ++q) buffer.set_headroom(q, 10'000_B);
      for (std::uint64_t before = random(60); before > 0; --before)
        buffer.admit(random(queues), Bytes(static_cast<std::int64_t>(64 + random(4095))));
      std::vector<std::pair<std::size_t, Bytes>> burst(random(30));
      std::vector<Bytes> more(queues);
      Bytes all;
      for (auto& [q, frame] : burst) {
        q = random(queues);
        frame = Bytes(static_cast<std::int64_t>(64 + random(4095)));
        more[q] += frame;
        all += frame;
      }
      const Bytes limit = buffer.limit_after(all);
      bool room = limit >= 0_B;
      for (std::size_t q = 0; q < queues; ++q) room = room && buffer.stays_within(q, more[q] + largest, limit);
      const bool stays_small = buffer.stays_small(all + largest);
      EXPECT_TRUE(room || !stays_small) << "the quick answer is the stricter one";
      ++(stays_small ? small : room ? within : neither);
      if (!room) continue;
      SharedBuffer taken = buffer;
      for (const auto& [q, frame] : burst) {
        ASSERT_EQ(buffer.admit(q, frame), Place::shared);
        ASSERT_FALSE(buffer.must_pause(q));
        taken.take(q, frame);
      }
      ASSERT_EQ(taken.shared_used(), buffer.shared_used());
      for (std::size_t q = 0; q < queues; ++q) ASSERT_EQ(taken.held(q), buffer.held(q));
    }
  }
  EXPECT_GT(small, 500);
  EXPECT_GT(within, 500);
  EXPECT_GT(neither, 500);
}

// Nothing is refused in vain: of a queue that gets all of a burst it is known to the byte. T(used + more) = alpha (B -
// used - more) with alpha = 1 is the number of bytes that it may hold then.
TEST(shared_buffer, room_for_a_burst_ends_where_the_threshold_does) {
  SharedBuffer buffer = make_buffer(rules_of(10'000_B, 1), 2);
  ASSERT_EQ(buffer.admit(0, 1'000_B), Place::shared);
  // x more: held 1,000 + x, and may hold 10,000 - 1,000 - x: x = 4,000.
  EXPECT_TRUE(buffer.stays_within(0, 4'000_B, buffer.limit_after(4'000_B)));
  EXPECT_FALSE(buffer.stays_within(0, 4'001_B, buffer.limit_after(4'001_B)));
  EXPECT_LT(buffer.limit_after(9'001_B), 0_B);
}

}  // namespace
}  // namespace weft::shared_buffer_test
