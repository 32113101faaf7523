// SPDX-License-Identifier: GPL-2.0-only
// Sources of Megatron-LM's options: commands of shell scripts, variables, and YAML files.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "workloads/configuration/megatron_options.hpp"

namespace weft {
namespace {

/// Options by which a command is known to be Megatron's.
bool is_megatron(const MegatronOptions& options) {
  constexpr std::array telling = {"num-layers",       "hidden-size",       "tensor-model-parallel-size",
                                  "micro-batch-size", "global-batch-size", "pipeline-model-parallel-size"};
  return std::any_of(telling.begin(), telling.end(), [&](const char* name) { return options.has(name); });
}

/// Words of a command; those that are commands themselves (`bash -c "..."`) are taken apart.
std::vector<ShellText> flat(const std::vector<ShellText>& words) {
  std::vector<ShellText> result;
  for (const ShellText& word : words) {
    const auto fields = word.fields();
    const bool command = fields.size() > 1 && word.text().find("--") != std::string::npos;
    if (command)
      result.insert(result.end(), fields.begin(), fields.end());
    else
      result.push_back(word);
  }
  return result;
}

std::string program_in(const std::vector<ShellText>& words) {
  for (const ShellText& word : words)
    if (word.text().ends_with(".py")) {
      const std::size_t slash = word.text().rfind('/');
      return slash == std::string::npos ? word.text() : word.text().substr(slash + 1);
    }
  return "";
}

/// A number of 1 to 2^24 in text, or 0.
std::int64_t count_in(const std::string& text) {
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > (std::int64_t{1} << 24)) return 0;
    value = 10 * value + (c - '0');
  }
  return value <= (std::int64_t{1} << 24) ? value : 0;
}

class World {
 public:
  World(MegatronSource& source, ShellVariables& variables) : source_(source), variables_(variables) {}

  void find() {
    if (from_options("nnodes", "nproc-per-node") || from_options("num-nodes", "num-gpus")) return;
    if (const std::int64_t size = variable("WORLD_SIZE"); size > 0) return take(size, line_);
    for (const char* nodes : {"NNODES", "NUM_NODES"})
      for (const char* each : {"GPUS_PER_NODE", "NPROC_PER_NODE"}) {
        const std::int64_t count = variable(nodes);
        const SourceLine where = line_;
        if (count > 0 && variable(each) > 0) return take(count * variable(each), where);
      }
  }

 private:
  bool from_options(const std::string& nodes, const std::string& each) {
    const MegatronOptions& options = source_.options;
    const auto count = [&](const std::string& name) {
      const auto values = options.texts(name);
      return values.empty() ? 0 : count_in(values.front());
    };
    if (count(nodes) == 0 || count(each) == 0) return false;
    take(count(nodes) * count(each), options.where(nodes));
    return true;
  }
  /// Only variables that the file itself sets: one of the environment belongs to another job.
  std::int64_t variable(const std::string& name) {
    const auto at = variables_.values.find(name);
    if (at == variables_.values.end() || at->second.size() != 1 || at->second.front().line() == 0) return 0;
    line_ = {source_.options.file(), at->second.front().line()};
    return count_in(at->second.front().text());
  }
  void take(std::int64_t world, const SourceLine& where) {
    constexpr std::int64_t max = std::int64_t{1} << 24;
    if (world > max) throw InputError(where, fmt::format("a world of {} ranks; at most {} are possible", world, max));
    source_.world = world;
    source_.world_where = where;
  }

  MegatronSource& source_;
  ShellVariables& variables_;
  SourceLine line_;
};

/// Options that only the launcher reads.
void ask_for_launcher_options(const MegatronOptions& options) {
  for (const char* name : {"nnodes", "nproc-per-node", "num-nodes", "num-gpus", "node-rank", "master-addr",
                           "master-port", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts"})
    static_cast<void>(options.has(name));
}

}  // namespace

MegatronSource read_megatron_shell(const std::string& text, const std::string& file, const OutsideVariables& outside) {
  ShellScript script = read_shell_script(text, file, outside);
  MegatronSource source{MegatronOptions(file), "", 0, {file, 0}, std::move(script.passed_over)};
  bool found = false;
  for (const auto& command : script.commands) {
    const std::vector<ShellText> words = flat(command);
    MegatronOptions options(file);
    options.add_words(words);
    if (!is_megatron(options)) continue;
    source.options = std::move(options);
    source.program = program_in(words);
    found = true;
  }
  if (!found) {
    for (const std::string& name : script.variables.order)
      source.options.add_words(flat(script.variables.values[name]));
    found = is_megatron(source.options);
  }
  if (!found)
    throw InputError({file, 0},
                     "no options of Megatron-LM are found: neither a command nor a variable has --num-layers, "
                     "--hidden-size, --micro-batch-size or --tensor-model-parallel-size");
  World(source, script.variables).find();
  ask_for_launcher_options(source.options);
  return source;
}

namespace {

/// A scalar of YAML as one word with its variables expanded.
ShellText expanded(ShellExpansion& expansion, const Spec& value) {
  // Quotes of the YAML are gone, those that are left belong to the text.
  return expansion.text(value.text(), value.where().line);
}

void add_option(MegatronOptions& options, ShellExpansion& expansion, const std::string& key, const Spec& value) {
  if (value.is_null()) return options.add(key, {}, value.where());
  std::vector<ShellText> values;
  if (value.is_sequence()) {
    for (const Spec& item : value.items()) values.push_back(expanded(expansion, item));
  } else {
    if (!value.is_scalar()) throw value.error("expected a value or a list of values");
    values.push_back(expanded(expansion, value));
    const std::string& text = values.front().text();
    if (text == "false" || text == "False") return;
    if (text == "true" || text == "True") values.clear();
  }
  options.add(key, std::move(values), value.where());
}

}  // namespace

MegatronSource read_megatron_yaml(const Spec& spec, const std::string& file, const OutsideVariables& outside) {
  if (!spec.is_map()) throw spec.error("expected a map with MODEL_ARGS");
  ShellVariables variables;
  variables.outside = outside;
  ShellExpansion expansion(variables, file);
  MegatronSource source{MegatronOptions(file), "", 0, {file, 0}, {}};
  std::optional<Spec> arguments;
  for (const auto& [key, value] : spec.entries()) {
    if (key == "ENV_VARS") {
      for (const auto& [name, text] : value.entries())
        if (text.is_scalar()) variables.set(name) = {expanded(expansion, text)};
    } else if (key == "MODEL_ARGS" || key == "ARGS") {
      arguments = value;
    } else {
      source.passed_over.push_back(key);
    }
  }
  if (!arguments) throw spec.error("no options are found; expected MODEL_ARGS (or ARGS)");
  for (const auto& [name, value] : arguments->entries()) add_option(source.options, expansion, name, value);
  World(source, variables).find();
  ask_for_launcher_options(source.options);
  return source;
}

}  // namespace weft
