// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/mscclpp/synchronization.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft {

PlanSynchronization::PlanSynchronization(const ExecutionPlan& plan, PlanStepWriter& writer)
    : place_(plan.place), writer_(writer), gpus_(plan.gpus.size()) {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    for (const auto& [type, channels] : plan.gpus[i].channels)
      for (const PlanChannel& channel : channels) gpus_[i].channels[type].push_back({channel, {}, 0});
    for (const std::uint32_t permits : plan.gpus[i].semaphores) gpus_[i].semaphores.push_back({permits, {}, 0});
  }
}

PlanSynchronization::ChannelEnd& PlanSynchronization::own_end(const ThreadBlock& block, const std::string& type,
                                                              std::uint32_t id) {
  auto& channels = gpus_[block.gpu()].channels;
  const auto ids = block.plan->channels.find(type);
  const auto all = channels.find(type);
  if (ids == block.plan->channels.end() || id >= ids->second.size() || all == channels.end() ||
      ids->second[id] >= all->second.size())
    place_.fail(fmt::format("the thread block has no channel {} of the type '{}'", id, type));
  return all->second[ids->second[id]];
}

// The n-th channel of the one GPU to the other is joined to the n-th of that one.
PlanSynchronization::ChannelEnd& PlanSynchronization::other_end(const ThreadBlock& block, const std::string& type,
                                                                const PlanChannel& channel) {
  for (ChannelEnd& one : gpus_[channel.peer].channels[type])
    if (one.channel.peer == block.gpu() && one.channel.number == channel.number) return one;
  place_.fail(fmt::format("GPU {} has no channel {} of the type '{}' to GPU {}", channel.peer, channel.number, type,
                          block.gpu()));
}

void PlanSynchronization::signal(const ThreadBlock& block, const PlanJson& operation) {
  const std::string type = operation.at("channel_type").get<std::string>();
  for (const PlanJson& id : operation.at("channel_ids")) {
    const PlanChannel& channel = own_end(block, type, plan_number(id)).channel;
    Signal signal;
    signal.own = block.done();
    if (const auto peer = block.peers.find(channel.peer); peer != block.peers.end()) {
      signal.for_it = peer->second.waits_there;
      if (peer->second.last_there) signal.for_it.insert(*peer->second.last_there);
    }
    other_end(block, type, channel).signals.push_back(std::move(signal));
  }
}

bool PlanSynchronization::wait(ThreadBlock& block, const PlanJson& operation) {
  const std::string type = operation.at("channel_type").get<std::string>();
  for (const PlanJson& id : operation.at("channel_ids")) {
    const ChannelEnd& end = own_end(block, type, plan_number(id));
    if (end.waited >= end.signals.size()) return false;
  }
  for (const PlanJson& id : operation.at("channel_ids")) {
    ChannelEnd& end = own_end(block, type, plan_number(id));
    if (end.waited >= end.signals.size()) return false;
    const Signal signal = end.signals[end.waited++];
    block.waits.insert(signal.for_it.begin(), signal.for_it.end());
    writer_.peer_of(block, end.channel.peer).waits_there.insert(signal.own.begin(), signal.own.end());
  }
  return true;
}

bool PlanSynchronization::barrier(ThreadBlock& block, const PlanJson& operation) {
  const auto id = operation.at("barrier_id").get<std::int64_t>();
  const std::uint32_t members = place_.number(operation, "num_threadblocks", max_plan_blocks);
  Barrier& barrier = gpus_[block.gpu()].barriers[id];
  if (!block.in_barrier) {
    if (barrier.left > 0) return false;  // the one before has not been left by all
    block.in_barrier = true;
    barrier.blocks.insert(block.id());
    barrier.before.merge(block.done());
    if (barrier.blocks.size() < members) return false;
    barrier.left = members;
  }
  if (barrier.left == 0) return false;
  block.waits = barrier.before;
  block.in_barrier = false;
  if (--barrier.left == 0) barrier = {};
  return true;
}

bool PlanSynchronization::acquire(ThreadBlock& block, const PlanJson& operation) {
  const auto& ids = operation.at("semaphore_ids");
  for (const PlanJson& id : ids)
    if (semaphore(block, id).taken()) return false;
  for (const PlanJson& id : ids) {
    Semaphore& one = semaphore(block, id);
    if (one.taken()) place_.fail("it acquires a semaphore more often than it has been released");
    if (one.permits > 0) {
      --one.permits;
      continue;
    }
    const PlanSteps& before = one.released[one.acquired++];
    block.waits.insert(before.begin(), before.end());
  }
  return true;
}

void PlanSynchronization::release(const ThreadBlock& block, const PlanJson& operation) {
  for (const PlanJson& id : operation.at("semaphore_ids")) semaphore(block, id).released.push_back(block.done());
}

PlanSynchronization::Semaphore& PlanSynchronization::semaphore(const ThreadBlock& block, const PlanJson& id) {
  auto& all = gpus_[block.gpu()].semaphores;
  if (plan_number(id) >= all.size())
    place_.fail(fmt::format("the GPU has {} semaphores, and no number {}", all.size(), plan_number(id)));
  return all[plan_number(id)];
}

}  // namespace weft
