// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/cut_codec.hpp"

#include <bit>

#include "support/basics/error.hpp"
#include "transport/messages/message.hpp"
#include "units/time.hpp"

namespace weft {

// Packets are read in place.
static_assert(sizeof(Message) % alignof(Packet) == 0);

CutCodec::CutCodec(const Topology& topology, const Partition& partition, int process, const LocalNodes& nodes) {
  const ClusterGraph& graph = topology.graph;
  cut_.resize(graph.link_count());
  on_boundary_.resize(nodes.all.size());
  for (std::uint32_t l = 0; l < graph.link_count(); ++l) {
    const LinkProperties& link = graph.link(LinkId(l));
    const int owners[2] = {partition.owner[link.ends[0].value()], partition.owner[link.ends[1].value()]};
    cut_[l] = owners[0] != owners[1];
    if (owners[0] == owners[1] || (owners[0] != process && owners[1] != process)) continue;
    const unsigned here = owners[0] == process ? 0 : 1;
    const std::uint32_t local = nodes.local_of[link.ends[here]];
    on_boundary_[local] = true;
    // Both sides list the links between them in the order of link ids, so that a position names a link.
    neighbour_of(owners[1 - here]).ends.push_back({nodes.all[local].first_port + link.ports[here], local});
  }
  for (Neighbour& neighbour : neighbours_) {
    neighbour.link_bits = static_cast<unsigned>(std::bit_width(neighbour.ends.size()));
    // The range of a key; and at most a few times Time::longest_wait(), because prepare() looks at the end of simulated
    // time.
    neighbour.reach = std::min(std::uint64_t{1} << (64 - neighbour.link_bits),
                               4 * static_cast<std::uint64_t>(Time::longest_wait().ps()));
  }
  outgoing_.resize(neighbours_.size());
}

Neighbour& CutCodec::neighbour_of(int process) {
  const auto at = std::lower_bound(processes_.begin(), processes_.end(), process);
  const auto index = at - processes_.begin();
  if (at == processes_.end() || *at != process) {
    processes_.insert(at, process);
    neighbours_.emplace(neighbours_.begin() + index)->process = process;
  }
  return neighbours_[static_cast<std::size_t>(index)];
}

void CutCodec::mark_ports(std::span<OutputPort> outputs) const {
  for (std::uint32_t n = 0; n < neighbours_.size(); ++n) {
    for (std::uint32_t i = 0; i < neighbours_[n].ends.size(); ++i) {
      OutputPort& port = outputs[neighbours_[n].ends[i].port.value()];
      port.peer_port = OutputPort::remote | i;
      port.peer_node = n;
    }
  }
}

Time CutCodec::first_arrival() const {
  Time first = Time::max();
  for (std::size_t n = 0; n < neighbours_.size(); ++n)
    if (!outgoing_[n].empty()) first = std::min(first, neighbours_[n].first_arrival);
  return first;
}

// Called where the batch begins, is full, or needs another time origin.
void CutCodec::prepare(std::uint32_t index, Time arrival) {
  Batch& batch = outgoing_[index];
  Neighbour& neighbour = neighbours_[index];
  if (static_cast<std::uint64_t>(arrival.ps()) >= static_cast<std::uint64_t>(Time::limit().ps()))
    throw TimeLimitError("packets to another process wait too long");
  const bool begins = batch.empty();
  if (begins) {
    neighbour.origin = Time();
    neighbour.first_arrival = arrival;
  }
  const bool too_far = static_cast<std::uint64_t>((arrival - neighbour.origin).ps()) >= neighbour.reach;
  batch.reserve((too_far || begins ? 2 : 1) * sizeof(Packet));
  if (!too_far && !begins) return;
  if (too_far) neighbour.origin = arrival;
  batch.append(neighbour.no_link());
  batch.append(neighbour.origin);
}

}  // namespace weft
