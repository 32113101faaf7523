// SPDX-License-Identifier: GPL-2.0-only
// All ranks of one process: each runs its program on a host of the network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/client/host_client.hpp"
#include "fabric/client/host_network.hpp"
#include "runtime/execution/rank_executor.hpp"
#include "schedule/program/placement.hpp"
#include "schedule/program/workload.hpp"

namespace weft {

/// Each rank runs on the host where the placement has it; a host may have several ranks, which share its port. Hosts
/// without a rank are idle.
class Runtime final : public HostClient {
 public:
  /// Takes the programs of the ranks whose hosts `network` owns, and sets a timer that starts each. The workload, the
  /// placement and the network have to live as long. `explain`: record what times were spent on; `causes`: also record
  /// which message had to arrive before which.
  Runtime(const Workload& workload, const Placement& placement, HostNetwork& network, MessageSelection messages,
          OperationSelection operations, bool explain = true, bool causes = true);

  void on_timer(NodeId host, Time now, std::uint64_t token) override;
  void on_message(NodeId host, Time now, const Message& message) override;
  void on_sent(NodeId host, Time now, std::uint64_t token) override;
  void on_credit(NodeId host, Time now, std::uint32_t queue_pair, Time late) override;

  RunRecords& records() { return records_; }
  std::vector<RankRecord> rank_records(Time end) const;
  std::vector<RankTransfers> rank_transfers(Time end) const;  ///< in the same order
  /// Ranks of this process whose program is not done, without those of background jobs.
  std::uint64_t unfinished() const;
  /// Descriptions of their waits, at most `max` lines, in rank order.
  std::vector<std::string> waiting(std::size_t max) const;
  /// The waits of this process's ranks for other ranks.
  std::vector<RankWait> waits() const;
  std::uint64_t operations_done() const;
  std::int64_t bytes_delivered() const { return records_.bytes_delivered; }
  std::uint64_t messages_delivered() const { return records_.messages_delivered; }

 private:
  using Ranks = std::vector<std::uint32_t>;  // of one host: numbers of executors, in order of their ranks
  const Ranks& ranks_of(NodeId host) const { return ranks_of_host_[slot_of_host_[host]]; }
  RankExecutor& executor(NodeId host, std::uint64_t token) {
    return *executors_[ranks_of(host)[RankExecutor::place_of(token)]];
  }
  RankExecutor& executor_of_rank(NodeId host, std::uint32_t rank);
  RankExecutor& add_aggregator(NodeId host, std::uint32_t rank);
  std::uint32_t add_place(NodeId host);
  void add_rank(const Workload& workload, std::uint32_t r, bool background, const Placement& placement,
                HostNetwork& network);

  const Workload& workload_;
  const Placement& placement_;
  HostNetwork& network_;
  RunRecords records_;
  PerNode<std::vector<std::uint32_t>> slot_of_host_;  // [hosts] in ranks_of_host_
  std::vector<Ranks> ranks_of_host_;
  std::vector<std::unique_ptr<RankExecutor>> executors_;
  std::vector<bool> background_;  // [executors]
};

}  // namespace weft
