// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/verify.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "app/processes/prepare.hpp"
#include "app/reports/recording.hpp"
#include "app/running/ns3_settings.hpp"
#include "results/hdf5/compare_files.hpp"
#include "results/hdf5/hdf5_recorder.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

/// Writes the reference's results to `path`. Gives their fingerprint.
std::uint64_t simulate_reference(const Experiment& experiment, const std::string& path) {
  ProcessGroup alone = ProcessGroup::alone();
  Hdf5Recorder recorder(alone.communicator(), path);
  Simulation simulation(experiment, alone, EngineChoice::ns3_default);
  apply_ns3_attributes(experiment, simulation);
  Manifest manifest;
  manifest.experiment_file = experiment.path;
  manifest.experiment_text = experiment.text;
  manifest.effective_experiment = experiment.effective_text;
  manifest.seed = experiment.seed;
  manifest.engine = "ns3-default";
  recorder.write_manifest(manifest);
  Recording recording(recorder, experiment, simulation);
  const RunFacts facts =
      simulation.run([](Time) { return interrupted() ? Simulation::Look::stop : Simulation::Look::go_on; });
  if (facts.interrupted) throw Interrupted();  // the results remain valid
  WEFT_EXPECT(facts.cut_short || simulation.unfinished_ranks() == 0, "the reference leaves {} ranks unfinished",
              simulation.unfinished_ranks());
  const std::uint64_t fingerprint = recording.write_rest(facts);
  recorder.finish(!facts.cut_short);
  return fingerprint;
}

}  // namespace

void verify_against_reference(const Experiment& experiment, const std::string& output, std::uint64_t fingerprint,
                              ProcessGroup& group) {
  constexpr std::size_t max = 8;
  prepare(group, [&] {
    if (group.rank() != 0) return;
    const std::string reference = output + ".reference";
    const std::uint64_t expected = simulate_reference(experiment, reference);
    std::vector<std::string> differences = compare_result_files(output, reference, max);
    if (differences.empty() && fingerprint != expected)
      differences.push_back(fmt::format("fingerprint: {:016x} and {:016x}", fingerprint, expected));
    if (differences.empty()) {
      std::remove(reference.c_str());
      return;
    }
    std::string text = fmt::format("'{}' differs from the reference '{}':", output, reference);
    for (const std::string& line : differences) text += "\n  " + line;
    throw InternalError(text);
  });
}

}  // namespace weft
