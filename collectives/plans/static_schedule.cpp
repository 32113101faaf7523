// SPDX-License-Identifier: GPL-2.0-only
// Written-out schedules as algorithms. Semantics are MSCCL's interpreter's (github.com/microsoft/msccl
// src/device/msccl_interpreter.h): S is cut into equal chunks; if these are larger than what fits into four steps of a
// connection's buffer, the whole schedule is repeated for one slice of every chunk after another; in each repetition a
// step waits for another lane's step of the same repetition.
#include "collectives/plans/static_schedule.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "collectives/steps/exchange.hpp"
#include "schedule/collective/collective_check.hpp"
#include "schedule/collective/step_generator.hpp"
#include "support/basics/contract.hpp"

namespace weft {

bool operator==(const StaticStep& a, const StaticStep& b) {
  const auto value = [](const StaticStep& s) {
    return std::tuple(s.primitive, s.source, s.target, s.source_chunk, s.target_chunk, s.count, s.send_peer,
                      s.receive_peer, s.wait_lane, s.wait_step);
  };
  return value(a) == value(b);
}

namespace {

using Shared = std::shared_ptr<const StaticSchedule>;

/// Data passes through a switch 16 B per thread at a time: a thread block of 1024 loads and stores in turn
/// (handleMultiLoadReduceStore in MSCCL++'s execution_kernel.hpp), and the links carry both at once.
constexpr Bytes switch_piece(1024 * 16);

MessageSizes sizes_of(const CollectiveCall& call, const StaticSchedule& schedule) {
  CollectiveCall sized = call;
  if (!schedule.switches.empty() && call.tuning.chunk.count() == 0) {
    sized.tuning.chunk = switch_piece;
    if (call.tuning.slices == 0) sized.tuning.slices = 1;
    if (call.tuning.credits == 0) sized.tuning.credits = 8;
  }
  const std::int64_t step = MessageSizes::nccl_step_bytes(call);
  const bool simple = call.tuning.protocol == Protocol::simple;
  if (sized.tuning.chunk.count() == 0) sized.tuning.chunk = Bytes(simple ? 4 * step : step);
  if (sized.tuning.slices == 0) sized.tuning.slices = simple ? 2 : 1;
  if (sized.tuning.credits == 0) sized.tuning.credits = simple ? 4 : 8;
  return MessageSizes::whole(sized);
}

/// Lanes in the numbering of CollectiveAlgorithm, by channel.
std::uint32_t lanes_per_channel(const StaticSchedule& schedule) {
  std::uint32_t max = 1;
  for (const auto& lanes : schedule.ranks) {
    std::vector<std::uint32_t> count(schedule.channels);
    for (const StaticLane& lane : lanes) max = std::max(max, ++count[lane.channel]);
  }
  return max;
}
std::uint32_t number_of_lane(const StaticSchedule& schedule, std::uint32_t rank, std::uint32_t position) {
  const auto& lanes = schedule.ranks[rank];
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < position; ++i) before += lanes[i].channel == lanes[position].channel ? 1 : 0;
  return before * schedule.channels + lanes[position].channel;
}

class Places {
 public:
  Places(const StaticSchedule& schedule, std::uint32_t rank, std::int64_t chunk) : schedule_(schedule), chunk_(chunk) {
    own_ = static_cast<std::int64_t>(rank) * (schedule.chunks / schedule.members()) * chunk;
  }
  Buffer buffer(Buffer named) const { return schedule_.in_place && named == Buffer::output ? Buffer::input : named; }
  std::int64_t offset(Buffer named, std::uint32_t chunk) const {
    const bool own =
        schedule_.in_place && ((schedule_.kind == CollectiveKind::all_gather && named == Buffer::input) ||
                               (schedule_.kind == CollectiveKind::reduce_scatter && named == Buffer::output));
    return chunk * chunk_ + (own ? own_ : 0);
  }

 private:
  const StaticSchedule& schedule_;
  std::int64_t chunk_;
  std::int64_t own_;
};

StepGenerator run(Shared schedule, std::uint32_t rank, std::uint32_t position, std::int64_t chunk, MessageSizes sizes) {
  const StaticLane& lane = schedule->ranks[rank][position];
  const Places places(*schedule, rank, chunk);
  const std::int64_t slice = std::min(chunk, sizes.chunk);
  const auto together = static_cast<std::uint32_t>(slice == chunk ? std::max<std::int64_t>(1, sizes.chunk / chunk) : 1);
  std::uint64_t loop = 0;
  for (std::int64_t at = 0; at < chunk; at += slice, ++loop) {
    for (const StaticStep& written : lane.steps) {
      Step step;
      step.primitive = written.primitive;
      step.source = places.buffer(written.source);
      step.target = places.buffer(written.target);
      step.send_peer = written.send_peer != no_lane ? written.send_peer : lane.send_peer;
      step.receive_peer = written.receive_peer != no_lane ? written.receive_peer : lane.receive_peer;
      if (written.wait_lane != no_lane) {
        step.wait_lane = number_of_lane(*schedule, rank, written.wait_lane);
        step.wait_marks = loop * schedule->ranks[rank][written.wait_lane].steps.size() + written.wait_step + 1;
      }
      step.mark = true;
      if (written.primitive == Primitive::nop) {
        co_yield step;
        continue;
      }
      for (std::uint32_t done = 0; done < written.count;) {
        const std::uint32_t now = std::min(together, written.count - done);
        step.bytes = Bytes(together > 1 ? now * chunk : std::min(slice, chunk - at));
        step.slice = Bytes(sizes.slice(step.bytes.count()));
        step.input_offset = Bytes(places.offset(written.source, written.source_chunk + done) + at);
        step.output_offset = Bytes(places.offset(written.target, written.target_chunk + done) + at);
        done += now;
        step.mark = done == written.count;
        co_yield step;
        step.wait_lane = no_lane;
      }
    }
  }
}

class StaticAlgorithm final : public CollectiveAlgorithm {
 public:
  explicit StaticAlgorithm(Shared schedule)
      : schedule_(std::move(schedule)), lanes_(lanes_per_channel(*schedule_) * schedule_->channels) {}

