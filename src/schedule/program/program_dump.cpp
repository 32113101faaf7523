// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/program_dump.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "units/text.hpp"

namespace weft {
namespace {

/// A text as a YAML scalar in double quotes.
std::string yaml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + "\"";
}

std::string list(const std::vector<std::uint32_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

class ProgramDump {
 public:
  ProgramDump(const Workload& workload, const Placement& placement, const std::string& experiment)
      : workload_(workload), placement_(placement), experiment_(experiment) {}

  std::string make() {
    std::vector<std::vector<std::uint32_t>> ranks(workload_.kind_count());
    for (std::uint32_t r = 0; r < workload_.ranks(); ++r) {
      if (workload_.start(Rank(r)) > Time())
        throw InputError(SourceLine{experiment_, 0}, fmt::format("rank {} starts at {}; ranks of a program start at 0",
                                                                 r, to_text(workload_.start(Rank(r)))));
      ranks[workload_.kind_of(Rank(r))].push_back(r);
    }
    for (const auto& alike : ranks) write_kind(alike);
    return head() + "  operations: [\n" + operations_ + "  ]}";
  }

 private:
  /// Ranks with the same line.
  struct Line {
    std::string text;
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint32_t> peers;
    const CollectiveCall* call = nullptr;
    std::shared_ptr<const CollectiveCall> owner;
  };

  std::string head() const {
    std::string text = fmt::format("{{kind: program,\n  ranks: {},\n", workload_.ranks());
    if (read_ahead_ > 0) text += fmt::format("  read_ahead: {},\n", read_ahead_);
    if (slowdown_ != 1) text += fmt::format("  compute_slowdown_while_communicating: {},\n", slowdown_);
    std::vector<std::uint32_t> hosts;
    bool moved = false;
    for (std::uint32_t r = 0; r < workload_.ranks(); ++r) {
      hosts.push_back(placement_.host(r).value());
      moved = moved || hosts.back() != r;
    }
    if (moved) text += "  placement: {hosts: " + list(hosts) + "},\n";
    text += "  communicators: {\n";
    for (const auto& [id, communicator] : communicators_) text += communicator + ",\n";
    text += "  },\n  tunings: {\n";
    for (const auto& [tuning, name] : tunings_) text += fmt::format("    {}: {},\n", name, tuning);
    return text + "  },\n";
  }

  std::set<std::uint64_t> awaited_operations(std::uint32_t rank) {
    const auto program = workload_.program(Rank(rank));
    if (program->accepts_unexpected())
      throw InputError(
          SourceLine{experiment_, 0},
          "ranks take one-sided messages, which no operation receives; a program has a recv for every send");
    if (program->takes_what_is_ready())
      throw InputError(SourceLine{experiment_, 0},
                       "streams take whatever operation is ready, as `issue: astra_sim` and GOAL want it; those of a "
                       "program take theirs in order");
    read_ahead_ = std::max(read_ahead_, program->read_ahead());
    slowdown_ = std::max(slowdown_, program->compute_slowdown());
    std::set<std::uint64_t> awaited;
    for (Operation operation; program->next(operation); operation = Operation())
      awaited.insert(operation.after.begin(), operation.after.end());
    return awaited;
  }

  /// Goes through the programs of equal ranks side by side.
  void write_kind(const std::vector<std::uint32_t>& ranks) {
    if (ranks.empty()) return;
    awaited_ = awaited_operations(ranks.front());
    std::vector<std::unique_ptr<RankProgram>> programs;
    for (const std::uint32_t rank : ranks) programs.push_back(workload_.program(Rank(rank)));
    for (bool more = true; more;) {
      more = false;
      std::vector<Line> lines;
      std::map<std::string, std::size_t> known;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        Operation operation;
        if (!programs[i]->next(operation)) continue;
        more = true;
        add(operation, ranks[i], lines, known);
      }
      for (const Line& line : lines) write(line);
    }
  }

  void add(const Operation& operation, std::uint32_t rank, std::vector<Line>& lines,
           std::map<std::string, std::size_t>& known) {
    const std::string text = text_of(operation);
    const auto [at, fresh] = known.try_emplace(text, lines.size());
    if (fresh) lines.push_back({text, {}, {}, operation.call.get(), operation.call});
    Line& line = lines[at->second];
    line.ranks.push_back(rank);
    if (operation.kind == Operation::Kind::send || operation.kind == Operation::Kind::recv)
      line.peers.push_back(operation.peer.value());
  }

  void write(const Line& line) {
    operations_ += "    {" + line.text;
    const bool every = line.ranks.size() == workload_.ranks();
    const bool send = line.text.starts_with("send");
    if (!line.peers.empty()) {
      const bool one = line.ranks.size() == 1;
      operations_ +=
          fmt::format(", {}: {}", send ? "to" : "from", one ? std::to_string(line.peers[0]) : list(line.peers));
      operations_ += fmt::format(", rank: {}", one ? std::to_string(line.ranks[0]) : list(line.ranks));
    } else if (line.call == nullptr || line.ranks.size() != line.call->communicator->size()) {
      operations_ += ", rank: " + (every                    ? "all"
                                   : line.ranks.size() == 1 ? std::to_string(line.ranks[0])
                                                            : list(line.ranks));
    }
    operations_ += "},\n";
  }

  /// All but ranks and peers.
  std::string text_of(const Operation& operation) {
    std::string text, label = operation.label.text();
    Stream usual = Stream::none;
    switch (operation.kind) {
      case Operation::Kind::compute:
        text = "compute: " + to_text(operation.duration);
        usual = Stream::compute;
        break;
      case Operation::Kind::collective:
        text = text_of(*operation.call, operation);
        label = operation.call->label;
        usual = Stream::communication;
        break;
      case Operation::Kind::send:
      case Operation::Kind::recv:
        text =
            fmt::format("{}: {} B", operation.kind == Operation::Kind::send ? "send" : "recv", operation.bytes.count());
        if (operation.tag > 0) text += fmt::format(", tag: {}", operation.tag);
        if (operation.queue_pair > 0) text += fmt::format(", queue_pair: {}", operation.queue_pair);
        break;
    }
    if (operation.slowdown != 0 && operation.slowdown != slowdown_)
      text += fmt::format(", slowdown: {}", operation.slowdown);
    if (operation.stream != usual) text += fmt::format(", stream: {}", to_text(operation.stream));
    if (operation.not_before > Time()) text += ", not_before: " + to_text(operation.not_before);
    if (awaited_.contains(operation.id)) text += fmt::format(", id: {}", operation.id);
    if (!operation.after.empty()) text += fmt::format(", after: [{}]", fmt::join(operation.after, ", "));
    if (!label.empty()) text += ", label: " + yaml_text(label);
    return text;
  }

  std::string text_of(const CollectiveCall& call, const Operation& operation) {
    std::string text = fmt::format("collective: {}, call: {}", to_text(call.kind), call.id);
    if (call.blocks) {
      const std::uint32_t n = call.communicator->size();
      std::vector<std::int64_t> blocks;
      for (std::uint32_t from = 0; from < n; ++from)
        for (std::uint32_t to = 0; to < (call.blocks->of_pairs() ? n : 1); ++to)
          blocks.push_back(call.blocks->bytes(from, call.blocks->of_pairs() ? to : from));
      text += fmt::format(", blocks: [{}]", fmt::join(blocks, ", "));
    } else {
      text += fmt::format(", size: {} B", call.size.count());
    }
    if (has_root(call.kind) && call.root > 0) text += fmt::format(", root: {}", call.root);
    const std::string name = communicator_name(*call.communicator, operation.group);
    return text + fmt::format(", communicator: {}, tuning: {}", name, tuning_name(call));
  }

  std::string communicator_name(const Communicator& communicator, std::string_view group) {
    std::string name = fmt::format("{}_{}", group.empty() ? "group" : group, communicator.id());
    std::replace(name.begin(), name.end(), ' ', '_');
    auto& line = communicators_[communicator.id()];
    if (!line.empty()) return line.substr(4, line.find(':') - 4);
    std::vector<std::uint32_t> members;
    for (std::uint32_t i = 0; i < communicator.size(); ++i) members.push_back(communicator.rank(i).value());
    line = fmt::format("    {}: {}", name, list(members));
    return name;
  }

  static std::string list_of(const DimensionAlgorithms& algorithms, CollectiveKind kind) {
    std::vector<std::string> names;
    for (const DimensionAlgorithms::Entry& one : algorithms.of(kind)) names.push_back(to_text(one));
    return fmt::format("[{}]", fmt::join(names, ", "));
  }

  /// Names of a kernel and a transport give all times again, of which most have no keys.
  static std::string times_of(const CollectiveTuning& t) {
    std::string text;
    if (t.nccl_version != CollectiveTuning().nccl_version)
      text += fmt::format(", nccl_version: '{}'", to_text(t.nccl_version));
    if (!t.kernel.empty() && t.kernel != "none") {
      text += ", collective_kernel: " + yaml_text(t.kernel);
      if (!t.transport.empty()) text += ", collective_transport: " + yaml_text(t.transport);
      if (t.constants != ConstantsLevel::mid)
        text += fmt::format(", kernel_constants: {}", t.constants == ConstantsLevel::low ? "low" : "high");
      return text;
    }
    if (t.step_latency > Time()) text += ", step_latency: " + to_text(t.step_latency);
    if (t.reduce_rate > Bandwidth()) text += ", reduce_rate: " + to_text(t.reduce_rate);
    if (t.copy_rate > Bandwidth()) text += ", copy_rate: " + to_text(t.copy_rate);
    return text;
  }

  std::string tuning_name(const CollectiveCall& call) {
    const CollectiveTuning& t = call.tuning;
    const bool file = is_schedule_file(call.algorithm);
    std::string text =
        "{algorithm: " + (file ? yaml_text(std::filesystem::absolute(call.algorithm).string()) : call.algorithm);
    const auto count = [&text](const char* key, std::uint32_t value, std::uint32_t usual) {
      if (value != usual) text += fmt::format(", {}: {}", key, value);
    };
    count("channels", t.channels, 0);
    count("slices_per_chunk", t.slices, 0);
    count("credits", t.credits, 0);
    count("ranks_per_server", t.ranks_per_server, 0);
    count("ranks_per_leaf", t.ranks_per_leaf, 0);
    if (t.chunk > Bytes(0)) text += fmt::format(", chunk_size: {} B", t.chunk.count());
    if (t.buffer > Bytes(0)) text += fmt::format(", buffer_size: {} B", t.buffer.count());
    if (t.p2p_chunk > Bytes(0)) text += fmt::format(", p2p_chunk_size: {} B", t.p2p_chunk.count());
    if (t.protocol != Protocol::simple) text += fmt::format(", protocol: {}", to_text(t.protocol));
    if (!t.dimensions.empty()) text += ", dimensions: " + list(t.dimensions);
    if (!t.dimension_algorithms.empty())
      text += ", dimension_algorithms: " + list_of(t.dimension_algorithms, call.kind);
    count("splits", t.splits, 0);
    if (t.each_dimension_whole) text += ", each_dimension_whole: true";
    if (t.own_launch > Time()) text += ", launch_latency: " + to_text(t.own_launch);
    text += times_of(t);
    return tunings_.try_emplace(text + "}", fmt::format("t{}", tunings_.size())).first->second;
  }

  const Workload& workload_;
  const Placement& placement_;
  const std::string& experiment_;
  std::size_t read_ahead_ = 0;
  double slowdown_ = 1;
  std::set<std::uint64_t> awaited_;
  std::map<std::uint32_t, std::string> communicators_;  // by id: their lines
  std::map<std::string, std::string> tunings_;          // text -> name
  std::string operations_;
};

}  // namespace

std::string dump_program(const Workload& workload, const Placement& placement, const std::string& experiment) {
  return ProgramDump(workload, placement, experiment).make();
}

}  // namespace weft
