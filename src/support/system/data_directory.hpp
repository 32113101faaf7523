// SPDX-License-Identifier: GPL-2.0-only
// Where ready-made models, devices, machines and selections are found.
#pragma once

#include <filesystem>
#include <string>

namespace weft {

/// The folder of what comes with the program for a room, such as "workloads": PREFIX/share/weft/workloads for the
/// program PREFIX/bin/weft, wherever that is; else the source tree that the program was built from.
std::filesystem::path data_directory(const std::string& room);

}  // namespace weft
