// SPDX-License-Identifier: GPL-2.0-only
// MSCCL++'s execution plans. Format and meaning: github.com/microsoft/mscclpp src/executor/execution_plan.cc and
// execution_kernel.hpp; names of operations: python/mscclpp/language.
//
// A plan is one-sided: a thread block writes into and reads from the memory of other GPUs, and signals order what is
// done there. Here each such access is a message with two ends: the thread block's own step, and a step of a lane that
// stands for it at the other GPU. A wait makes those that follow it wait for what had been done before the signal.
//
// NVLink's switch is a further rank: what a thread block loads through it comes as a message from each GPU, is summed
// up there, and goes to the GPU of the thread block; what it stores goes to the switch, and from there to each GPU.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "collectives/plans/static_schedule.hpp"
#include "support/error.hpp"

namespace weft {
namespace {

using PlanJson = nlohmann::json;

constexpr std::uint32_t max_plan_gpus = 1024;
constexpr std::uint32_t max_plan_chunks = 1U << 20;
constexpr std::uint32_t max_plan_blocks = 1024;  ///< thread blocks of a GPU
constexpr std::size_t max_plan_steps = 1U << 20;

const std::map<std::string, CollectiveKind> plan_kinds = {
    {"allreduce", CollectiveKind::all_reduce},         {"allgather", CollectiveKind::all_gather},
    {"reducescatter", CollectiveKind::reduce_scatter}, {"alltoall", CollectiveKind::all_to_all},
    {"broadcast", CollectiveKind::broadcast},          {"reduce", CollectiveKind::reduce}};

/// A step of a GPU that has been written.
struct PlanStep {
  std::uint32_t lane = 0;
  std::uint32_t step = 0;
  auto operator<=>(const PlanStep&) const = default;
};

/// Chunks of a buffer of some GPU.
struct PlanRange {
  std::uint32_t gpu = 0;
  Buffer buffer = Buffer::input;
  std::uint32_t chunk = 0;
  std::uint32_t count = 1;
};

/// What those who wait for a signal have to wait for.
struct PlanSignal {
  std::set<PlanStep> own;     ///< steps of the GPU that signals
  std::set<PlanStep> for_it;  ///< steps that stand for the thread block at the GPU that waits
};

/// A channel of a GPU: a peer, and the signals that have come from there.
struct PlanChannel {
  std::uint32_t peer = 0;
  std::uint32_t number = 0;  ///< among those of its type to this peer
  std::vector<PlanSignal> signals;
  std::size_t waited = 0;
};

/// The memory of a group of GPUs behind the switch that reduces.
struct PlanSwitch {
  std::uint32_t number = 0;  ///< in StaticSchedule::switches
  Buffer buffer = Buffer::input;
};

struct PlanGpu {
  std::vector<PlanSwitch> switches;                              // channels of the type switch
  std::map<std::string, std::vector<PlanChannel>> channels;      // by type
  std::vector<std::pair<std::uint32_t, Buffer>> remote_buffers;  // GPU, buffer
  std::map<Buffer, std::uint32_t> chunks;
  struct Barrier {
    std::set<std::uint32_t> blocks;  // that have come
    std::set<PlanStep> before;
    std::uint32_t left = 0;
  };
  std::map<std::int64_t, Barrier> barriers;
  /// Thread blocks of one GPU hand each other a number of permits.
  struct Semaphore {
    std::uint32_t permits = 0;                 // from the beginning
    std::vector<std::set<PlanStep>> released;  // what had been done before each release
    std::size_t acquired = 0;                  // of these
  };
  std::vector<Semaphore> semaphores;
  std::map<std::uint32_t, PlanStep> packets;  // chunk of the scratch -> step that has written packets there
};

struct PlanBlock {
  std::uint32_t gpu = 0;
  std::uint32_t id = 0;
  std::vector<const PlanJson*> operations;
  std::size_t next = 0;
  std::map<std::string, std::vector<std::uint32_t>> channels;        // by type: its channels of the GPU
  std::map<std::string, std::vector<std::uint32_t>> remote_buffers;  // the same of remote buffers
  std::optional<std::uint32_t> main_lane;
  struct Peer {
    std::uint32_t channel = 0;
    std::uint32_t own_lane = 0;
    std::uint32_t lane_there = 0;
    std::optional<PlanStep> last_there;
    std::set<PlanStep> waits_there;
  };
  std::map<std::uint32_t, Peer> peers;
  /// Lanes of what a thread block loads or stores through a switch: one at each of its GPUs, in their order, one of
  /// the thread block's own GPU the other way, and one in the switch.
  struct SwitchUse {
    std::uint32_t channel = 0;
    std::vector<std::uint32_t> at_gpus;
    std::uint32_t own_lane = no_lane;
    std::uint32_t in_switch = no_lane;
  };
  std::map<std::uint32_t, SwitchUse> loads, stores;  // by the switch's number
  std::optional<PlanStep> last;
  std::set<PlanStep> waits;
  std::optional<std::int64_t> in_barrier;
};

class PlanReader {
 public:
  explicit PlanReader(const std::string& path) {
    schedule_.file = path;
    try {
      plan_ = PlanJson::parse(read_whole_file(path));
    } catch (const PlanJson::exception& problem) {
      fail(fmt::format("this is no JSON: {}", problem.what()));
    }
  }

