// SPDX-License-Identifier: GPL-2.0-only
// An XML file whose elements know their lines.
#pragma once

#include <string>

#include <pugixml.hpp>

#include "support/basics/error.hpp"

namespace weft {

class XmlFile {
 public:
  /// `path` stands for the file in messages. Throws InputError at the line of what is no XML.
  XmlFile(std::string text, std::string path);

  /// The outermost element. Throws InputError if it is not `tag`, with which `what` begins: "a GraphML file".
  pugi::xml_node root(const char* tag, const std::string& what) const;
  SourceLine where(const pugi::xml_node& element) const;
  const std::string& path() const { return path_; }

 private:
  SourceLine line_at(std::ptrdiff_t offset) const;
  std::string text_;
  std::string path_;
  pugi::xml_document document_;
};

}  // namespace weft