  bool supports(CollectiveKind kind) const override { return kind == schedule_->kind; }
  std::uint32_t fixed_ranks() const override { return schedule_->members(); }
  std::uint32_t size_unit() const override { return schedule_->chunks; }
  std::string refuses(const CollectiveCall& call) const override {
    if (call.communicator->size() != fixed_ranks())
      return fmt::format("the schedule is for {} ranks, but there are {}", fixed_ranks(), call.communicator->size());
    if (call.size.count() % schedule_->chunks != 0)
      return fmt::format("{} bytes are no multiple of the schedule's {} chunks", call.size.count(), schedule_->chunks);
    if (has_root(call.kind) && call.root != 0) return fmt::format("the schedule's root is 0, not {}", call.root);
    return CollectiveAlgorithm::refuses(call);
  }
  std::uint32_t channels(const CollectiveCall&) const override { return schedule_->channels; }
  std::uint32_t lanes(const CollectiveCall&) const override { return lanes_; }
  std::uint32_t credits(const CollectiveCall& call) const override { return sizes_of(call, *schedule_).credits; }
  std::uint32_t aggregators(const CollectiveCall&) const override {
    return static_cast<std::uint32_t>(schedule_->switches.size());
  }
  AggregatorSite aggregator_site(const CollectiveCall&, std::uint32_t number) const override {
    const StaticSwitch& one = schedule_->switches[number];
    return {one.first, AggregatorSite::Level::server, number, one.count, one.stride};
  }
  bool shares_memory() const override { return true; }
  bool in_place() const override { return schedule_->in_place; }
  std::optional<Protocol> fixed_protocol() const override { return schedule_->protocol; }
  std::string schedule_text() const override { return to_text(*schedule_); }

  std::string name_step(const CollectiveCall& call, std::uint32_t index, std::uint32_t lane,
                        std::uint64_t step) const override {
    const StaticLane* written = find(index, lane);
    if (written == nullptr || written->steps.empty()) return CollectiveAlgorithm::name_step(call, index, lane, step);
    const std::uint64_t number = step % written->steps.size();
    const std::string line = written->steps[number].line > 0 ? fmt::format(":{}", written->steps[number].line) : "";
    const std::string who = index < schedule_->members() ? fmt::format("GPU {}", index)
                                                         : fmt::format("switch {}", index - schedule_->members());
    return fmt::format("{}, thread block {}, step {} ({}{})", who, written->id, number, schedule_->file, line);
  }

  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    expect_valid_lane(*this, call, index, lane);
    const StaticLane* written = find(index, lane);
    if (written == nullptr || call.size.count() == 0) return stream_of(no_steps());
    return stream_of(run(schedule_, index, static_cast<std::uint32_t>(written - schedule_->ranks[index].data()),
                         call.size.count() / schedule_->chunks, sizes_of(call, *schedule_)));
  }

 private:
  const StaticLane* find(std::uint32_t rank, std::uint32_t number) const {
    std::uint32_t before = number / schedule_->channels;
    for (const StaticLane& lane : schedule_->ranks[rank])
      if (lane.channel == number % schedule_->channels && before-- == 0) return &lane;
    return nullptr;
  }

  Shared schedule_;
  std::uint32_t lanes_;
};

}  // namespace

std::unique_ptr<CollectiveAlgorithm> make_static_algorithm(StaticSchedule schedule) {
  const std::string file = schedule.file;
  const auto shared = std::make_shared<const StaticSchedule>(std::move(schedule));
  auto algorithm = std::make_unique<StaticAlgorithm>(shared);
  const Communicator communicator(0, algorithm->fixed_ranks());
  CollectiveCall call;
  call.kind = shared->kind;
  call.communicator = &communicator;
  call.size = Bytes(shared->chunks);
  call.tuning.protocol = shared->protocol;
  const CollectiveReplay result = replay(*algorithm, call);
  if (!result.violations.empty()) {
    std::string text = result.violations.front();
    if (result.violations.size() > 1) text += fmt::format("; and {} more complaints", result.violations.size() - 1);
    throw InputError(SourceLine{file, 0}, "the schedule is wrong: " + text);
  }
  return algorithm;
}

}  // namespace weft
