// SPDX-License-Identifier: GPL-2.0-only
// `weft describe`: describes a run without running it.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "app/analysis/volume.hpp"
#include "app/commands/commands.hpp"
#include "app/processes/prepare.hpp"
#include "fabric/packet/packet_queue.hpp"
#include "fabric/packet/port.hpp"
#include "graph/shapes/reduction_shape.hpp"
#include "runtime/execution/rank_executor.hpp"
#include "transport/messages/queue_pair.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

void line(const std::string& name, const std::string& value) { std::cout << fmt::format("  {:<24} {}\n", name, value); }

std::string binary(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

std::string counted(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

void print_machine(const Experiment& experiment) {
  const Topology& topology = *experiment.topology;
  const ClusterGraph& graph = topology.graph;
  std::cout << "machine\n";
  line("topology", topology.kind);
  const Topology& machine = machine_of(topology);
  const std::uint32_t hosts = machine.graph.host_count();
  line("hosts", counted(hosts));
  if (graph.host_count() > hosts) line("reduction units", counted(graph.host_count() - hosts));
  if (!machine.storage_hosts().empty()) line("storage hosts", counted(machine.storage_hosts().size()));
  line("switches", counted(graph.switch_count()));
  std::map<std::pair<std::uint8_t, Bandwidth>, std::uint64_t> links;
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) ++links[{topology.link_class[l], graph.link(LinkId(l)).rate}];
  for (const auto& [key, count] : links)
    line("links, " + topology.link_classes[key.first], fmt::format("{} at {}", counted(count), to_text(key.second)));
  line("routing", experiment.routing_name);
  if (const std::string between = experiment.network_routing_name(); !between.empty()) line("network routing", between);
  const NetworkParameters& network = experiment.network;
  line("fidelity", std::string(to_text(network.fidelity)));
  if (!network.without_effect.empty())
    line("without effect in it", fmt::format("{}", fmt::join(network.without_effect, ", ")));
  const std::string inside = network.server_mtu ? fmt::format(", {} inside servers", to_text(*network.server_mtu)) : "";
  line("packets",
       fmt::format("{} payload{}, {} overhead; {}", to_text(network.mtu), inside, to_text(network.data_overhead()),
                   network.acks ? fmt::format("an ACK of {} each, window {}", to_text(network.control_wire()),
                                              to_text(network.window))
                                : "no ACKs, unlimited window"));
}

void print_workload(const Experiment& experiment) {
  std::cout << "workload\n";
  line("ranks", counted(experiment.workload->ranks()));
  for (const auto& [name, value] : experiment.workload->description()) line(name, value);
}

// The memory that each process needs in any case, and the memory that is divided among processes. Constants are from
// measured runs (docs/concepts/performance.md, "Memory").
void print_memory(const Experiment& experiment, const Volume& volume) {
  const ClusterGraph& graph = experiment.topology->graph;
  constexpr double libraries = 40e6;        // MPI, HDF5, ns-3
  constexpr double node_or_link = 135;      // of the machine's graph
  constexpr double host_with_rank = 9'400;  // state of a host, of its rank, of a flow, and rows of its links at the end
  constexpr double row = 900;               // of /messages, while it is written; 600 on a single process
  constexpr double connection = 630;        // both of its ends and its queue pair, beyond a rank's first
  const double port = sizeof(OutputPort) + sizeof(PacketQueue) + 2 * sizeof(std::int64_t) + sizeof(std::uint32_t);
  const double machine = node_or_link * (static_cast<double>(graph.node_count()) + graph.link_count());
  const auto rows = static_cast<double>(
      experiment.output.messages.every == 0 ? 0 : std::min(volume.messages, experiment.output.rows_in_memory));
  const double further =
      std::max(0.0, static_cast<double>(volume.connections) - static_cast<double>(experiment.workload->ranks()));
  line("memory of a process",
       fmt::format("{}, and {} shared out among all", binary(libraries + machine + row * rows),
                   binary(host_with_rank * graph.host_count() + 2 * port * graph.link_count() + connection * further)));
  line("bytes each", fmt::format("port {:.0f}, rank {}, queue pair {}, message in flight {}, packet under way {:.0f}",
                                 port, sizeof(RankExecutor), sizeof(QueuePair), sizeof(Message),
                                 static_cast<double>(PacketBlock::size) / PacketBlock::capacity));
}

/// Packet by packet, and what a long run can do instead.
void print_packet_hops(const Volume& volume, const NetworkParameters& network) {
  constexpr double long_run = 600;  // s
  constexpr Bytes large = Bytes::kib(32);
  const double seconds = static_cast<double>(volume.packet_hops) / 1e7;
  line("packet-hops", fmt::format("{} (about {:.0f} s at 10 M/s)", counted(volume.packet_hops), seconds));
  if (seconds <= long_run) return;
  const double inside = static_cast<double>(volume.hops_inside_servers) / 1e7;
  const Bytes now = network.server_mtu.value_or(network.mtu);
  const double larger =
      seconds - inside + inside * static_cast<double>(now.count()) / static_cast<double>(large.count());
  const bool mostly_inside = larger < seconds / 2;
  if (mostly_inside)
    line("instead", fmt::format("--set network.server_mtu='32 KiB': about {:.0f} s, with queues", larger));
  line(mostly_inside ? "or" : "instead",
       fmt::format("--set network.fidelity=ideal: about {:.0f} s, without queues; more in "
                   "docs/concepts/performance.md#runs-that-take-too-long",
                   static_cast<double>(volume.messages) / 1e6));
}

void print_volume(const Experiment& experiment) {
  const Topology& topology = *experiment.topology;
  Progress progress(true);
  const Volume volume = expected_volume(experiment, progress);
  std::cout << "expected\n";
  if (volume.walked > 0)
    line("counted", fmt::format("on {} of the ranks, which stand for the others", counted(volume.walked)));
  std::string kinds;
  for (const auto& [kind, count] : volume.operations_of_kind)
    kinds += fmt::format("{}{} {}", kinds.empty() ? ": " : ", ", kind, counted(count));
  line("operations", counted(volume.operations) + kinds);
  line("messages", counted(volume.messages));
  line("payload", binary(static_cast<double>(volume.payload.count())));
  for (std::size_t c = 0; c < topology.link_classes.size(); ++c)
    line("on the wire, " + topology.link_classes[c], binary(static_cast<double>(volume.wire_by_class[c].count())));
  line("data packets", counted(volume.data_packets));
  line("ACKs and credits", counted(volume.control_packets));
  if (experiment.network.fidelity == Fidelity::packet)
    print_packet_hops(volume, experiment.network);
  else
    line("time to simulate",
         fmt::format("about {:.0f} s at 1 M messages/s", static_cast<double>(volume.messages) / 1e6));
  line("compute of the busiest", fmt::format("{:.3f} ms", volume.busiest_compute.seconds() * 1e3));
  print_memory(experiment, volume);
  line("results", experiment.output.file);
}

std::string engineering(double value) {
  const char* units[] = {"", "k", "M", "G", "T", "P"};
  int unit = 0;
  for (; value >= 1000 && unit < 5; ++unit) value /= 1000;
  return fmt::format("{:.4g}{}{}", value, unit > 0 ? " " : "", units[unit]);
}

void kernel_line(const std::string& place, const std::string& kernel, double flops, double bytes, Time time) {
  std::cout << fmt::format("  {:<28} {:<42} {:>10} {:>10} {:>12.2f}\n", place, kernel, engineering(flops),
                           engineering(bytes), time.seconds() * 1e6);
}

/// One after another, by part and pass, with the sums of each pass.
void print_kernels(const Experiment& experiment) {
  const std::vector<KernelLine> lines = experiment.workload->kernels();
  if (lines.empty())
    throw InputError({experiment.path, 0}, "its workload has no kernels; --kernels is for `kind: training`");
  for (std::size_t i = 0; i < lines.size();) {
    const KernelLine& first = lines[i];
    std::cout << fmt::format("{}, {}, per rank{}\n", first.part, first.pass,
                             first.part == "step" ? "" : " and micro-batch");
    std::cout << fmt::format("  {:<28} {:<42} {:>10} {:>10} {:>12}\n", "part of the pass", "kernel", "FLOPs", "bytes",
                             "time, us");
    double flops = 0, bytes = 0;
    Time time;
    for (; i < lines.size() && lines[i].part == first.part && lines[i].pass == first.pass; ++i) {
      const KernelLine& one = lines[i];
      kernel_line(one.place, one.kernel, one.flops, one.bytes, one.time);
      flops += one.flops;
      bytes += one.bytes;
      time += one.time;
    }
    kernel_line("sum", "", flops, bytes, time);
  }
}

}  // namespace

int describe_command(const CommandLine& command, ProcessGroup& group) {
  Experiment experiment;
  const TraceExperiment trace(group, command.experiment, group.size() > 1 ? "." : "");
  prepare(group, [&] { experiment = load_experiment(trace.experiment(), command.settings); });
  prepare(group, [&] {
    if (group.rank() != 0) return;
    if (command.kernels) return print_kernels(experiment);
    std::cout << experiment.path << '\n';
    print_machine(experiment);
    print_workload(experiment);
    print_volume(experiment);
  });
  return exit_done;
}

}  // namespace weft