  StaticSchedule read() {
    try {
      read_head();
      read_gpus();
      run();
      number_switch_channels();
    } catch (const PlanJson::exception& problem) {
      fail(fmt::format("{} ({})", "a value is missing or of another type than the plan's format has", problem.what()));
    }
    schedule_.channels = std::max(1U, channels_);
    return std::move(schedule_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(SourceLine{schedule_.file, 0}, place_ + message);
  }

  static std::uint32_t number(const PlanJson& value) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0xffffffffU)
      throw PlanJson::type_error::create(302, "expected a whole number from 0 to 4294967295", &value);
    return value.get<std::uint32_t>();
  }
  std::uint32_t number(const PlanJson& map, const char* key, std::uint32_t most) const {
    const std::uint32_t value = number(map.at(key));
    if (value > most) fail(fmt::format("'{}' is {}; expected at most {}", key, value, most));
    return value;
  }

  void read_head() {
    if (!plan_.is_object() || !plan_.contains("gpus") || !plan_.contains("collective"))
      fail("this is no execution plan of MSCCL++: it has no 'gpus' or no 'collective'");
    schedule_.name = plan_.value("name", "mscclpp");
    std::replace(schedule_.name.begin(), schedule_.name.end(), ' ', '_');
    if (schedule_.name.empty()) schedule_.name = "mscclpp";
    const std::string kind = plan_.at("collective").get<std::string>();
    const auto known = plan_kinds.find(kind);
    if (known == plan_kinds.end())
      fail(fmt::format(
          "the collective is '{}'; allgather, allreduce, alltoall, broadcast, reduce and reducescatter are known",
          kind));
    schedule_.kind = known->second;
    const std::string protocol = plan_.value("protocol", "Simple");
    if (protocol != "Simple" && protocol != "LL")
      fail(fmt::format("the protocol is '{}'; expected Simple or LL", protocol));
    if (protocol == "LL") schedule_.protocol = Protocol::ll;
    schedule_.in_place = plan_.value("inplace", false);
    if (schedule_.in_place && schedule_.kind == CollectiveKind::all_to_all)
      fail("alltoall in place: its blocks cannot be exchanged within one buffer");
  }

  void read_gpus() {
    const PlanJson& list = plan_.at("gpus");
    if (!list.is_array() || list.empty() || list.size() > max_plan_gpus)
      fail(fmt::format("'gpus' is a list of 1 to {} GPUs", max_plan_gpus));
    gpus_.resize(list.size());
    schedule_.ranks.resize(list.size());
    std::set<std::uint32_t> seen;
    for (const PlanJson& gpu : list) {
      const std::uint32_t id = number(gpu, "id", static_cast<std::uint32_t>(list.size()) - 1);
      place_ = fmt::format("GPU {}: ", id);
      if (!seen.insert(id).second) fail("a second GPU of this id");
      read_gpu(gpu, id);
    }
    place_.clear();
    check_chunks();
    divide_chunks();
  }

  void read_gpu(const PlanJson& gpu, std::uint32_t id) {
    PlanGpu& result = gpus_[id];
    result.chunks = {{Buffer::input, number(gpu, "input_chunks", max_plan_chunks)},
                     {Buffer::output, number(gpu, "output_chunks", max_plan_chunks)},
                     {Buffer::scratch, number(gpu, "scratch_chunks", max_plan_chunks)}};
    const auto last = static_cast<std::uint32_t>(gpus_.size()) - 1;
    for (const PlanJson& group : gpu.value("channels", PlanJson::array())) {
      const std::string type = group.at("channel_type").get<std::string>();
      if (type == "switch") {
        read_switch_channel(group, id, result);
        continue;
      }
      auto& channels = result.channels[type];
      for (const PlanJson& value : group.at("connected_to")) {
        const std::uint32_t peer = number(value);
        if (peer > last || peer == id) fail(fmt::format("a channel to GPU {}", peer));
        const auto before = std::count_if(channels.begin(), channels.end(),
                                          [peer](const PlanChannel& one) { return one.peer == peer; });
        channels.push_back({peer, static_cast<std::uint32_t>(before), {}, 0});
      }
    }
    for (const PlanJson& buffer : gpu.value("remote_buffers", PlanJson::array())) {
      const std::uint32_t rank = number(buffer, "rank", last);
      if (rank == id) fail("a remote buffer of the GPU itself");
      result.remote_buffers.emplace_back(rank, buffer_of(buffer.at("type").get<std::string>()));
    }
    for (const PlanJson& semaphore : gpu.value("semaphores", PlanJson::array()))
      result.semaphores.push_back({number(semaphore, "init_value", max_plan_blocks), {}, 0});
    const PlanJson& blocks = gpu.at("threadblocks");
    if (!blocks.is_array() || blocks.size() > max_plan_blocks)
      fail(fmt::format("'threadblocks' is a list of at most {}", max_plan_blocks));
    for (const PlanJson& block : blocks) read_block(block, id);
  }

  /// `rank_groups` of a channel of the type switch, of which each is a channel (parseChannels of execution_plan.cc).
  void read_switch_channel(const PlanJson& channel, std::uint32_t id, PlanGpu& gpu) {
    const Buffer buffer = buffer_of(channel.at("buffer_type").get<std::string>());
    for (const PlanJson& group : channel.at("rank_groups")) {
      std::set<std::uint32_t> ranks;
      for (const PlanJson& rank : group.at("ranks")) ranks.insert(number(rank));
      if (!ranks.contains(id)) fail("a channel of the type 'switch' whose ranks are without the GPU itself");
      gpu.switches.push_back({number_of_switch(ranks), buffer});
    }
  }

