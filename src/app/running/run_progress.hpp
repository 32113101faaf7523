// SPDX-License-Identifier: GPL-2.0-only
// Progress of a simulation, by the bytes that its workload is to deliver.
#pragma once

#include <algorithm>

#include <fmt/format.h>

#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"
#include "support/system/progress.hpp"

namespace weft {

/// Shown on standard error by the first process, if `enabled`.
class RunProgress {
 public:
  RunProgress(const Experiment& experiment, Simulation& simulation, bool enabled)
      : simulation_(simulation), enabled_(enabled && simulation.group().rank() == 0), progress_(enabled_) {
    if (!enabled_) return;
    const double share = static_cast<double>(simulation.network().hosts().size()) /
                         static_cast<double>(experiment.topology->graph.host_count());
    due_ = std::max(1.0, static_cast<double>(experiment.workload->estimate().bytes.count()) * share);
  }
  void update(Time now) {
    if (!enabled_) return;
    progress_.update(std::min(1.0, static_cast<double>(simulation_.runtime().bytes_delivered()) / due_),
                     fmt::format("{:.3f} ms simulated", now.seconds() * 1e3));
  }
  void finish() { progress_.finish(); }

 private:
  Simulation& simulation_;
  bool enabled_;
  double due_ = 1;  // bytes, to this process's hosts
  Progress progress_;
};

}  // namespace weft
