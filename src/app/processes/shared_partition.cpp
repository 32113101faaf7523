// SPDX-License-Identifier: GPL-2.0-only
// One partition for all processes.
#include "app/processes/shared_partition.hpp"

#include <limits>

#include "results/processes/agreement.hpp"

namespace weft {
namespace {

// The data sent beside the owners.
struct PartitionFacts {
  std::uint32_t cut_links = 0;
  double balance = 1;
  std::int64_t lookahead = 0;
};

}  // namespace

Partition shared_partition(const ProcessGroup& group, const Topology& topology, const std::string& method,
                           Bytes min_frame, std::uint64_t seed) {
  const auto parts = static_cast<std::uint32_t>(group.size());
  // More parts than an owner's number can represent are refused there, by every process.
  constexpr std::uint32_t max_parts = std::numeric_limits<decltype(Partition::owner)::value_type>::max();
  if (parts == 1 || parts > max_parts) return make_partition(topology, parts, method, min_frame, seed);
  const MPI_Comm comm = group.communicator();
  Partition partition;
  collectively(comm, [&] {
    if (group.rank() == 0) partition = make_partition(topology, parts, method, min_frame, seed);
  });
  partition.parts = parts;
  partition.method = broadcast_text(comm, partition.method);
  PartitionFacts facts{partition.cut_links, partition.balance, partition.lookahead.ps()};
  MPI_Bcast(&facts, sizeof facts, MPI_BYTE, 0, comm);
  partition.cut_links = facts.cut_links;
  partition.balance = facts.balance;
  partition.lookahead = Time::from_ps(facts.lookahead);
  partition.owner.resize(topology.graph.node_count());
  MPI_Bcast(partition.owner.data(), static_cast<int>(partition.owner.size()), MPI_UINT16_T, 0, comm);
  return partition;
}

}  // namespace weft