  /// Of the switch above these GPUs, which are so many apart.
  std::uint32_t number_of_switch(const std::set<std::uint32_t>& ranks) {
    const std::vector<std::uint32_t> list(ranks.begin(), ranks.end());
    if (list.size() < 2 || list.back() >= gpus_.size())
      fail(fmt::format("a channel of the type 'switch' to {} GPUs up to {}; expected two or more of {}", list.size(),
                       list.empty() ? 0 : list.back(), gpus_.size()));
    const StaticSwitch one{list[0], static_cast<std::uint32_t>(list.size()), list[1] - list[0]};
    for (std::size_t i = 2; i < list.size(); ++i)
      if (list[i] - list[i - 1] != one.stride)
        fail(fmt::format("a channel of the type 'switch' to the GPUs {}; expected GPUs that are equally far apart",
                         fmt::join(list, ", ")));
    const auto known = std::find(schedule_.switches.begin(), schedule_.switches.end(), one);
    const auto place = static_cast<std::uint32_t>(known - schedule_.switches.begin());
    if (known == schedule_.switches.end()) {
      if (place >= AggregatorSite::max_units) fail(fmt::format("more than {} groups of GPUs", place));
      schedule_.switches.push_back(one);
      schedule_.ranks.emplace_back();
    }
    return place;
  }

  Buffer buffer_of(const std::string& name) const {
    if (name == "i") return Buffer::input;
    if (name == "o") return Buffer::output;
    if (name == "s") return Buffer::scratch;
    fail(fmt::format("a buffer of the type '{}'; i, o and s are known", name));
  }

  void read_block(const PlanJson& json, std::uint32_t gpu) {
    PlanBlock block;
    block.gpu = gpu;
    block.id = number(json, "id", 0xffffffffU);
    for (const PlanJson& group : json.value("channels", PlanJson::array()))
      for (const PlanJson& id : group.at("channel_ids"))
        block.channels[group.at("channel_type").get<std::string>()].push_back(number(id));
    for (const PlanJson& group : json.value("remote_buffer_refs", PlanJson::array()))
      for (const PlanJson& id : group.at("remote_buffer_ids"))
        block.remote_buffers[group.at("access_channel_type").get<std::string>()].push_back(number(id));
    add_operations(json.at("ops"), block);
    blocks_.push_back(std::move(block));
  }

  // A pipeline does its operations for one part of the chunks after another, as every schedule is repeated here.
  void add_operations(const PlanJson& list, PlanBlock& block) {
    for (const PlanJson& operation : list) {
      if (block.operations.size() >= max_plan_steps) fail("too many operations");
      if (operation.at("name").get<std::string>() == "pipeline")
        for (const PlanJson& inner : operation.at("ops")) block.operations.push_back(&inner);
      else
        block.operations.push_back(&operation);
    }
  }

  /// S is cut into as many chunks as the larger buffer has.
  void check_chunks() {
    const auto n = static_cast<std::uint32_t>(gpus_.size());
    const bool gathers = schedule_.kind == CollectiveKind::all_gather;
    const bool scatters = schedule_.kind == CollectiveKind::reduce_scatter;
    PlanGpu& first = gpus_.front();
    schedule_.chunks = gathers ? first.chunks[Buffer::output] : first.chunks[Buffer::input];
    if (gathers && schedule_.chunks == 0) schedule_.chunks = n * first.chunks[Buffer::input];
    if (schedule_.chunks == 0) fail("the buffers have no chunks");
    const bool blocks = gathers || scatters || schedule_.kind == CollectiveKind::all_to_all;
    if (blocks && schedule_.chunks % n != 0)
      fail(fmt::format("{} chunks are no multiple of {} GPUs", schedule_.chunks, n));
    for (std::uint32_t id = 0; id < n; ++id) {
      auto& chunks = gpus_[id].chunks;
      const std::uint32_t input = gathers ? schedule_.chunks / n : schedule_.chunks;
      const std::uint32_t output = scatters ? schedule_.chunks / n : schedule_.chunks;
      if (chunks[Buffer::input] != input && !(schedule_.in_place && chunks[Buffer::input] == 0))
        fail(fmt::format("GPU {} has {} input chunks; expected {}", id, chunks[Buffer::input], input));
      chunks[Buffer::input] = input;
      chunks[Buffer::output] = std::max(chunks[Buffer::output], output);
    }
  }

  /// Thread blocks of a group do an operation together, each its part of every chunk (`tbg_info`; calcOffset of
  /// execution_plan.cc, which gives them elements of 16 B in turn). So that parts are chunks of the schedule, all
  /// chunks are cut into as many as the sizes of all groups divide.
  void divide_chunks() {
    std::uint64_t parts = 1, largest = schedule_.chunks;
    for (const PlanGpu& gpu : gpus_)
      for (const auto& [buffer, chunks] : gpu.chunks) largest = std::max<std::uint64_t>(largest, chunks);
    for (const PlanBlock& block : blocks_)
      for (const PlanJson* operation : block.operations) {
        place_ = fmt::format("GPU {}, thread block {}: ", block.gpu, block.id);
        parts = std::lcm(parts, std::uint64_t{group_of(*operation).size});
        if (parts * largest > max_plan_chunks)
          fail(fmt::format("'tbg_info': so many thread blocks share operations that there are more than {} parts",
                           max_plan_chunks));
      }
    place_.clear();
    parts_ = static_cast<std::uint32_t>(parts);
    schedule_.chunks *= parts_;
  }

  struct PlanGroup {
    std::uint32_t size = 1;
    std::uint32_t member = 0;
  };
  PlanGroup group_of(const PlanJson& operation) const {
    if (!operation.contains("tbg_info")) return {};
    const PlanJson& info = operation.at("tbg_info");
    const PlanGroup group{number(info, "tbg_size", max_plan_blocks), number(info, "tb_id", max_plan_blocks)};
    if (group.member >= group.size)
      fail(fmt::format("'tbg_info': thread block {} of a group of {}", group.member, group.size));
    return group;
  }

  // Execution ---------------------------------------------------------------------------------------------------------

