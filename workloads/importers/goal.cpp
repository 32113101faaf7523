// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `goal`: schedules of LogGOPSim and ATLAHS (docs/reference/traces.md).
#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/system/interrupt.hpp"
#include "units/text.hpp"
#include "workloads/compute/compute_noise.hpp"
#include "workloads/importers/goal_file.hpp"
#include "workloads/reading/message_lanes.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

class GoalProgram : public RankProgram {
 public:
  GoalProgram(std::unique_ptr<GoalStream> stream, bool has_lines, bool receives_any, std::size_t read_ahead)
      : stream_(std::move(stream)), has_lines_(has_lines), receives_any_(receives_any), read_ahead_(read_ahead) {}

  bool next(Operation& operation) override {
    GoalOperation one;
    if (!stream_->next(one, dependencies_)) return false;
    operation = Operation();
    operation.id = at_++;
    operation.kind = one.kind;
    operation.line = has_lines_ ? one.place : 0;
    operation.cpu = one.cpu;
    for (const std::uint32_t before : dependencies_)
      ((before & goal_at_start) != 0 ? operation.after_start : operation.after).push_back(before & ~goal_at_start);
    if (one.kind == Operation::Kind::compute) {
      operation.duration = bounded_product(one.size, Time::from_ns(1));
      // The first ones have a name in results.
      operation.stream = one.cpu + std::size_t{2} < stream_count ? static_cast<Stream>(1 + one.cpu) : Stream::host;
      return true;
    }
    // A recv is a buffer, as in MPI: LogGOPSim matches by source and tag, and the message has what its send says.
    operation.at_most = one.kind == Operation::Kind::recv;
    operation.any_source = one.takes_any() && one.peer == goal_any;
    operation.any_tag = one.takes_any() && one.tag == goal_any;
    operation.peer = Rank(operation.any_source ? 0 : one.peer);
    operation.tag = operation.any_tag ? 0 : one.tag;
    operation.bytes = Bytes(bytes_of(one));
    operation.queue_pair = one.nic;
    return true;
  }
  bool receives_any() const override { return receives_any_; }
  bool takes_what_is_ready() const override { return true; }
  bool streams_are_processors() const override { return true; }
  std::size_t read_ahead() const override { return read_ahead_; }
  bool reads_past_started() const override { return true; }

  /// Simulators of GOAL send at least a byte.
  static std::int64_t bytes_of(const GoalOperation& message) { return std::max<std::int64_t>(message.size, 1); }

 private:
  std::unique_ptr<GoalStream> stream_;
  bool has_lines_;
  bool receives_any_;
  std::size_t read_ahead_;
  std::vector<std::uint32_t> dependencies_;
  std::uint64_t at_ = 0;
};

class GoalWorkload : public Workload {
 public:
  /// Reads the ranks once, together with the other processes.
  GoalWorkload(const std::string& path, std::size_t read_ahead, const SharedReading& sharing)
      : file_(open_goal([path] { return ByteSource(path); })), read_ahead_(read_ahead) {
    MessageLanes lanes;
    const auto block = SharedReading::block(ranks(), sharing.process(), sharing.processes());
    for (std::uint32_t r = block.first; r < block.end; ++r) {
      look_for_interrupt();
      add(r, lanes);
    }
    lanes.bring_together(sharing, ranks());
    share_counts(sharing);
    require_enough(lanes, block);
    lanes.for_each([this](const MessageLanes::Key& key, const MessageLanes::Lane& lane) {
      if (takes_any_[std::get<1>(key)] == 0 && !lane.has_room()) require_room(key);
    });
  }

