// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `training`: steps of training a model, from its config.json, a device file and a plan of parallelism.
#include "workloads/reading/reading.hpp"
#include "workloads/training/training_reading.hpp"
#include "workloads/training/training_workload.hpp"

namespace weft {
namespace {

class TrainingReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const auto verdict = spec.find("out_of_memory");
    const bool refuse = verdict && verdict->one_of({"warn", "refuse"}) == "refuse";
    auto workload = std::make_unique<TrainingWorkload>(
        read_training_job(spec, context), [spec, context](CollectiveCall& call) { settle_call(spec, call, context); },
        context.channel_graphs);
    if (!refuse) return workload;
    const auto report = workload->report();
    if (report && !report->fits()) throw verdict->error(report->verdict() + "; out_of_memory: warn would run it");
    return workload;
  }
};

const Registration<WorkloadReader, TrainingReader> training_registration("training",
                                                                         "training steps of a model on many ranks");

}  // namespace
}  // namespace weft
