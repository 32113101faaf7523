// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/mscclpp/operands.hpp"

#include <string>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft {

OperandShare operand_share(const ExecutionPlan& plan, const PlanJson& operation) {
  if (!operation.contains("tbg_info")) return {};
  const PlanJson& info = operation.at("tbg_info");
  const OperandShare share{plan.place.number(info, "tbg_size", max_plan_blocks),
                           plan.place.number(info, "tb_id", max_plan_blocks)};
  if (share.member >= share.size)
    plan.place.fail(fmt::format("'tbg_info': thread block {} of a group of {}", share.member, share.size));
  return share;
}

PlanRange operand(const ExecutionPlan& plan, const PlanBlock& block, const PlanJson& operation,
                  const PlanJson& buffer) {
  const PlanPlace& place = plan.place;
  PlanRange result;
  result.gpu = block.gpu;
  result.chunk = place.number(buffer, "index", max_plan_chunks);
  result.count = buffer.contains("size") ? place.number(buffer, "size", max_plan_chunks) : 1;
  if (buffer.contains("buffer_id")) {
    const std::string type = operation.at("channel_type").get<std::string>();
    const auto refs = block.remote_buffers.find(type);
    const std::uint32_t id = place.number(buffer, "buffer_id", 0xffffffffU);
    const auto& remote = plan.gpus[block.gpu].remote_buffers;
    if (refs == block.remote_buffers.end() || id >= refs->second.size() || refs->second[id] >= remote.size())
      place.fail(fmt::format("the thread block has no remote buffer {} of the type '{}'", id, type));
    std::tie(result.gpu, result.buffer) = remote[refs->second[id]];
  } else {
    result.buffer = place.buffer(buffer.at("type").get<std::string>());
  }
  const std::uint32_t chunks = plan.gpus[result.gpu].chunks.at(result.buffer);
  if (result.count == 0 || result.chunk + std::uint64_t{result.count} > chunks)
    place.fail(fmt::format("chunks {} to {} of the buffer {} of GPU {}, which has {}", result.chunk,
                           result.chunk + std::uint64_t{result.count}, to_text(result.buffer), result.gpu, chunks));
  const OperandShare group = operand_share(plan, operation);
  const std::uint32_t share = result.count * (plan.parts / group.size);
  result.chunk = result.chunk * plan.parts + group.member * share;
  result.count = share;
  return result;
}

std::vector<PlanRange> operands(const ExecutionPlan& plan, const PlanBlock& block, const PlanJson& operation,
                                const char* key) {
  std::vector<PlanRange> all;
  for (const PlanJson& buffer : operation.at(key)) all.push_back(operand(plan, block, operation, buffer));
  if (all.empty()) plan.place.fail(fmt::format("'{}' is empty", key));
  for (const PlanRange& one : all)
    if (one.count != all.front().count) plan.place.fail(fmt::format("'{}' has buffers of different sizes", key));
  return all;
}

std::vector<std::pair<PlanRange, PlanRange>> operand_pairs(const ExecutionPlan& plan, const PlanBlock& block,
                                                           const PlanJson& operation) {
  const auto from = operands(plan, block, operation, "src_buff"), to = operands(plan, block, operation, "dst_buff");
  if (from.size() != to.size() && from.size() != 1) plan.place.fail("expected as many sources as destinations");
  std::vector<std::pair<PlanRange, PlanRange>> all;
  for (std::size_t i = 0; i < to.size(); ++i) all.emplace_back(from[from.size() == 1 ? 0 : i], to[i]);
  for (const auto& [source, target] : all)
    if (source.count != target.count) plan.place.fail("source and destination have different sizes");
  return all;
}

std::pair<PlanRange, PlanRange> local_operands(const ExecutionPlan& plan, const PlanBlock& block,
                                               const PlanJson& operation) {
  const auto all = operand_pairs(plan, block, operation);
  if (all.size() != 1 || all[0].first.gpu != block.gpu || all[0].second.gpu != block.gpu)
    plan.place.fail("expected one source and one destination of the GPU itself");
  return all[0];
}

PlanSwitchRange switch_operand(const ExecutionPlan& plan, const std::vector<StaticSwitch>& switches,
                               const PlanBlock& block, const PlanJson& operation, const char* key) {
  const PlanPlace& place = plan.place;
  const PlanJson& list = operation.at(key);
  if (!list.is_array() || list.size() != 1 || !list[0].contains("switch_channel_id"))
    place.fail(fmt::format("'{}' must be one buffer behind a switch, with a 'switch_channel_id'", key));
  const auto ids = block.channels.find("switch");
  const std::uint32_t id = place.number(list[0], "switch_channel_id", 0xffffffffU);
  const auto& all = plan.gpus[block.gpu].switches;
  if (ids == block.channels.end() || id >= ids->second.size() || ids->second[id] >= all.size())
    place.fail(fmt::format("the thread block has no channel {} of the type 'switch'", id));
  const PlanSwitch& channel = all[ids->second[id]];
  PlanJson plain = list[0];
  plain["type"] = channel.buffer == Buffer::input ? "i" : channel.buffer == Buffer::output ? "o" : "s";
  const PlanRange own = operand(plan, block, operation, plain);
  for (const std::uint32_t gpu : gpus_of(switches[channel.number]))
    if (own.chunk + std::uint64_t{own.count} > plan.schedule_chunks(gpu, own.buffer))
      place.fail(fmt::format("chunks of the buffer {} of all GPUs behind the switch, and GPU {} has {}",
                             to_text(own.buffer), gpu, plan.gpus[gpu].chunks.at(own.buffer)));
  return {channel.number, own};
}

std::vector<std::uint32_t> gpus_of(const StaticSwitch& one) {
  std::vector<std::uint32_t> gpus(one.count);
  for (std::uint32_t i = 0; i < one.count; ++i) gpus[i] = one.first + i * one.stride;
  return gpus;
}

}  // namespace weft
