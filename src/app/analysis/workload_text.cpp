// SPDX-License-Identifier: GPL-2.0-only
// The tables of `weft workload`.
#include <string>

#include <fmt/format.h>

#include "app/analysis/workload_summary.hpp"
#include "app/reports/report_line.hpp"

namespace weft {
namespace {

std::string counted(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string scaled(double value, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  std::size_t at = 0;
  for (; value >= 1000 && at < 8; ++at) value /= 1000;
  return fmt::format("{:.4g} {}{}", value, prefixes[at], unit);
}

std::string part(double seconds, double whole) {
  return fmt::format("{:10.3f} ms  {:5.1f} %", seconds * 1e3, whole > 0 ? 100 * seconds / whole : 0);
}

class Text {
 public:
  explicit Text(const WorkloadSummary& summary)
      : summary_(summary), workload_(*summary.experiment->workload), steps_(summary.steps()) {}

  std::string make() {
    if (summary_.report) text_ += "memory: " + summary_.report->verdict() + "\n";
    text_ += summary_.experiment->path + "\n";
    model();
    table("operations of a step, by kind", ProgramCounts::kind);
    table("by phase", ProgramCounts::phase);
    table("by communicator", ProgramCounts::group);
    table("by operator", ProgramCounts::operator_name);
    if (summary_.schedule != nullptr) schedule();
    ranks();
    return text_;
  }

 private:
  void model() {
    text_ += report_line("ranks", std::to_string(workload_.ranks()));
    for (const auto& [name, value] : workload_.description())
      if (name != "memory per rank") text_ += report_line(name, value);
    if (!summary_.report) return;
    const WorkloadReport& report = *summary_.report;
    text_ += report_line("model FLOPs of a step",
                         fmt::format("{}; with half of the scores of causal attention {}",
                                     scaled(report.model_flops, "FLOP"), scaled(report.model_flops_causal, "FLOP")));
    text_ += report_line("computed FLOPs", scaled(summary_.counts.sum().flops / steps_, "FLOP"));
  }

  void table(const std::string& title, ProgramCounts::Part by) {
    const auto rows = summary_.counts.by(by);
    if (rows.size() < 2 && by != ProgramCounts::kind) return;
    text_ += fmt::format("{:<32} {:>14} {:>12} {:>14} {:>16}\n", title, "operations", "bytes sent", "FLOPs",
                         "compute of all");
    for (const auto& [name, count] : rows)
      text_ += fmt::format("  {:<30} {:>14} {:>12} {:>14} {:>13.3f} ms\n", name,
                           counted(static_cast<double>(count.operations) / steps_),
                           count.bytes > 0 ? scaled(count.bytes / steps_, "B") : "-",
                           count.flops > 0 ? scaled(count.flops / steps_, "FLOP") : "-", count.seconds / steps_ * 1e3);
  }

  void schedule() {
    const IdealSchedule& schedule = *summary_.schedule;
    const double step = schedule.facts.simulated.seconds() / steps_;
    text_ += "without congestion (fidelity ideal)\n";
    text_ += report_line("step", fmt::format("{:.3f} ms", step * 1e3));
    const auto mean = [&](std::int64_t (*part)(const RankShares&)) {
      return fmt::format("{:.2f} %", 100 * schedule.fraction(part));
    };
    text_ += report_line("exposed communication",
                         mean([](const RankShares& one) { return one.exposed; }) + " of the step, mean of ranks");
    text_ += report_line("waiting for peers", mean([](const RankShares& one) { return one.waiting; }));
    text_ += report_line("idle", mean([](const RankShares& one) { return one.idle; }));
    text_ += report_line("bubble", mean([](const RankShares& one) { return one.bubble(); }) + ": waiting and idle");
    if (summary_.report && summary_.report->bubble)
      text_ += report_line("bubble by closed form", fmt::format("{:.2f} %: {}", 100 * *summary_.report->bubble,
                                                                summary_.report->bubble_formula));
    if (summary_.report) {
      const double each = step * workload_.ranks();
      text_ +=
          report_line("model FLOPs per rank",
                      fmt::format("{}; {} with causal attention", scaled(summary_.report->model_flops / each, "FLOP/s"),
                                  scaled(summary_.report->model_flops_causal / each, "FLOP/s")));
    }
    text_ += "critical path\n";
    text_ += report_line("compute", part(schedule.path.compute.seconds() / steps_, step));
    if (schedule.path.host > Time()) text_ += report_line("host", part(schedule.path.host.seconds() / steps_, step));
    for (const auto& [group, time] : schedule.path.communication)
      text_ += report_line("communication, " + group, part(time.seconds() / steps_, step));
    text_ += report_line("other", part(schedule.path.other.seconds() / steps_, step));
    if (!schedule.all_ranks)
      text_ += report_line("examined", "the first rank of each kind, which stands for the others");
  }

  void ranks() {
    const bool ran = summary_.schedule != nullptr;
    text_ += fmt::format("{:<9} {:>12} {:>14}", "rank", "operations", "compute");
    if (ran) text_ += fmt::format(" {:>14} {:>14} {:>14} {:>12}", "exposed", "waiting", "idle", "sent");
    if (summary_.report)
      for (const auto& [name, bytes] : summary_.report->memory.front().parts) text_ += fmt::format(" {:>12}", name);
    text_ += "\n";
    for (const std::uint32_t rank : summary_.ranks) one_rank(rank);
  }

  void one_rank(std::uint32_t rank) {
    const std::uint32_t kind = workload_.kind_of(Rank(rank));
    text_ += fmt::format("  {:<7} {:>12} {:>11.3f} ms", rank,
                         counted(static_cast<double>(summary_.counts.operations[kind]) / steps_),
                         summary_.counts.compute[kind].seconds() / steps_ * 1e3);
    if (summary_.schedule != nullptr) {
      const RankShares& shares = summary_.schedule->shares[rank];
      for (const std::int64_t part : {shares.exposed, shares.waiting, shares.idle})
        text_ += fmt::format(" {:>11.3f} ms", Time::from_ps(part).seconds() / steps_ * 1e3);
      const RankRecord& record = summary_.schedule->records[rank];
      text_ += fmt::format(" {:>12}", scaled(static_cast<double>(record.bytes_sent) / steps_, "B"));
    }
    if (summary_.report)
      for (const auto& [name, bytes] : summary_.report->memory[kind].parts)
        text_ += fmt::format(" {:>12}", scaled(static_cast<double>(bytes), "B"));
    text_ += "\n";
  }

  const WorkloadSummary& summary_;
  const Workload& workload_;
  double steps_;
  std::string text_;
};

}  // namespace

std::string workload_text(const WorkloadSummary& summary) { return Text(summary).make(); }

}  // namespace weft
