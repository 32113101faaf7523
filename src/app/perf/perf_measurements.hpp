// SPDX-License-Identifier: GPL-2.0-only
// Times that were measured on a real machine, as nccl-tests writes them down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/basics/error.hpp"

namespace weft {

struct MeasuredRow {
  SourceLine place;
  std::int64_t bytes = 0;
  std::string type;                    ///< float, half, ...
  std::string operation;               ///< sum, none, ...; empty if the file does not say it
  std::optional<double> out_of_place;  ///< us
  std::optional<double> in_place;      ///< us
  double us = 0;                       ///< of these the one that is compared
};

struct Measurements {
  std::string file;
  std::string program;  ///< all_reduce_perf, ...; empty if the file does not say it
  SourceLine program_place;
  std::uint32_t ranks = 0;  ///< 0 if the file does not say it
  SourceLine ranks_place;
  std::vector<MeasuredRow> rows;
};

/// Reads what nccl-tests prints (src/util.cu: its table, among lines of others and behind tags of mpirun --tag-output),
/// what it writes with -J (the same file: JSON), or a CSV file (NAME.csv) with the columns `size` and `time` or
/// `in_place_us`. Throws InputError with the place of what is wrong.
Measurements read_measurements(const std::string& path);

}  // namespace weft
