// SPDX-License-Identifier: GPL-2.0-only
// A workload, or the program of a rank, that stands before another one and changes something of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/program/workload.hpp"

namespace weft {

/// Everything is as the inner one has it.
class ProgramFilter : public RankProgram {
 public:
  explicit ProgramFilter(std::unique_ptr<RankProgram> inner) : inner_(std::move(inner)) {}
  bool next(Operation& operation) override { return inner_->next(operation); }
  bool accepts_unexpected() const override { return inner_->accepts_unexpected(); }
  bool receives_any() const override { return inner_->receives_any(); }
  bool in_order_of_time() const override { return inner_->in_order_of_time(); }
  std::size_t read_ahead() const override { return inner_->read_ahead(); }
  bool reads_past_started() const override { return inner_->reads_past_started(); }
  bool takes_what_is_ready() const override { return inner_->takes_what_is_ready(); }
  bool streams_are_processors() const override { return inner_->streams_are_processors(); }
  Time compute_time(const Operation& operation, Time now) const override {
    return inner_->compute_time(operation, now);
  }
  double compute_slowdown() const override { return inner_->compute_slowdown(); }

 protected:
  RankProgram& inner() { return *inner_; }

 private:
  std::unique_ptr<RankProgram> inner_;
};

/// The same of all ranks.
class WorkloadFilter : public Workload {
 public:
  explicit WorkloadFilter(std::unique_ptr<Workload> inner) : inner_(std::move(inner)) {}
  std::uint32_t ranks() const override { return inner_->ranks(); }
  std::uint32_t storage_ranks() const override { return inner_->storage_ranks(); }
  std::unique_ptr<RankProgram> program(Rank rank) const override { return inner_->program(rank); }
  std::uint64_t call_count() const override { return inner_->call_count(); }
  CollectiveCall call(std::uint32_t id) const override { return inner_->call(id); }
  WorkloadEstimate estimate() const override { return inner_->estimate(); }
  std::vector<std::pair<std::string, std::string>> description() const override { return inner_->description(); }
  std::uint64_t steps() const override { return inner_->steps(); }
  std::vector<JobInfo> jobs() const override { return inner_->jobs(); }
  Time background_check() const override { return inner_->background_check(); }
  std::uint32_t kind_count() const override { return inner_->kind_count(); }
  std::uint32_t kind_of(Rank rank) const override { return inner_->kind_of(rank); }
  Rank first_of_kind(std::uint32_t kind) const override { return inner_->first_of_kind(kind); }
  std::uint32_t ranks_of_kind(std::uint32_t kind) const override { return inner_->ranks_of_kind(kind); }
  std::optional<WorkloadReport> report() const override { return inner_->report(); }
  std::vector<KernelLine> kernels() const override { return inner_->kernels(); }
  Time start(Rank rank) const override { return inner_->start(rank); }
  const Placement* placement() const override { return inner_->placement(); }
  bool from_user() const override { return inner_->from_user(); }

 protected:
  const Workload& inner() const { return *inner_; }

 private:
  std::unique_ptr<Workload> inner_;
};

}  // namespace weft
