// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/mscclpp/packets.hpp"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft {

bool PlanPackets::has(const std::string& name) {
  static const std::set<std::string> names = {"ppkt", "rppkt", "cpkt", "upkt", "repkt", "recpkt", "respkt", "recspkt"};
  return names.contains(name);
}

bool PlanPackets::execute(ThreadBlock& block, const PlanJson& operation, const std::string& name) {
  const PlanPlace& place = plan_.place;
  const auto from = operands(plan_, *block.plan, operation, "src_buff"),
             to = operands(plan_, *block.plan, operation, "dst_buff");
  if (from.front().count != to.front().count) place.fail("source and destination have different sizes");
  const bool first_is_packets = name == "rppkt" || name == "upkt";
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].gpu != block.gpu()) place.fail("its sources are of the GPU itself");
    const bool reads_packets = i > 0 ? name != "cpkt" && name != "ppkt" : first_is_packets;
    if (reads_packets && !await(block, from[i])) return false;
  }
  if (name == "cpkt" || name == "upkt") {
    if (from.size() != 1 || to.size() != 1 || to[0].gpu != block.gpu())
      place.fail("expected one source and one destination of the GPU itself");
    copy(block, from[0], to[0], name == "cpkt");
  } else if (name == "ppkt" || name == "rppkt") {
    if (from.size() != 1 && from.size() != to.size()) place.fail("expected one source, or as many as destinations");
    for (std::size_t i = 0; i < to.size(); ++i) put(block, from[from.size() == 1 ? 0 : i], to[i]);
  } else {
    reduce(block, from, to, name);
  }
  return true;
}

// The sum of the first source and of packets, in the first destination, as packets in the second one (recpkt, recspkt),
// and as packets in those of other GPUs.
void PlanPackets::reduce(ThreadBlock& block, const std::vector<PlanRange>& from, const std::vector<PlanRange>& to,
                         const std::string& name) {
  const std::size_t own = name == "recpkt" || name == "recspkt" ? 2 : 1;
  const bool sends = name == "respkt" || name == "recspkt";
  if (to.size() < own || (!sends && to.size() > own) || to[0].gpu != block.gpu())
    plan_.place.fail(fmt::format("expected {} of the GPU itself", own == 1 ? "one destination" : "two destinations"));
  if (!from[0].same_place(to[0])) writer_.local(block, Primitive::copy, from[0], to[0]);
  for (std::size_t i = 1; i < from.size(); ++i) writer_.local(block, Primitive::reduce, from[i], to[0]);
  if (own == 2) copy(block, to[0], to[1], true);
  for (std::size_t i = own; i < to.size(); ++i) put(block, to[0], to[i]);
}

void PlanPackets::copy(ThreadBlock& block, const PlanRange& from, const PlanRange& to, bool as_packets) {
  writer_.local(block, Primitive::copy, from, to);
  if (as_packets) mark(to, *block.last);
}

void PlanPackets::put(ThreadBlock& block, const PlanRange& from, const PlanRange& to) {
  writer_.put(block, from, to);
  mark(to, *writer_.peer_of(block, to.gpu).last_there);
}

void PlanPackets::mark(const PlanRange& to, const PlanStep& step) {
  if (to.buffer != Buffer::scratch) plan_.place.fail("packets are put into the scratch buffer");
  for (std::uint32_t i = 0; i < to.count; ++i)
    if (!written_[to.gpu].emplace(to.chunk + i, step).second)
      plan_.place.fail(
          fmt::format("chunk {} of the scratch of GPU {} is written with packets a second time: whoever reads it "
                      "cannot tell them apart",
                      to.chunk + i, to.gpu));
}

bool PlanPackets::await(ThreadBlock& block, const PlanRange& from) const {
  if (from.buffer != Buffer::scratch) plan_.place.fail("packets are read from the scratch buffer");
  const auto& written = written_[block.gpu()];
  PlanSteps steps;
  for (std::uint32_t i = 0; i < from.count; ++i) {
    const auto found = written.find(from.chunk + i);
    if (found == written.end()) return false;
    steps.insert(found->second);
  }
  block.waits.merge(steps);
  return true;
}

}  // namespace weft
