// SPDX-License-Identifier: GPL-2.0-only
// What `weft perf` has simulated: a row for each size and algorithm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct PerfRow {
  std::int64_t wanted = 0;  ///< bytes asked for; blocks are rounded down from it
  std::int64_t bytes = 0;
  std::int64_t count = 0;  ///< elements, as nccl-tests prints them: per rank's block where there are blocks
  std::string type;        ///< float, half, ...
  double us = 0;
  double min_us = 0;  ///< --range: with the least and the greatest values of the constants that are ranges
  double max_us = 0;
  double algorithm_bandwidth = 0;  ///< GB/s
  double bus_bandwidth = 0;
  std::string asked_for;  ///< the name that the user gave
  std::string algorithm;  ///< that has run: a selection may choose another one for each size
  std::string protocol;
  std::uint32_t channels = 0;
  bool without_sharp = false;  ///< NCCL chose among less than on such a server, as its NVSwitches do not reduce
  bool with_kernel = false;    ///< its time has what an accelerator's kernel takes before the first step
};

struct PerfSweep {
  std::vector<std::string> algorithms;      ///< as the user named them
  std::vector<std::vector<PerfRow>> sizes;  ///< ascending; of each a row for each algorithm, in their order
};

}  // namespace weft