  /// All thread blocks, each as far as it comes, until all have ended: so that whoever waits finds the signal.
  void run() {
    for (bool more = true; more;) {
      more = false;
      for (PlanBlock& block : blocks_)
        while (block.next < block.operations.size() && execute(block)) {
          ++block.next;
          more = true;
        }
    }
    for (const PlanBlock& block : blocks_) {
      if (block.next == block.operations.size()) continue;
      name_place(block);
      fail("it waits for ever: nobody signals, releases the semaphore, puts the packets or comes to the barrier");
    }
  }

  void name_place(const PlanBlock& block) {
    place_ = fmt::format("GPU {}, thread block {}, operation {} ({}): ", block.gpu, block.id, block.next,
                         block.operations[block.next]->at("name").get<std::string>());
  }

  /// False if it has to wait.
  bool execute(PlanBlock& block) {
    name_place(block);
    const PlanJson& operation = *block.operations[block.next];
    const std::string name = operation.at("name").get<std::string>();
    if (name == "nop" || name == "flush") return true;
    if (name == "wait" || name == "rlxwait") return wait(block, operation);
    if (name == "barrier") return barrier(block, operation);
    if (name == "sem_acquire") return acquire(block, operation);
    if (is_of_packets(name)) return packets(block, operation, name);
    if (name == "sem_release") {
      release(block, operation);
    } else if (name == "signal" || name == "rlxsignal") {
      signal(block, operation);
    } else if (name == "copy") {
      const auto [from, to] = one_pair(block, operation);
      local(block, Primitive::copy, from, to);
    } else if (name != "re" && schedule_.protocol == Protocol::ll) {
      fail("the protocol is LL, whose scratch holds packets; expected operations on packets, copy and re");
    } else if (name == "put" || name == "pws" || name == "pwsf") {
      for (const auto& [from, to] : pairs(block, operation)) put(block, from, to);
      if (name != "put") signal(block, operation);
    } else if (name == "get") {
      for (const auto& [from, to] : pairs(block, operation)) get(block, from, to);
    } else if (name == "re" || name == "res" || name == "rre" || name == "rres") {
      reduce(block, operation);
    } else if (name == "glres") {
      load_reduce_store(block, operation);
    } else if (name == "gstore") {
      group_store(block, operation);
    } else {
      fail(
          "this operation is not modelled; barrier, copy, cpkt, flush, get, glres, gstore, nop, pipeline, ppkt, put, "
          "pws, pwsf, re, "
          "recpkt, recspkt, repkt, res, respkt, rlxsignal, rlxwait, rppkt, rre, rres, sem_acquire, sem_release, "
          "signal, "
          "upkt and wait are");
    }
    return true;
  }

  /// A buffer that an operation names, its own or one of another GPU.
  PlanRange range(const PlanBlock& block, const PlanJson& operation, const PlanJson& buffer) const {
    PlanRange result;
    result.gpu = block.gpu;
    result.chunk = number(buffer, "index", max_plan_chunks);
    result.count = buffer.contains("size") ? number(buffer, "size", max_plan_chunks) : 1;
    if (buffer.contains("buffer_id")) {
      const std::string type = operation.at("channel_type").get<std::string>();
      const auto refs = block.remote_buffers.find(type);
      const std::uint32_t id = number(buffer, "buffer_id", 0xffffffffU);
      const auto& remote = gpus_[block.gpu].remote_buffers;
      if (refs == block.remote_buffers.end() || id >= refs->second.size() || refs->second[id] >= remote.size())
        fail(fmt::format("the thread block has no remote buffer {} of the type '{}'", id, type));
      std::tie(result.gpu, result.buffer) = remote[refs->second[id]];
    } else {
      result.buffer = buffer_of(buffer.at("type").get<std::string>());
    }
    const std::uint32_t chunks = gpus_[result.gpu].chunks.at(result.buffer);
    if (result.count == 0 || result.chunk + std::uint64_t{result.count} > chunks)
      fail(fmt::format("chunks {} to {} of the buffer {} of GPU {}, which has {}", result.chunk,
                       result.chunk + std::uint64_t{result.count}, to_text(result.buffer), result.gpu, chunks));
    const PlanGroup group = group_of(operation);
    const std::uint32_t share = result.count * (parts_ / group.size);
    result.chunk = result.chunk * parts_ + group.member * share;
    result.count = share;
    return result;
  }
  std::vector<PlanRange> ranges(const PlanBlock& block, const PlanJson& operation, const char* key) const {
    std::vector<PlanRange> all;
    for (const PlanJson& buffer : operation.at(key)) all.push_back(range(block, operation, buffer));
    if (all.empty()) fail(fmt::format("'{}' is empty", key));
    for (const PlanRange& one : all)
      if (one.count != all.front().count) fail(fmt::format("'{}' has buffers of different sizes", key));
    return all;
  }
  std::vector<std::pair<PlanRange, PlanRange>> pairs(const PlanBlock& block, const PlanJson& operation) const {
    const auto from = ranges(block, operation, "src_buff"), to = ranges(block, operation, "dst_buff");
    if (from.size() != to.size() && from.size() != 1) fail("expected as many sources as destinations");
    std::vector<std::pair<PlanRange, PlanRange>> all;
    for (std::size_t i = 0; i < to.size(); ++i) all.emplace_back(from[from.size() == 1 ? 0 : i], to[i]);
    for (const auto& [source, target] : all)
      if (source.count != target.count) fail("source and destination have different sizes");
    return all;
  }
  std::pair<PlanRange, PlanRange> one_pair(const PlanBlock& block, const PlanJson& operation) const {
    const auto all = pairs(block, operation);
    if (all.size() != 1 || all[0].first.gpu != block.gpu || all[0].second.gpu != block.gpu)
      fail("expected one source and one destination of the GPU itself");
    return all[0];
  }

