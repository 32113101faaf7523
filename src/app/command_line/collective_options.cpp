// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/collective_options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>

#include <boost/program_options.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command_line/option_parsing.hpp"
#include "schedule/collective/selection.hpp"
#include "support/basics/error.hpp"
#include "support/documents/spec.hpp"

namespace weft {
namespace {

namespace po = boost::program_options;

po::options_description collective_description() {
  po::options_description options("weft collective ALGORITHM|FILE.xml|FILE.schedule --ranks P --size S", 100);
  auto add = options.add_options();
  const auto text = [] { return po::value<std::string>(); };
  add("ranks,p", text(), "number of ranks (a schedule file has its own)");
  add("size,s", text(),
      "bytes as nccl-tests counts them, such as 64MiB (default of a file: 64 KiB for each of its chunks)");
  add("kind", text(), "all_reduce, all_gather, ... (default: the first that the algorithm has)");
  add("root", text(), "rank, for broadcast, reduce, gather, scatter (default 0)");
  add("channels", text(), "(default 1)");
  add("chunk-size", text(), "bytes of a step");
  add("slices", text(), "messages of a chunk");
  add("credits", text(), "messages in flight per connection");
  add("protocol", text(), "simple, ll or ll128");
  add("ranks-per-server", text(), "consecutive ranks that share a server");
  add("ranks-per-leaf", text(), "consecutive ranks below one leaf switch, for collnet");
  add("dimensions", text(), "of a torus, such as 8x8");
  add("dimension-algorithms", text(), "of by_dimension, such as ring,direct");
  add("splits", text(), "parts that by_dimension sends through the dimensions separately");
  add("each-dimension-whole", po::bool_switch(), "by_dimension reduces everything in each dimension in turn");
  add("on", text(), "MACHINE.yaml: servers whose first accelerators the ranks are on, or an experiment's");
  add("show-graph", po::bool_switch(), "with --on: which GPU and NIC each channel visits, as NCCL's search finds them");
  add("graph-file", text(), "FILE.xml: with --show-graph: the same as NCCL_GRAPH_DUMP_FILE, for NCCL_GRAPH_FILE");
  add("switches-reduce", po::bool_switch(), "selections may take algorithms for which switches reduce");
  add("show", po::bool_switch(), "the steps of each rank");
  add("check", po::bool_switch(), "replay: complete, each contribution once, no deadlock, bytes sent");
  add("cost", po::bool_switch(), "rounds, bytes per rank, alpha-beta time");
  add("latency", text(), "alpha of --cost and --picture (default 2us)");
  add("rate", text(), "1/beta of --cost and --picture (default 400Gb/s)");
  add("json", po::bool_switch(), "machine-readable output");
  add("text", po::bool_switch(), "the text form of a schedule file");
  add("picture", text(),
      "FILE.svg: who sends to whom, and when in the alpha-beta model; with --show-graph: its channels");
  return options;
}

po::options_description perf_description() {
  po::options_description options("weft perf KIND EXPERIMENT.yaml", 100);
  auto add = options.add_options();
  const auto text = [] { return po::value<std::string>(); };
  add("minbytes,b", text(), "smallest size (default 8)");
  add("maxbytes,e", text(), "largest size (default: the smallest one)");
  add("stepfactor,f", text(), "factor between sizes (default 2)");
  add("stepbytes,i", text(), "fixed increment between sizes instead");
  add("datatype,d", text(), "int8, half, bfloat16, float, double, ... (default float)");
  add("root,r", text(), "(default 0)");
  add("iters,n", text(), "calls one after another, of which the mean time is printed (default 1)");
  add("set", po::value<std::vector<std::string>>()->composing(), "KEY.PATH=VALUE: as for run");
  add("algorithm", text(), "A,B,...: algorithms or selections, side by side (default: that of the experiment)");
  add("compare", po::value<std::vector<std::string>>()->composing(),
      "[A=]FILE: what nccl-tests printed, its JSON, or a CSV, of algorithm A: measured beside simulated");
  add("in-place", po::bool_switch(), "compare with in-place measurements");
  add("range", po::bool_switch(), "also the times that the ranges in collectives/kernels and transports leave open");
  add("json", po::bool_switch(), "print one JSON object");
  add("csv", text(), "FILE: the table as CSV");
  add("plot", text(), "FILE.svg: bus bandwidth over size");
  return options;
}

/// Options as YAML values, for Spec knows numbers, units and how to complain.
class Values {
 public:
  explicit Values(const po::variables_map& values) : values_(values) {}
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string text(const std::string& name) const { return values_[name].as<std::string>(); }
  /// Empty if it is not given.
  std::string text_or_none(const std::string& name) const { return has(name) ? text(name) : std::string(); }
  bool flag(const std::string& name) const { return values_[name].as<bool>(); }
  std::uint32_t count(const std::string& name, std::uint32_t otherwise, std::int64_t min = 1) const {
    if (!has(name)) return otherwise;
    return static_cast<std::uint32_t>(spec(name).integer(min, std::numeric_limits<std::int32_t>::max()));
  }
  Spec spec(const std::string& name) const { return Spec::of_option("--" + name, text(name)); }

