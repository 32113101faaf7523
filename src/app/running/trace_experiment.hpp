// SPDX-License-Identifier: GPL-2.0-only
// Traces of other programs where an experiment is expected: `weft import` makes one of them, in a place that goes away.
#pragma once

#include <string>

namespace weft {

class ProcessGroup;

/// The file of an experiment, and what results call it.
struct ExperimentFile {
  std::string file;
  std::string name;
};

/// The experiment of `path`: the file itself if it is one, else what the importer that takes it for its own makes of it
/// (scripts/importers), which is removed with this object, and when a signal ends the process.
class TraceExperiment {
 public:
  /// Collective. The first process makes the experiment, once, in a new folder within `folder`, which all processes
  /// have to see; if that is empty, where temporary files are. Throws AgreedFailure if an importer refuses the trace,
  /// which has said why then.
  TraceExperiment(ProcessGroup& group, const std::string& path, const std::string& folder);
  ~TraceExperiment();
  TraceExperiment(const TraceExperiment&) = delete;
  TraceExperiment& operator=(const TraceExperiment&) = delete;

  const ExperimentFile& experiment() const { return experiment_; }

 private:
  ExperimentFile experiment_;
  std::string folder_;  ///< that this process removes
};

/// Whether it may be a trace: a folder, the beginning of the names of some files, or a file that neither is called an
/// experiment (.yaml, .yml) nor has the keys of one.
bool may_be_trace(const std::string& path);

}  // namespace weft