  // Signals -----------------------------------------------------------------------------------------------------------

  PlanChannel& channel_of(const PlanBlock& block, const std::string& type, std::uint32_t id) {
    const auto ids = block.channels.find(type);
    const auto all = gpus_[block.gpu].channels.find(type);
    if (ids == block.channels.end() || id >= ids->second.size() || all == gpus_[block.gpu].channels.end() ||
        ids->second[id] >= all->second.size())
      fail(fmt::format("the thread block has no channel {} of the type '{}'", id, type));
    return all->second[ids->second[id]];
  }
  /// The n-th channel of the one GPU to the other is joined to the n-th of that one.
  PlanChannel& other_end(const PlanBlock& block, const std::string& type, const PlanChannel& channel) {
    for (PlanChannel& one : gpus_[channel.peer].channels[type])
      if (one.peer == block.gpu && one.number == channel.number) return one;
    fail(fmt::format("GPU {} has no channel {} of the type '{}' to GPU {}", channel.peer, channel.number, type,
                     block.gpu));
  }

  void signal(PlanBlock& block, const PlanJson& operation) {
    const std::string type = operation.at("channel_type").get<std::string>();
    for (const PlanJson& id : operation.at("channel_ids")) {
      const PlanChannel& channel = channel_of(block, type, number(id));
      PlanSignal signal;
      signal.own = block.waits;
      if (block.last) signal.own.insert(*block.last);
      if (const auto peer = block.peers.find(channel.peer); peer != block.peers.end()) {
        signal.for_it = peer->second.waits_there;
        if (peer->second.last_there) signal.for_it.insert(*peer->second.last_there);
      }
      other_end(block, type, channel).signals.push_back(std::move(signal));
    }
  }

  bool wait(PlanBlock& block, const PlanJson& operation) {
    const std::string type = operation.at("channel_type").get<std::string>();
    for (const PlanJson& id : operation.at("channel_ids")) {
      const PlanChannel& channel = channel_of(block, type, number(id));
      if (channel.waited >= channel.signals.size()) return false;
    }
    for (const PlanJson& id : operation.at("channel_ids")) {
      PlanChannel& channel = channel_of(block, type, number(id));
      if (channel.waited >= channel.signals.size()) return false;
      const PlanSignal signal = channel.signals[channel.waited++];
      block.waits.insert(signal.for_it.begin(), signal.for_it.end());
      peer_of(block, channel.peer).waits_there.insert(signal.own.begin(), signal.own.end());
    }
    return true;
  }

  bool barrier(PlanBlock& block, const PlanJson& operation) {
    const auto id = operation.at("barrier_id").get<std::int64_t>();
    const std::uint32_t members = number(operation, "num_threadblocks", max_plan_blocks);
    PlanGpu::Barrier& barrier = gpus_[block.gpu].barriers[id];
    if (!block.in_barrier) {
      if (barrier.left > 0) return false;  // the one before has not been left by all
      block.in_barrier = id;
      barrier.blocks.insert(block.id);
      barrier.before.insert(block.waits.begin(), block.waits.end());
      if (block.last) barrier.before.insert(*block.last);
      if (barrier.blocks.size() < members) return false;
      barrier.left = members;
    }
    if (barrier.left == 0) return false;
    block.waits = barrier.before;
    block.in_barrier.reset();
    if (--barrier.left == 0) barrier = {};
    return true;
  }

  bool acquire(PlanBlock& block, const PlanJson& operation) {
    const auto& ids = operation.at("semaphore_ids");
    for (const PlanJson& id : ids) {
      const PlanGpu::Semaphore& one = semaphore(block, id);
      if (one.permits == 0 && one.acquired >= one.released.size()) return false;
    }
    for (const PlanJson& id : ids) {
      PlanGpu::Semaphore& one = semaphore(block, id);
      if (one.permits == 0 && one.acquired >= one.released.size())
        fail("it acquires a semaphore more often than it has been released");
      if (one.permits > 0) {
        --one.permits;
        continue;
      }
      const std::set<PlanStep>& before = one.released[one.acquired++];
      block.waits.insert(before.begin(), before.end());
    }
    return true;
  }

  void release(PlanBlock& block, const PlanJson& operation) {
    for (const PlanJson& id : operation.at("semaphore_ids")) {
      std::set<PlanStep> before = block.waits;
      if (block.last) before.insert(*block.last);
      semaphore(block, id).released.push_back(std::move(before));
    }
  }

  PlanGpu::Semaphore& semaphore(const PlanBlock& block, const PlanJson& id) {
    auto& all = gpus_[block.gpu].semaphores;
    if (number(id) >= all.size())
      fail(fmt::format("the GPU has {} semaphores, and no number {}", all.size(), number(id)));
    return all[number(id)];
  }

  // Packets -----------------------------------------------------------------------------------------------------------
  // A packet has half data and half flag (include/mscclpp/packet_device.hpp): who reads a chunk of the scratch waits
  // until it has been written in this run, and no signal is needed. What operations read and write:
  // execution_kernel.hpp.

  static bool is_of_packets(const std::string& name) {
    static const std::set<std::string> names = {"ppkt",  "rppkt",  "cpkt",   "upkt",
                                                "repkt", "recpkt", "respkt", "recspkt"};
    return names.contains(name);
  }