 private:
  const po::variables_map& values_;
};

Bytes bytes_of(const Values& values, const std::string& name) {
  const std::string text = values.text(name);
  // As in nccl-tests: 8, 64K, 1M, 1G, in powers of 1024; or with units as everywhere in weft.
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && number >= 0) {
    const std::string unit(rest, end);
    const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit == "T" ? 40 : -1;
    if (shift >= 0 && number <= std::numeric_limits<std::int64_t>::max() >> shift) return Bytes(number << shift);
  }
  return values.spec(name).bytes();
}

std::vector<std::uint32_t> dimensions_of(const std::string& text) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::uint32_t size = 0;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, size);
    if (error != std::errc() || rest != text.data() + end || size == 0)
      refuse(fmt::format("--dimensions found '{}'; expected sizes such as 8x8", text));
    sizes.push_back(size);
    at = end + 1;
  }
  return sizes;
}

DimensionAlgorithms::List dimension_algorithms_of(const std::string& text) {
  DimensionAlgorithms::List algorithms;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = parse_dimension_entry(word);
    if (!found)
      refuse(fmt::format("--dimension-algorithms found '{}'; expected {}", word,
                         fmt::join(dimension_algorithm_names(), ", ")));
    algorithms.push_back(*found);
  }
  return algorithms;
}

CollectiveKind kind_of(const std::string& text) {
  const auto kind = parse_collective_kind(text);
  if (kind) return *kind;
  const auto known = collective_kind_names();
  refuse(fmt::format("unknown collective '{}'{}; known here: {}", text, did_you_mean(text, known),
                     fmt::join(known, ", ")));
}

void refuse_unknown_algorithm(const std::string& name) {
  if (find_collective(name) || find_selector(name)) return;
  const auto known = algorithm_names();
  refuse(
      fmt::format("unknown algorithm '{}'{}; known here: {}", name, did_you_mean(name, known), fmt::join(known, ", ")));
}

/// The list of `weft perf --algorithm A,B,C`. The experiment resolves names of files.
std::vector<std::string> algorithms_of(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    if (name.find_first_of("./") == std::string::npos) refuse_unknown_algorithm(name);
    if (std::find(names.begin(), names.end(), name) != names.end())
      refuse(fmt::format("--algorithm found '{}' twice", name));
    names.push_back(name);
    at = end + 1;
  }
  return names;
}

/// "FILE", or "ALGORITHM=FILE" with one of `algorithms`.
PerfLog log_of(const std::string& word, const std::vector<std::string>& algorithms) {
  const auto equals = word.find('=');
  if (equals == std::string::npos) return {"", word};
  PerfLog log{word.substr(0, equals), word.substr(equals + 1)};
  if (std::find(algorithms.begin(), algorithms.end(), log.algorithm) == algorithms.end())
    refuse(fmt::format("--compare found '{}' before '='; expected a name of --algorithm{}", log.algorithm,
                       did_you_mean(log.algorithm, algorithms)));
  return log;
}

/// Kind by default: the first that the algorithm can do.
CollectiveKind kind_of_algorithm(const std::string& name) {
  const auto algorithm = find_collective(name);
  for (const std::string& kind : collective_kind_names())
    if (!algorithm || algorithm->supports(*parse_collective_kind(kind))) return *parse_collective_kind(kind);
  return CollectiveKind::all_reduce;
}

void read_machine(const Values& values, CollectiveOptions& options) {
  options.machine = values.text_or_none("on");
  options.show_graph = values.flag("show-graph");
  if (options.show_graph && options.machine.empty()) refuse("--show-graph needs a machine: --on MACHINE.yaml");
  options.graph_file = values.text_or_none("graph-file");
  if (!options.graph_file.empty() && !options.show_graph) refuse("--graph-file needs --show-graph");
  options.switches_reduce = values.flag("switches-reduce");
}

/// The ranks of a schedule file, `fixed`, by default; or 0, and the machine has its own.
std::uint32_t ranks_of(const Values& values, std::uint32_t fixed, const std::string& machine) {
  if (!values.has("ranks") && fixed == 0 && machine.empty())
    refuse("`weft collective` needs --ranks, such as --ranks 16");
  const std::uint32_t ranks = values.count("ranks", fixed);
  if (ranks > 65536) refuse(fmt::format("--ranks found {}; expected up to 65536", ranks));
  return ranks;
}

