// SPDX-License-Identifier: GPL-2.0-only
// The inputs on which plug-ins are tried: tests/samples/FOLDER/NAME.ENDING, one for each name of a registry. A new
// plug-in needs its sample, and all suites that iterate over the registry try it, without an edit.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/documents/spec.hpp"

namespace weft::conformance {

inline std::filesystem::path samples_folder() {
  const char* source = std::getenv("WEFT_SOURCE");  // set by ctest
  return std::filesystem::path(source != nullptr ? source : ".") / "tests" / "samples";
}

/// Samples of plug-ins that only tests have: {folder, name} -> file below the folder of samples.
inline std::map<std::pair<std::string, std::string>, std::string>& borrowed_samples() {
  static std::map<std::pair<std::string, std::string>, std::string> all;
  return all;
}

/// The sample of a plug-in. Throws if it has none.
inline std::filesystem::path sample_of(const std::string& folder, const std::string& name) {
  const auto borrowed = borrowed_samples().find({folder, name});
  if (borrowed != borrowed_samples().end()) return samples_folder() / folder / borrowed->second;
  for (const auto& file : std::filesystem::directory_iterator(samples_folder() / folder))
    if (file.path().stem() == name) return file.path();
  throw std::runtime_error(fmt::format("'{0}' has no sample: tests/samples/{1}/{0}.* is missing", name, folder));
}

inline Spec spec_of_sample(const std::string& folder, const std::string& name) {
  return Spec::load(sample_of(folder, name).string());
}

/// The name of a test for a plug-in: GoogleTest wants letters and digits.
inline std::string test_name(const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

}  // namespace weft::conformance
