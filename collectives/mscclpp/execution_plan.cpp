// SPDX-License-Identifier: GPL-2.0-only
// MSCCL++'s execution plans as algorithms: the operations of all thread blocks, executed, become the steps of a
// schedule. Meaning of operations: github.com/microsoft/mscclpp src/executor/execution_plan.cc and
// src/include/execution_kernel.hpp.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/mscclpp/packets.hpp"
#include "collectives/mscclpp/plan.hpp"
#include "collectives/mscclpp/step_writer.hpp"
#include "collectives/mscclpp/switches.hpp"
#include "collectives/mscclpp/synchronization.hpp"

namespace weft {
namespace {

class PlanExecution {
 public:
  PlanExecution(ExecutionPlan& plan, StaticSchedule& schedule)
      : plan_(plan),
        place_(plan.place),
        schedule_(schedule),
        writer_(place_, schedule),
        synchronization_(plan, writer_),
        packets_(plan, writer_),
        switches_(plan, writer_, schedule) {
    for (const PlanBlock& block : plan.blocks) blocks_.emplace_back().plan = &block;
  }

  /// Runs each thread block as far as possible, again and again until all have ended: so each wait finds its signal.
  void run() {
    for (bool more = true; more;) {
      more = false;
      for (ThreadBlock& block : blocks_)
        while (block.next < block.plan->operations.size() && execute(block)) {
          ++block.next;
          more = true;
        }
    }
    for (const ThreadBlock& block : blocks_) {
      if (block.next == block.plan->operations.size()) continue;
      name_place(block);
      place_.fail(
          "it waits for ever: no thread block signals, releases the semaphore, puts the packets or arrives at the "
          "barrier");
    }
    const std::uint32_t channels = switches_.number_channels();
    schedule_.channels = std::max({1U, writer_.channels(), channels});
  }

 private:
  void name_place(const ThreadBlock& block) {
    place_.part = fmt::format("GPU {}, thread block {}, operation {} ({}): ", block.gpu(), block.id(), block.next,
                              block.plan->operations[block.next]->at("name").get<std::string>());
  }

  /// False if it has to wait.
  bool execute(ThreadBlock& block) {
    name_place(block);
    const PlanJson& operation = *block.plan->operations[block.next];
    const std::string name = operation.at("name").get<std::string>();
    if (name == "nop" || name == "flush") return true;
    if (name == "wait" || name == "rlxwait") return synchronization_.wait(block, operation);
    if (name == "barrier") return synchronization_.barrier(block, operation);
    if (name == "sem_acquire") return synchronization_.acquire(block, operation);
    if (PlanPackets::has(name)) {
      if (schedule_.protocol != Protocol::ll)
        place_.fail("an operation on packets; expected the plan's protocol to be LL");
      return packets_.execute(block, operation, name);
    }
    if (name == "sem_release") {
      synchronization_.release(block, operation);
    } else if (name == "signal" || name == "rlxsignal") {
      synchronization_.signal(block, operation);
    } else if (name == "copy") {
      const auto [from, to] = local_operands(plan_, *block.plan, operation);
      writer_.local(block, Primitive::copy, from, to);
    } else if (name != "re" && schedule_.protocol == Protocol::ll) {
      place_.fail("the protocol is LL, whose scratch holds packets; expected operations on packets, copy and re");
    } else if (name == "put" || name == "pws" || name == "pwsf") {
      for (const auto& [from, to] : operand_pairs(plan_, *block.plan, operation)) writer_.put(block, from, to);
      if (name != "put") synchronization_.signal(block, operation);
    } else if (name == "get") {
      for (const auto& [from, to] : operand_pairs(plan_, *block.plan, operation)) writer_.get(block, from, to);
    } else if (name == "re" || name == "res" || name == "rre" || name == "rres") {
      reduce(block, operation);
    } else if (name == "glres") {
      switches_.load_reduce_store(block, operation);
    } else if (name == "gstore") {
      switches_.group_store(block, operation);
    } else {
      place_.fail(
          "this operation is not modelled; barrier, copy, cpkt, flush, get, glres, gstore, nop, pipeline, ppkt, put, "
          "pws, pwsf, re, "
          "recpkt, recspkt, repkt, res, respkt, rlxsignal, rlxwait, rppkt, rre, rres, sem_acquire, sem_release, "
          "signal, "
          "upkt and wait are");
    }
    return true;
  }

  /// The sum of all sources, of this and other GPUs, in the destination of this GPU; then it is put to the others.
  void reduce(ThreadBlock& block, const PlanJson& operation) {
    const auto from = operands(plan_, *block.plan, operation, "src_buff"),
               to = operands(plan_, *block.plan, operation, "dst_buff");
    if (from.front().count != to.front().count) place_.fail("source and destination have different sizes");
    const auto is_own = [&block](const PlanRange& one) { return one.gpu == block.gpu(); };
    const auto target = std::find_if(to.begin(), to.end(), is_own);
    if (target == to.end() || std::count_if(to.begin(), to.end(), is_own) != 1)
      place_.fail("expected one destination of the GPU itself");
    if (!is_own(from.front())) place_.fail("its first source is of the GPU itself");
    PlanRange sum = from.front();
    for (std::size_t i = 1; i < from.size(); ++i) {
      if (is_own(from[i])) {
        if (!sum.same_place(*target)) writer_.local(block, Primitive::copy, sum, *target);
        writer_.local(block, Primitive::reduce, from[i], *target);
      } else {
        writer_.receive_reduce(block, from[i], sum, *target);
      }
      sum = *target;
    }
    if (!sum.same_place(*target)) writer_.local(block, Primitive::copy, sum, *target);
    for (const PlanRange& one : to)
      if (!is_own(one)) writer_.put(block, *target, one);
  }

  const ExecutionPlan& plan_;
  PlanPlace& place_;
  StaticSchedule& schedule_;
  PlanStepWriter writer_;
  PlanSynchronization synchronization_;
  PlanPackets packets_;
  PlanSwitches switches_;
  std::vector<ThreadBlock> blocks_;
};

class PlanFileReader final : public ScheduleReader {
 public:
  std::unique_ptr<CollectiveAlgorithm> read(const std::string& path) const override {
    ExecutionPlan plan;
    plan.place.file = path;
    StaticSchedule schedule;
    schedule.file = path;
    try {
      read_plan(plan, schedule);
      PlanExecution(plan, schedule).run();
    } catch (const PlanJson::exception& problem) {
      plan.place.fail(
          fmt::format("a value is missing or of another type than the plan's format has ({})", problem.what()));
    }
    return make_static_algorithm(std::move(schedule));
  }
};

const Registration<ScheduleReader, PlanFileReader> mscclpp_registration("json", "MSCCL++'s execution plans");

}  // namespace
}  // namespace weft
