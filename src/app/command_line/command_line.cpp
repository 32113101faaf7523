// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/command_line.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include "app/command_line/help.hpp"
#include "app/command_line/option_parsing.hpp"
#include "app/command_line/options.hpp"
#include "app/command_line/script_command.hpp"
#include "graph/topology/topology_builder.hpp"
#include "routing/algorithm/routing_algorithm.hpp"
#include "support/basics/error.hpp"
#include "support/documents/spec.hpp"

namespace weft {
namespace {

namespace po = boost::program_options;

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

/// For `--set KEY=8 MiB`, of which the shell makes two words.
std::string hint_for_quotes(const CommandLine& line, const std::string& word) {
  const auto split = std::find_if(line.settings.begin(), line.settings.end(), [](const auto& setting) {
    return setting.first != "simulation.seed" && !setting.second.empty() &&
           setting.second.find_first_not_of("0123456789.") == std::string::npos;
  });
  if (split == line.settings.end() || word.find('.') != std::string::npos) return "";
  return fmt::format(" (a value with a space is in quotes: --set {}='{} {}')", split->first, split->second, word);
}

void read_experiment_name(const std::vector<std::string>& positional, CommandLine& line) {
  if (positional.empty()) refuse("`weft " + line.command + "` needs an experiment file");
  if (positional.size() > 1)
    refuse("unexpected word '" + positional[1] + "' after the experiment file" + hint_for_quotes(line, positional[1]));
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

/// Results are HDF5, whatever their file is called; the name of another format is a misunderstanding.
void refuse_other_format(const std::string& file) {
  for (const char* ending : {".csv", ".json", ".html", ".svg", ".png"})
    if (file.ends_with(ending))
      refuse("-o found '" + file + "', but results are HDF5; use FILE.h5, then `weft export FILE.h5 --csv DIR` for " +
             "tables, or `weft report FILE.h5` for a page");
}

void refuse_kind_as_file(const std::string& word) {
  const auto kinds = TopologyRegistry::instance().names();
  std::error_code none_exists;
  if (std::find(kinds.begin(), kinds.end(), word) == kinds.end() || std::filesystem::exists(word, none_exists)) return;
  refuse(
      fmt::format("'{0}' is a kind of machine and no file; expected a file with `topology: {{kind: {0}, ...}}`", word));
}

void read_topology_words(const std::vector<std::string>& words, CommandLine& line) {
  std::vector<std::string> positional;
  const auto values = parse_options(words, topology_options(), positional);
  read_settings(values, line);
  read_experiment_name(positional, line);
  refuse_kind_as_file(line.experiment);
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

/// `export` is one in C++ and one in Python.
std::vector<std::string> all_commands() {
  std::vector<std::string> names = help_topics();
  for (const std::string& name : script_commands())
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  for (int i = 0; i < argc; ++i) line.text += (i > 0 ? " " : "") + std::string(argv[i]);
  if (argc < 2) refuse("no command was given");
  line.command = argv[1];
  std::vector<std::string> words(argv + 2, argv + argc);
  const std::vector<std::string> known = all_commands();
  if (line.command == "--help" || line.command == "-h" || line.command == "help") {
    if (!words.empty()) line.help_of = one_of("`weft help`", words[0], known);
    line.command = "help";
    return line;
  }
  if (line.command == "--version" || line.command == "version") {
    line.command = "version";
    return line;
  }
  refuse_file_as_command(line.command);
  one_of("the command line", line.command, known);
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    line.help_of = line.command;
    line.command = "help";
    return line;
  }
  std::vector<std::string> positional;
  if (line.command == "run") {
    const auto values = parse_options(words, run_options(), positional);
    read_settings(values, line);
    read_experiment_name(positional, line);
    if (values.count("output") != 0) line.output = values["output"].as<std::string>();
    refuse_other_format(line.output);
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
  } else if (line.command == "serve") {
    parse_options(words, po::options_description(), line.words);
    if (line.words.size() != 1) refuse("`weft serve` expects one folder");
  } else if (line.command == "list") {
    parse_options(words, po::options_description(), positional);
    if (positional.size() > 1) refuse("unexpected word '" + positional[1] + "'");
    if (!positional.empty()) line.list_what = one_of("`weft list`", positional[0], lists_of_names());
  } else {
    const auto values = parse_options(words, bench_options(), positional);
    if (!positional.empty()) refuse("unexpected word '" + positional[0] + "'");
    if (values.count("json") != 0) line.json_file = values["json"].as<std::string>();
    line.quick = values["quick"].as<bool>();
  }
  for (const std::string& output : {line.output, line.dump, line.timeline, line.export_to, line.picture})
    refuse_output_over_input(output, line.experiment);
  return line;
}

void refuse_output_over_input(const std::string& output, const std::string& input) {
  std::error_code none_exists;
  if (output.empty() || input.empty() || !std::filesystem::equivalent(output, input, none_exists)) return;
  refuse("found '" + output + "' for the output, which is the input; expected another file");
}

}  // namespace weft
