// SPDX-License-Identifier: GPL-2.0-only
// What the commands share that read their words by Boost.Program_options.
#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

namespace weft {

/// Throws InputError: the command line is wrong.
[[noreturn]] void refuse(const std::string& message);

/// The values of `options` among `words`; all other words go to `positional`. Options are not to be abbreviated. Throws
/// InputError.
boost::program_options::variables_map parse_options(const std::vector<std::string>& words,
                                                    boost::program_options::options_description options,
                                                    std::vector<std::string>& positional);

}  // namespace weft
