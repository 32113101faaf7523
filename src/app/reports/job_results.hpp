// SPDX-License-Identifier: GPL-2.0-only
// What became of each job of a workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/reports/time_shares.hpp"
#include "engine/process_group.hpp"
#include "results/tables/records.hpp"
#include "schedule/program/workload.hpp"

namespace weft {

/// Number of the job that a rank, or a collective call, belongs to. `jobs` is in order of ranks and calls.
std::uint32_t job_of_rank(const std::vector<JobInfo>& jobs, std::uint32_t rank);
std::uint32_t job_of_call(const std::vector<JobInfo>& jobs, std::uint32_t call);

/// Collective: one row per job, the same on all processes. `ranks`: rows of this process's ranks, with their jobs, of a
/// run that ended at `end`, as then do jobs with operations under way. `explained`: the ranks' rows have parts of
/// times.
std::vector<JobRecord> sum_up_jobs(const std::vector<JobInfo>& jobs, const std::vector<RankRecord>& ranks, Time end,
                                   ProcessGroup& group, bool explained);

/// "61.1 % compute, 34.1 % transfer, ...": on what the ranks of a job have spent their time; empty if that is not
/// known.
std::string time_line(const JobRecord& row);

/// A table for people, or a line for a single job that has done anything.
std::string job_lines(const std::vector<JobRecord>& rows, const std::vector<RankShares>& shares);

}  // namespace weft
