// SPDX-License-Identifier: GPL-2.0-only
// An experiment file, read and checked: everything that a run needs to know.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/running/trace_experiment.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "graph/topology/topology_builder.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "runtime/books/message_log.hpp"
#include "runtime/execution/rank_executor.hpp"
#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"

namespace weft {

class BackgroundTraffic;

/// A port named in the file: "host3:0", "switch7:2".
struct PortName {
  NodeId node;
  std::uint32_t port = 0;
  std::string text;
};

/// `output.rates`: series of queue pairs.
struct RateOptions {
  Time interval;                     ///< 0: none
  std::vector<NodeId> hosts;         ///< senders, ascending
  std::vector<NodeId> destinations;  ///< ascending; empty: all
};

/// The `output:` map.
/// Of what times were spent on.
enum class Attribution : std::uint8_t {
  none,
  summary,  ///< of ranks, jobs and collectives
  full,     ///< and of each message
};

struct OutputOptions {
  std::string file;
  MessageSelection messages;               ///< which have a row in /messages
  std::uint64_t rows_in_memory = 1 << 18;  ///< per MPI process; more are written to the file
  Time sampling;                           ///< interval of /links_series; 0: none
  RateOptions rates;                       ///< of /rates_series
  bool queue_depths = false;               ///< write /queue_depths
  bool queue_pairs = true;                 ///< write /queue_pairs and /receivers where connections recover losses
  OperationSelection operations;           ///< which are written to /operations
  Attribution attribution = Attribution::summary;  ///< columns `part_...`
  std::vector<PortName> pcap;
};

struct Experiment {
  std::string path;            ///< as named on the command line
  std::string text;            ///< verbatim
  std::string effective_text;  ///< after --set and --seed
  std::uint64_t seed = 1;
  std::string partition = "auto";
  Time until = Time::max();  ///< the run ends here, whatever is still to do
  std::unique_ptr<Topology> topology;
  NetworkParameters network;
  std::string routing_name;
  /// Of servers: the routing between their NICs; empty without servers or a network.
  std::string network_routing_name() const;
  std::unique_ptr<RoutingAlgorithm> routing;
  std::unique_ptr<Workload> workload;
  Placement placement;  ///< of its ranks
  OutputOptions output;
  std::vector<std::shared_ptr<const BackgroundTraffic>> background;
  /// `network.ns3_attributes`: ns-3 config path -> value, in file order.
  std::vector<std::pair<std::string, Spec>> ns3_attributes;
};

/// Whether the machine has servers of which it is known how fast NCCL runs on them: NCCL's choice is the default of
/// `algorithm` there.
bool nccl_by_default(const Topology& topology);

/// Reads an experiment; `settings` are (dotted path, YAML text) pairs that replace or add values. Processes that
/// share the reading read long traces together. Throws InputError.
Experiment load_experiment(const ExperimentFile& file, const std::vector<std::pair<std::string, std::string>>& settings,
                           const std::shared_ptr<const SharedReading>& sharing = std::make_shared<ReadingAlone>());

/// The same from an open document; files that it names are relative to `directory`.
Experiment read_experiment(const Spec& spec, const std::string& path, const std::string& directory,
                           const std::shared_ptr<const SharedReading>& sharing = std::make_shared<ReadingAlone>());

}  // namespace weft
