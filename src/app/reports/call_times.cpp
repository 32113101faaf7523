// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/call_times.hpp"

#include <algorithm>

#include <mpi.h>

namespace weft {
namespace {

constexpr std::uint64_t calls_at_once = 1U << 16;  // calls

void combine_times(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* const from = static_cast<const CallTimes*>(in);
  auto* const to = static_cast<CallTimes*>(in_out);
  for (int i = 0; i < *count; ++i) {
    to[i].first = std::min(to[i].first, from[i].first);
    to[i].last = std::max(to[i].last, from[i].last);
    to[i].end = std::max(to[i].end, from[i].end);
    to[i].entered += from[i].entered;
    to[i].finished += from[i].finished;
  }
}

void share_times(const ProcessGroup& group, std::vector<CallTimes>& times) {
  if (group.size() == 1) return;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op operation = MPI_OP_NULL;
  MPI_Type_contiguous(static_cast<int>(sizeof(CallTimes)), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(combine_times, 1, &operation);
  MPI_Allreduce(MPI_IN_PLACE, times.data(), static_cast<int>(times.size()), type, operation, group.communicator());
  MPI_Op_free(&operation);
  MPI_Type_free(&type);
}

void enter(CallTimes& call, std::int64_t start) {
  call.first = std::min(call.first, start);
  call.last = std::max(call.last, start);
  ++call.entered;
}

}  // namespace

std::int64_t counted_bytes(const CollectiveCall& call) {
  const bool of_all = call.blocks && call.blocks->of_pairs();
  return of_all ? call.size.count() / call.communicator->size() : call.size.count();
}

void for_all_calls(const ProcessGroup& group, std::uint64_t calls, const CollectiveLog& log,
                   const std::vector<RankTransfers>& ranks,
                   const std::function<void(std::uint64_t first, std::span<const CallTimes> times)>& look) {
  CollectiveLog::PartCursor parts = log.parts();
  CollectivePart part;
  bool more = parts.next(part);
  std::vector<CallTimes> times;
  for (std::uint64_t first = 0; first < calls; first += calls_at_once) {
    times.assign(std::min(calls_at_once, calls - first), {});
    for (; more && part.collective < first + times.size(); more = parts.next(part)) {
      CallTimes& call = times[part.collective - first];
      enter(call, part.start);
      call.end = std::max(call.end, part.end);
      ++call.finished;
    }
    for (const RankTransfers& rank : ranks)
      for (const auto& [call, start] : rank.under_way)
        if (call >= first && call < first + times.size()) enter(times[call - first], start);
    share_times(group, times);
    look(first, times);
  }
}

}  // namespace weft
