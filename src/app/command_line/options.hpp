// SPDX-License-Identifier: GPL-2.0-only
// The options of each command in C++ but those of `weft collective` and `weft perf`, with what help says about them.
#pragma once

#include <boost/program_options.hpp>

namespace weft {

boost::program_options::options_description run_options();
boost::program_options::options_description describe_options();
boost::program_options::options_description workload_options();
boost::program_options::options_description export_options();
boost::program_options::options_description topology_options();
boost::program_options::options_description goodput_options();
boost::program_options::options_description bench_options();

}  // namespace weft
