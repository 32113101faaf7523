// SPDX-License-Identifier: GPL-2.0-only
// Replaces the parts for which read_experiment() would need the network, ns-3's stack and MPI; fuzzers do not use them.
#include "app/running/ideal_time.hpp"
#include "internet/background.hpp"

namespace weft {

// Failures in steps of unknown length need it.
Time ideal_time(const std::string&, const std::string& path, const std::string&,
                const std::vector<std::pair<std::string, std::string>>&) {
  throw InputError(SourceLine{path, 0}, "a fuzzer runs nothing");
}

std::vector<std::shared_ptr<const BackgroundTraffic>> read_background(const Spec& list, const BackgroundContext&) {
  throw list.error("a fuzzer has no background traffic");
}

}  // namespace weft
