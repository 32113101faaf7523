// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/parameters/loggp_parameters.hpp"

#include <utility>

namespace weft {

LogGpParameters read_loggp(const Spec& map) {
  LogGpParameters result;
  for (const auto& [key, value] : {std::pair<const char*, Time*>("L", &result.latency),
                                   {"o", &result.overhead},
                                   {"g", &result.gap},
                                   {"G", &result.gap_per_byte},
                                   {"O", &result.overhead_per_byte}})
    if (const auto given = map.find(key)) *value = given->wait();
  if (const auto given = map.find("S")) result.eager = given->bytes();
  map.finish();
  return result;
}

}  // namespace weft
