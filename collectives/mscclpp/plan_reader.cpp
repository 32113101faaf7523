// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "collectives/mscclpp/operands.hpp"
#include "collectives/mscclpp/plan.hpp"
#include "support/basics/error.hpp"
#include "support/documents/text_file.hpp"

namespace weft {

std::uint32_t plan_number(const PlanJson& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0xffffffffU)
    throw PlanJson::type_error::create(302, "expected a whole number from 0 to 4294967295", &value);
  return value.get<std::uint32_t>();
}

void PlanPlace::fail(const std::string& message) const { throw InputError(SourceLine{file, 0}, part + message); }

std::uint32_t PlanPlace::number(const PlanJson& map, const char* key, std::uint32_t max) const {
  const std::uint32_t value = plan_number(map.at(key));
  if (value > max) fail(fmt::format("'{}' is {}; expected at most {}", key, value, max));
  return value;
}

Buffer PlanPlace::buffer(const std::string& name) const {
  if (name == "i") return Buffer::input;
  if (name == "o") return Buffer::output;
  if (name == "s") return Buffer::scratch;
  fail(fmt::format("a buffer of the type '{}'; i, o and s are known", name));
}

namespace {

constexpr std::size_t max_plan_operations = 1U << 20;  // of a thread block

const std::map<std::string, CollectiveKind> plan_kinds = {
    {"allreduce", CollectiveKind::all_reduce},         {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter}, {"alltoall", CollectiveKind::all_to_all},
    {"broadcast", CollectiveKind::broadcast},          {"reduce", CollectiveKind::reduce}};

class PlanReader {
 public:
  PlanReader(ExecutionPlan& plan, StaticSchedule& schedule) : plan_(plan), schedule_(schedule), place_(plan.place) {}

  void read() {
    try {
      plan_.json = std::make_shared<const PlanJson>(PlanJson::parse(text_of_file(place_.file)));
    } catch (const PlanJson::exception& problem) {
      place_.fail(fmt::format("this is no JSON: {}", problem.what()));
    }
    read_head();
    read_gpus();
  }

 private:
  void read_head() {
    if (!plan_.json->is_object() || !plan_.json->contains("gpus") || !plan_.json->contains("collective"))
      place_.fail("this is no execution plan of MSCCL++: it has no 'gpus' or no 'collective'");
    schedule_.name = plan_.json->value("name", "mscclpp");
    std::replace(schedule_.name.begin(), schedule_.name.end(), ' ', '_');
    if (schedule_.name.empty()) schedule_.name = "mscclpp";
    const std::string kind = plan_.json->at("collective").get<std::string>();
    const auto known = plan_kinds.find(kind);
    if (known == plan_kinds.end())
      place_.fail(fmt::format(
          "the collective is '{}'; allgather, allreduce, alltoall, broadcast, reduce and reducescatter are known",
          kind));
    schedule_.kind = known->second;
    const std::string protocol = plan_.json->value("protocol", "Simple");
    if (protocol != "Simple" && protocol != "LL")
      place_.fail(fmt::format("the protocol is '{}'; expected Simple or LL", protocol));
    if (protocol == "LL") schedule_.protocol = Protocol::ll;
    schedule_.in_place = plan_.json->value("inplace", false);
    if (schedule_.in_place && schedule_.kind == CollectiveKind::all_to_all)
      place_.fail("alltoall in place: its blocks cannot be exchanged within one buffer");
  }

  void read_gpus() {
    const PlanJson& list = plan_.json->at("gpus");
    if (!list.is_array() || list.empty() || list.size() > max_plan_gpus)
      place_.fail(fmt::format("'gpus' is a list of 1 to {} GPUs", max_plan_gpus));
    plan_.gpus.resize(list.size());
    schedule_.ranks.resize(list.size());
    std::set<std::uint32_t> seen;
    for (const PlanJson& gpu : list) {
      const std::uint32_t id = place_.number(gpu, "id", static_cast<std::uint32_t>(list.size()) - 1);
      place_.part = fmt::format("GPU {}: ", id);
      if (!seen.insert(id).second) place_.fail("a second GPU of this id");
      read_gpu(gpu, id);
    }
    place_.part.clear();
    check_chunks();
    divide_chunks();
  }

