// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/command_line.hpp"

#include <algorithm>
#include <sstream>

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include "app/command_line/collective_options.hpp"
#include "app/command_line/option_parsing.hpp"
#include "app/command_line/script_command.hpp"
#include "routing/routing_algorithm.hpp"
#include "support/error.hpp"
#include "support/spec.hpp"

namespace weft {
namespace {

namespace po = boost::program_options;

const std::vector<std::string> commands = {"run",  "describe", "workload", "topology", "collective",
                                           "perf", "goodput",  "list",     "bench"};
const std::vector<std::string> lists = {"topologies",     "collectives", "workloads",  "congestion-controls",
                                        "routing",        "marking",     "scheduling", "buffer-sharing",
                                        "load-balancing", "background"};

po::options_description run_options() {
  po::options_description options(
      "weft run EXPERIMENT.yaml (or a trace of another program: docs/tutorial/importing.md)", 100);
  auto add = options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing(),
      "KEY.PATH=VALUE: replace or add a value of the experiment");
  add("output,o", po::value<std::string>(), "FILE.h5: results file (default: output.file of the experiment)");
  add("engine", po::value<std::string>()->default_value("weft"),
      "weft, or ns3-default: the same model, one ns-3 event per packet");
  add("seed", po::value<std::string>(), "N: replaces simulation.seed");
  add("summary", po::value<std::string>()->default_value("table"), "table or json");
  add("quiet", po::bool_switch(), "no progress, no table");
  add("verify", po::bool_switch(), "also simulate with ns3-default on process 0 and compare every row (much slower)");
  return options;
}

po::options_description describe_options() {
  po::options_description options("weft describe EXPERIMENT.yaml", 100);
  options.add_options()("set", po::value<std::vector<std::string>>()->composing(), "KEY.PATH=VALUE: as for run")(
      "seed", po::value<std::string>(), "N: as for run")(
      "kernels", po::bool_switch(), "the kernels of a training job's blocks instead: FLOPs, bytes and time of each");
  return options;
}

po::options_description workload_options() {
  po::options_description options(
      "weft workload FILE (an experiment, a model's config.json, or Megatron-LM's arguments)", 100);
  auto add = options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing(), "KEY.PATH=VALUE: as for run");
  add("seed", po::value<std::string>(), "N: as for run");
  add("ranks", po::value<std::vector<std::uint32_t>>()->multitoken(),
      "R ...: ranks to show (default: the first of each kind)");
  add("json", po::bool_switch(), "print one JSON object");
  add("timeline", po::value<std::string>(),
      "FILE.json: when every operation runs without congestion, for Perfetto or chrome://tracing");
  add("export", po::value<std::string>(),
      "chakra:PREFIX: all operations as Chakra traces, PREFIX.0.et, PREFIX.1.et, ...");
  add("dump", po::value<std::string>(), "FILE.yaml: the experiment with all operations written out (kind: program)");
  add("no-run", po::bool_switch(), "count only: no schedule, no step time");
  add("quiet", po::bool_switch(), "no report");
  return options;
}

po::options_description export_options() {
  po::options_description options("weft export chakra|goal EXPERIMENT.yaml -o PREFIX|FILE", 100);
  auto add = options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing(), "KEY.PATH=VALUE: as for run");
  add("seed", po::value<std::string>(), "N: as for run");
  add("output,o", po::value<std::string>(),
      "chakra: PREFIX of PREFIX.0.et, PREFIX.1.et, ...; goal: FILE, binary if it ends in .bin");
  add("steps", po::bool_switch(), "goal: every collective as its sends and receives");
  add("quiet", po::bool_switch(), "no report");
  return options;
}

po::options_description topology_options() {
  po::options_description options("weft topology SPEC.yaml (an experiment, or its topology map alone)", 100);
  auto add = options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing(), "KEY.PATH=VALUE: as for run");
  add("json", po::bool_switch(), "print one JSON object");
  add("export", po::value<std::string>(), "graphml, dot or yaml: write the machine, to standard output or to -o");
  add("output,o", po::value<std::string>(), "FILE for --export");
  add("routing", po::value<std::string>(), "NAME: routing to examine (default: the machine's own)");
  add("picture", po::value<std::string>(), "FILE.svg or FILE.png: draw the machine");
  add("processes", po::value<std::vector<std::uint32_t>>()->multitoken(),
      "P ...: numbers of MPI processes to partition for (default 2 4 8)");
  add("quiet", po::bool_switch(), "no report, for pictures and exports alone");
  return options;
}

po::options_description bench_options() {
  po::options_description options("weft bench", 100);
  auto add = options.add_options();
  add("json", po::value<std::string>(), "FILE: write cases and ratios");
  add("quick", po::bool_switch(), "a tenth of the traffic, and every case once instead of five times in turn");
  return options;
}

