// SPDX-License-Identifier: GPL-2.0-only
// Executes a pipeline schedule with given times of passes and free communication: for what its order alone gives.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "workloads/pipeline/pipeline_schedule.hpp"

namespace weft::test {

/// Of a chunk, in any unit. A whole backward pass takes input + weight; a pair (F&B) takes `pair`, or what its parts
/// take if that is 0, and both parts end when it does.
struct PassTimes {
  std::int64_t forward = 1;
  std::int64_t input = 1;
  std::int64_t weight = 1;
  std::int64_t pair = 0;
};

struct RankTimes {
  std::int64_t first = 0;  ///< start of the first slot
  std::int64_t last = 0;   ///< end of the last
  std::int64_t busy = 0;
  std::uint32_t peak = 0;  ///< activations of chunks held, from the start of F to the end of W (or B)
};

struct PipelineExecution {
  std::vector<RankTimes> ranks;
  std::vector<std::string> faults;  ///< empty: the schedule is a schedule

  std::int64_t makespan() const {
    return max([](const RankTimes& r) { return r.last; });
  }
  /// Idle time of the worst rank until the end of the whole.
  std::int64_t bubble() const {
    return makespan() - min([](const RankTimes& r) { return r.busy; });
  }
  /// Idle time of the worst rank between its first and its last slot.
  std::int64_t inner_bubble() const {
    return max([](const RankTimes& r) { return r.last - r.first - r.busy; });
  }
  template <class Value>
  std::int64_t max(Value value) const {
    std::int64_t result = value(ranks.at(0));
    for (const RankTimes& rank : ranks) result = std::max(result, value(rank));
    return result;
  }
  template <class Value>
  std::int64_t min(Value value) const {
    return -max([&](const RankTimes& rank) { return -value(rank); });
  }
};

class PipelineExecutor {
 public:
  PipelineExecutor(const PipelineSchedule& schedule, const PipelineShape& shape, const PassTimes& times)
      : schedule_(schedule), shape_(shape), times_(times), lanes_(shape.ranks) {
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      Lane& lane = lanes_[rank];
      const auto stream = schedule.slots(shape, rank);
      for (PipelineSlot slot; stream->next(slot);) lane.slots.push_back(slot);
    }
  }

