// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/mscclpp/switches.hpp"

#include <nlohmann/json.hpp>

namespace weft {

/// Channels of stores have numbers from here on, until all of loads are known.
constexpr std::uint32_t first_store_channel = 1U << 30;

PlanSwitchRange PlanSwitches::range(const ThreadBlock& block, const PlanJson& operation, const char* key) const {
  return switch_operand(plan_, schedule_.switches, *block.plan, operation, key);
}

void PlanSwitches::load_reduce_store(ThreadBlock& block, const PlanJson& operation) {
  const PlanSwitchRange from = range(block, operation, "src_buff"), to = range(block, operation, "dst_buff");
  if (from.range.count != to.range.count) plan_.place.fail("source and destination have different sizes");
  const PlanRange sum{block.gpu(), Buffer::scratch, add_scratch(block.gpu(), from.range.count), from.range.count};
  load(block, from, sum);
  store(block, sum, to);
}

void PlanSwitches::group_store(ThreadBlock& block, const PlanJson& operation) {
  const auto from = operands(plan_, *block.plan, operation, "src_buff");
  const PlanSwitchRange to = range(block, operation, "dst_buff");
  if (from.size() != 1 || from[0].gpu != block.gpu()) plan_.place.fail("expected one source of the GPU itself");
  if (from[0].count != to.range.count) plan_.place.fail("source and destination have different sizes");
  store(block, from[0], to);
}

// Chunks of a rank's scratch that no plan knows of.
std::uint32_t PlanSwitches::add_scratch(std::uint32_t rank, std::uint32_t count) {
  const std::uint32_t known = rank < plan_.gpu_count() ? plan_.schedule_chunks(rank, Buffer::scratch) : 0;
  const auto [at, fresh] = scratch_ends_.try_emplace(rank, known);
  if (at->second > 2 * max_plan_chunks) plan_.place.fail("too many chunks pass through switches");
  return std::exchange(at->second, at->second + count);
}

// A channel for this thread block and switch; those of loads and stores are numbered when all are known.
const PlanSwitches::Use& PlanSwitches::use_of(const ThreadBlock& block, std::uint32_t number, bool loads) {
  Uses& uses = loads ? loads_ : stores_;
  const auto [at, fresh] = uses.try_emplace({&block, number});
  if (!fresh) return at->second;
  Use& use = at->second;
  use.channel = (loads ? 0 : first_store_channel) + static_cast<std::uint32_t>(uses.size() - 1);
  const std::uint32_t rank = rank_of(number);
  for (const std::uint32_t gpu : gpus_of(schedule_.switches[number]))
    use.at_gpus.push_back(writer_.add_lane(gpu, block.id(), use.channel, rank));
  use.own_lane = writer_.add_lane(block.gpu(), block.id(), use.channel, rank);
  use.in_switch = writer_.add_lane(rank, block.id(), use.channel, no_lane);
  return use;
}

void PlanSwitches::step_in_switch(std::uint32_t rank, const Use& use, StaticStep step, std::uint32_t from,
                                  std::uint32_t to) {
  step.receive_peer = from;
  step.send_peer = to;
  PlanSteps none;
  writer_.add_step(rank, use.in_switch, step, none);
}

// A step at a GPU of the switch: the thread block's own step, or one that represents it there.
void PlanSwitches::step_at(ThreadBlock& block, std::uint32_t gpu, std::uint32_t lane, const StaticStep& step) {
  if (gpu == block.gpu()) return writer_.add_own_step(block, lane, step);
  PlanPeer& peer = writer_.peer_of(block, gpu);
  if (peer.last_there) peer.waits_there.insert(*peer.last_there);
  peer.last_there = writer_.add_step(gpu, lane, step, peer.waits_there);
}

void PlanSwitches::load(ThreadBlock& block, const PlanSwitchRange& from, const PlanRange& to) {
  const Use& use = use_of(block, from.number, true);
  const std::vector<std::uint32_t> gpus = gpus_of(schedule_.switches[from.number]);
  const std::uint32_t rank = rank_of(from.number);
  const PlanRange sum{rank, Buffer::scratch, add_scratch(rank, from.range.count), from.range.count};
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    step_at(block, gpus[i], use.at_gpus[i], plan_step(Primitive::send, &from.range, nullptr));
    if (i == 0)
      step_in_switch(rank, use, plan_step(Primitive::recv, nullptr, &sum), gpus[i], no_lane);
    else if (i + 1 < gpus.size())
      step_in_switch(rank, use, plan_step(Primitive::recv_reduce_copy, &sum, &sum), gpus[i], no_lane);
    else
      step_in_switch(rank, use, plan_step(Primitive::recv_reduce_send, &sum, nullptr), gpus[i], block.gpu());
  }
  writer_.add_own_step(block, use.own_lane, plan_step(Primitive::recv, nullptr, &to));
}

void PlanSwitches::store(ThreadBlock& block, const PlanRange& from, const PlanSwitchRange& to) {
  const Use& use = use_of(block, to.number, false);
  const std::vector<std::uint32_t> gpus = gpus_of(schedule_.switches[to.number]);
  const std::uint32_t rank = rank_of(to.number);
  const PlanRange held{rank, Buffer::scratch, add_scratch(rank, from.count), from.count};
  writer_.add_own_step(block, use.own_lane, plan_step(Primitive::send, &from, nullptr));
  step_in_switch(rank, use, plan_step(Primitive::recv, nullptr, &held), block.gpu(), no_lane);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    step_in_switch(rank, use, plan_step(Primitive::send, &held, nullptr), no_lane, gpus[i]);
    step_at(block, gpus[i], use.at_gpus[i], plan_step(Primitive::recv, nullptr, &to.range));
  }
}

std::uint32_t PlanSwitches::number_channels() {
  const auto loads = static_cast<std::uint32_t>(loads_.size()), stores = static_cast<std::uint32_t>(stores_.size());
  for (auto& lanes : schedule_.ranks)
    for (StaticLane& lane : lanes)
      if (lane.channel >= first_store_channel) lane.channel = lane.channel - first_store_channel + loads;
  return loads + stores;
}

}  // namespace weft
