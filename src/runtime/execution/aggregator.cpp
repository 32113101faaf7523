// SPDX-License-Identifier: GPL-2.0-only
// Executors of aggregators: switches' parts in collectives.
#include "runtime/execution/rank_executor.hpp"

namespace weft {
namespace {

class NoProgram final : public RankProgram {
 public:
  bool next(Operation& /*operation*/) override { return false; }
};

}  // namespace

RankExecutor::RankExecutor(Rank rank, const Placement& placement, std::uint32_t place, const Workload& workload,
                           HostNetwork& network, RunRecords& records)
    : RankExecutor(rank, placement, place, std::make_unique<NoProgram>(), network, records) {
  served_ = &workload;
  exhausted_ = true;
}

// Begins the oldest call of the communicator for which a slice has arrived, if none is running. All members send to an
// aggregator in every call that needs it, and calls of one communicator have ascending ids.
void RankExecutor::serve(std::uint32_t communicator) {
  if (!queues_.is_idle(communicator)) return;
  const ReceiveConnection::Slice* const oldest = connections_.oldest_slice(communicator);
  if (oldest == nullptr) return;
  Operation operation;
  operation.id = served_calls_++;
  operation.kind = Operation::Kind::collective;
  operation.call = std::make_shared<const CollectiveCall>(served_->call(oldest->collective));
  operation.tag = oldest->member;
  admit(operation);
}

}  // namespace weft