/// By default 64 KiB for each chunk of a schedule file; 1 B of a barrier; 0 where only a graph or a text is wanted.
Bytes size_of(const Values& values, CollectiveKind kind, const CollectiveAlgorithm* file) {
  if (values.has("size")) return bytes_of(values, "size");
  if (file != nullptr) return Bytes(std::int64_t{file->size_unit()} << 16);
  if (kind == CollectiveKind::barrier) return Bytes(1);
  if (!values.flag("text") && !values.flag("show-graph"))
    refuse("`weft collective` needs --size, such as --size 64MiB");
  return Bytes();
}

std::uint32_t root_of(const Values& values, CollectiveKind kind, std::uint32_t ranks) {
  const std::uint32_t root = values.count("root", 0, 0);
  if (root != 0 && !has_root(kind)) refuse(fmt::format("--root: {} has none", to_text(kind)));
  if (root >= ranks && ranks > 0) refuse(fmt::format("--root found {}; expected 0 to {}", root, ranks - 1));
  return root;
}

/// 0 channels on a machine: they are settled with the call.
CollectiveTuning tuning_of(const Values& values, bool on_machine) {
  CollectiveTuning tuning;
  tuning.channels = values.count("channels", on_machine ? 0 : 1);
  if (values.has("chunk-size")) {
    tuning.chunk = bytes_of(values, "chunk-size");
    if (tuning.chunk.count() == 0) refuse("--chunk-size found 0; expected at least 1 B");
  }
  tuning.slices = values.count("slices", 0);
  tuning.credits = values.count("credits", 0);
  tuning.ranks_per_server = values.count("ranks-per-server", 0);
  tuning.ranks_per_leaf = values.count("ranks-per-leaf", 0);
  if (values.has("dimensions")) tuning.dimensions = dimensions_of(values.text("dimensions"));
  if (values.has("dimension-algorithms"))
    tuning.dimension_algorithms.all = dimension_algorithms_of(values.text("dimension-algorithms"));
  tuning.splits = values.count("splits", 0);
  tuning.each_dimension_whole = values.flag("each-dimension-whole");
  if (values.has("protocol")) {
    const auto protocol = parse_protocol(values.text("protocol"));
    if (!protocol) refuse(fmt::format("--protocol found '{}'; expected simple, ll or ll128", values.text("protocol")));
    tuning.protocol = *protocol;
  }
  return tuning;
}

/// What is printed or drawn, and the alpha-beta model that some of it needs.
void read_presentation(const Values& values, bool has_text, CollectiveOptions& options) {
  options.latency = values.has("latency") ? values.spec("latency").time() : Time::from_us(2);
  options.rate = values.has("rate") ? values.spec("rate").bandwidth() : Bandwidth::from_gbps(400);
  options.show = values.flag("show");
  options.check = values.flag("check");
  options.cost = values.flag("cost");
  options.json = values.flag("json");
  options.text = values.flag("text");
  if (options.text && !has_text) refuse(fmt::format("--text: '{}' is no schedule file", options.algorithm));
  options.picture = values.text_or_none("picture");
  if (!options.picture.empty() && !options.picture.ends_with(".svg") &&
      !(options.show_graph && options.picture.ends_with(".png")))
    refuse(fmt::format("--picture found '{}'; expected a name that ends in .svg", options.picture));
}

}  // namespace

CollectiveOptions parse_collective_options(const std::vector<std::string>& words) {
  std::vector<std::string> positional;
  const auto map = parse_options(words, collective_description(), positional);
  const Values values(map);
  CollectiveOptions options;
  if (positional.size() != 1)
    refuse(fmt::format("`weft collective` needs one algorithm; known here: {}", fmt::join(algorithm_names(), ", ")));
  options.algorithm = positional[0];
  refuse_unknown_algorithm(options.algorithm);
  options.kind = values.has("kind") ? kind_of(values.text("kind")) : kind_of_algorithm(options.algorithm);
  const auto algorithm = find_collective(options.algorithm);  // nothing for a selection
  const std::uint32_t fixed = algorithm ? algorithm->fixed_ranks() : 0;
  read_machine(values, options);
  options.ranks = ranks_of(values, fixed, options.machine);
  options.size = size_of(values, options.kind, fixed == 0 ? nullptr : algorithm.get());
  options.root = root_of(values, options.kind, options.ranks);
  options.tuning = tuning_of(values, !options.machine.empty());
  read_presentation(values, algorithm && !algorithm->schedule_text().empty(), options);
  return options;
}

