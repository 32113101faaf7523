// SPDX-License-Identifier: GPL-2.0-only
// Turns of operations on streams and communicators, and slots of timers.
#include "runtime/execution/operation_queues.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/execution/lane_timers.hpp"
#include "schedule/collective/communicator.hpp"

namespace weft::operation_queues_test {
namespace {

using Ids = std::vector<std::uint64_t>;

Operation compute(std::uint64_t id, Stream stream, std::uint8_t cpu = 0) {
  Operation operation;
  operation.id = id;
  operation.stream = stream;
  operation.cpu = cpu;
  return operation;
}

Operation collective(std::uint64_t id, Stream stream, const Communicator& communicator) {
  Operation operation = compute(id, stream);
  operation.kind = Operation::Kind::collective;
  auto call = std::make_shared<CollectiveCall>();
  call->communicator = &communicator;
  operation.call = std::move(call);
  return operation;
}

TEST(operation_queues, a_stream_goes_by_the_program) {
  OperationQueues queues;
  const Operation first = compute(1, Stream::compute);
  const Operation second = compute(2, Stream::compute);
  const Operation elsewhere = compute(3, Stream::tensor);
  const Operation without = compute(4, Stream::none);
  for (const Operation& operation : {first, second, elsewhere, without}) queues.add(operation);
  EXPECT_TRUE(queues.is_first(first));
  EXPECT_FALSE(queues.is_first(second));
  EXPECT_TRUE(queues.is_first(elsewhere));
  EXPECT_TRUE(queues.is_first(without));  // it needs no turn
  Ids next;
  queues.end(first, next);
  EXPECT_EQ(next, Ids{2});
  EXPECT_TRUE(queues.is_first(second));
  next.clear();
  queues.end(second, next);
  queues.end(without, next);
  EXPECT_TRUE(next.empty());
}

// On separate streams two collectives of one communicator run one after another, of two communicators at once.
TEST(operation_queues, a_communicator_runs_one_collective_at_a_time) {
  const Communicator pair(0, 2);
  const Communicator all(1, 4);
  OperationQueues queues;
  const Operation first = collective(1, Stream::tensor, pair);
  const Operation second = collective(2, Stream::communication, pair);
  const Operation other = collective(3, Stream::context, all);
  EXPECT_TRUE(queues.is_idle(0));
  for (const Operation& operation : {first, second, other}) queues.add(operation);
  EXPECT_FALSE(queues.is_idle(0));
  EXPECT_TRUE(queues.is_first(first));
  EXPECT_FALSE(queues.is_first(second));
  EXPECT_TRUE(queues.is_first(other));
  Ids next;
  queues.end_collective(0, next);
  EXPECT_EQ(next, Ids{2});
  EXPECT_TRUE(queues.is_first(second));
  next.clear();
  queues.end_collective(0, next);
  EXPECT_TRUE(next.empty());
  EXPECT_TRUE(queues.is_idle(0));
  EXPECT_FALSE(queues.is_idle(1));
}

// A collective starts when both its stream and its communicator have reached it.
TEST(operation_queues, a_collective_waits_for_its_stream_and_its_communicator) {
  const Communicator pair(0, 2);
  OperationQueues queues;
  const Operation earlier = compute(1, Stream::tensor);
  const Operation call = collective(2, Stream::tensor, pair);
  queues.add(earlier);
  queues.add(call);
  EXPECT_FALSE(queues.is_first(call));
  Ids next;
  queues.end(earlier, next);
  EXPECT_EQ(next, Ids{2});
  EXPECT_TRUE(queues.is_first(call));
}

TEST(operation_queues, a_free_stream_takes_the_smallest_operation_that_is_ready) {
  OperationQueues queues;
  StreamUse use;
  use.takes_ready = true;
  use.are_processors = true;
  queues.set_use(use);
  const Operation early = compute(1, Stream::compute, 0);
  const Operation late = compute(7, Stream::compute, 0);
  const Operation middle = compute(4, Stream::compute, 0);
  const Operation other = compute(9, Stream::compute, 1);
  for (const Operation& operation : {early, middle, late, other}) queues.add(operation);
  EXPECT_TRUE(queues.is_taken_when_ready(late));
  EXPECT_TRUE(queues.is_first(late));  // the program's order has no effect here
  EXPECT_EQ(queues.take_ready(), std::nullopt);
  queues.add_ready(late);
  EXPECT_EQ(queues.take_ready(), 7U);
  queues.add_ready(middle);
  queues.add_ready(early);
  EXPECT_EQ(queues.take_ready(), std::nullopt);  // processor 0 is busy
  queues.add_ready(other);
  EXPECT_EQ(queues.take_ready(), 9U);  // processor 1 is not
  Ids next;
  queues.end(late, next);
  EXPECT_TRUE(next.empty());
  EXPECT_EQ(queues.take_ready(), 1U);
  queues.end(early, next);
  EXPECT_EQ(queues.take_ready(), 4U);
}

// Where the network grants processors there is no turn to wait for.
TEST(operation_queues, a_network_that_orders_processors_leaves_no_turns) {
  OperationQueues queues;
  StreamUse use;
  use.takes_ready = true;
  use.ordered_by_network = true;
  queues.set_use(use);
  const Operation operation = compute(1, Stream::compute);
  queues.add(operation);
  EXPECT_FALSE(queues.is_taken_when_ready(operation));
  EXPECT_TRUE(queues.is_first(operation));
  Ids next;
  queues.end(operation, next);
  EXPECT_TRUE(next.empty());
}

TEST(lane_timers, slots_are_used_again_and_keep_apart) {
  LaneTimers timers;
  const std::uint32_t a = timers.add({1, 10, 100});
  const std::uint32_t b = timers.add({2, 20, 200});
  EXPECT_NE(a, b);
  EXPECT_EQ(timers.take(a).operation, 1U);
  const std::uint32_t c = timers.add({3, 30, 300});
  EXPECT_EQ(c, a);
  const LaneTimer second = timers.take(b);
  EXPECT_EQ(second.lane, 20U);
  EXPECT_EQ(second.cause, 200U);
  EXPECT_EQ(timers.take(c).operation, 3U);
}

}  // namespace
}  // namespace weft::operation_queues_test
