// SPDX-License-Identifier: GPL-2.0-only
// A machine in a file of another program, or a ready-made one.
#include <filesystem>

#include <fmt/format.h>

#include "support/documents/text_file.hpp"
#include "support/system/data_directory.hpp"
#include "topologies/files/listed_machine.hpp"
#include "topologies/files/machine_file.hpp"

namespace weft {
namespace {

class File final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const Spec name = spec.at("path");
    const auto named = spec.find("format");
    std::vector<std::string> formats = MachineFormatRegistry::instance().names();
    formats.emplace_back("yaml");
    const std::string format = named ? named->one_of(formats) : format_of(name);
    spec.finish();
    if (format == "yaml") return read_yaml(name);
    std::string path;
    const std::string text = read_text_file(name, path);
    return MachineFormatRegistry::instance().find(format)->make()->read(text, path);
  }

 private:
  static std::string format_of(const Spec& name) {
    const std::string path = name.text();
    std::string known = ".yaml";
    if (path.ends_with(".yaml") || path.find('.') == std::string::npos) return "yaml";
    for (const auto& [format, entry] : MachineFormatRegistry::instance().entries()) {
      const std::string ending = entry.make()->ending();
      if (ending.empty()) continue;
      if (path.ends_with(ending)) return format;
      known += ", " + ending;
    }
    throw name.error(fmt::format("the ending of '{}' does not tell its format (known: {}); say it with format: {}",
                                 path, known, MachineFormatRegistry::instance().names().front()));
  }

  /// Without an ending and a folder: the name of a ready-made machine.
  static Topology read_yaml(const Spec& name) {
    namespace fs = std::filesystem;
    fs::path path = fs::path(name.where().file).parent_path() / name.text();
    if (name.text().find('.') == std::string::npos) {
      const fs::path folder = data_directory("topologies") / "specs";
      std::vector<std::string> known;
      for (const auto& entry : fs::directory_iterator(folder)) known.push_back(entry.path().stem().string());
      std::sort(known.begin(), known.end());
      path = folder / (name.one_of(known) + ".yaml");
    } else if (const std::string reason = why_closed(path.string()); !reason.empty()) {
      throw name.error(path.string() + ": " + reason);
    }
    const Spec document = Spec::load(path.string());
    const Spec map = document.has("topology") ? document.at("topology") : document;
    if (map.has("kind") && map.at("kind").text() == "file")
      throw map.at("kind").error("a machine file that names another machine file; name that one");
    return build_part(map);
  }
};

const Registration<TopologyBuilder, File> file_registration(
    "file",
    "a machine from a file: {path: cluster.topo, [format: graphml|htsim|ns3|simai|yaml]}, or a ready-made one by "
    "its name");

}  // namespace
}  // namespace weft
