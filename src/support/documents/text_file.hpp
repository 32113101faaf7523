// SPDX-License-Identifier: GPL-2.0-only
// Text files as a whole, and what errors say about a file that cannot be opened.
#pragma once

#include <filesystem>
#include <string>

namespace weft {

/// Throws InputError with the path if the file cannot be read.
std::string text_of_file(const std::string& path);

/// Why a file cannot be opened, such as "cannot open this file: No such file or directory (did you mean 'a.yaml'?)";
/// empty for a file that can be.
std::string why_closed(const std::string& path);

/// For a file that is not there: " (did you mean 'a.yaml'?)", a ready-made experiment of that name, or a folder that is
/// not there either; "" if no name is near.
std::string hint_for_missing(const std::filesystem::path& path);

}  // namespace weft
