// SPDX-License-Identifier: GPL-2.0-only
// The tables of a result file, column by column. docs/hdf5_schema.md documents the same.
#pragma once

#include <cstdint>

#include "results/collective_results.hpp"
#include "results/records.hpp"
#include "results/table.hpp"

namespace weft {

Table<MessageRecord> message_table();
Table<CollectiveResult> collective_table();
/// `simulated_time` in ps makes busy times utilizations.
Table<LinkRecord> link_table(std::int64_t simulated_time);
/// `interval` in ps, the sampling interval; one that lasts longer than the run is cut at its end.
Table<LinkSample> link_series_table(std::int64_t interval, std::int64_t simulated_time);
Table<LinkClassRecord> link_class_table();
Table<QueueDepthRecord> queue_depth_table();
Table<QueuePairRecord> queue_pair_table();
Table<QueuePairRate> rate_series_table(std::int64_t interval, std::int64_t simulated_time);
Table<ReceiverRecord> receiver_table();
Table<RankRecord> rank_table();
Table<JobRecord> job_table();
Table<TransferRecord> transfer_table();
Table<TransferSample> transfer_series_table();
Table<OperationRecord> operation_table();

Table<ProcessRecord> process_table();

}  // namespace weft
