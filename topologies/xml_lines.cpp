// SPDX-License-Identifier: GPL-2.0-only
// XML with the lines of its elements.
#include "topologies/xml_lines.hpp"

#include <cctype>
#include <sstream>

#include <boost/property_tree/xml_parser.hpp>
#include <fmt/format.h>

#include "support/error.hpp"

namespace weft {

boost::property_tree::ptree parse_xml(const std::string& text, const std::string& path) {
  boost::property_tree::ptree tree;
  std::istringstream stream(text);
  try {
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw InputError({path, static_cast<int>(error.line())}, fmt::format("no XML: {}", error.message()));
  }
  return tree;
}

std::vector<int> lines_of_tag(const std::string& text, const std::string& tag) {
  std::vector<int> lines;
  int line = 1;
  const std::string begin = "<" + tag;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    const std::size_t after = i + begin.size();
    if (text.compare(i, begin.size(), begin) == 0 && after < text.size() &&
        std::isalnum(static_cast<unsigned char>(text[after])) == 0)
      lines.push_back(line);
  }
  return lines;
}

}  // namespace weft
