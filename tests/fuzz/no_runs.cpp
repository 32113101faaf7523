// SPDX-License-Identifier: GPL-2.0-only
// What read_experiment() would draw in the network, ns-3's stack and MPI for; fuzzers do without.
#include "app/running/ideal_time.hpp"
#include "internet/background.hpp"

namespace weft {

// Failures in steps of unknown length ask for it.
Time ideal_time(const std::string&, const std::string& path, const std::string&,
                const std::vector<std::pair<std::string, std::string>>&) {
  throw InputError(SourceLine{path, 0}, "a fuzzer runs nothing");
}

std::vector<std::shared_ptr<const BackgroundTraffic>> read_background(const Spec& list, const BackgroundContext&) {
  throw list.error("a fuzzer has no background traffic");
}

}  // namespace weft
