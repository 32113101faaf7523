// SPDX-License-Identifier: GPL-2.0-only
#include "support/documents/xml.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft {

XmlFile::XmlFile(std::string text, std::string path) : text_(std::move(text)), path_(std::move(path)) {
  // In another encoding places would be those of a converted text.
  const auto result = document_.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) throw InputError(line_at(result.offset), fmt::format("this is no XML: {}", result.description()));
}

pugi::xml_node XmlFile::root(const char* tag, const std::string& what) const {
  const pugi::xml_node found = document_.child(tag);
  if (!found) throw InputError({path_, 1}, fmt::format("no <{}>; {} begins with it", tag, what));
  return found;
}

SourceLine XmlFile::where(const pugi::xml_node& element) const { return line_at(element.offset_debug()); }

SourceLine XmlFile::line_at(std::ptrdiff_t offset) const {
  const auto end = text_.begin() + std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
  return {path_, 1 + static_cast<int>(std::count(text_.begin(), end, '\n'))};
}

}  // namespace weft
