// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/ideal_time.hpp"

#include <algorithm>

#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"

namespace weft {

Time ideal_time(const std::string& text, const std::string& path, const std::string& directory,
                const std::vector<std::pair<std::string, std::string>>& changes) {
  Spec spec = Spec::parse(text, path);
  for (const auto& [key, value] : changes) spec.set(key, value);
  spec.set("network.fidelity", "ideal");
  // The ideal network refuses what it does not have.
  for (const char* key :
       {"network.loss", "network.failures", "network.reconvergence", "network.local_repair",
        "network.resilient_hashing", "network.loggp", "network.ns3_attributes", "background", "accounting"})
    spec.remove(key);
  spec.set("output", "{messages: none}");
  Experiment experiment = read_experiment(spec, path, directory);
  experiment.until = Time::max();
  Simulation simulation(experiment, ProcessGroup::alone(), EngineChoice::weft);
  const RunFacts facts = simulation.run([](Time) { return Simulation::Look::go_on; });
  if (simulation.unfinished_ranks() > 0)
    throw InputError(SourceLine{path, 0}, "the workload comes to a halt with unfinished operations");
  const std::vector<RankRecord> ranks = simulation.runtime().rank_records(facts.simulated);
  std::int64_t end = 0;
  for (const JobInfo& job : experiment.workload->jobs())
    for (const RankRecord& rank : ranks)
      if (rank.rank >= job.first_rank && rank.rank < job.first_rank + job.ranks - job.storage_ranks)
        end = std::max(end, rank.finished);
  return Time::from_ps(end);
}

}  // namespace weft
