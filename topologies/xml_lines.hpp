// SPDX-License-Identifier: GPL-2.0-only
// XML with the lines of its elements.
#pragma once

#include <string>
#include <vector>

#include <boost/property_tree/ptree.hpp>

namespace weft {

/// The document. Throws InputError at the line of what is no XML.
boost::property_tree::ptree parse_xml(const std::string& text, const std::string& path);
/// Lines on which a tag begins, in document order: Boost's parser does not tell.
std::vector<int> lines_of_tag(const std::string& text, const std::string& tag);

}  // namespace weft
