// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/experiment.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "app/running/accounting.hpp"
#include "app/running/ideal_time.hpp"
#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/parameters/link_flow_control.hpp"
#include "graph/machine/cluster_graph.hpp"
#include "graph/machine/node_name.hpp"
#include "graph/shapes/rails_shape.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "graph/shapes/server_shape.hpp"
#include "internet/background.hpp"
#include "nccl/machine_channels.hpp"
#include "schedule/program/server_check.hpp"
#include "schedule/transform/transform.hpp"
#include "units/lane_id.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

const std::vector<std::string> partition_methods = {"auto", "groups", "pods", "metis", "random"};

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

PortName read_port_name(const Spec& spec, const ClusterGraph& graph) {
  const std::string text = spec.text();
  const auto colon = text.find(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  const auto port = colon == std::string::npos ? std::nullopt : parse_number(std::string_view(text).substr(colon + 1));
  if (!port || name.empty())
    throw spec.error(fmt::format("found '{}'; expected a port such as host3:0 or switch7:2", text));
  const auto node = node_named(graph, name);
  if (!node) throw spec.error(fmt::format("there is no {}; this machine has {}", name, names_of_nodes(graph)));
  if (*port >= graph.ports(*node).size())
    throw spec.error(
        fmt::format("{} has no port {}; its ports are 0 to {}", name, *port, graph.ports(*node).size() - 1));
  return {*node, *port, text};
}

bool is_empty(const Spec& value) { return (value.is_sequence() || value.is_map()) && value.size() == 0; }

// Keys for which there have to be packets.
void refuse_without_packets(const std::optional<Spec>& map, std::initializer_list<const char*> keys,
                            const Experiment& experiment) {
  if (!map || experiment.network.fidelity == Fidelity::packet) return;
  for (const char* key : keys) {
    const auto value = map->find(key);
    if (value && !is_empty(*value))
      throw value->error(fmt::format("found with fidelity: {}, which knows messages only; expected fidelity: packet",
                                     to_text(experiment.network.fidelity)));
  }
}

// Results that ports without queues by class do not have.
void require_queues(const Spec& spec, const Experiment& experiment) {
  if (experiment.network.fidelity != Fidelity::packet)
    throw spec.error(fmt::format("found with fidelity: {}, where nothing waits; expected fidelity: packet",
                                 to_text(experiment.network.fidelity)));
  if (!experiment.network.buffered() && !experiment.routing->per_packet() && experiment.routing->lanes() < 2)
    throw spec.error("found where ports keep no queues by class; expected network.queues: output with it");
}

// Hosts of a list of ranks, ascending; `all` or nothing: of all ranks.
std::vector<NodeId> hosts_of(const std::optional<Spec>& ranks, const Experiment& experiment) {
  std::vector<NodeId> hosts;
  const std::uint32_t count = experiment.workload->ranks();
  if (!ranks || ranks->is_scalar()) {
    if (ranks) ranks->one_of({"all"});
    for (std::uint32_t rank = 0; rank < count; ++rank) hosts.push_back(experiment.placement.host(rank));
  } else {
    for (const Spec& item : ranks->items())
      hosts.push_back(experiment.placement.host(static_cast<std::uint32_t>(item.integer(0, count - 1))));
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

RateOptions read_rates(const Spec& spec, const Experiment& experiment) {
  RateOptions rates;
  require_queues(spec, experiment);
  const Spec interval = spec.at("interval");
  rates.interval = interval.wait();
  if (rates.interval <= Time()) throw interval.error("found 0; expected a sampling interval above 0");
  rates.hosts = hosts_of(spec.find("ranks"), experiment);
  if (const auto to = spec.find("to")) rates.destinations = hosts_of(to, experiment);
  spec.finish();
  return rates;
}

OutputOptions read_output(const std::optional<Spec>& spec, const std::string& path, const Experiment& experiment) {
  const ClusterGraph& graph = experiment.topology->graph;
  OutputOptions result;
  result.file = std::filesystem::path(path).stem().string() + ".h5";
  if (!spec) return result;
  if (const auto value = spec->find("file")) result.file = value->text();
  const auto every = spec->find("message_sample");
  if (every) result.messages.every = static_cast<std::uint64_t>(every->integer(1));
  if (const auto value = spec->find("messages")) {
    const std::string which = value->one_of({"all", "sampled", "none"});
    if (every && which != "sampled")
      throw every->error("found with messages: " + which + "; it belongs to messages: sampled");
    if (which == "sampled" && !every) result.messages.every = 1000;
    if (which == "none") result.messages.every = 0;
  } else if (every) {
    throw every->error("found without messages: sampled, to which it belongs");
  }
  if (const auto value = spec->find("rows_in_memory"))
    result.rows_in_memory = static_cast<std::uint64_t>(value->integer(1));
  if (const auto value = spec->find("sampling")) {
    result.sampling = value->wait();
    if (result.sampling <= Time()) throw value->error("found 0; expected a sampling interval above 0");
  }
  const auto rates = spec->find("rates");
  if (rates && (experiment.network.fidelity == Fidelity::packet || !is_empty(*rates)))
    result.rates = read_rates(*rates, experiment);
  if (const auto value = spec->find("queue_depths")) {
    result.queue_depths = value->boolean();
    if (result.queue_depths) require_queues(*value, experiment);
  }
  if (const auto value = spec->find("queue_pairs")) result.queue_pairs = value->boolean();
  if (const auto value = spec->find("operations")) result.operations.any = value->boolean();
  if (const auto value = spec->find("attribution")) {
    const std::string which = value->one_of({"none", "summary", "full"});
    result.attribution = which == "none"   ? Attribution::none
                         : which == "full" ? Attribution::full
                                           : Attribution::summary;
  }
  if (const auto value = spec->find("pcap"))
    for (const Spec& item : value->items()) result.pcap.push_back(read_port_name(item, graph));
  spec->finish();
  return result;
}

void read_simulation(const std::optional<Spec>& spec, Experiment& experiment) {
  if (!spec) return;
  if (const auto value = spec->find("seed")) experiment.seed = value->natural();
  if (const auto value = spec->find("until")) {
    experiment.until = value->time();
    if (experiment.until <= Time()) throw value->error("found 0; expected a time above 0");
  }
  if (const auto value = spec->find("partition")) experiment.partition = value->one_of(partition_methods);
  spec->finish();
}

// Times of packets are added up without a look (Time::longest_wait()).
void require_links(const Experiment& experiment, const Spec& place) {
  const NetworkParameters& network = experiment.network;
  const Bytes longest = std::max(network.max_mtu() + network.data_overhead(), network.control_wire());
  const ClusterGraph& graph = experiment.topology->graph;
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    const Time time = serialization_time(longest, link.rate);
    if (time <= Time::longest_wait()) continue;
    const std::int64_t seconds = Time::longest_wait().ps() / 1'000'000'000'000;
    throw place.error(
        fmt::format("a packet of {} takes {} at the {} between {} and {}; expected at most {}, with at "
                    "least {} b/s or smaller packets",
                    to_text(longest), time < Time::limit() ? to_text(time) : "more than 106 days", to_text(link.rate),
                    graph.name(link.ends[0]), graph.name(link.ends[1]), to_text(Time::longest_wait()),
                    (longest.count() * 8 + seconds - 1) / seconds));
  }
}

void read_routing(Experiment& experiment, const std::optional<Spec>& given, const Spec& topology) {
  const Spec& place = given ? *given : topology;
  experiment.routing_name = given ? given->one_of(RoutingRegistry::instance().names()) : experiment.topology->routing;
  // Routing has the name of the machine's without units for reductions, also where it is not named.
  std::string made = experiment.routing_name;
  if (const auto* units = shape_of<ReductionShape>(*experiment.topology)) {
    made = experiment.topology->routing;
    if (experiment.routing_name == made) {
      experiment.routing_name = units->routing;
    } else {
      auto shape = std::make_shared<ReductionShape>(*units);
      shape->routing = experiment.routing_name;
      experiment.topology->shape = shape;
    }
  }
  experiment.routing = RoutingRegistry::instance().find(made)->make();
  try {
    experiment.routing->prepare(*experiment.topology, experiment.seed);
  } catch (const InputError& error) {
    throw place.error(
        fmt::format("routing '{}' does not suit this machine: {}", experiment.routing_name, error.what()));
  }
}

// A port has a class for each lane of routing, one for control traffic and one for other traffic.
void require_few_lanes(const Spec& place, const Experiment& experiment) {
  const unsigned lanes = experiment.routing->lanes();
  if (experiment.network.fidelity != Fidelity::packet || lanes + 2 <= max_classes) return;
  throw place.error(
      fmt::format("routing '{}' needs {} virtual lanes on this machine; there are {} beside those of control "
                  "and other traffic",
                  experiment.routing_name, lanes, max_classes - 2));
}

void read_network(const std::optional<Spec>& spec, Experiment& experiment) {
  experiment.network = read_network_parameters(spec, experiment.routing->reorders());
  if (const auto routing = spec ? spec->find("routing") : std::nullopt) require_few_lanes(*routing, experiment);
  experiment.network.faults = read_link_faults(experiment.network.fault_keys, *experiment.topology);
  const SwitchParameters& fabric = experiment.network.fabric;
  flow_control_of_classes(fabric, *experiment.topology);  // refuses classes that the machine does not have
  if (experiment.network.fidelity == Fidelity::packet && experiment.routing->per_packet() &&
      fabric.load_balancing->at_switch() != nullptr)
    throw spec->at("load_balancing")
        .error(fmt::format("found {}, by which switches choose ports, with routing '{}', which chooses them itself; "
                           "expected ecmp or spray",
                           fabric.load_balancing_name, experiment.routing_name));
  const ReportParameters& reports = fabric.reports;
  if (reports.given && experiment.routing->max_reported() == 0)
    throw InputError(reports.place, fmt::format("queue_reports: routing '{}' looks at no queues of other switches",
                                                experiment.routing_name));
}

ServerGrid server_grid(const Topology& topology) {
  if (const auto* servers = shape_of<ServerShape>(topology))
    return {servers->servers, servers->design.gpus, servers->design.gpus, 1};
  if (const auto* rails = shape_of<RailsShape>(topology)) {
    const std::uint32_t servers = rails->rail->graph.host_count();
    return {servers, rails->rails, 1, servers};
  }
  return {};
}

/// Graphs of communicators whose ranks are placed on the servers.
ChannelGraphs channel_graphs(const std::shared_ptr<const ServerShape>& servers, const Placement& placement) {
  auto channels = std::make_shared<MachineChannels>(servers);
  return [channels, placement](const Communicator& members) {
    std::vector<std::uint32_t> hosts(members.size());
    for (std::uint32_t i = 0; i < members.size(); ++i) hosts[i] = placement.host(members.rank(i).value()).value();
    return channels->graph(hosts);
  };
}

std::shared_ptr<const ReductionUnits> reduction_units(const Topology& topology) {
  const auto* shape = shape_of<ReductionShape>(topology);
  if (shape == nullptr) return nullptr;
  const auto level = [](const ReductionShape::Level& from) {
    return ReductionUnits::Level{from.list_of_host, from.lists};
  };
  return std::make_shared<const ReductionUnits>(
      ReductionUnits{shape->hosts(), shape->count(), level(shape->server), level(shape->leaf), level(shape->top)});
}

void read_workload(const Spec& spec, const std::string& directory, Experiment& experiment,
                   const std::shared_ptr<const SharedReading>& sharing) {
  const auto kind = spec.at("kind").one_of(WorkloadRegistry::instance().names());
  WorkloadContext context;
  const Topology& machine = machine_of(*experiment.topology);
  context.hosts = machine.compute_hosts();
  context.storage = machine.storage_hosts();
  context.switches_reduce = &machine != experiment.topology.get();
  context.nccl = nccl_by_default(*experiment.topology);
  context.seed = experiment.seed;
  const auto& graph = experiment.topology->graph;
  context.host_rate = graph.link(graph.ports(NodeId(0))[0].link).rate;
  context.mtu = experiment.network.mtu;
  context.packet_overhead = experiment.network.data_overhead();
  context.directory = directory;
  context.sharing = sharing;
  context.servers = server_grid(machine);
  context.ideal_time = [text = experiment.effective_text, path = experiment.path, directory](const auto& changes) {
    std::vector<std::pair<std::string, std::string>> in_workload;
    for (const auto& [key, value] : changes) in_workload.emplace_back("workload." + key, value);
    return ideal_time(text, path, directory, in_workload);
  };
  const auto placement = spec.find("placement");
  const auto transform = spec.find("transform");
  const auto read = [&](const WorkloadContext& known) {
    experiment.workload = WorkloadRegistry::instance().find(kind)->make()->read(spec, known);
    if (transform) experiment.workload = transformed(std::move(experiment.workload), *transform);
    const Workload& workload = *experiment.workload;
    experiment.placement = workload.placement() != nullptr
                               ? *workload.placement()
                               : read_placement(placement, spec,
                                                {workload.ranks(), context.all_hosts(), context.servers,
                                                 experiment.seed, 0, context.storage, workload.storage_ranks()});
    if (transform) experiment.placement = moved(experiment.placement, workload.ranks(), *transform);
  };
  if (const auto servers = std::dynamic_pointer_cast<const ServerShape>(machine.shape)) {
    // The places of ranks follow from their number, and the steps of their collectives from their places.
    WorkloadContext counting = context;
    counting.ideal_time = [](const auto&) { return Time::from_ps(1); };
    read(counting);
    context.channel_graphs = channel_graphs(servers, experiment.placement);
  }
  read(context);
  if (placement && experiment.workload->placement() == nullptr)
    require_servers(*placement, *experiment.workload, experiment.placement, context.servers);
  experiment.placement.set_units(reduction_units(*experiment.topology));
  require_aggregators(placement ? *placement : spec, *experiment.workload, experiment.placement);
}

// In a copy of the file: `experiment` is none of the keys that are known here.
void refuse_study(const Experiment& experiment) {
  const Spec file = Spec::parse(experiment.text, experiment.path);
  const auto study = file.is_map() ? file.find("experiment") : std::nullopt;
  if (study)
    throw study->error("found a study, which `weft sweep` runs; expected an experiment, with topology and workload");
}

}  // namespace

Experiment read_experiment(const Spec& spec, const std::string& path, const std::string& directory,
                           const std::shared_ptr<const SharedReading>& sharing) {
  Experiment experiment;
  experiment.path = path;
  experiment.text = spec.verbatim();
  experiment.effective_text = spec.dump();
  // All keys are read before the first is checked, so that a misspelt one is found by finish() and not as a missing
  // one.
  const auto topology = spec.find("topology");
  if (!topology) refuse_study(experiment);
  const auto network = spec.find("network");
  const auto workload = spec.find("workload");
  const auto simulation = spec.find("simulation");
  const auto output = spec.find("output");
  const auto background = spec.find("background");
  const auto accounting = spec.find("accounting");
  spec.finish();
  if (accounting) check_accounting(*accounting);
  read_simulation(simulation, experiment);
  experiment.topology = std::make_unique<Topology>(build_topology(spec.at("topology")));
  if (accounting) check_cable_lengths(*accounting, experiment.topology->link_classes);
  if (const auto attributes = network ? network->find("ns3_attributes") : std::nullopt)
    experiment.ns3_attributes = attributes->entries();
  read_routing(experiment, network ? network->find("routing") : std::nullopt, *topology);
  read_network(network, experiment);
  require_links(experiment, *topology);
  refuse_without_packets(network, {"ns3_attributes"}, experiment);
  refuse_without_packets(output, {"pcap"}, experiment);
  if (background) {
    const std::uint32_t hosts = machine_of(*experiment.topology).graph.host_count();
    experiment.background = read_background(*background, {hosts, &experiment.network});
    experiment.network.frames = !experiment.background.empty();
  }
  read_workload(spec.at("workload"), directory, experiment, sharing);
  experiment.output = read_output(output, path, experiment);
  if (experiment.network.fidelity != Fidelity::packet && experiment.output.sampling > Time()) {
    experiment.output.sampling = Time();  // nothing waits there, and links are not simulated
    experiment.network.without_effect.emplace_back("output.sampling");
  }
  return experiment;
}

bool nccl_by_default(const Topology& topology) {
  const auto* servers = dynamic_cast<const ServerShape*>(machine_of(topology).shape.get());
  return servers != nullptr && !servers->design.collective_kernel.empty();
}

Experiment load_experiment(const ExperimentFile& file, const std::vector<std::pair<std::string, std::string>>& settings,
                           const std::shared_ptr<const SharedReading>& sharing) {
  Spec spec = Spec::load(file.file);
  for (const auto& [key, value] : settings) spec.set(key, value);
  const auto parent = std::filesystem::path(file.file).parent_path();
  return read_experiment(spec, file.name, parent.empty() ? "." : parent.string(), sharing);
}

std::string Experiment::network_routing_name() const {
  const auto* servers = shape_of<ServerShape>(machine_of(*topology));
  if (servers == nullptr || !servers->network) return "";
  return servers->design.network_routing.empty() ? servers->network->routing : servers->design.network_routing;
}

}  // namespace weft
