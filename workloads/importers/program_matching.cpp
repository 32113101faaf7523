// SPDX-License-Identifier: GPL-2.0-only
// The check that every send of a trace has its recv.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "units/text.hpp"
#include "workloads/importers/program_trace.hpp"

namespace weft {
namespace {

/// Items that send and receive with one (source, destination, tag), in file order.
struct Lane {
  std::vector<std::uint32_t> sends, recvs;
};
using Lanes = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Lane>;

Lanes lanes_of(const Trace& trace) {
  Lanes lanes;
  for (std::uint32_t item = 0; item < trace.operations.size(); ++item) {
    const Operation& operation = trace.operations[item].operation;
    const auto& ranks = trace.operations[item].ranks.ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::uint32_t rank = ranks[i];
      const std::uint32_t peer = trace.operations[item].peer(i);
      if (operation.kind == Operation::Kind::send) lanes[{rank, peer, operation.tag}].sends.push_back(item);
      if (operation.kind == Operation::Kind::recv) lanes[{peer, rank, operation.tag}].recvs.push_back(item);
    }
  }
  return lanes;
}

/// A complaint about one item.
struct Complaint {
  std::uint32_t item = 0;
  std::string message;
};

/// Keeps the error whose place is first in the file.
void keep_first(std::vector<Complaint>& first, Complaint complaint) {
  if (first.empty())
    first.push_back(std::move(complaint));
  else if (complaint.item < first.front().item)
    first.front() = std::move(complaint);
}

}  // namespace

void require_matching(const Trace& trace, const std::vector<Spec>& items) {
  std::vector<Complaint> first;
  for (const auto& [key, lane] : lanes_of(trace)) {
    const auto& [source, destination, tag] = key;
    const std::string which = fmt::format("from rank {} to rank {} with tag {}", source, destination, tag);
    const std::size_t both = std::min(lane.sends.size(), lane.recvs.size());
    for (std::size_t i = 0; i < both; ++i) {
      const Operation& send = trace.operations[lane.sends[i]].operation;
      const Operation& recv = trace.operations[lane.recvs[i]].operation;
      if (send.bytes == recv.bytes) continue;
      keep_first(first, {std::min(lane.sends[i], lane.recvs[i]),
                         fmt::format("message {} {}: the send (line {}) has {}, the recv (line {}) has {}", i, which,
                                     send.line, to_text(send.bytes), recv.line, to_text(recv.bytes))});
    }
    if (lane.sends.size() > both)
      keep_first(first, {lane.sends[both], fmt::format("the send {} has no recv: there are {} sends and {} recvs",
                                                       which, lane.sends.size(), lane.recvs.size())});
    if (lane.recvs.size() > both)
      keep_first(first, {lane.recvs[both], fmt::format("the recv {} has no send: there are {} sends and {} recvs",
                                                       which, lane.sends.size(), lane.recvs.size())});
  }
  if (!first.empty()) throw items[first.front().item].error(first.front().message);
}

}  // namespace weft
