// SPDX-License-Identifier: GPL-2.0-only
// Writing GOAL schedules: as text, in the form of Schedgen, and in the binary form of txt2bin
// (github.com/spcl/LogGOPSim src/LogGOPSim/txt2bin.re, Parser.hpp).
#include "schedule/export/goal_export.hpp"

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedule/export/draft_file.hpp"
#include "schedule/export/goal_lowering.hpp"

namespace weft {
namespace {

class GoalSink {
 public:
  virtual ~GoalSink() = default;
  virtual void rank(std::uint32_t number, const std::vector<GoalStatement>& statements) = 0;
  virtual void finish() = 0;
};

class GoalTextSink final : public GoalSink {
 public:
  GoalTextSink(std::ostream& file, std::uint32_t ranks) : file_(file) { file_ << "num_ranks " << ranks << '\n'; }

  void rank(std::uint32_t number, const std::vector<GoalStatement>& statements) override {
    file_ << fmt::format("\nrank {} {{\n", number);
    std::string later;  // on those below
    for (std::uint32_t i = 0; i < statements.size(); ++i) {
      file_ << fmt::format("l{}: {}\n", i + 1, text_of(statements[i]));
      for (const std::uint32_t before : statements[i].requires_)
        (before > i ? later : now_) += fmt::format("l{} requires l{}\n", i + 1, before + 1);
      for (const std::uint32_t before : statements[i].irequires)
        (before > i ? later : now_) += fmt::format("l{} irequires l{}\n", i + 1, before + 1);
      file_ << now_;
      now_.clear();
    }
    file_ << later << "}\n";
  }
  void finish() override {}

 private:
  static std::string text_of(const GoalStatement& one) {
    const bool computes = one.kind == Operation::Kind::compute;
    std::string text = computes
                           ? fmt::format("calc {}", one.size)
                           : fmt::format("{} {}b {} {}", one.kind == Operation::Kind::send ? "send" : "recv", one.size,
                                         one.kind == Operation::Kind::send ? "to" : "from", number_of(one.peer));
    if (!computes && one.tag > 0) text += fmt::format(" tag {}", number_of(one.tag));
    if (one.cpu > 0) text += fmt::format(" cpu {}", one.cpu);
    if (!computes && one.nic > 0) text += fmt::format(" nic {}", one.nic);
    return text;
  }

  static std::string number_of(std::uint32_t value) { return value == goal_export_any ? "-1" : std::to_string(value); }

  std::ostream& file_;
  std::string now_;
};

/// Numbers of a fixed width, little endian.
class GoalBytes {
 public:
  void put(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xffU);
  }
  const std::string& text() const { return bytes_; }

 private:
  std::string bytes_;
};

class GoalBinarySink final : public GoalSink {
 public:
  GoalBinarySink(std::ostream& file, std::uint32_t ranks) : file_(file), ranks_(ranks) {
    file_ << head();  // with an empty table, which has its place
    at_ = 6 + 16 * std::uint64_t{ranks};
  }

  void rank(std::uint32_t /*number*/, const std::vector<GoalStatement>& statements) override {
    std::vector<std::vector<std::uint32_t>> ends(statements.size()), starts(statements.size());
    GoalBytes roots;
    std::uint32_t root_count = 0;
    for (std::uint32_t i = 0; i < statements.size(); ++i) {
      const GoalStatement& one = statements[i];
      for (const std::uint32_t before : one.requires_) ends[before].push_back(i);
      for (const std::uint32_t before : one.irequires) starts[before].push_back(i);
      max_cpu_ = std::max(max_cpu_, one.cpu);
      max_nic_ = std::max(max_nic_, one.nic);
      if (!one.requires_.empty() || !one.irequires.empty()) continue;
      roots.put(i, 4);
      ++root_count;
    }
    GoalBytes counts, nodes, lists;
    counts.put(statements.size(), 4);
    counts.put(root_count, 4);
    std::uint64_t listed = 0;
    for (std::uint32_t i = 0; i < statements.size(); ++i) {
      put_node(nodes, statements[i]);
      for (const auto* dependents : {&ends[i], &starts[i]}) {
        nodes.put(dependents->size(), 4);
        nodes.put(listed, 4);
        listed += dependents->size();
        for (const std::uint32_t dependent : *dependents) lists.put(dependent, 4);
      }
    }
    const std::uint64_t begin = at_;
    for (const GoalBytes* part : {&counts, &roots, &nodes, &lists}) {
      file_ << part->text();
      at_ += part->text().size();
    }
    table_.put(begin, 8);
    table_.put(at_, 8);
  }

  void finish() override {
    file_.seekp(0);
    file_ << head();
  }

 private:
  static void put_node(GoalBytes& nodes, const GoalStatement& one) {
    nodes.put(one.requires_.size() + one.irequires.size(), 4);
    nodes.put(one.kind == Operation::Kind::send ? 1 : one.kind == Operation::Kind::recv ? 2 : 3, 1);
    nodes.put(one.peer, 4);
    nodes.put(static_cast<std::uint64_t>(one.size), 8);
    nodes.put(one.tag, 4);
    nodes.put(one.cpu, 1);
    nodes.put(one.nic, 1);
  }

  std::string head() const {
    constexpr std::uint64_t goal_magic_number = 4223;
    GoalBytes head;
    head.put(goal_magic_number, 8);
    head.put(ranks_, 4);
    head.put(max_cpu_, 1);
    head.put(max_nic_, 1);
    std::string text = head.text() + table_.text();
    text.resize(head.text().size() + 16 * std::size_t{ranks_});
    return text;
  }

  std::ostream& file_;
  std::uint32_t ranks_;
  std::uint64_t at_ = 0;  // behind the magic number
  std::uint8_t max_cpu_ = 0, max_nic_ = 0;
  GoalBytes table_;
};

}  // namespace

GoalCounts export_goal(const Workload& workload, const GoalExport& wanted) {
  std::unique_ptr<GoalNames> names;
  if (wanted.steps) names = std::make_unique<GoalNames>(workload, wanted.experiment);
  DraftFile file(wanted.file);
  std::unique_ptr<GoalSink> sink;
  if (wanted.file.ends_with(".bin"))
    sink = std::make_unique<GoalBinarySink>(file.stream(), workload.ranks());
  else
    sink = std::make_unique<GoalTextSink>(file.stream(), workload.ranks());
  GoalCounts counts;
  for (std::uint32_t rank = 0; rank < workload.ranks(); ++rank) {
    const std::vector<GoalStatement> statements = lower_to_goal(workload, rank, names.get(), wanted.experiment);
    sink->rank(rank, statements);
    for (const GoalStatement& one : statements)
      ++(one.kind == Operation::Kind::send   ? counts.sends
         : one.kind == Operation::Kind::recv ? counts.recvs
                                             : counts.calcs);
  }
  sink->finish();
  file.close();
  file.take_name();
  return counts;
}

}  // namespace weft
