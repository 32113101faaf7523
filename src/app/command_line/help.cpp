// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/help.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command_line/collective_options.hpp"
#include "app/command_line/options.hpp"
#include "app/command_line/script_command.hpp"

namespace weft {
namespace {

using Description = boost::program_options::options_description;

template <Description (*options)()>
std::string text_of() {
  std::ostringstream text;
  text << options();
  return text.str();
}

struct CommandHelp {
  const char* command;
  std::vector<std::string> overview;  ///< lines, each with an input and its effect
  std::string (*options)();           ///< nullptr: the command has none
};

const std::vector<CommandHelp>& commands() {
  static const std::vector<CommandHelp> all = {
      {"run",
       {"weft run EXPERIMENT.yaml [options]   simulate; under `mpirun -n P` on P processes, with the same result"},
       text_of<run_options>},
      {"describe",
       {"weft describe EXPERIMENT.yaml        what would run: machine, ranks, bytes, packets, memory"},
       text_of<describe_options>},
      {"workload",
       {"weft workload FILE                   a job: FLOPs, bytes, memory, bubble, step time without congestion"},
       text_of<workload_options>},
      {"export",
       {"weft export chakra|goal EXPERIMENT.yaml -o FILE   all operations as a trace for other simulators"},
       text_of<export_options>},
      {"topology",
       {"weft topology SPEC.yaml              a machine: counts, distances, bisection, exports, pictures",
        "weft topology --hosts N --rate R     machines of N hosts, as `weft propose N`"},
       text_of<topology_options>},
      {"list",
       {"weft list [topologies|collectives|workloads|congestion-controls|routing|marking|scheduling|buffer-sharing|",
        "           load-balancing|background]"},
       nullptr},
      {"collective",
       {"weft collective ALGORITHM            steps of a collective, proof that they are right, alpha-beta cost"},
       collective_options_text},
      {"perf", {"weft perf KIND EXPERIMENT.yaml       nccl-tests' table of a simulated machine"}, perf_options_text},
      {"goodput",
       {"weft goodput --mtbf T --checkpoint T  what failures and checkpoints leave of a job's time "
        "(docs/reference/jobs.md)"},
       text_of<goodput_options>},
      {"bench",
       {"weft bench [--json FILE]             packet-hops per second, beside ns-3's own engine and stack"},
       text_of<bench_options>},
      {"serve",
       {"weft serve FOLDER                    many command lines with one start, for scripts "
        "(docs/reference/serve.md)"},
       nullptr},
  };
  return all;
}

std::string overview_of(const CommandHelp& help) { return fmt::format("  {}\n", fmt::join(help.overview, "\n  ")); }

std::string help_of_all() {
  std::string text = "weft simulates a training cluster packet by packet.\n\n";
  for (const CommandHelp& help : commands()) text += overview_of(help);
  text += script_commands_help() + "  weft help COMMAND | COMMAND --help   of one command\n  weft --help | --version\n";
  for (const CommandHelp& help : commands())
    if (help.options != nullptr) text += '\n' + help.options();
  return text +
         "\nExit codes: 0 done, 2 the input is wrong, 3 the environment failed (MPI, disk, memory), 70 a bug in weft,\n"
         "130 interrupted (SIGINT, SIGTERM): the results file is marked incomplete.\n";
}

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> names;
  for (const CommandHelp& help : commands()) names.push_back(help.command);
  return names;
}

const std::vector<std::string>& lists_of_names() {
  static const std::vector<std::string> lists = {"topologies",     "collectives", "workloads",  "congestion-controls",
                                                 "routing",        "marking",     "scheduling", "buffer-sharing",
                                                 "load-balancing", "background"};
  return lists;
}

std::string help_text(const std::string& command) {
  if (command.empty()) return help_of_all();
  const auto named = [&command](const CommandHelp& help) { return help.command == command; };
  const CommandHelp& help = *std::find_if(commands().begin(), commands().end(), named);
  return overview_of(help) + (help.options == nullptr ? "" : '\n' + help.options());
}

}  // namespace weft
