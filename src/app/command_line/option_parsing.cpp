// SPDX-License-Identifier: GPL-2.0-only
#include "app/command_line/option_parsing.hpp"

#include "support/basics/error.hpp"
#include "support/documents/spec.hpp"

namespace weft {

namespace po = boost::program_options;

void refuse(const std::string& message) {
  throw InputError(SourceLine{}, message + "; `weft --help` lists what there is");
}

po::variables_map parse_options(const std::vector<std::string>& words, po::options_description options,
                                std::vector<std::string>& positional) {
  options.add_options()("words", po::value<std::vector<std::string>>());
  po::positional_options_description places;
  places.add("words", -1);
  po::variables_map values;
  const auto style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  try {
    po::store(po::command_line_parser(words).options(options).positional(places).style(style).run(), values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    const std::string word = error.get_option_name();
    if (word.starts_with("-n")) refuse("no option '-n'; MPI sets the number of processes: `mpirun -n P weft run ...`");
    std::vector<std::string> known;
    for (const auto& option : options.options()) known.push_back("--" + option->long_name());
    refuse(error.what() + did_you_mean(word, known));
  } catch (const po::error& error) {
    refuse(error.what());
  }
  if (values.count("words") != 0) positional = values["words"].as<std::vector<std::string>>();
  return values;
}

}  // namespace weft