  void read_gpu(const PlanJson& gpu, std::uint32_t id) {
    PlanGpu& result = plan_.gpus[id];
    result.chunks = {{Buffer::input, place_.number(gpu, "input_chunks", max_plan_chunks)},
                     {Buffer::output, place_.number(gpu, "output_chunks", max_plan_chunks)},
                     {Buffer::scratch, place_.number(gpu, "scratch_chunks", max_plan_chunks)}};
    const auto last = static_cast<std::uint32_t>(plan_.gpus.size()) - 1;
    for (const PlanJson& group : gpu.value("channels", PlanJson::array())) {
      const std::string type = group.at("channel_type").get<std::string>();
      if (type == "switch") {
        read_switch_channel(group, id, result);
        continue;
      }
      auto& channels = result.channels[type];
      for (const PlanJson& value : group.at("connected_to")) {
        const std::uint32_t peer = plan_number(value);
        if (peer > last || peer == id) place_.fail(fmt::format("a channel to GPU {}", peer));
        const auto before = std::count_if(channels.begin(), channels.end(),
                                          [peer](const PlanChannel& one) { return one.peer == peer; });
        channels.push_back({peer, static_cast<std::uint32_t>(before)});
      }
    }
    for (const PlanJson& buffer : gpu.value("remote_buffers", PlanJson::array())) {
      const std::uint32_t rank = place_.number(buffer, "rank", last);
      if (rank == id) place_.fail("a remote buffer of the GPU itself");
      result.remote_buffers.emplace_back(rank, place_.buffer(buffer.at("type").get<std::string>()));
    }
    for (const PlanJson& semaphore : gpu.value("semaphores", PlanJson::array()))
      result.semaphores.push_back(place_.number(semaphore, "init_value", max_plan_blocks));
    const PlanJson& blocks = gpu.at("threadblocks");
    if (!blocks.is_array() || blocks.size() > max_plan_blocks)
      place_.fail(fmt::format("'threadblocks' is a list of at most {}", max_plan_blocks));
    for (const PlanJson& block : blocks) read_block(block, id);
  }

  /// `rank_groups` of a channel of the type switch, of which each is a channel (parseChannels of execution_plan.cc).
  void read_switch_channel(const PlanJson& channel, std::uint32_t id, PlanGpu& gpu) {
    const Buffer buffer = place_.buffer(channel.at("buffer_type").get<std::string>());
    for (const PlanJson& group : channel.at("rank_groups")) {
      std::set<std::uint32_t> ranks;
      for (const PlanJson& rank : group.at("ranks")) ranks.insert(plan_number(rank));
      if (!ranks.contains(id)) place_.fail("a channel of the type 'switch' whose ranks are without the GPU itself");
      gpu.switches.push_back({number_of_switch(ranks), buffer});
    }
  }

  /// The number of the switch above these GPUs, which have a constant distance.
  std::uint32_t number_of_switch(const std::set<std::uint32_t>& ranks) {
    const std::vector<std::uint32_t> list(ranks.begin(), ranks.end());
    if (list.size() < 2 || list.back() >= plan_.gpus.size())
      place_.fail(fmt::format("a channel of the type 'switch' to {} GPUs up to {}; expected two or more of {}",
                              list.size(), list.empty() ? 0 : list.back(), plan_.gpus.size()));
    const StaticSwitch one{list[0], static_cast<std::uint32_t>(list.size()), list[1] - list[0]};
    for (std::size_t i = 2; i < list.size(); ++i)
      if (list[i] - list[i - 1] != one.stride)
        place_.fail(
            fmt::format("a channel of the type 'switch' to the GPUs {}; expected GPUs that are equally far apart",
                        fmt::join(list, ", ")));
    const auto known = std::find(schedule_.switches.begin(), schedule_.switches.end(), one);
    const auto place = static_cast<std::uint32_t>(known - schedule_.switches.begin());
    if (known == schedule_.switches.end()) {
      if (place >= AggregatorSite::max_units) place_.fail(fmt::format("more than {} groups of GPUs", place));
      schedule_.switches.push_back(one);
      schedule_.ranks.emplace_back();
    }
    return place;
  }

