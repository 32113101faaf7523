// SPDX-License-Identifier: GPL-2.0-only
// MSCCL's XML schedules. Format: github.com/microsoft/msccl src/graph/topo.cc (mscclGetAlgoFromXMLAndSetAlgo) and
// msccl-tools' msccl/language/ir.py (ir_to_xml); limits: msccl src/include/msccl.h.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collectives/plans/static_schedule.hpp"
#include "support/basics/error.hpp"
#include "support/documents/spec.hpp"
#include "support/documents/text_file.hpp"
#include "support/documents/xml.hpp"

namespace weft {
namespace {

constexpr std::uint32_t max_steps = 256;          ///< of a thread block
constexpr std::uint32_t max_thread_blocks = 216;  ///< of a GPU
constexpr std::uint32_t max_of_channel = 32;      ///< thread blocks of a GPU and channel
constexpr std::uint32_t max_count = 72;           ///< chunks of a step, this not included

const std::map<std::string, CollectiveKind> kinds = {
    {"allreduce", CollectiveKind::all_reduce}, {"allgather", CollectiveKind::all_gather},
    {"reduce", CollectiveKind::reduce},        {"broadcast", CollectiveKind::broadcast},
    {"alltoall", CollectiveKind::all_to_all},  {"reduce_scatter", CollectiveKind::reduce_scatter}};
const std::map<std::string, Primitive> types = {{"s", Primitive::send},
                                                {"r", Primitive::recv},
                                                {"rcs", Primitive::recv_copy_send},
                                                {"rrs", Primitive::recv_reduce_send},
                                                {"rrc", Primitive::recv_reduce_copy},
                                                {"rrcs", Primitive::recv_reduce_copy_send},
                                                {"cpy", Primitive::copy},
                                                {"re", Primitive::reduce},
                                                {"ra", Primitive::reduce},
                                                {"nop", Primitive::nop}};

class XmlReader {
 public:
  explicit XmlReader(const std::string& path) : file_(text_of_file(path), path) { schedule_.file = path; }

