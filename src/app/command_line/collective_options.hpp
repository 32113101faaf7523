// SPDX-License-Identifier: GPL-2.0-only
// The words after `weft collective` and `weft perf`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/collective/collective.hpp"

namespace weft {

struct CollectiveOptions {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string algorithm;
  std::uint32_t ranks = 0;
  Bytes size{0};
  std::uint32_t root = 0;
  CollectiveTuning tuning;
  bool switches_reduce = false;
  bool show = false;
  bool check = false;
  bool cost = false;
  bool json = false;
  bool text = false;  ///< the text form of a schedule file
  bool show_graph = false;
  std::string graph_file;  ///< to be written as NCCL writes its graphs; or empty
  std::string machine;     ///< file of a machine of servers, or of an experiment on one; or empty
  std::string picture;
  Time latency;    ///< of the alpha-beta model
  Bandwidth rate;  ///< the same
};

/// A file of measurements, which are of one algorithm if the user says so.
struct PerfLog {
  std::string algorithm;  ///< empty: it is compared with each that is simulated
  std::string file;
};

struct PerfOptions {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string experiment;
  std::vector<std::pair<std::string, std::string>> settings;
  Bytes begin{8};
  Bytes end{0};
  std::int64_t factor = 2;  ///< from one size to the next; 0: by step
  Bytes step{0};
  std::uint32_t root = 0;
  std::uint32_t iterations = 1;
  std::string type;  ///< float, half, ...
  bool sizes_given = false;
  bool end_given = false;
  bool type_given = false;
  std::vector<std::string> algorithms;  ///< empty: that of the experiment
  std::vector<PerfLog> logs;
  bool in_place = false;  ///< of what was measured
  bool range = false;     ///< also with the least and the greatest values of constants that are ranges
  bool json = false;
  std::string csv;
  std::string plot;
};

/// Bytes of an element of one of nccl-tests' types; nothing if there is no such type.
std::optional<std::int64_t> bytes_of_type(const std::string& name);

/// Throws InputError that says what would be right.
CollectiveOptions parse_collective_options(const std::vector<std::string>& words);
PerfOptions parse_perf_options(const std::vector<std::string>& words);
/// For `weft --help`.
std::string collective_options_text();
std::string perf_options_text();

/// The call that the options describe, of `communicator`. Applies a selection; throws InputError if the algorithm
/// cannot do it.
CollectiveCall make_call(const CollectiveOptions& options, const Communicator& communicator,
                         const std::shared_ptr<const ChannelGraph>& graph, std::string& reason);

}  // namespace weft