void read_settings(const po::variables_map& values, CommandLine& line) {
  if (values.count("set") != 0) {
    for (const std::string& setting : values["set"].as<std::vector<std::string>>()) {
      const auto equals = setting.find('=');
      if (equals == std::string::npos || equals == 0)
        refuse("--set found '" + setting + "'; expected KEY.PATH=VALUE, such as --set topology.k=8");
      line.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
    }
  }
  if (values.count("seed") != 0) {
    const std::string seed = values["seed"].as<std::string>();
    if (seed.empty() || seed.find_first_not_of("0123456789") != std::string::npos)
      refuse("--seed found '" + seed + "'; expected a whole number of 0 or more");
    line.settings.emplace_back("simulation.seed", seed);
  }
}

std::string one_of(const std::string& option, const std::string& word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return word;
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  refuse(option + " found '" + word + "'" + did_you_mean(word, known) + "; known here: " + all);
}

void refuse_file_as_command(const std::string& word) {
  for (const auto& [ending, command] :
       {std::pair(".yaml", "run"), {".yml", "run"}, {".json", "workload"}, {".sh", "workload"}})
    if (word.ends_with(ending))
      refuse(fmt::format("'{0}' is a file and no command; say `weft {1} {0}`", word, command));
}

void read_experiment_name(const std::vector<std::string>& positional, CommandLine& line) {
  if (positional.empty()) refuse("`weft " + line.command + "` needs an experiment file");
  if (positional.size() > 1) refuse("unexpected word '" + positional[1] + "' after the experiment file");
  line.experiment = positional[0];
}

void read_workload_words(const std::vector<std::string>& words, CommandLine& line) {
  std::vector<std::string> positional;
  const auto values = parse_options(words, workload_options(), positional);
  read_settings(values, line);
  read_experiment_name(positional, line);
  line.json_summary = values["json"].as<bool>();
  line.no_run = values["no-run"].as<bool>();
  line.quiet = values["quiet"].as<bool>();
  if (values.count("timeline") != 0) line.timeline = values["timeline"].as<std::string>();
  if (values.count("export") != 0) {
    const std::string format = "chakra:", text = values["export"].as<std::string>();
    if (!text.starts_with(format) || text == format)
      refuse(fmt::format("--export found '{}'; expected chakra:PREFIX", text));
    line.export_to = text.substr(format.size());
  }
  if (values.count("dump") != 0) line.dump = values["dump"].as<std::string>();
  if (line.no_run && !line.timeline.empty()) refuse("--timeline needs a schedule, which --no-run does not make");
  if (values.count("ranks") != 0) line.ranks = values["ranks"].as<std::vector<std::uint32_t>>();
}

void read_export_words(const std::vector<std::string>& words, CommandLine& line) {
  std::vector<std::string> positional;
  const auto values = parse_options(words, export_options(), positional);
  read_settings(values, line);
  line.export_as = one_of("`weft export`", positional.empty() ? "" : positional[0], {"chakra", "goal"});
  positional.erase(positional.begin());
  read_experiment_name(positional, line);
  line.quiet = values["quiet"].as<bool>();
  line.steps = values["steps"].as<bool>();
  if (line.steps && line.export_as != "goal") refuse("--steps is for goal; Chakra has collectives");
  if (values.count("output") == 0)
    refuse(line.export_as == "goal" ? "-o FILE is missing, such as -o out.goal or -o out.bin"
                                    : "-o PREFIX is missing: of PREFIX.0.et, PREFIX.1.et, ...");
  line.export_to = values["output"].as<std::string>();
}