  void read_block(const PlanJson& json, std::uint32_t gpu) {
    PlanBlock block;
    block.gpu = gpu;
    block.id = place_.number(json, "id", 0xffffffffU);
    for (const PlanJson& group : json.value("channels", PlanJson::array()))
      for (const PlanJson& id : group.at("channel_ids"))
        block.channels[group.at("channel_type").get<std::string>()].push_back(plan_number(id));
    for (const PlanJson& group : json.value("remote_buffer_refs", PlanJson::array()))
      for (const PlanJson& id : group.at("remote_buffer_ids"))
        block.remote_buffers[group.at("access_channel_type").get<std::string>()].push_back(plan_number(id));
    add_operations(json.at("ops"), block);
    plan_.blocks.push_back(std::move(block));
  }

  // A pipeline does its operations for one part of the chunks after another, as every schedule is repeated here.
  void add_operations(const PlanJson& list, PlanBlock& block) {
    for (const PlanJson& operation : list) {
      if (block.operations.size() >= max_plan_operations) place_.fail("too many operations");
      if (operation.at("name").get<std::string>() == "pipeline")
        for (const PlanJson& inner : operation.at("ops")) block.operations.push_back(&inner);
      else
        block.operations.push_back(&operation);
    }
  }

  /// S is cut into as many chunks as the larger buffer has.
  void check_chunks() {
    const auto n = static_cast<std::uint32_t>(plan_.gpus.size());
    const bool gathers = schedule_.kind == CollectiveKind::all_gather;
    const bool scatters = schedule_.kind == CollectiveKind::reduce_scatter;
    PlanGpu& first = plan_.gpus.front();
    schedule_.chunks = gathers ? first.chunks[Buffer::output] : first.chunks[Buffer::input];
    if (gathers && schedule_.chunks == 0) schedule_.chunks = n * first.chunks[Buffer::input];
    if (schedule_.chunks == 0) place_.fail("the buffers have no chunks");
    const bool blocks = gathers || scatters || schedule_.kind == CollectiveKind::all_to_all;
    if (blocks && schedule_.chunks % n != 0)
      place_.fail(fmt::format("{} chunks are no multiple of {} GPUs", schedule_.chunks, n));
    for (std::uint32_t id = 0; id < n; ++id) {
      auto& chunks = plan_.gpus[id].chunks;
      const std::uint32_t input = gathers ? schedule_.chunks / n : schedule_.chunks;
      const std::uint32_t output = scatters ? schedule_.chunks / n : schedule_.chunks;
      if (chunks[Buffer::input] != input && !(schedule_.in_place && chunks[Buffer::input] == 0))
        place_.fail(fmt::format("GPU {} has {} input chunks; expected {}", id, chunks[Buffer::input], input));
      chunks[Buffer::input] = input;
      chunks[Buffer::output] = std::max(chunks[Buffer::output], output);
    }
  }

  /// Thread blocks of a group do an operation together, each its part of every chunk (`tbg_info`; calcOffset of
  /// execution_plan.cc, which gives them elements of 16 B in turn). So that parts are chunks of the schedule, all
  /// chunks are cut into as many as the sizes of all groups divide.
  void divide_chunks() {
    std::uint64_t parts = 1, largest = schedule_.chunks;
    for (const PlanGpu& gpu : plan_.gpus)
      for (const auto& [buffer, chunks] : gpu.chunks) largest = std::max<std::uint64_t>(largest, chunks);
    for (const PlanBlock& block : plan_.blocks)
      for (const PlanJson* operation : block.operations) {
        place_.part = fmt::format("GPU {}, thread block {}: ", block.gpu, block.id);
        parts = std::lcm(parts, std::uint64_t{operand_share(plan_, *operation).size});
        if (parts * largest > max_plan_chunks)
          place_.fail(fmt::format(
              "'tbg_info': so many thread blocks share operations that there are more than {} parts", max_plan_chunks));
      }
    place_.part.clear();
    plan_.parts = static_cast<std::uint32_t>(parts);
    schedule_.chunks *= plan_.parts;
  }

  ExecutionPlan& plan_;
  StaticSchedule& schedule_;
  PlanPlace& place_;
};

}  // namespace

void read_plan(ExecutionPlan& plan, StaticSchedule& schedule) { PlanReader(plan, schedule).read(); }

}  // namespace weft
