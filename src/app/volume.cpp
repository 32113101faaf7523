// SPDX-License-Identifier: GPL-2.0-only
#include "app/volume.hpp"

#include <algorithm>

#include "app/job_results.hpp"
#include "routing/path.hpp"
#include "transport/message.hpp"

namespace weft {
namespace {

// What one rank sends to one peer.
struct PairVolume {
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t credits = 0;
  Bytes payload;
};
using PeerVolumes = std::map<std::uint32_t, PairVolume>;

void add_message(PairVolume& pair, Bytes bytes, Bytes mtu, std::uint64_t credits) {
  ++pair.messages;
  pair.packets += packet_count(bytes.count(), mtu.count());
  pair.credits += credits;
  pair.payload += bytes;
}

void add_collective(const CollectiveCall& call, Rank rank, const NetworkParameters& network, PeerVolumes& peers) {
  const auto algorithm = find_collective(call.algorithm);
  const std::uint32_t index = call.communicator->index_of(rank);
  for (std::uint32_t lane = 0; lane < algorithm->lanes(call); ++lane) {
    const auto stream = algorithm->steps(call, index, lane);
    for (Step step; stream->next(step);) {
      for (std::uint32_t i = 0; i < step.send_count(); ++i) {
        PairVolume& pair = peers[call.communicator->rank(step.send_to(i)).value()];
        for (Bytes done(0); done < step.bytes; done += step.slice)
          add_message(pair, wire_bytes(call.tuning.protocol, std::min(step.slice, step.bytes - done)), network.mtu,
                      network.acks ? 1 : 0);
      }
    }
  }
}

}  // namespace

Volume expected_volume(const Experiment& experiment) {
  const Topology& topology = *experiment.topology;
  const NetworkParameters& network = experiment.network;
  Volume volume;
  volume.wire_by_class.resize(topology.link_classes.size());
  const auto jobs = experiment.workload->jobs();
  for (std::uint32_t r = 0; r < experiment.workload->ranks(); ++r) {
    if (jobs[job_of_rank(jobs, r)].background) continue;  // nobody knows how much of it there will be
    PeerVolumes peers;
    Time compute;
    const auto program = experiment.workload->program(Rank(r));
    for (Operation operation; program->next(operation); operation = Operation()) {
      ++volume.operations;
      if (operation.kind == Operation::Kind::compute) compute += operation.duration;
      if (operation.kind == Operation::Kind::send)
        add_message(peers[operation.peer.value()], operation.bytes, network.mtu, 0);
      if (operation.kind == Operation::Kind::collective) add_collective(*operation.call, Rank(r), network, peers);
    }
    volume.busiest_compute = std::max(volume.busiest_compute, compute);
    for (const auto& [peer, pair] : peers) {
      const std::uint64_t control = (network.acks ? pair.packets : 0) + pair.credits;
      volume.messages += pair.messages;
      volume.payload += pair.payload;
      volume.data_packets += pair.packets;
      volume.control_packets += control;
      const Bytes wire = pair.payload + static_cast<std::int64_t>(pair.packets) * network.data_overhead() +
                         static_cast<std::int64_t>(control) * network.control_wire();
      // Control packets take a path of the same length and classes the other way.
      const auto path = trace_path(topology, *experiment.routing,
                                   RouteRequest{experiment.placement.host(r), experiment.placement.host(peer), 0});
      volume.packet_hops += (pair.packets + control) * path.size();
      for (const auto& hop : path) volume.wire_by_class[topology.link_class[hop.directed_link / 2]] += wire;
    }
  }
  return volume;
}

}  // namespace weft
