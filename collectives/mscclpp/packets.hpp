// SPDX-License-Identifier: GPL-2.0-only
// Operations on packets, of plans with the protocol LL. A packet has half data and half flag
// (github.com/microsoft/mscclpp include/mscclpp/packet_device.hpp): a reader of a chunk of the scratch waits until it
// has been written in this run, and no signal is needed. What operations read and write: execution_kernel.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/mscclpp/step_writer.hpp"

namespace weft {

class PlanPackets {
 public:
  PlanPackets(const ExecutionPlan& plan, PlanStepWriter& writer)
      : plan_(plan), writer_(writer), written_(plan.gpus.size()) {}

  /// Whether an operation of this name reads or writes packets.
  static bool has(const std::string& name);
  /// False if packets that the operation reads have not arrived yet. Throws InputError if its operands are not as its
  /// name says.
  bool execute(ThreadBlock& block, const PlanJson& operation, const std::string& name);

 private:
  void reduce(ThreadBlock& block, const std::vector<PlanRange>& from, const std::vector<PlanRange>& to,
              const std::string& name);
  void copy(ThreadBlock& block, const PlanRange& from, const PlanRange& to, bool as_packets);
  void put(ThreadBlock& block, const PlanRange& from, const PlanRange& to);
  void mark(const PlanRange& to, const PlanStep& step);
  bool await(ThreadBlock& block, const PlanRange& from) const;

  const ExecutionPlan& plan_;
  PlanStepWriter& writer_;
  std::vector<std::map<std::uint32_t, PlanStep>>
      written_;  // [GPU]: chunk of the scratch -> step that put packets there
};

}  // namespace weft
