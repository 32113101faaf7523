// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/mscclpp/step_writer.hpp"

#include <algorithm>
#include <vector>

namespace weft {

constexpr std::size_t max_plan_steps = 1U << 20;  // of all ranks

StaticStep plan_step(Primitive primitive, const PlanRange* from, const PlanRange* to) {
  StaticStep step;
  step.primitive = primitive;
  if (from != nullptr) {
    step.source = from->buffer;
    step.source_chunk = from->chunk;
    step.count = from->count;
  }
  if (to != nullptr) {
    step.target = to->buffer;
    step.target_chunk = to->chunk;
    step.count = to->count;
  }
  return step;
}

void PlanStepWriter::put(ThreadBlock& block, const PlanRange& from, const PlanRange& to) {
  if (from.gpu != block.gpu() || to.gpu == block.gpu()) place_.fail("it puts from the GPU itself to another one");
  PlanPeer& peer = peer_of(block, to.gpu);
  add_own_step(block, peer.own_lane, plan_step(Primitive::send, &from, nullptr));
  add_step_there(peer, to.gpu, plan_step(Primitive::recv, nullptr, &to));
}

void PlanStepWriter::get(ThreadBlock& block, const PlanRange& from, const PlanRange& to) {
  if (to.gpu != block.gpu() || from.gpu == block.gpu()) place_.fail("it gets from another GPU to the GPU itself");
  PlanPeer& peer = peer_of(block, from.gpu);
  add_step_there(peer, from.gpu, plan_step(Primitive::send, &from, nullptr));
  add_own_step(block, peer.own_lane, plan_step(Primitive::recv, nullptr, &to));
}

void PlanStepWriter::local(ThreadBlock& block, Primitive primitive, const PlanRange& from, const PlanRange& to) {
  if (!block.local_lane) block.local_lane = add_lane(block.gpu(), block.id(), 0, no_lane);
  add_own_step(block, *block.local_lane, plan_step(primitive, &from, &to));
}

void PlanStepWriter::receive_reduce(ThreadBlock& block, const PlanRange& from, const PlanRange& sum,
                                    const PlanRange& to) {
  PlanPeer& peer = peer_of(block, from.gpu);
  add_step_there(peer, from.gpu, plan_step(Primitive::send, &from, nullptr));
  add_own_step(block, peer.own_lane, plan_step(Primitive::recv_reduce_copy, &sum, &to));
}

PlanPeer& PlanStepWriter::peer_of(ThreadBlock& block, std::uint32_t gpu) {
  const auto [at, fresh] = block.peers.try_emplace(gpu);
  if (!fresh) return at->second;
  PlanPeer& result = at->second;
  result.channel = channels_of_pair_[{std::min(block.gpu(), gpu), std::max(block.gpu(), gpu)}]++;
  channels_ = std::max(channels_, result.channel + 1);
  result.own_lane = add_lane(block.gpu(), block.id(), result.channel, gpu);
  result.lane_there = add_lane(gpu, block.id(), result.channel, block.gpu());
  return result;
}

std::uint32_t PlanStepWriter::add_lane(std::uint32_t rank, std::uint32_t id, std::uint32_t channel,
                                       std::uint32_t peer) {
  StaticLane lane;
  lane.id = id;
  lane.channel = channel;
  lane.send_peer = lane.receive_peer = peer;
  schedule_.ranks[rank].push_back(std::move(lane));
  return static_cast<std::uint32_t>(schedule_.ranks[rank].size() - 1);
}

PlanStep PlanStepWriter::add_step(std::uint32_t rank, std::uint32_t lane, StaticStep step, PlanSteps& waits) {
  auto& steps = schedule_.ranks[rank][lane].steps;
  if (++steps_ > max_plan_steps) place_.fail("too many steps");
  std::vector<PlanStep> left;
  for (const PlanStep& wait : waits)
    if (wait.lane != lane) left.push_back(wait);
  for (std::size_t i = 0; i < left.size(); ++i) {
    StaticStep waiting;
    StaticStep& carrier = i + 1 < left.size() ? waiting : step;
    carrier.wait_lane = left[i].lane;
    carrier.wait_step = left[i].step;
    if (i + 1 < left.size()) steps.push_back(waiting);
  }
  waits.clear();
  steps.push_back(step);
  return {lane, static_cast<std::uint32_t>(steps.size() - 1)};
}

void PlanStepWriter::add_own_step(ThreadBlock& block, std::uint32_t lane, const StaticStep& step) {
  if (block.last) block.waits.insert(*block.last);
  block.last = add_step(block.gpu(), lane, step, block.waits);
}

void PlanStepWriter::add_step_there(PlanPeer& peer, std::uint32_t gpu, const StaticStep& step) {
  peer.last_there = add_step(gpu, peer.lane_there, step, peer.waits_there);
}

}  // namespace weft
