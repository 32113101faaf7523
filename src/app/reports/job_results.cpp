// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/job_results.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "app/reports/summary.hpp"
#include "support/basics/contract.hpp"

namespace weft {

std::uint32_t job_of_rank(const std::vector<JobInfo>& jobs, std::uint32_t rank) {
  const auto job = std::upper_bound(jobs.begin(), jobs.end(), rank, [](std::uint32_t value, const JobInfo& one) {
    return value < one.first_rank + one.ranks;
  });
  WEFT_EXPECT(job != jobs.end(), "rank {} belongs to no job", rank);
  return static_cast<std::uint32_t>(job - jobs.begin());
}

std::uint32_t job_of_call(const std::vector<JobInfo>& jobs, std::uint32_t call) {
  const auto job = std::upper_bound(jobs.begin(), jobs.end(), call, [](std::uint32_t value, const JobInfo& one) {
    return value < one.first_call + one.calls;
  });
  WEFT_EXPECT(job != jobs.end(), "collective {} belongs to no job", call);
  return static_cast<std::uint32_t>(job - jobs.begin());
}

namespace {

// A rank is idle until the run ends, a job until the job ends. Sums beyond 63 bits have no parts.
void settle_idle_part(JobRecord& row) {
  const __int128 whole = static_cast<__int128>(row.time()) * row.ranks;
  if (whole > std::numeric_limits<std::int64_t>::max()) return row.parts.fill(-1);
  row.parts[TimePart::idle] = 0;
  row.parts[TimePart::idle] = static_cast<std::int64_t>(whole) - row.parts.total();
}

}  // namespace

std::vector<JobRecord> sum_up_jobs(const std::vector<JobInfo>& jobs, const std::vector<RankRecord>& ranks, Time end,
                                   ProcessGroup& group, bool explained) {
  std::vector<JobRecord> rows;
  for (const JobInfo& info : jobs) {
    JobRecord row;
    row.job = static_cast<std::uint32_t>(rows.size());
    row.name = info.name;
    row.first_rank = info.first_rank;
    row.ranks = info.ranks;
    row.background = info.background;
    row.start = info.start.ps();
    row.end = row.start;
    row.steps = info.steps;
    row.collectives = info.calls;
    rows.push_back(std::move(row));
  }
  for (const RankRecord& rank : ranks) {
    JobRecord& row = rows[rank.job];
    row.end = std::max(row.end, rank.under_way ? end.ps() : rank.finished);
    row.complete &= rank.complete;
    row.compute += rank.compute;
    row.communication += rank.communication;
    row.exposed += rank.exposed;
    row.waiting += rank.waiting;
    row.messages += rank.messages_sent;
    row.bytes += rank.bytes_sent;
    row.parts += rank.parts;
  }
  const auto add = [&group](std::int64_t& value) {
    value = static_cast<std::int64_t>(group.sum(static_cast<std::uint64_t>(value)));
  };
  for (JobRecord& row : rows) {
    row.end = group.maximum(row.end);
    row.complete = group.maximum(row.complete ? 0 : 1) == 0;
    for (std::int64_t* value : {&row.compute, &row.communication, &row.exposed, &row.waiting, &row.bytes}) add(*value);
    row.messages = group.sum(row.messages);
    for (std::int64_t& part : row.parts) add(part);
    if (explained) settle_idle_part(row);
  }
  return rows;
}

std::string time_line(const JobRecord& row) {
  const auto whole = static_cast<double>(row.parts.total());
  if (whole <= 0) return "";
  std::vector<std::size_t> order(time_part_count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto ps = [&row](std::size_t part) { return row.parts[static_cast<TimePart>(part)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ps(a) > ps(b); });
  std::string text;
  for (const std::size_t part : order) {
    const double share = static_cast<double>(ps(part)) / whole;
    if (share < 0.005) break;
    const std::string_view name = time_part_texts[part].column.substr(std::string_view("part_").size());
    text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : ", ", 100 * share, name);
  }
  return text;
}

namespace {

std::string line_of_single_job(const JobRecord& row, const RankShares& shares) {
  if (row.time() == 0 || shares.idle == row.time()) return "";
  const auto percent = [&](std::int64_t part) {
    return fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(row.time()));
  };
  return fmt::format(
      "\n  {:<18} compute {} ({} with communication hidden in it), exposed communication {}, waiting for peers "
      "{}, idle {}\n",
      "time of a rank", percent(shares.compute), percent(shares.hidden), percent(shares.exposed),
      percent(shares.waiting), percent(shares.idle));
}

}  // namespace

std::string job_lines(const std::vector<JobRecord>& rows, const std::vector<RankShares>& shares) {
  if (rows.empty()) return "";
  if (rows.size() == 1) return line_of_single_job(rows[0], shares[0]);
  const auto time = [](double ps) { return readable(Time::from_ps(static_cast<std::int64_t>(ps))); };
  std::string text = fmt::format("\n  {:<16} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "job",
                                 "ranks", "start", "end", "step time", "compute", "exposed", "waiting", "idle", "sent");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const JobRecord& row = rows[i];
    text += fmt::format("  {:<16} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}\n", row.name, row.ranks,
                        readable(Time::from_ps(row.start)), readable(Time::from_ps(row.end)),
                        row.complete ? time(row.step_time()) : "-", readable(Time::from_ps(shares[i].compute)),
                        readable(Time::from_ps(shares[i].exposed)), readable(Time::from_ps(shares[i].waiting)),
                        readable(Time::from_ps(shares[i].idle)), in_unit(static_cast<double>(row.bytes), "B"));
  }
  return text;
}

}  // namespace weft
