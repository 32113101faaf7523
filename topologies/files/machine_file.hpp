// SPDX-License-Identifier: GPL-2.0-only
// Formats of machines that other programs write.
#pragma once

#include <memory>
#include <string>

#include "graph/topology/topology_builder.hpp"

namespace weft {

/// Registered under the name of the format.
class MachineFormat {
 public:
  virtual ~MachineFormat() = default;
  /// Ending of the files that are taken for this format without its name, such as ".topo"; empty: none.
  virtual std::string ending() const = 0;
  /// `path` is the name of the file in messages. Throws InputError with the line.
  virtual Topology read(const std::string& text, const std::string& path) const = 0;
};
using MachineFormatRegistry = Registry<MachineFormat>;

}  // namespace weft