  PipelineExecution run() {
    result_.ranks.resize(shape_.ranks);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank)
        while (step(rank)) moved = true;
    }
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank)
      if (lanes_[rank].at < lanes_[rank].slots.size())
        fault("rank {} waits for ever before slot {} of {}", rank, lanes_[rank].at, lanes_[rank].slots.size());
    check_completeness();
    return result_;
  }

 private:
  using Pass = PipelineSlot::Pass;
  enum Done { forward_done, input_done, weight_done };
  using Key = std::tuple<Done, std::uint32_t, std::uint32_t>;  // of a stage and a micro-batch
  struct Lane {
    std::vector<PipelineSlot> slots;
    std::size_t at = 0;
    std::uint32_t held = 0;
  };

  template <class... Arguments>
  void fault(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    result_.faults.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  // The dependencies of a slot: end times, or -1 while one of them is not known.
  std::int64_t ready(const PipelineSlot& slot, std::uint32_t stage) const {
    std::vector<Key> needs;
    if (slot.pass == Pass::forward && stage > 0) needs.push_back({forward_done, stage - 1, slot.micro_batch});
    if (slot.pass == Pass::backward || slot.pass == Pass::input_gradient) {
      needs.push_back({forward_done, stage, slot.micro_batch});
      if (stage + 1 < schedule_.stages(shape_)) needs.push_back({input_done, stage + 1, slot.micro_batch});
    }
    if (slot.pass == Pass::weight_gradient) needs.push_back({input_done, stage, slot.micro_batch});
    std::int64_t time = 0;
    for (const Key& need : needs) {
      const auto at = done_.find(need);
      if (at == done_.end()) return -1;
      time = std::max(time, at->second);
    }
    return time;
  }

  std::int64_t duration(const PipelineSlot& slot) const {
    switch (slot.pass) {
      case Pass::forward:
        return times_.forward;
      case Pass::backward:
        return times_.input + times_.weight;
      case Pass::input_gradient:
        return times_.input;
      case Pass::weight_gradient:
        return times_.weight;
    }
    return 0;
  }

  void finish(const PipelineSlot& slot, std::uint32_t stage, std::int64_t end) {
    const auto mark = [&](Done what) {
      if (!done_.emplace(Key{what, stage, slot.micro_batch}, end).second)
        fault("pass {} of stage {}, micro-batch {} is done twice", static_cast<int>(what), stage, slot.micro_batch);
    };
    if (slot.pass == Pass::forward) mark(forward_done);
    if (slot.pass == Pass::backward || slot.pass == Pass::input_gradient) mark(input_done);
    if (slot.pass == Pass::backward || slot.pass == Pass::weight_gradient) mark(weight_done);
  }

  bool step(std::uint32_t rank) {
    Lane& lane = lanes_[rank];
    if (lane.at == lane.slots.size()) return false;
    std::vector<PipelineSlot> group{lane.slots[lane.at]};
    while (group.back().with_next && lane.at + group.size() < lane.slots.size())
      group.push_back(lane.slots[lane.at + group.size()]);
    RankTimes& books = result_.ranks[rank];
    std::int64_t start = books.last;
    std::int64_t length = 0;
    std::vector<std::uint32_t> stages;
    for (const PipelineSlot& slot : group) {
      stages.push_back(schedule_.stage_of(shape_, rank, slot.chunk));
      const PipelineSchedule::Place place = schedule_.place_of(shape_, stages.back(), slot.micro_batch);
      if (place.rank != rank || place.chunk != slot.chunk)
        fault("rank {} chunk {} works on stage {} of micro-batch {}, which is elsewhere", rank, slot.chunk,
              stages.back(), slot.micro_batch);
      const std::int64_t wanted = ready(slot, stages.back());
      if (wanted < 0) return false;
      start = std::max(start, wanted);
      length += duration(slot);
    }
    if (group.size() > 1 && times_.pair > 0) length = times_.pair;
    for (std::size_t i = 0; i < group.size(); ++i) {
      finish(group[i], stages[i], start + length);
      if (group[i].pass == Pass::forward) books.peak = std::max(books.peak, ++lane.held);
    }
    for (const PipelineSlot& slot : group)
      if (slot.pass == Pass::backward || slot.pass == Pass::weight_gradient) --lane.held;
    if (lane.at == 0) books.first = start;
    books.last = start + length;
    books.busy += length;
    lane.at += group.size();
    return true;
  }

  void check_completeness() {
    const std::uint32_t stages = schedule_.stages(shape_);
    for (const Done what : {forward_done, input_done, weight_done})
      for (std::uint32_t stage = 0; stage < stages; ++stage)
        for (std::uint32_t micro_batch = 0; micro_batch < shape_.micro_batches; ++micro_batch)
          if (!done_.contains({what, stage, micro_batch}))
            fault("pass {} of stage {}, micro-batch {} is missing", static_cast<int>(what), stage, micro_batch);
    if (done_.size() != std::size_t{3} * stages * shape_.micro_batches) fault("there are further passes");
  }

  const PipelineSchedule& schedule_;
  PipelineShape shape_;
  PassTimes times_;
  std::vector<Lane> lanes_;
  std::map<Key, std::int64_t> done_;
  PipelineExecution result_;
};

inline PipelineExecution execute(const PipelineSchedule& schedule, const PipelineShape& shape, const PassTimes& times) {
  return PipelineExecutor(schedule, shape, times).run();
}

inline std::unique_ptr<PipelineSchedule> pipeline_schedule(const std::string& name) {
  return PipelineScheduleRegistry::instance().find(name)->make();
}

}  // namespace weft::test
