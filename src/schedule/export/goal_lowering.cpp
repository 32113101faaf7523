// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/export/goal_lowering.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "support/system/interrupt.hpp"

namespace weft {
namespace {

constexpr std::uint32_t max_goal_cpus = 256;
constexpr std::uint32_t goal_cpus_of_streams = stream_count - 1;
constexpr std::uint64_t max_goal_tags = 0xffffffffU;  // the last one is "any"

/// The ends and beginnings for which dependent operations wait.
struct GoalEnds {
  std::vector<std::uint32_t> ends, starts;
  void add(const GoalEnds& other) {
    ends.insert(ends.end(), other.ends.begin(), other.ends.end());
    starts.insert(starts.end(), other.starts.begin(), other.starts.end());
  }
};

void make_unique(std::vector<std::uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::int64_t nanoseconds(Time time) { return (time.ps() + 500) / 1000; }

class GoalLowering {
 public:
  GoalLowering(const Workload& workload, std::uint32_t rank, const GoalNames* names, const std::string& experiment)
      : workload_(workload),
        rank_(rank),
        names_(names),
        experiment_(experiment),
        program_(workload.program(Rank(rank))) {
    if (program_->accepts_unexpected())
      refuse_goal(
          "one-sided messages, as `kind: traffic` sends them: no operation receives them, and a GOAL schedule has a "
          "recv for "
          "each send; expected a workload whose ranks receive what they are sent");
    if (workload.start(Rank(rank)) > Time()) refuse_goal("a start later than 0, which a schedule cannot have");
    own_cpus_ = program_->streams_are_processors();
    if (program_->takes_what_is_ready() && !own_cpus_)
      refuse_goal("streams that take whatever operation is ready; those of an exported schedule take theirs in order");
  }

  std::vector<GoalStatement> run() {
    for (Operation operation; program_->next(operation); operation = Operation()) {
      look_for_interrupt();
      if (operation.not_before > Time()) refuse_goal("an operation that starts at a given time; a schedule has none");
      done_[operation.id] = lower(operation);
      if (operation.stream != Stream::none && !own_cpus_)
        last_of_stream_[static_cast<std::size_t>(operation.stream)] = operation.id;
    }
    for (GoalStatement& one : statements_) {
      make_unique(one.requires_);
      make_unique(one.irequires);
    }
    return std::move(statements_);
  }

 private:
  [[noreturn]] void refuse_goal(const std::string& what) const {
    throw InputError(SourceLine{experiment_, 0}, fmt::format("rank {} has {}", rank_, what));
  }

  GoalEnds waits_of(const Operation& operation) const {
    GoalEnds waits;
    for (const std::uint64_t before : operation.after) waits.add(done_.at(before));
    for (const std::uint64_t before : operation.after_start) {
      const GoalEnds& of_before = done_.at(before);
      waits.starts.insert(waits.starts.end(), of_before.ends.begin(), of_before.ends.end());
    }
    const auto stream = static_cast<std::size_t>(operation.stream);
    if (operation.stream != Stream::none && !own_cpus_ && last_of_stream_[stream])
      waits.add(done_.at(*last_of_stream_[stream]));
    return waits;
  }

  GoalEnds lower(const Operation& operation) {
    const GoalEnds waits = waits_of(operation);
    if (operation.kind == Operation::Kind::collective) return lower_collective(*operation.call, waits);
    GoalStatement one;
    one.kind = operation.kind;
    if (operation.kind == Operation::Kind::compute) {
      if (operation.duration == Time() && !own_cpus_) return waits;  // it only joins others
      one.size = nanoseconds(operation.duration);
      one.cpu = cpu_of(operation);
    } else {
      if (operation.queue_pair > std::numeric_limits<std::uint8_t>::max())
        refuse_goal(fmt::format("a send on queue pair {}; a schedule has 0 to 255", operation.queue_pair));
      one.size = operation.bytes.count();
      one.peer = operation.any_source ? goal_export_any : operation.peer.value();
      one.tag = operation.any_tag ? goal_export_any : operation.tag;
      one.nic = static_cast<std::uint8_t>(operation.queue_pair);
      one.cpu = own_cpus_ ? operation.cpu : 0;
    }
    return {{add(std::move(one), waits)}, {}};
  }

  std::uint32_t add(GoalStatement one, const GoalEnds& waits) {
    if (statements_.size() >= std::uint32_t{1} << 31) refuse_goal("more than 2^31 operations");
    one.requires_.insert(one.requires_.end(), waits.ends.begin(), waits.ends.end());
    one.irequires.insert(one.irequires.end(), waits.starts.begin(), waits.starts.end());
    statements_.push_back(std::move(one));
    return static_cast<std::uint32_t>(statements_.size() - 1);
  }
  std::uint32_t add_calc(Time time, std::uint8_t cpu, const GoalEnds& waits) {
    GoalStatement one;
    one.size = nanoseconds(time);
    one.cpu = cpu;
    return add(std::move(one), waits);
  }

  // Computations of no stream are on a processor where nothing else runs: that of a computation that they wait for, if
  // it is the last there.
  std::uint8_t cpu_of(const Operation& operation) {
    if (own_cpus_) return operation.cpu;
    if (operation.stream != Stream::none)
      return static_cast<std::uint8_t>(static_cast<std::uint32_t>(operation.stream) - 1);
    for (const std::uint64_t before : operation.after) {
      const auto at = cpu_of_last_.find(before);
      if (at == cpu_of_last_.end()) continue;
      const std::uint8_t cpu = at->second;
      cpu_of_last_.erase(at);
      cpu_of_last_[operation.id] = cpu;
      return cpu;
    }
    return cpu_of_last_[operation.id] = fresh_cpu();
  }
  std::uint8_t fresh_cpu() {
    if (next_cpu_ == max_goal_cpus)
      refuse_goal("more than 248 computations at the same time; a schedule has 256 cpus, 8 of them for streams");
    return static_cast<std::uint8_t>(next_cpu_++);
  }
  /// One for each lane of each communicator, and its purpose.
  std::uint8_t cpu_of_lane(const CollectiveCall& call, std::uint32_t lane, std::uint32_t purpose) {
    const auto [at, fresh] = cpu_of_lane_.try_emplace({call.communicator->id(), lane, purpose}, std::uint8_t{0});
    if (fresh) at->second = fresh_cpu();
    return at->second;
  }

  // Collectives -------------------------------------------------------------------------------------------------------

  /// Where a lane is.
  struct LaneState {
    GoalEnds received;  // recvs or calcs of its last slice
    std::vector<std::uint32_t> sent;
    std::vector<GoalEnds> marks;
  };
  /// Statements that wait for a mark of another lane.
  struct MarkWait {
    std::uint32_t statement = 0;
    std::uint32_t lane = 0;
    std::uint64_t mark = 0;
  };

  GoalEnds lower_collective(const CollectiveCall& call, GoalEnds waits) {
    if (names_ == nullptr)
      refuse_goal(fmt::format("the collective '{}', and GOAL has none; --steps resolves them into sends and recvs",
                              call.label.empty() ? to_text(call.kind) : call.label));
    const auto algorithm = find_collective(call.algorithm);
    if (algorithm->aggregators(call) > 0)
      refuse_goal(fmt::format("collectives of '{}', in which switches take part", call.algorithm));
    const std::uint32_t communicator = call.communicator->id();
    if (const auto last = last_of_communicator_.find(communicator); last != last_of_communicator_.end())
      waits.add(last->second);
    make_unique(waits.ends);
    make_unique(waits.starts);
    if (call.tuning.launch > Time()) waits = {{add_calc(call.tuning.launch, cpu_of_lane(call, 0, 2), waits)}, {}};
    const std::uint32_t index = call.communicator->index_of(Rank(rank_));
    std::vector<LaneState> lanes(algorithm->lanes(call));
    std::vector<MarkWait> mark_waits;
    for (std::uint32_t lane = 0; lane < lanes.size(); ++lane)
      lower_lane(call, *algorithm, index, lane, waits, lanes[lane], mark_waits);
    for (const MarkWait& wait : mark_waits) {
      const GoalEnds& mark = lanes[wait.lane].marks.at(wait.mark - 1);
      statements_[wait.statement].requires_.insert(statements_[wait.statement].requires_.end(), mark.ends.begin(),
                                                   mark.ends.end());
      statements_[wait.statement].irequires.insert(statements_[wait.statement].irequires.end(), mark.starts.begin(),
                                                   mark.starts.end());
    }
    GoalEnds ends;
    for (const LaneState& lane : lanes) {
      ends.add(lane.received);
      ends.starts.insert(ends.starts.end(), lane.sent.begin(), lane.sent.end());
    }
    if (ends.ends.empty() && ends.starts.empty()) ends = waits;  // there was nothing to do
    last_of_communicator_[communicator] = ends;
    return ends;
  }

  void lower_lane(const CollectiveCall& call, const CollectiveAlgorithm& algorithm, std::uint32_t index,
                  std::uint32_t number, const GoalEnds& waits, LaneState& lane, std::vector<MarkWait>& mark_waits) {
    const auto stream = algorithm.steps(call, index, number);
    const std::uint32_t channel = number % algorithm.channels(call);
    for (Step step; stream->next(step);) {
      const auto first = static_cast<std::uint32_t>(statements_.size());
      for (Bytes done(0); step.primitive != Primitive::nop && done < step.bytes;) {
        const Bytes slice = std::min(step.slice, step.bytes - done);
        lower_slice(call, step, slice, number, channel, waits, lane);
        done += slice;
      }
      const auto end = static_cast<std::uint32_t>(statements_.size());
      if (step.wait_lane != no_lane) {
        for (std::uint32_t i = first; i < end; ++i) mark_waits.push_back({i, step.wait_lane, step.wait_marks});
        if (first == end) stand_for_wait(call, number, step, waits, lane, mark_waits);
      }
      if (step.mark) lane.marks.push_back({lane.received.ends, lane.sent});
    }
  }

  // A step that only waits, or moves no data between ranks: a calc without duration represents it.
  void stand_for_wait(const CollectiveCall& call, std::uint32_t number, const Step& step, const GoalEnds& waits,
                      LaneState& lane, std::vector<MarkWait>& mark_waits) {
    GoalEnds before = lane.received.ends.empty() ? waits : lane.received;
    before.starts.insert(before.starts.end(), lane.sent.begin(), lane.sent.end());
    const std::uint32_t join = add_calc(Time(), cpu_of_lane(call, number, 0), before);
    mark_waits.push_back({join, step.wait_lane, step.wait_marks});
    lane.received = {{join}, {}};
  }

  // Recvs after those of the slice before; then the time of handling it; then the sends, begun in order.
  void lower_slice(const CollectiveCall& call, const Step& step, Bytes slice, std::uint32_t number,
                   std::uint32_t channel, const GoalEnds& waits, LaneState& lane) {
    const std::int64_t wire = wire_bytes(call.tuning.protocol, slice).count();
    const auto message = [&](Operation::Kind kind, std::uint32_t peer) {
      GoalStatement one;
      one.kind = kind;
      one.size = wire;
      one.peer = call.communicator->rank(peer).value();
      one.tag = names_->tag(call, channel);
      one.nic = names_->nic(call, channel);
      return one;
    };
    GoalEnds ready = lane.received.ends.empty() ? waits : lane.received;
    if (step.receive_count() > 0) {
      GoalEnds come;
      for (std::uint32_t i = 0; i < step.receive_count(); ++i) {
        GoalEnds before = ready;
        before.starts.insert(before.starts.end(), lane.sent.begin(), lane.sent.end());
        come.ends.push_back(add(message(Operation::Kind::recv, step.receive_from(i)), before));
      }
      lane.received = ready = come;
    }
    if (const Time time = handling_time(call.tuning, step, slice); nanoseconds(time) > 0) {
      ready.starts.insert(ready.starts.end(), lane.sent.begin(), lane.sent.end());
      lane.received = ready = {{add_calc(time, cpu_of_lane(call, number, 0), ready)}, {}};
    }
    if (step.send_count() == 0) return;
    if (nanoseconds(call.tuning.message_latency) > 0)
      ready = {{add_calc(call.tuning.message_latency, fresh_post_cpu(call, number), ready)}, {}};
    std::vector<std::uint32_t> sent;
    for (std::uint32_t i = 0; i < step.send_count(); ++i) {
      GoalEnds before = ready;
      before.starts.insert(before.starts.end(), lane.sent.begin(), lane.sent.end());
      sent.push_back(add(message(Operation::Kind::send, step.send_to(i)), before));
    }
    lane.sent = std::move(sent);
  }

  /// Messages of a lane are on their way to the NIC at the same time: a processor takes them in turn, so the lane needs
  /// several.
  std::uint8_t fresh_post_cpu(const CollectiveCall& call, std::uint32_t lane) {
    constexpr std::uint32_t posts_at_a_time = 4;
    return cpu_of_lane(call, lane, 3 + posts_++ % posts_at_a_time);
  }

  static Time handling_time(const CollectiveTuning& tuning, const Step& step, Bytes slice) {
    if (step.primitive == Primitive::copy && tuning.copies_while_sending) return {};
    Bandwidth rate = reduces(step.primitive) ? tuning.reduce_rate : tuning.copy_rate;
    if (!sends(step.primitive) && tuning.store_rate.bps() > 0) rate = tuning.store_rate;
    // GOAL has no work that lets through what comes, so a slice waits for it at each rank.
    if (tuning.pace_rate.bps() > 0 && tuning.paces_own_data && (rate.bps() == 0 || tuning.pace_rate < rate))
      rate = tuning.pace_rate;
    const Time of_bytes = rate.bps() > 0 ? serialization_time(slice, rate) : Time();
    return bounded_sum(tuning.step_latency, std::max(of_bytes, tuning.min_step));
  }

  const Workload& workload_;
  std::uint32_t rank_;
  const GoalNames* names_;
  const std::string& experiment_;
  std::unique_ptr<RankProgram> program_;
  bool own_cpus_ = false;  // the program's operations name their cpus
  std::vector<GoalStatement> statements_;
  std::map<std::uint64_t, GoalEnds> done_;  // by operation
  std::optional<std::uint64_t> last_of_stream_[stream_count];
  std::map<std::uint32_t, GoalEnds> last_of_communicator_;
  std::map<std::uint64_t, std::uint8_t> cpu_of_last_;  // operation -> its cpu, if it is the last there
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint8_t> cpu_of_lane_;
  std::uint32_t next_cpu_ = goal_cpus_of_streams;
  std::uint32_t posts_ = 0;
};

}  // namespace

GoalNames::GoalNames(const Workload& workload, const std::string& experiment) {
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank) {
    const auto program = workload.program(Rank(rank));
    for (Operation operation; program->next(operation); operation = Operation()) {
      look_for_interrupt();
      if (operation.kind != Operation::Kind::send && operation.kind != Operation::Kind::recv) continue;
      if (operation.tag >= max_goal_tags)
        throw InputError(SourceLine{experiment, 0}, fmt::format("rank {} has a message of tag {}; a schedule has 0 "
                                                                "to 4294967294",
                                                                rank, operation.tag));
      first_tag_ = std::max(first_tag_, operation.tag + 1);
      first_nic_ = std::max(first_nic_, operation.queue_pair + 1);
    }
  }
  for (std::uint32_t id = 0; id < workload.call_count(); ++id) {
    const CollectiveCall call = workload.call(id);
    auto& [first, count] = channels_[call.communicator->id()];
    count = std::max(count, find_collective(call.algorithm)->channels(call));
  }
  std::uint64_t next = 0;
  for (auto& [communicator, channels] : channels_) {
    channels.first = static_cast<std::uint32_t>(next);
    next += channels.second;
  }
  if (first_tag_ + next >= max_goal_tags)
    throw InputError(SourceLine{experiment, 0}, "there are more communicators and channels than tags");
}

std::uint32_t GoalNames::tag(const CollectiveCall& call, std::uint32_t channel) const {
  return first_tag_ + channels_.at(call.communicator->id()).first + channel;
}

std::uint8_t GoalNames::nic(const CollectiveCall& call, std::uint32_t channel) const {
  constexpr std::uint32_t nics = 256;
  return static_cast<std::uint8_t>((first_nic_ + channels_.at(call.communicator->id()).first + channel) % nics);
}

std::vector<GoalStatement> lower_to_goal(const Workload& workload, std::uint32_t rank, const GoalNames* names,
                                         const std::string& experiment) {
  return GoalLowering(workload, rank, names, experiment).run();
}

}  // namespace weft
