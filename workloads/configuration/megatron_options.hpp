// SPDX-License-Identifier: GPL-2.0-only
// Options of a Megatron-LM command, however they were written, with typed access.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/documents/spec.hpp"
#include "workloads/shell/shell_script.hpp"

namespace weft {

/// Options by name, without leading dashes and with dashes for underscores: "num-layers" is --num-layers, and
/// num_layers of a YAML file. Of a repeated option the last one counts, as with argparse. Every reading function throws
/// InputError at the option's line. It remembers which options were read.
class MegatronOptions {
 public:
  explicit MegatronOptions(std::string file) : file_(std::move(file)) {}

  static std::string canonical(std::string name);
  void add(const std::string& name, std::vector<ShellText> values, const SourceLine& where);
  /// All options of the words of a command: `--name value...`, `--name=value`, `--flag`.
  void add_words(const std::vector<ShellText>& words);

  bool has(const std::string& name) const;
  /// True if the option is there, and its value, if it has one, is no word for false.
  bool flag(const std::string& name) const;
  std::int64_t whole(const std::string& name, std::int64_t min, std::int64_t max) const;
  /// A number from 1 to 2^24.
  std::int64_t count(const std::string& name) const;
  std::int64_t count_or(const std::string& name, std::int64_t otherwise) const;
  double number(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::string text_or(const std::string& name, const std::string& otherwise) const;
  /// All values of an option; empty if it is absent.
  std::vector<std::string> texts(const std::string& name) const;

  const std::string& file() const { return file_; }
  /// The line of an option; the file as a whole if it is absent.
  SourceLine where(const std::string& name) const;
  InputError error(const std::string& name, const std::string& message) const;
  /// Throws InputError for an option that was not read and whose name is close to one that was read: Megatron-LM would
  /// also refuse it.
  void refuse_misspelt() const;
  /// Options that were not read, as "--name", in alphabetical order.
  std::vector<std::string> unasked() const;

 private:
  struct Option {
    std::vector<ShellText> values;
    SourceLine where;
  };
  const Option* find(const std::string& name) const;
  std::string value(const std::string& name) const;

  std::string file_;
  std::map<std::string, Option> options_;
  mutable std::set<std::string> asked_;
};

/// The options of one file.
struct MegatronSource {
  MegatronOptions options;
  std::string program;     ///< the script that is launched ("pretrain_gpt.py"), if a command was found
  std::int64_t world = 0;  ///< ranks that the launcher starts; 0: not said
  SourceLine world_where;
  std::vector<std::string> passed_over;  ///< parts of the file that were not read
};

using OutsideVariables = std::function<std::optional<std::string>(const std::string&)>;

/// A shell script, or a command line. Options are those of the last command that has any of Megatron's; if there is
/// none, of all variables that have some. The world is that of torchrun or deepspeed (nodes times processes), or else
/// of the variables WORLD_SIZE, or NNODES or NUM_NODES times GPUS_PER_NODE. Throws InputError if nothing is found.
MegatronSource read_megatron_shell(const std::string& text, const std::string& file, const OutsideVariables& outside);

/// YAML with `MODEL_ARGS:` (keys with dashes) or `ARGS:` (keys with underscores), and `ENV_VARS:` for its ${VARIABLES}.
MegatronSource read_megatron_yaml(const Spec& spec, const std::string& file, const OutsideVariables& outside);

}  // namespace weft
