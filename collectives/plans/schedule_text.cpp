// SPDX-License-Identifier: GPL-2.0-only
// The text form of schedules: read and written (docs/reference/schedule_format.md).
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "collectives/plans/static_schedule.hpp"
#include "support/basics/error.hpp"
#include "support/documents/spec.hpp"
#include "support/documents/text_file.hpp"

namespace weft {
namespace {

const std::vector<Primitive> primitives = {Primitive::send,
                                           Primitive::recv,
                                           Primitive::copy,
                                           Primitive::recv_copy_send,
                                           Primitive::recv_reduce_send,
                                           Primitive::recv_reduce_copy,
                                           Primitive::reduce,
                                           Primitive::nop,
                                           Primitive::recv_reduce_copy_send};

class Reader {
 public:
  Reader(const std::string& text, std::string file) : text_(text) { schedule_.file = std::move(file); }

  StaticSchedule read() {
    for (std::string line; std::getline(text_, line);) {
      ++line_;
      words_.clear();
      at_ = 0;
      std::istringstream stream(line.substr(0, line.find('#')));
      for (std::string word; stream >> word;) words_.push_back(word);
      if (!words_.empty()) read_line();
    }
    if (schedule_.ranks.empty()) fail("expected a line such as 'schedule NAME all_reduce ranks 4 chunks 4' first");
    return std::move(schedule_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(SourceLine{schedule_.file, line_}, message);
  }
  std::string word(const std::string& due) {
    if (at_ == words_.size()) fail(fmt::format("the line ends; expected {}", due));
    return words_[at_++];
  }
  bool more() const { return at_ < words_.size(); }
  std::uint32_t number(const std::string& due, std::uint64_t min, std::uint64_t max) {
    const std::string found = word(due);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc() || end != found.data() + found.size() || value < min || value > max)
      fail(fmt::format("found '{}'; expected {} from {} to {}", found, due, min, max));
    return value;
  }
  template <class Choices>
  [[noreturn]] void unknown(const std::string& found, const Choices& known) {
    std::string all;
    for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
    fail(fmt::format("found '{}'{}; known here: {}", found, did_you_mean(found, known), all));
  }
  std::uint32_t last_rank() const { return static_cast<std::uint32_t>(schedule_.ranks.size()) - 1; }

  void read_line() {
    const std::string what = word("a word");
    if (what == "schedule") return read_head();
    if (schedule_.ranks.empty()) fail("found '" + what + "' before the line 'schedule'");
    if (what == "rank") {
      rank_ = number("a rank", 0, last_rank());
      return;
    }
    if (what == "switch") return read_switch();
    if (what == "lane") return read_lane();
    read_step(what);
  }

  void read_switch() {
    if (rank_ != no_lane) fail("a line 'switch' after a line 'rank'; expected switches after the line 'schedule'");
    if (schedule_.switches.size() >= AggregatorSite::max_units)
      fail(fmt::format("more than {} switches", AggregatorSite::max_units));
    const std::uint32_t members = schedule_.members();
    StaticSwitch one;
    one.count = 0;
    while (more()) {
      const std::string key = word("a key");
      if (key == "first")
        one.first = number("a rank", 0, members - 1);
      else if (key == "count")
        one.count = number("ranks", 2, members);
      else if (key == "stride")
        one.stride = number("a stride", 1, members);
      else
        unknown(key, std::vector<std::string>{"first", "count", "stride"});
    }
    if (one.count == 0 || one.first + (one.count - 1) * std::uint64_t{one.stride} >= members)
      fail(fmt::format("expected 'first RANK count N stride N' of some of {} ranks", members));
    schedule_.switches.push_back(one);
    schedule_.ranks.emplace_back();
  }

  void read_head() {
    if (!schedule_.ranks.empty()) fail("a second line 'schedule'");
    schedule_.name = word("a name");
    const std::string kind = word("a collective");
    const auto known = parse_collective_kind(kind);
    if (!known) unknown(kind, collective_kind_names());
    schedule_.kind = *known;
    std::uint32_t ranks = 0;
    schedule_.chunks = 0;
    while (more()) {
      const std::string key = word("a key");
      if (key == "ranks") {
        ranks = number("ranks", 1, 65536);
      } else if (key == "chunks") {
        schedule_.chunks = number("chunks", 1, 1U << 30);
      } else if (key == "channels") {
        schedule_.channels = number("channels", 1, 1024);
      } else if (key == "in_place") {
        schedule_.in_place = true;
      } else if (key == "protocol") {
        const std::string name = word("a protocol");
        const auto protocol = parse_protocol(name);
        if (!protocol) unknown(name, std::vector<std::string>{"simple", "ll", "ll128"});
        schedule_.protocol = *protocol;
      } else {
        unknown(key, std::vector<std::string>{"ranks", "chunks", "channels", "protocol", "in_place"});
      }
    }
    if (ranks == 0 || schedule_.chunks == 0) fail("expected 'ranks N' and 'chunks N' on this line");
    schedule_.ranks.resize(ranks);
  }

  void read_lane() {
    if (rank_ == no_lane) fail("a lane before the first line 'rank'");
    StaticLane lane;
    lane.id = static_cast<std::uint32_t>(schedule_.ranks[rank_].size());
    while (more()) {
      const std::string key = word("a key");
      if (key == "channel")
        lane.channel = number("a channel", 0, schedule_.channels - 1);
      else if (key == "to")
        lane.send_peer = number("a rank", 0, last_rank());
      else if (key == "from")
        lane.receive_peer = number("a rank", 0, last_rank());
      else if (key == "id")
        lane.id = number("a number", 0, 1U << 30);
      else
        unknown(key, std::vector<std::string>{"channel", "to", "from", "id"});
    }
    schedule_.ranks[rank_].push_back(std::move(lane));
  }