PerfOptions parse_perf_options(const std::vector<std::string>& words) {
  std::vector<std::string> positional;
  const auto map = parse_options(words, perf_description(), positional);
  const Values values(map);
  PerfOptions options;
  if (positional.size() != 2) refuse("`weft perf` needs a collective and an experiment file");
  options.kind = kind_of(positional[0]);
  options.experiment = positional[1];
  if (values.has("minbytes")) options.begin = bytes_of(values, "minbytes");
  options.end = values.has("maxbytes") ? bytes_of(values, "maxbytes") : options.begin;
  if (options.end < options.begin)
    refuse(fmt::format("--maxbytes found {} B, below --minbytes {} B", options.end.count(), options.begin.count()));
  options.factor = values.count("stepfactor", 2, 2);
  if (values.has("stepbytes")) {
    options.step = bytes_of(values, "stepbytes");
    if (options.step.count() == 0) refuse("--stepbytes found 0; expected at least 1 B");
  }
  options.sizes_given = values.has("minbytes");
  options.end_given = values.has("maxbytes");
  options.type_given = values.has("datatype");
  options.type = options.type_given ? values.text("datatype") : "float";
  if (!bytes_of_type(options.type))
    refuse(fmt::format("--datatype found '{}'; expected one such as half, bfloat16, float", options.type));
  if (values.has("algorithm")) options.algorithms = algorithms_of(values.text("algorithm"));
  if (values.has("compare"))
    for (const std::string& word : map["compare"].as<std::vector<std::string>>())
      options.logs.push_back(log_of(word, options.algorithms));
  options.in_place = values.flag("in-place");
  if (options.in_place && options.logs.empty()) refuse("--in-place is about what was measured: --compare FILE");
  options.range = values.flag("range");
  options.json = values.flag("json");
  options.root = values.count("root", 0, 0);
  options.iterations = values.count("iters", 1);
  options.csv = values.text_or_none("csv");
  options.plot = values.text_or_none("plot");
  if (!options.plot.empty() && !options.plot.ends_with(".svg"))
    refuse(fmt::format("--plot found '{}'; expected a name that ends in .svg", options.plot));
  if (values.has("set")) {
    for (const std::string& setting : map["set"].as<std::vector<std::string>>()) {
      const auto equals = setting.find('=');
      if (equals == std::string::npos || equals == 0)
        refuse("--set found '" + setting + "'; expected KEY.PATH=VALUE, such as --set topology.k=8");
      options.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
  }
  return options;
}

// As nccl-tests names them (src/common.cu, test_typenames).
std::optional<std::int64_t> bytes_of_type(const std::string& name) {
  static const std::map<std::string, std::int64_t> types = {{"int8", 1},   {"uint8", 1},  {"half", 2},  {"bfloat16", 2},
                                                            {"f8e4m3", 1}, {"f8e5m2", 1}, {"int32", 4}, {"uint32", 4},
                                                            {"float", 4},  {"double", 8}, {"int64", 8}, {"uint64", 8}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

std::string collective_options_text() {
  std::ostringstream text;
  text << collective_description();
  return text.str();
}
std::string perf_options_text() {
  std::ostringstream text;
  text << perf_description();
  return text.str();
}

CollectiveCall make_call(const CollectiveOptions& options, const Communicator& communicator,
                         const std::shared_ptr<const ChannelGraph>& graph, std::string& reason) {
  CollectiveCall call;
  call.kind = options.kind;
  call.communicator = &communicator;
  call.size = options.size;
  call.root = options.root;
  call.algorithm = options.algorithm;
  call.tuning = options.tuning;
  call.graph = graph;
  if (graph && call.tuning.ranks_per_server == 0) call.tuning.ranks_per_server = graph->per_server();
  reason = apply_selection(call, {options.latency, options.rate, options.switches_reduce});
  const auto algorithm = find_collective(call.algorithm);
  if (call.tuning.channels == 0) call.tuning.channels = algorithm->usual_channels(call);
  if (!algorithm->supports(call.kind)) {
    std::vector<std::string> kinds;
    for (const std::string& kind : collective_kind_names())
      if (algorithm->supports(*parse_collective_kind(kind))) kinds.push_back(kind);
    refuse(fmt::format("the algorithm '{}' cannot do '{}'; it can {}", call.algorithm, to_text(call.kind),
                       fmt::join(kinds, ", ")));
  }
  call.tuning.protocol = algorithm->fixed_protocol().value_or(call.tuning.protocol);
  const std::string objection = algorithm->refuses(call);
  if (!objection.empty()) refuse(fmt::format("'{}' cannot do this: {}", call.algorithm, objection));
  return call;
}

}  // namespace weft