void read_topology_words(const std::vector<std::string>& words, CommandLine& line) {
  std::vector<std::string> positional;
  const auto values = parse_options(words, topology_options(), positional);
  read_settings(values, line);
  read_experiment_name(positional, line);
  line.json_summary = values["json"].as<bool>();
  line.quiet = values["quiet"].as<bool>();
  if (values.count("output") != 0) line.output = values["output"].as<std::string>();
  if (values.count("export") != 0)
    line.export_format = one_of("--export", values["export"].as<std::string>(), {"graphml", "dot", "yaml"});
  if (values.count("routing") != 0)
    line.routing = one_of("--routing", values["routing"].as<std::string>(), RoutingRegistry::instance().names());
  if (line.export_format.empty() && !line.output.empty()) refuse("-o is for --export graphml, dot or yaml");
  if (values.count("picture") != 0) {
    line.picture = values["picture"].as<std::string>();
    if (!line.picture.ends_with(".svg") && !line.picture.ends_with(".png"))
      refuse("--picture found '" + line.picture + "'; expected FILE.svg or FILE.png");
  }
  if (values.count("processes") != 0) {
    line.processes = values["processes"].as<std::vector<std::uint32_t>>();
    if (std::find(line.processes.begin(), line.processes.end(), 0U) != line.processes.end())
      refuse("--processes found 0; expected 1 or more");
  }
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  for (int i = 0; i < argc; ++i) line.text += (i > 0 ? " " : "") + std::string(argv[i]);
  if (argc < 2) refuse("no command was given");
  line.command = argv[1];
  std::vector<std::string> words(argv + 2, argv + argc);
  if (line.command == "--help" || line.command == "-h" || line.command == "help" ||
      std::find(words.begin(), words.end(), "--help") != words.end()) {
    line.command = "help";
    return line;
  }
  if (line.command == "--version" || line.command == "version") {
    line.command = "version";
    return line;
  }
  refuse_file_as_command(line.command);
  std::vector<std::string> known = commands;
  for (const std::string& name : script_commands()) known.push_back(name);
  one_of("the command line", line.command, known);
  std::vector<std::string> positional;
  if (line.command == "run") {
    const auto values = parse_options(words, run_options(), positional);
    read_settings(values, line);
    read_experiment_name(positional, line);
    if (values.count("output") != 0) line.output = values["output"].as<std::string>();
    line.quiet = values["quiet"].as<bool>();
    line.verify = values["verify"].as<bool>();
    line.json_summary = one_of("--summary", values["summary"].as<std::string>(), {"table", "json"}) == "json";
    if (one_of("--engine", values["engine"].as<std::string>(), {"weft", "ns3-default"}) == "ns3-default")
      line.engine = EngineChoice::ns3_default;
  } else if (line.command == "describe") {
    const auto values = parse_options(words, describe_options(), positional);
    read_settings(values, line);
    line.kernels = values["kernels"].as<bool>();
    read_experiment_name(positional, line);
  } else if (line.command == "workload") {
    read_workload_words(words, line);
  } else if (line.command == "export") {
    read_export_words(words, line);
  } else if (line.command == "topology") {
    read_topology_words(words, line);
  } else if (line.command == "collective" || line.command == "perf" || line.command == "goodput") {
    line.words = words;
  } else if (line.command == "list") {
    parse_options(words, po::options_description(), positional);
    if (positional.size() > 1) refuse("unexpected word '" + positional[1] + "'");
    if (!positional.empty()) line.list_what = one_of("`weft list`", positional[0], lists);
  } else {
    const auto values = parse_options(words, bench_options(), positional);
    if (!positional.empty()) refuse("unexpected word '" + positional[0] + "'");
    if (values.count("json") != 0) line.json_file = values["json"].as<std::string>();
    line.quick = values["quick"].as<bool>();
  }
  return line;
}

std::string help_text() {
  std::ostringstream text;
  text << "weft simulates a training cluster packet by packet.\n\n"
          "  weft run EXPERIMENT.yaml [options]   simulate; under `mpirun -n P` on P processes, with the same result\n"
          "  weft describe EXPERIMENT.yaml        what would run: machine, ranks, bytes, packets, memory\n"
          "  weft workload FILE                   a job: FLOPs, bytes, memory, bubble, step time without congestion\n"
          "  weft export chakra|goal EXPERIMENT.yaml -o FILE   all operations as a trace for other simulators\n"
          "  weft topology SPEC.yaml              a machine: counts, distances, bisection, exports, pictures\n"
          "  weft topology --hosts N --rate R     machines of N hosts, as `weft propose N`\n"
          "  weft list "
          "[topologies|collectives|workloads|congestion-controls|routing|marking|scheduling|buffer-sharing|\n"
          "             load-balancing|background]\n"
          "  weft collective ALGORITHM            steps of a collective, proof that they are right, alpha-beta cost\n"
          "  weft perf KIND EXPERIMENT.yaml       nccl-tests' table of a simulated machine\n"
          "  weft goodput --mtbf T --checkpoint T what failures and checkpoints leave of a job's time "
          "(docs/reference/jobs.md)\n"
          "  weft bench [--json FILE]             packet-hops per second, beside ns-3's own engine and stack\n"
       << script_commands_help() << "  weft --help | --version\n\n"
       << run_options() << '\n'
       << describe_options() << '\n'
       << workload_options() << '\n'
       << export_options() << '\n'
       << topology_options() << '\n'
       << collective_options_text() << '\n'
       << perf_options_text() << '\n'
       << bench_options()
       << "\nExit codes: 0 done, 2 the input is wrong, 3 the environment failed (MPI, disk, memory), 70 a bug in "
          "weft,\n130 interrupted (SIGINT, SIGTERM): the results file is marked incomplete.\n";
  return text.str();
}

}  // namespace weft