  Buffer buffer() {
    const std::string name = word("a buffer");
    for (const Buffer known : {Buffer::input, Buffer::output, Buffer::scratch})
      if (to_text(known) == name) return known;
    unknown(name, std::vector<std::string>{"input", "output", "scratch"});
  }

  void read_step(const std::string& name) {
    if (rank_ == no_lane || schedule_.ranks[rank_].empty()) fail("found '" + name + "' before the first line 'lane'");
    StaticLane& lane = schedule_.ranks[rank_].back();
    StaticStep step;
    step.line = line_;
    bool found = false;
    std::vector<std::string> names = {"schedule", "rank", "lane", "switch"};
    for (const Primitive primitive : primitives) {
      names.emplace_back(to_text(primitive));
      if (names.back() != name) continue;
      step.primitive = primitive;
      found = true;
    }
    if (!found) unknown(name, names);
    bool source = !reads(step.primitive);
    bool target = !stores(step.primitive);
    while (more()) {
      const std::string key = word("a key");
      if (key == "source") {
        step.source = buffer();
        step.source_chunk = number("a chunk", 0, 1U << 30);
        source = true;
      } else if (key == "target") {
        step.target = buffer();
        step.target_chunk = number("a chunk", 0, 1U << 30);
        target = true;
      } else if (key == "count") {
        step.count = number("a count", 1, 1U << 30);
      } else if (key == "to" && sends(step.primitive)) {
        step.send_peer = number("a rank", 0, last_rank());
      } else if (key == "from" && receives(step.primitive)) {
        step.receive_peer = number("a rank", 0, last_rank());
      } else if (key == "after") {
        step.wait_lane = number("a lane", 0, 1U << 20);
        step.wait_step = number("a step", 0, 1U << 30);
      } else {
        unknown(key, std::vector<std::string>{"source", "target", "count", "to", "from", "after"});
      }
    }
    if (sends(step.primitive) && lane.send_peer == no_lane && step.send_peer == no_lane)
      fail(name + " without 'to RANK', here or in its lane");
    if (receives(step.primitive) && lane.receive_peer == no_lane && step.receive_peer == no_lane)
      fail(name + " without 'from RANK', here or in its lane");
    if (!source) fail(name + " needs 'source BUFFER CHUNK'");
    if (!target) fail(name + " needs 'target BUFFER CHUNK'");
    lane.steps.push_back(step);
  }

  std::istringstream text_;
  StaticSchedule schedule_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
  int line_ = 0;
  std::uint32_t rank_ = no_lane;
};

void require_waits(const StaticSchedule& schedule) {
  for (const auto& lanes : schedule.ranks)
    for (const StaticLane& lane : lanes)
      for (const StaticStep& step : lane.steps)
        if (step.wait_lane != no_lane &&
            (step.wait_lane >= lanes.size() || step.wait_step >= lanes[step.wait_lane].steps.size()))
          throw InputError(
              SourceLine{schedule.file, step.line},
              fmt::format("there is no step {} of lane {} in this rank to wait for", step.wait_step, step.wait_lane));
}

class TextReader final : public ScheduleReader {
 public:
  std::unique_ptr<CollectiveAlgorithm> read(const std::string& path) const override {
    return make_static_algorithm(parse_schedule_text(text_of_file(path), path));
  }
};

const Registration<ScheduleReader, TextReader> schedule_text_registration("schedule",
                                                                          "weft's own text form of schedules");

}  // namespace

StaticSchedule parse_schedule_text(const std::string& text, const std::string& file) {
  StaticSchedule schedule = Reader(text, file).read();
  require_waits(schedule);
  return schedule;
}

std::string to_text(const StaticSchedule& schedule) {
  std::string text = fmt::format("schedule {} {} ranks {} chunks {} channels {} protocol {}{}\n", schedule.name,
                                 to_text(schedule.kind), schedule.members(), schedule.chunks, schedule.channels,
                                 to_text(schedule.protocol), schedule.in_place ? " in_place" : "");
  for (const StaticSwitch& one : schedule.switches)
    text += fmt::format("switch first {} count {} stride {}\n", one.first, one.count, one.stride);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    text += fmt::format("rank {}\n", rank);
    for (const StaticLane& lane : schedule.ranks[rank]) {
      text += fmt::format("lane channel {}", lane.channel);
      if (lane.send_peer != no_lane) text += fmt::format(" to {}", lane.send_peer);
      if (lane.receive_peer != no_lane) text += fmt::format(" from {}", lane.receive_peer);
      text += fmt::format(" id {}\n", lane.id);
      for (const StaticStep& step : lane.steps) {
        text += fmt::format("  {}", to_text(step.primitive));
        if (reads(step.primitive)) text += fmt::format(" source {} {}", to_text(step.source), step.source_chunk);
        if (stores(step.primitive)) text += fmt::format(" target {} {}", to_text(step.target), step.target_chunk);
        if (step.count != 1) text += fmt::format(" count {}", step.count);
        if (step.send_peer != no_lane) text += fmt::format(" to {}", step.send_peer);
        if (step.receive_peer != no_lane) text += fmt::format(" from {}", step.receive_peer);
        if (step.wait_lane != no_lane) text += fmt::format(" after {} {}", step.wait_lane, step.wait_step);
        text += '\n';
      }
    }
  }
  return text;
}

}  // namespace weft
