// SPDX-License-Identifier: GPL-2.0-only
// Drawings as Portable Network Graphics: matplotlib draws the SVG.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "app/pictures/drawing.hpp"
#include "support/basics/error.hpp"
#include "support/system/python.hpp"

namespace weft {
namespace {

/// A folder that is removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "weft-picture-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw EnvironmentError(fmt::format("cannot make a folder '{}'", path_));
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

std::string to_png(const Drawing& drawing) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("drawing.svg")) << to_svg(drawing);
  if (run_script("plotting/draw_svg.py", {folder.file("drawing.svg"), folder.file("drawing.png")}) != 0)
    throw EnvironmentError("a PNG could not be drawn; a picture FILE.svg needs no other program");
  std::ifstream file(folder.file("drawing.png"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace weft