  StaticSchedule read() {
    const pugi::xml_node algo = file_.root("algo", "a schedule of MSCCL");
    read_algo(algo);
    for (const pugi::xml_node& gpu : algo.children("gpu")) read_gpu(gpu);
    for (std::size_t rank = 0; rank < seen_.size(); ++rank)
      if (!seen_[rank]) fail(line_of(algo), fmt::format("GPU {} of {} has no element <gpu>", rank, seen_.size()));
    return std::move(schedule_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& message) const {
    throw InputError(SourceLine{schedule_.file, line}, place_ + message);
  }
  int line_of(const pugi::xml_node& node) const { return file_.where(node).line; }

  std::string text_of(const pugi::xml_node& node, const char* name) const {
    const auto attribute = node.attribute(name);
    if (!attribute) fail(line_of(node), fmt::format("<{}> has no attribute '{}'", node.name(), name));
    return attribute.value();
  }
  std::int64_t number_of(const pugi::xml_node& node, const char* name, std::int64_t min, std::int64_t max) const {
    const std::string found = text_of(node, name);
    std::size_t used = 0;
    std::int64_t value = 0;
    try {
      value = std::stoll(found, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != found.size() || value < min || value > max)
      fail(line_of(node),
           fmt::format("{}=\"{}\" of <{}>: expected a number from {} to {}", name, found, node.name(), min, max));
    return value;
  }
  std::uint32_t count_of(const pugi::xml_node& node, const char* name, std::int64_t min, std::int64_t max) const {
    return static_cast<std::uint32_t>(number_of(node, name, min, max));
  }
  template <class Value>
  Value choice_of(const pugi::xml_node& node, const char* name, const std::map<std::string, Value>& known) const {
    const std::string found = text_of(node, name);
    const auto at = known.find(found);
    if (at != known.end()) return at->second;
    std::vector<std::string> names;
    for (const auto& [word, value] : known) names.push_back(word);
    std::string all;
    for (const std::string& word : names) all += (all.empty() ? "" : ", ") + word;
    fail(line_of(node), fmt::format("{}=\"{}\"{}; known here: {}", name, found, did_you_mean(found, names), all));
  }

  void read_algo(const pugi::xml_node& algo) {
    schedule_.name = algo.attribute("name").as_string("msccl");
    std::replace(schedule_.name.begin(), schedule_.name.end(), ' ', '_');
    if (schedule_.name.empty()) schedule_.name = "msccl";
    schedule_.kind = choice_of(algo, "coll", kinds);
    schedule_.protocol = choice_of<Protocol>(
        algo, "proto", {{"Simple", Protocol::simple}, {"LL", Protocol::ll}, {"LL128", Protocol::ll128}});
    schedule_.channels = count_of(algo, "nchannels", 1, 32);
    schedule_.chunks = count_of(algo, "nchunksperloop", 1, 1 << 20);
    schedule_.in_place = algo.attribute("inplace").as_int(0) != 0;
    const std::uint32_t gpus = count_of(algo, "ngpus", 1, 65536);
    const bool blocks = schedule_.kind == CollectiveKind::all_gather ||
                        schedule_.kind == CollectiveKind::reduce_scatter ||
                        schedule_.kind == CollectiveKind::all_to_all;
    if (blocks && schedule_.chunks % gpus != 0)
      fail(line_of(algo), fmt::format("nchunksperloop=\"{}\" is no multiple of {} GPUs", schedule_.chunks, gpus));
    if (schedule_.in_place && schedule_.kind == CollectiveKind::all_to_all)
      fail(line_of(algo), "inplace=\"1\" with alltoall: its blocks cannot be exchanged within one buffer");
    schedule_.ranks.resize(gpus);
    seen_.resize(gpus);
  }

  /// Chunks of each buffer of a GPU.
  struct Buffers {
    std::uint32_t input = 0;
    std::uint32_t output = 0;
    std::uint32_t scratch = 0;
    std::uint32_t of(Buffer buffer) const {
      return buffer == Buffer::input ? input : buffer == Buffer::output ? output : scratch;
    }
  };

  void read_gpu(const pugi::xml_node& gpu) {
    place_.clear();
    const std::uint32_t id = count_of(gpu, "id", 0, static_cast<std::int64_t>(schedule_.ranks.size()) - 1);
    place_ = fmt::format("GPU {}: ", id);
    if (seen_[id]) fail(line_of(gpu), "a second element <gpu> of this id");
    seen_[id] = true;
    Buffers buffers{count_of(gpu, "i_chunks", 0, 1 << 20), count_of(gpu, "o_chunks", 0, 1 << 20),
                    count_of(gpu, "s_chunks", 0, 1 << 20)};
    const auto n = static_cast<std::uint32_t>(schedule_.ranks.size());
    const std::uint32_t input = schedule_.kind == CollectiveKind::all_gather ? schedule_.chunks / n : schedule_.chunks;
    const std::uint32_t output =
        schedule_.kind == CollectiveKind::reduce_scatter ? schedule_.chunks / n : schedule_.chunks;
    // In place there is one buffer, and files give the other one no chunks.
    if (buffers.input != input && !(schedule_.in_place && buffers.input == 0))
      fail(line_of(gpu), fmt::format("i_chunks=\"{}\", but nchunksperloop wants {}", buffers.input, input));
    buffers.input = input;
    buffers.output = std::max(buffers.output, output);
    read_thread_blocks(gpu, id, buffers);
  }

  void read_thread_blocks(const pugi::xml_node& gpu, std::uint32_t id, const Buffers& buffers) {
    const std::string of_gpu = place_;
    std::map<std::uint32_t, std::uint32_t> position_of;  // id of the thread block -> position
    std::map<std::uint32_t, std::uint32_t> of_channel;
    std::set<std::pair<std::uint32_t, std::uint32_t>> senders, receivers;
    auto& lanes = schedule_.ranks[id];
    std::vector<pugi::xml_node> nodes;
    for (const pugi::xml_node& block : gpu.children("tb")) {
      place_ = of_gpu;
      StaticLane lane;
      lane.id = count_of(block, "id", 0, 1 << 20);
      place_ = fmt::format("{}thread block {}: ", of_gpu, lane.id);
      const auto last = static_cast<std::int64_t>(schedule_.ranks.size()) - 1;
      const std::int64_t to = number_of(block, "send", -1, last);
      const std::int64_t from = number_of(block, "recv", -1, last);
      if (to == id || from == id) fail(line_of(block), "the GPU is its own peer");
      lane.channel = count_of(block, "chan", 0, schedule_.channels - 1);
      if (to >= 0) lane.send_peer = static_cast<std::uint32_t>(to);
      if (from >= 0) lane.receive_peer = static_cast<std::uint32_t>(from);
      if (to >= 0 && !senders.emplace(lane.send_peer, lane.channel).second)
        fail(line_of(block), fmt::format("a second thread block sends to GPU {} on channel {}", to, lane.channel));
      if (from >= 0 && !receivers.emplace(lane.receive_peer, lane.channel).second)
        fail(line_of(block),
             fmt::format("a second thread block receives from GPU {} on channel {}", from, lane.channel));
      if (!position_of.emplace(lane.id, static_cast<std::uint32_t>(lanes.size())).second)
        fail(line_of(block), "a second thread block of this id");
      if (++of_channel[lane.channel] > max_of_channel)
        fail(line_of(block), fmt::format("more than {} thread blocks on channel {}", max_of_channel, lane.channel));
      if (lanes.size() == max_thread_blocks)
        fail(line_of(block), fmt::format("more than {} thread blocks", max_thread_blocks));
      lanes.push_back(std::move(lane));
      nodes.push_back(block);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) read_steps(nodes[i], of_gpu, lanes[i], buffers, position_of);
    check_waits(gpu, of_gpu, lanes, nodes);
  }

  void read_steps(const pugi::xml_node& block, const std::string& of_gpu, StaticLane& lane, const Buffers& buffers,
                  const std::map<std::uint32_t, std::uint32_t>& position_of) {
    const std::map<std::string, Buffer> names = {{"i", Buffer::input}, {"o", Buffer::output}, {"s", Buffer::scratch}};
    for (const pugi::xml_node& node : block.children("step")) {
      const auto number = static_cast<std::uint32_t>(lane.steps.size());
      place_ = fmt::format("{}thread block {}, step {}: ", of_gpu, lane.id, number);
      if (count_of(node, "s", 0, 1 << 20) != number)
        fail(line_of(node), fmt::format("s=\"{}\"; steps are numbered from 0 on", text_of(node, "s")));
      if (number == max_steps) fail(line_of(node), fmt::format("more than {} steps", max_steps));
      StaticStep step;
      step.line = line_of(node);
      step.primitive = choice_of(node, "type", types);
      if (sends(step.primitive) && lane.send_peer == no_lane) fail(step.line, "it sends, but send=\"-1\"");
      if (receives(step.primitive) && lane.receive_peer == no_lane) fail(step.line, "it receives, but recv=\"-1\"");
      if (step.primitive != Primitive::nop) {
        step.count = count_of(node, "cnt", 1, max_count - 1);
        const auto side = [&](const char* buffer, const char* offset, Buffer& name, std::uint32_t& chunk) {
          name = choice_of(node, buffer, names);
          chunk = count_of(node, offset, 0, 1 << 20);
          if (chunk + step.count > buffers.of(name))
            fail(step.line, fmt::format("{}=\"{}\" with cnt=\"{}\": the buffer {} has {} chunks", offset, chunk,
                                        step.count, to_text(name), buffers.of(name)));
        };
        if (reads(step.primitive)) side("srcbuf", "srcoff", step.source, step.source_chunk);
        if (stores(step.primitive)) side("dstbuf", "dstoff", step.target, step.target_chunk);
      }
      const std::int64_t depid = number_of(node, "depid", -1, 1 << 20);
      if (depid >= 0) {
        const auto at = position_of.find(static_cast<std::uint32_t>(depid));
        if (at == position_of.end()) fail(step.line, fmt::format("depid=\"{}\": there is no such thread block", depid));
        step.wait_lane = at->second;
        step.wait_step = count_of(node, "deps", 0, 1 << 20);
      }
      lane.steps.push_back(step);
    }
  }

  /// Checks that steps that others wait for exist and are marked so.
  void check_waits(const pugi::xml_node& gpu, const std::string& of_gpu, const std::vector<StaticLane>& lanes,
                   const std::vector<pugi::xml_node>& nodes) {
    static_cast<void>(gpu);
    for (const StaticLane& lane : lanes) {
      for (std::size_t number = 0; number < lane.steps.size(); ++number) {
        const StaticStep& step = lane.steps[number];
        if (step.wait_lane == no_lane) continue;
        place_ = fmt::format("{}thread block {}, step {}: ", of_gpu, lane.id, number);
        const StaticLane& other = lanes[step.wait_lane];
        if (step.wait_step >= other.steps.size())
          fail(step.line,
               fmt::format("deps=\"{}\": thread block {} has {} steps", step.wait_step, other.id, other.steps.size()));
        auto node = nodes[step.wait_lane].child("step");
        for (std::uint32_t i = 0; i < step.wait_step; ++i) node = node.next_sibling("step");
        if (node.attribute("hasdep").as_int(0) == 0)
          fail(
              step.line,
              fmt::format("it waits for step {} of thread block {}, which has hasdep=\"0\" and notifies no other block",
                          step.wait_step, other.id));
      }
    }
  }

  XmlFile file_;
  StaticSchedule schedule_;
  std::vector<bool> seen_;
  std::string place_;
};

class MscclReader final : public ScheduleReader {
 public:
  std::unique_ptr<CollectiveAlgorithm> read(const std::string& path) const override {
    return make_static_algorithm(XmlReader(path).read());
  }
};

const Registration<ScheduleReader, MscclReader> msccl_xml_registration("xml", "MSCCL's XML schedules");

}  // namespace
}  // namespace weft
