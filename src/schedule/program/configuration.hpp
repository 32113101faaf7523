// SPDX-License-Identifier: GPL-2.0-only
// Configurations of other programs, read as experiments on a machine that is made for them.
#pragma once

#include <string>

#include "support/basics/registry.hpp"

namespace weft {

/// One format of configuration files. A further format is one new file that registers itself.
class ConfigurationReader {
 public:
  virtual ~ConfigurationReader() = default;
  /// Whether a file is of this format, by its name and text.
  virtual bool recognises(const std::string& path, const std::string& text) const = 0;
  /// An experiment as YAML: the job of the file on a machine with as many hosts as it has ranks. Files are named
  /// relative to that of the configuration. Throws InputError.
  virtual std::string experiment(const std::string& path) const = 0;
};
using ConfigurationRegistry = Registry<ConfigurationReader>;

}  // namespace weft
