// SPDX-License-Identifier: GPL-2.0-only
// The target of the fuzzer of experiments: the whole file, as long as its machine is small and nothing has to run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/running/experiment.hpp"

namespace weft::fuzz {

/// A machine is built while its experiment is read. Nothing is learnt from a large one, and a fuzzer has no memory for
/// it: the whole numbers of `topology` are at most this, and so is their product. Numbers that are too large for any
/// machine (max_nodes) are let through: they have to be refused.
constexpr std::int64_t largest_number = 16;
constexpr std::int64_t largest_product = 1024;

/// The whole number that a value is, if it is one.
inline std::optional<std::int64_t> whole_number(const Spec& value) {
  try {
    return value.integer();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Whether a part of `topology` is small; `product` is that of all numbers so far. Files of machines are left to the
/// fuzzer of these.
inline bool small(const Spec& value, std::int64_t& product) {
  if (value.is_map()) {
    for (const auto& [key, below] : value.entries())
      if (!small(below, product)) return false;
  } else if (value.is_sequence()) {
    for (const Spec& item : value.items())
      if (!small(item, product)) return false;
  } else if (value.is_scalar()) {
    if (value.text() == "file") return false;
    const auto number = whole_number(value);
    if (!number || *number < 2 || *number > max_nodes) return true;
    product *= *number;
    return *number <= largest_number && product <= largest_product;
  }
  return true;
}

inline bool worth_reading(const std::string& text) {
  for (const char* folder : {"/dev/", "/proc/", "/sys/"})  // files that cannot be read to their end
    if (text.find(folder) != std::string::npos) return false;
  // A separate document: keys that have been read count as known.
  const Spec experiment = Spec::parse(text, "experiment.yaml");
  if (!experiment.is_map()) return false;
  const auto topology = experiment.find("topology");
  std::int64_t product = 1;
  return !topology || small(*topology, product);
}

inline void read_experiment_file(const std::string& text) {
  // A folder in which nothing is: a fuzzer must not find files.
  if (worth_reading(text))
    static_cast<void>(
        read_experiment(Spec::parse(text, "/nonexistent/experiment.yaml"), "experiment.yaml", "/nonexistent"));
}

}  // namespace weft::fuzz
