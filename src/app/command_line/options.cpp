// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

namespace po = boost::program_options;

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
  add("quiet", po::bool_switch(), "no progress, no report");
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

po::options_description goodput_options() {
  po::options_description options("weft goodput --mtbf T --checkpoint T (times such as 90s, 30min, 4h, 400d)", 100);
  const auto text = [] { return po::value<std::string>(); };
  auto add = options.add_options();
  add("mtbf", text(), "mean time between failures of the job");
  add("mtbf-each", text(), "the same of one machine, of which the job has --machines");
  add("machines", po::value<std::int64_t>(), "whose failures add up");
  add("checkpoint", text(), "time that a checkpoint takes");
  add("detection", text(), "from a failure until the job stops (default 0 s)");
  add("restart", text(), "from there until it goes on from its checkpoint (default 0 s)");
  add("interval", text(), "between checkpoints (default: the best one)");
  add("simulate", po::value<std::int64_t>(), "N: also draw the failures of N intervals");
  add("seed", text(), "N: of --simulate (default 1)");
  add("json", po::bool_switch(), "print one JSON object");
  return options;
}

}  // namespace weft