  std::uint32_t ranks() const override { return file_->ranks(); }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t id) const override { throw InternalError(fmt::format("call {} of none", id)); }
  bool from_user() const override { return true; }
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    const bool has_lines = file_->text_of_place({}).starts_with("line");
    return with_noise(std::make_unique<GoalProgram>(file_->stream(rank.value()), has_lines,
                                                    takes_any_[rank.value()] != 0, read_ahead_),
                      rank, noise_);
  }
  WorkloadEstimate estimate() const override { return {messages_, saturated(bytes_), busiest_}; }
  std::vector<std::pair<std::string, std::string>> description() const override {
    std::vector<std::pair<std::string, std::string>> lines{{"calc", grouped(static_cast<std::int64_t>(calcs_))},
                                                           {"send", grouped(static_cast<std::int64_t>(messages_))},
                                                           {"recv", grouped(static_cast<std::int64_t>(messages_))}};
    for (auto& line : noise_.description(ranks())) lines.push_back(std::move(line));
    return lines;
  }
  void set_noise(ComputeNoise noise) { noise_ = std::move(noise); }

 private:
  void add(std::uint32_t rank, MessageLanes& lanes) {
    const auto stream = file_->stream(rank);
    std::vector<std::uint32_t> dependencies;
    Time compute;
    for (GoalOperation one; stream->next(one, dependencies);) {
      look_for_interrupt();
      const std::int64_t bytes = GoalProgram::bytes_of(one);
      if (one.kind == Operation::Kind::send) {
        lanes.send({rank, one.peer, one.tag}, bytes);
        ++messages_;
        bytes_ += static_cast<unsigned __int128>(bytes);
      } else if (one.takes_any()) {
        takes_any_[rank] = 1;
        ++wild_[rank];
      } else if (one.kind == Operation::Kind::recv) {
        lanes.recv({one.peer, rank, one.tag}, bytes);
      } else {
        compute = bounded_sum(compute, duration_of(rank, one));
        ++calcs_;
      }
    }
    busiest_ = std::max(busiest_, compute);
  }

  void share_counts(const SharedReading& sharing) {
    if (sharing.processes() == 1) return;
    Packer mine;
    mine.put(calcs_);
    mine.put(messages_);
    mine.put(bytes_);
    mine.put(busiest_);
    for (const auto& [rank, count] : wild_) mine.put(rank);
    calcs_ = messages_ = 0;
    bytes_ = 0;
    for (const SharedReading::Bytes& given : sharing.share(mine.bytes())) {
      Unpacker from(given);
      calcs_ += from.take<std::uint64_t>();
      messages_ += from.take<std::uint64_t>();
      bytes_ += from.take<unsigned __int128>();
      busiest_ = std::max(busiest_, from.take<Time>());
      while (!from.at_end()) takes_any_[from.take<std::uint32_t>()] = 1;
    }
  }

  /// A rank with recvs of any source or tag has as many recvs in all as messages arrive.
  void require_enough(const MessageLanes& lanes, const SharedReading::Block& block) const {
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> counts;  // rank -> sends to it, recvs
    for (const auto& [rank, count] : wild_)
      if (block.contains(rank)) counts[rank].second = count;
    lanes.for_each([&](const MessageLanes::Key& key, const MessageLanes::Lane& lane) {
      const auto at = counts.find(std::get<1>(key));
      if (at == counts.end()) return;
      at->second.first += lane.sends;
      at->second.second += lane.recvs;
    });
    for (const auto& [rank, count] : counts)
      if (count.first != count.second)
        throw file_->error(rank, first_of_any(rank),
                           fmt::format("rank {} receives {} messages, some from any rank or with any tag (-1), and {} "
                                       "are sent to it",
                                       rank, count.second, count.first));
  }

  GoalOperation first_of_any(std::uint32_t rank) const {
    std::vector<std::uint32_t> dependencies;
    const auto stream = file_->stream(rank);
    for (GoalOperation one; stream->next(one, dependencies);)
      if (one.takes_any()) return one;
    throw InternalError(fmt::format("rank {} has no recv from any rank", rank));
  }

  Time duration_of(std::uint32_t rank, const GoalOperation& calc) const {
    const Time duration = bounded_product(calc.size, Time::from_ns(1));
    if (duration < Time::limit()) return duration;
    throw file_->error(
        rank, calc, fmt::format("a calc of {} ns; expected less than 106 days, where simulated time ends", calc.size));
  }

  std::vector<GoalOperation> messages(std::uint32_t rank, std::uint32_t peer, std::uint32_t tag,
                                      Operation::Kind kind) const {
    std::vector<GoalOperation> found;
    std::vector<std::uint32_t> dependencies;
    const auto stream = file_->stream(rank);
    for (GoalOperation one; stream->next(one, dependencies);)
      if (one.kind == kind && one.peer == peer && one.tag == tag) found.push_back(one);
    return found;
  }

  /// Reads both ranks once more: for the first message without its other end, or for which the recv has no room.
  void require_room(const MessageLanes::Key& key) const {
    const auto& [source, destination, tag] = key;
    const auto sends = messages(source, destination, tag, Operation::Kind::send);
    const auto recvs = messages(destination, source, tag, Operation::Kind::recv);
    const std::string which = fmt::format("from rank {} to rank {} with tag {}", source, destination, tag);
    for (std::size_t i = 0; i < std::min(sends.size(), recvs.size()); ++i)
      if (GoalProgram::bytes_of(sends[i]) > GoalProgram::bytes_of(recvs[i]))
        throw file_->error(source, sends[i],
                           fmt::format("message {} {}: the send has {} bytes, and the recv on {} has room for {}; "
                                       "expected a recv of as many or more",
                                       i, which, sends[i].size, file_->text_of_place(recvs[i]), recvs[i].size));
    if (sends.size() == recvs.size()) return;
    const std::string counts = fmt::format("there are {} sends and {} recvs", sends.size(), recvs.size());
    if (sends.size() > recvs.size())
      throw file_->error(source, sends[recvs.size()], fmt::format("the send {} has no recv: {}", which, counts));
    throw file_->error(destination, recvs.at(sends.size()), fmt::format("the recv {} has no send: {}", which, counts));
  }

  std::unique_ptr<GoalFile> file_;
  std::size_t read_ahead_;
  ComputeNoise noise_;
  std::vector<std::uint8_t> takes_any_ = std::vector<std::uint8_t>(ranks());  // has recvs from any rank or with any tag
  std::map<std::uint32_t, std::uint64_t> wild_;                               // how many, of ranks read here
  std::uint64_t calcs_ = 0;
  std::uint64_t messages_ = 0;
  unsigned __int128 bytes_ = 0;
  Time busiest_;
};

class GoalReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const Spec where = spec.at("file");
    std::size_t read_ahead = 4096;
    if (const auto ahead = spec.find("read_ahead"))
      read_ahead = static_cast<std::size_t>(ahead->integer(1, max_goal_operations));
    auto workload =
        std::make_unique<GoalWorkload>(resolve_file(where, context.directory, "", ""), read_ahead, *context.sharing);
    require_ranks(where, workload->ranks(), context);
    if (const auto map = spec.find("compute_noise")) workload->set_noise({*map, workload->ranks(), context.seed});
    spec.finish();
    return workload;
  }
};

const Registration<WorkloadReader, GoalReader> goal_registration(
    "goal", "a GOAL schedule of LogGOPSim or ATLAHS, text or binary");

}  // namespace
}  // namespace weft