  /// False if packets that it reads are not there yet.
  bool packets(PlanBlock& block, const PlanJson& operation, const std::string& name) {
    if (schedule_.protocol != Protocol::ll) fail("an operation on packets; expected the plan's protocol to be LL");
    const auto from = ranges(block, operation, "src_buff"), to = ranges(block, operation, "dst_buff");
    if (from.front().count != to.front().count) fail("source and destination have different sizes");
    const bool first_is_packets = name == "rppkt" || name == "upkt";
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].gpu != block.gpu) fail("its sources are of the GPU itself");
      const bool reads_packets = i > 0 ? name != "cpkt" && name != "ppkt" : first_is_packets;
      if (reads_packets && !await_packets(block, from[i])) return false;
    }
    if (name == "cpkt" || name == "upkt") {
      if (from.size() != 1 || to.size() != 1 || to[0].gpu != block.gpu)
        fail("expected one source and one destination of the GPU itself");
      copy_local(block, from[0], to[0], name == "cpkt");
    } else if (name == "ppkt" || name == "rppkt") {
      if (from.size() != 1 && from.size() != to.size()) fail("expected one source, or as many as destinations");
      for (std::size_t i = 0; i < to.size(); ++i) put_packets(block, from[from.size() == 1 ? 0 : i], to[i]);
    } else {
      reduce_packets(block, from, to, name);
    }
    return true;
  }

  /// The sum of the first source and of packets, in the first destination, as packets in the second one (recpkt,
  /// recspkt), and as packets in those of other GPUs.
  void reduce_packets(PlanBlock& block, const std::vector<PlanRange>& from, const std::vector<PlanRange>& to,
                      const std::string& name) {
    const std::size_t own = name == "recpkt" || name == "recspkt" ? 2 : 1;
    const bool sends = name == "respkt" || name == "recspkt";
    if (to.size() < own || (!sends && to.size() > own) || to[0].gpu != block.gpu)
      fail(fmt::format("expected {} of the GPU itself", own == 1 ? "one destination" : "two destinations"));
    if (!same(from[0], to[0])) local(block, Primitive::copy, from[0], to[0]);
    for (std::size_t i = 1; i < from.size(); ++i) local(block, Primitive::reduce, from[i], to[0]);
    if (own == 2) copy_local(block, to[0], to[1], true);
    for (std::size_t i = own; i < to.size(); ++i) put_packets(block, to[0], to[i]);
  }

  void copy_local(PlanBlock& block, const PlanRange& from, const PlanRange& to, bool as_packets) {
    local(block, Primitive::copy, from, to);
    if (as_packets) mark_packets(to, *block.last);
  }

  void put_packets(PlanBlock& block, const PlanRange& from, const PlanRange& to) {
    put(block, from, to);
    mark_packets(to, *peer_of(block, to.gpu).last_there);
  }

  void mark_packets(const PlanRange& to, const PlanStep& step) {
    if (to.buffer != Buffer::scratch) fail("packets are put into the scratch buffer");
    for (std::uint32_t i = 0; i < to.count; ++i)
      if (!gpus_[to.gpu].packets.emplace(to.chunk + i, step).second)
        fail(
            fmt::format("chunk {} of the scratch of GPU {} is written with packets a second time: whoever reads it "
                        "cannot tell them apart",
                        to.chunk + i, to.gpu));
  }

  bool await_packets(PlanBlock& block, const PlanRange& from) {
    if (from.buffer != Buffer::scratch) fail("packets are read from the scratch buffer");
    const auto& there = gpus_[block.gpu].packets;
    std::set<PlanStep> steps;
    for (std::uint32_t i = 0; i < from.count; ++i) {
      const auto found = there.find(from.chunk + i);
      if (found == there.end()) return false;
      steps.insert(found->second);
    }
    block.waits.insert(steps.begin(), steps.end());
    return true;
  }

  // Steps -------------------------------------------------------------------------------------------------------------

  std::uint32_t add_lane(std::uint32_t gpu, std::uint32_t id, std::uint32_t channel, std::uint32_t peer) {
    StaticLane lane;
    lane.id = id;
    lane.channel = channel;
    lane.send_peer = lane.receive_peer = peer;
    schedule_.ranks[gpu].push_back(std::move(lane));
    return static_cast<std::uint32_t>(schedule_.ranks[gpu].size() - 1);
  }

  /// A channel that no other thread block of both GPUs has, and a lane at both ends.
  PlanBlock::Peer& peer_of(PlanBlock& block, std::uint32_t peer) {
    const auto [at, fresh] = block.peers.try_emplace(peer);
    if (!fresh) return at->second;
    PlanBlock::Peer& result = at->second;
    result.channel = channels_of_pair_[{std::min(block.gpu, peer), std::max(block.gpu, peer)}]++;
    channels_ = std::max(channels_, result.channel + 1);
    result.own_lane = add_lane(block.gpu, block.id, result.channel, peer);
    result.lane_there = add_lane(peer, block.id, result.channel, block.gpu);
    return result;
  }

  /// Behind all of `waits`, of which a step has one: the others are steps that do nothing else.
  PlanStep add_step(std::uint32_t gpu, std::uint32_t lane, StaticStep step, std::set<PlanStep>& waits) {
    auto& steps = schedule_.ranks[gpu][lane].steps;
    if (++steps_ > max_plan_steps) fail("too many steps");
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

  void own_step(PlanBlock& block, std::uint32_t lane, const StaticStep& step) {
    if (block.last) block.waits.insert(*block.last);
    block.last = add_step(block.gpu, lane, step, block.waits);
  }
  void step_there(PlanBlock::Peer& peer, std::uint32_t gpu, const StaticStep& step) {
    peer.last_there = add_step(gpu, peer.lane_there, step, peer.waits_there);
  }

  static StaticStep step_of(Primitive primitive, const PlanRange* from, const PlanRange* to) {
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

  void local(PlanBlock& block, Primitive primitive, const PlanRange& from, const PlanRange& to) {
    if (!block.main_lane) block.main_lane = add_lane(block.gpu, block.id, 0, no_lane);
    own_step(block, *block.main_lane, step_of(primitive, &from, &to));
  }

  // The switch --------------------------------------------------------------------------------------------------------
  // handleMultiLoadReduceStore and handleMultiStore of execution_kernel.hpp: multimem.ld_reduce and multimem.st.

  /// Chunks of the memory behind a switch: the same ones of each of its GPUs.
  struct SwitchRange {
    std::uint32_t number = 0;
    PlanRange range;  // of the thread block's own GPU
  };
  SwitchRange switch_range(const PlanBlock& block, const PlanJson& operation, const char* key) const {
    const PlanJson& list = operation.at(key);
    if (!list.is_array() || list.size() != 1 || !list[0].contains("switch_channel_id"))
      fail(fmt::format("'{}' is to be one buffer behind a switch, with a 'switch_channel_id'", key));
    const auto ids = block.channels.find("switch");
    const std::uint32_t id = number(list[0], "switch_channel_id", 0xffffffffU);
    const auto& all = gpus_[block.gpu].switches;
    if (ids == block.channels.end() || id >= ids->second.size() || ids->second[id] >= all.size())
      fail(fmt::format("the thread block has no channel {} of the type 'switch'", id));
    const PlanSwitch& channel = all[ids->second[id]];
    PlanJson plain = list[0];
    plain["type"] = channel.buffer == Buffer::input ? "i" : channel.buffer == Buffer::output ? "o" : "s";
    const PlanRange own = range(block, operation, plain);
    for (const std::uint32_t gpu : gpus_of(channel.number))
      if ((own.chunk + std::uint64_t{own.count}) > std::uint64_t{gpus_[gpu].chunks.at(own.buffer)} * parts_)
        fail(fmt::format("chunks of the buffer {} of all GPUs behind the switch, and GPU {} has {}",
                         to_text(own.buffer), gpu, gpus_[gpu].chunks.at(own.buffer)));
    return {channel.number, own};
  }
  std::vector<std::uint32_t> gpus_of(std::uint32_t number) const {
    const StaticSwitch& one = schedule_.switches[number];
    std::vector<std::uint32_t> gpus(one.count);
    for (std::uint32_t i = 0; i < one.count; ++i) gpus[i] = one.first + i * one.stride;
    return gpus;
  }

  /// The sum of what stands in all GPUs, in a register, and from there in all of them.
  void load_reduce_store(PlanBlock& block, const PlanJson& operation) {
    const SwitchRange from = switch_range(block, operation, "src_buff"),
                      to = switch_range(block, operation, "dst_buff");
    if (from.range.count != to.range.count) fail("source and destination have different sizes");
    const PlanRange sum{block.gpu, Buffer::scratch, more_scratch(block.gpu, from.range.count), from.range.count};
    load_through(block, from, sum);
    store_through(block, sum, to);
  }
  void group_store(PlanBlock& block, const PlanJson& operation) {
    const auto from = ranges(block, operation, "src_buff");
    const SwitchRange to = switch_range(block, operation, "dst_buff");
    if (from.size() != 1 || from[0].gpu != block.gpu) fail("expected one source of the GPU itself");
    if (from[0].count != to.range.count) fail("source and destination have different sizes");
    store_through(block, from[0], to);
  }

  /// Chunks of a rank's scratch that no plan knows of.
  std::uint32_t more_scratch(std::uint32_t rank, std::uint32_t count) {
    const std::uint32_t known = rank < gpus_.size() ? gpus_[rank].chunks.at(Buffer::scratch) * parts_ : 0;
    const auto [at, fresh] = scratch_ends_.try_emplace(rank, known);
    if (at->second > 2 * max_plan_chunks) fail("too many chunks pass through switches");
    return std::exchange(at->second, at->second + count);
  }

  /// A channel for this thread block and switch; those of loads and stores are told apart when all are known.
  PlanBlock::SwitchUse& use_of(PlanBlock& block, std::uint32_t number, bool loads) {
    const auto [at, fresh] = (loads ? block.loads : block.stores).try_emplace(number);
    if (!fresh) return at->second;
    PlanBlock::SwitchUse& use = at->second;
    use.channel = loads ? loads_++ : first_store_channel + stores_++;
    const std::uint32_t rank = rank_of_switch(number);
    for (const std::uint32_t gpu : gpus_of(number)) use.at_gpus.push_back(add_lane(gpu, block.id, use.channel, rank));
    use.own_lane = add_lane(block.gpu, block.id, use.channel, rank);
    use.in_switch = add_lane(rank, block.id, use.channel, no_lane);
    return use;
  }
  std::uint32_t rank_of_switch(std::uint32_t number) const { return static_cast<std::uint32_t>(gpus_.size()) + number; }
  void step_in_switch(std::uint32_t rank, const PlanBlock::SwitchUse& use, StaticStep step, std::uint32_t from,
                      std::uint32_t to) {
    step.receive_peer = from;
    step.send_peer = to;
    std::set<PlanStep> none;
    add_step(rank, use.in_switch, step, none);
  }

  /// A step at a GPU of the switch: the thread block's own, or one that stands for it there.
  void switch_step(PlanBlock& block, std::uint32_t gpu, std::uint32_t lane, const StaticStep& step) {
    if (gpu == block.gpu) return own_step(block, lane, step);
    PlanBlock::Peer& peer = peer_of(block, gpu);
    if (peer.last_there) peer.waits_there.insert(*peer.last_there);
    peer.last_there = add_step(gpu, lane, step, peer.waits_there);
  }

  void load_through(PlanBlock& block, const SwitchRange& from, const PlanRange& to) {
    const PlanBlock::SwitchUse& use = use_of(block, from.number, true);
    const std::vector<std::uint32_t> gpus = gpus_of(from.number);
    const std::uint32_t rank = rank_of_switch(from.number);
    const PlanRange sum{rank, Buffer::scratch, more_scratch(rank, from.range.count), from.range.count};
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      switch_step(block, gpus[i], use.at_gpus[i], step_of(Primitive::send, &from.range, nullptr));
      if (i == 0)
        step_in_switch(rank, use, step_of(Primitive::recv, nullptr, &sum), gpus[i], no_lane);
      else if (i + 1 < gpus.size())
        step_in_switch(rank, use, step_of(Primitive::recv_reduce_copy, &sum, &sum), gpus[i], no_lane);
      else
        step_in_switch(rank, use, step_of(Primitive::recv_reduce_send, &sum, nullptr), gpus[i], block.gpu);
    }
    own_step(block, use.own_lane, step_of(Primitive::recv, nullptr, &to));
  }

  void store_through(PlanBlock& block, const PlanRange& from, const SwitchRange& to) {
    const PlanBlock::SwitchUse& use = use_of(block, to.number, false);
    const std::vector<std::uint32_t> gpus = gpus_of(to.number);
    const std::uint32_t rank = rank_of_switch(to.number);
    const PlanRange held{rank, Buffer::scratch, more_scratch(rank, from.count), from.count};
    own_step(block, use.own_lane, step_of(Primitive::send, &from, nullptr));
    step_in_switch(rank, use, step_of(Primitive::recv, nullptr, &held), block.gpu, no_lane);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      step_in_switch(rank, use, step_of(Primitive::send, &held, nullptr), no_lane, gpus[i]);
      switch_step(block, gpus[i], use.at_gpus[i], step_of(Primitive::recv, nullptr, &to.range));
    }
  }

  /// Channels take turns among the switches of a server: first those of loads, then those of stores, so that each of
  /// the switches has its share of both.
  void number_switch_channels() {
    for (auto& lanes : schedule_.ranks)
      for (StaticLane& lane : lanes)
        if (lane.channel >= first_store_channel) lane.channel = lane.channel - first_store_channel + loads_;
    channels_ = std::max(channels_, loads_ + stores_);
  }

  void put(PlanBlock& block, const PlanRange& from, const PlanRange& to) {
    if (from.gpu != block.gpu || to.gpu == block.gpu) fail("it puts from the GPU itself to another one");
    PlanBlock::Peer& peer = peer_of(block, to.gpu);
    own_step(block, peer.own_lane, step_of(Primitive::send, &from, nullptr));
    step_there(peer, to.gpu, step_of(Primitive::recv, nullptr, &to));
  }

  void get(PlanBlock& block, const PlanRange& from, const PlanRange& to) {
    if (to.gpu != block.gpu || from.gpu == block.gpu) fail("it gets from another GPU to the GPU itself");
    PlanBlock::Peer& peer = peer_of(block, from.gpu);
    step_there(peer, from.gpu, step_of(Primitive::send, &from, nullptr));
    own_step(block, peer.own_lane, step_of(Primitive::recv, nullptr, &to));
  }

  static bool same(const PlanRange& a, const PlanRange& b) { return a.buffer == b.buffer && a.chunk == b.chunk; }

  /// The sum of all sources, of this and other GPUs, in the destination of this GPU; then it is put to the others.
  void reduce(PlanBlock& block, const PlanJson& operation) {
    const auto from = ranges(block, operation, "src_buff"), to = ranges(block, operation, "dst_buff");
    if (from.front().count != to.front().count) fail("source and destination have different sizes");
    const auto is_own = [&block](const PlanRange& one) { return one.gpu == block.gpu; };
    const auto target = std::find_if(to.begin(), to.end(), is_own);
    if (target == to.end() || std::count_if(to.begin(), to.end(), is_own) != 1)
      fail("expected one destination of the GPU itself");
    if (!is_own(from.front())) fail("its first source is of the GPU itself");
    PlanRange sum = from.front();
    for (std::size_t i = 1; i < from.size(); ++i) {
      if (is_own(from[i])) {
        if (!same(sum, *target)) local(block, Primitive::copy, sum, *target);
        local(block, Primitive::reduce, from[i], *target);
      } else {
        PlanBlock::Peer& peer = peer_of(block, from[i].gpu);
        step_there(peer, from[i].gpu, step_of(Primitive::send, &from[i], nullptr));
        own_step(block, peer.own_lane, step_of(Primitive::recv_reduce_copy, &sum, &*target));
      }
      sum = *target;
    }
    if (!same(sum, *target)) local(block, Primitive::copy, sum, *target);
    for (const PlanRange& one : to)
      if (!is_own(one)) put(block, *target, one);
  }

  PlanJson plan_;
  StaticSchedule schedule_;
  std::vector<PlanGpu> gpus_;
  std::vector<PlanBlock> blocks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> channels_of_pair_;
  static constexpr std::uint32_t first_store_channel = 1U << 30;
  std::uint32_t channels_ = 0;
  std::uint32_t loads_ = 0;  // channels of switches
  std::uint32_t stores_ = 0;
  std::map<std::uint32_t, std::uint32_t> scratch_ends_;  // [rank or switch]
  std::uint32_t parts_ = 1;                              // of a chunk of the plan
  std::size_t steps_ = 0;
  std::string place_;
};

class PlanFileReader final : public ScheduleReader {
 public:
  std::unique_ptr<CollectiveAlgorithm> read(const std::string& path) const override {
    return make_static_algorithm(PlanReader(path).read());
  }
};

const Registration<ScheduleReader, PlanFileReader> mscclpp_registration("json", "MSCCL++'s execution plans");

}  // namespace
}  // namespace weft
