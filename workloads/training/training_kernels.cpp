// SPDX-License-Identifier: GPL-2.0-only
// The table of a training job's kernels, for people.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "workloads/pass/magnitude_passes.hpp"
#include "workloads/pass/pass_work.hpp"
#include "workloads/step/recomputed_modules.hpp"
#include "workloads/training/training_workload.hpp"

namespace weft {
namespace {

class KernelTable {
 public:
  explicit KernelTable(const PassSetup& setup) : setup_(setup) {}

  /// The passes of a part; a backward pass has the whole recomputation, if there is one, before it.
  void add(const std::string& part, const PartPasses& passes) {
    add_pass(part, "forward", passes.forward);
    add_pass(part, "recompute", passes.recompute);
    add_pass(part, "backward", passes.backward);
  }

  /// Kernels that each go over all parameters, once a step.
  void add_step(std::string_view place, const std::vector<SmallKernel>& kernels, std::int64_t held, std::int64_t kept) {
    Work work(setup_);
    for (const SmallKernel& one : kernels)
      if (has_kernel(setup_, one)) work.small(one.name, one, one.unit == KernelUnit::kept ? kept : held);
    add_pass("step", "optimizer", {work.segment(place)});
  }

  std::vector<KernelLine> take() { return std::move(lines_); }

 private:
  void add_pass(const std::string& part, const char* pass, const std::vector<Segment>& segments) {
    for (const Segment& segment : segments)
      for (const KernelUse& use : segment.kernels)
        lines_.push_back(
            {part, pass, std::string(segment.what), use.name, use.flops, traffic_of(use.kernel), use.time});
  }

  const PassSetup& setup_;
  std::vector<KernelLine> lines_;
};

/// GEMMs of 16 bits with rows of less than 16 B, each name once, with their alignment.
void collect_slow_gemms(const PassSetup& setup, const PartPasses& passes, std::map<std::string, std::int64_t>& to) {
  constexpr std::int64_t whole_load = 16;
  for (const std::vector<Segment>* pass : {&passes.forward, &passes.backward})
    for (const Segment& segment : *pass)
      for (const KernelUse& use : segment.kernels) {
        if (use.kernel.kind != Kernel::Kind::gemm || element_bytes(use.kernel.precision) != 2) continue;
        const std::int64_t bytes = row_alignment(use.kernel);
        if (bytes < whole_load && !setup.times->is_measured(use.kernel)) to.emplace(use.name, bytes);
      }
}

}  // namespace

std::vector<std::string> TrainingWorkload::slow_gemms() const {
  const PassSetup setup = job_.pass_setup();
  std::map<std::string, std::int64_t> found;
  for (const BlockShape& shape : job_.description.model.shapes)
    collect_slow_gemms(setup, passes_of_block(setup, shape), found);
  collect_slow_gemms(setup, head_passes(setup), found);
  const Device& device = job_.times.device();
  const bool known = device.in_a_step && device.sustained && !device.sustained->gemms.alignment.empty();
  std::vector<std::string> notes;
  for (const auto& [name, bytes] : found) {
    const std::string rate =
        known ? fmt::format("{} of the rate", device.sustained->gemms.speed_of_rows(bytes))
              : fmt::format("{} has no rates of such kernels, so the time is too short", device.name);
    notes.push_back(
        fmt::format("{}: rows are multiples of {} B, not of 16 B: {}; use multiples of 8 elements", name, bytes, rate));
  }
  return notes;
}

std::vector<KernelLine> TrainingWorkload::kernels() const {
  const ModelConfig& model = job_.description.model;
  const PassSetup setup = job_.pass_setup();
  KernelTable table(setup);
  for (const BlockShape& shape : model.shapes) table.add(shape.name, passes_of_block(setup, shape));
  if (!model.embedding.empty()) table.add("embedding", embedding_passes(setup));
  if (model.prediction_blocks > 0) {
    table.add("prediction input", prediction_input_passes(setup));
    table.add("prediction head", prediction_head_passes(setup));
  }
  table.add("head", head_passes(setup));
  table.add("fp8 scales", magnitude_passes(setup, mean_fp8_gemms(job_.description)));
  const KernelCatalogue& catalogue = setup.kernels();
  const HeldParameters& held = held_.front();
  const std::int64_t kept = kept_parameters(held, job_.description.parallel, whole_);
  table.add_step("gradient norm", catalogue.gradient_norm, held.sum(), kept);
  table.add_step("optimizer", catalogue.optimizer, held.sum(), kept);
  return table.take();
}

}  // namespace weft
