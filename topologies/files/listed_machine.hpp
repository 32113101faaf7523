// SPDX-License-Identifier: GPL-2.0-only
// Machines that a file lists node by node and link by link.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"

namespace weft {

/// What a reader finds. Nodes have the numbers of the file, in any order.
struct ListedMachine {
  struct Node {
    bool host = true;
    std::uint32_t block = no_block;  ///< server
    SourceLine where;
  };
  struct Link {
    std::uint32_t a;
    std::uint32_t b;
    LinkSpec link;
    std::string link_class;  ///< empty: "host" or "switch", by its ends
    SourceLine where;
  };
  std::map<std::uint32_t, Node> nodes;
  std::vector<Link> links;
  bool parallel_links = false;  ///< two links between the same nodes are meant
};

/// The machine: hosts in ascending order of their numbers, then switches likewise. A host with several links gets a
/// switch of its own, to which it is joined at the rate of all of them together: it can then forward, as a GPU with
/// NVLink and a NIC does. Throws InputError at the line of links that join unknown nodes or a node with itself, that
/// repeat another link, or of hosts without links.
Topology assemble_listed(const ListedMachine& machine);

/// The words of a line, without those from `comment` on.
std::vector<std::string> split_words(const std::string& line, char comment);
/// The whole of a text file. Throws InputError at `name` if it cannot be read.
std::string read_text_file(const Spec& name, std::string& path);
/// A whole number of `min` to `max` at a place of a file, else InputError.
std::uint64_t whole_number(const std::string& word, std::uint64_t min, std::uint64_t max, const std::string& what,
                           const SourceLine& where);
/// Units as ns-3 writes them: "400Gbps", "0.0005ms". A delay of 0 is an error, like everywhere.
Bandwidth listed_rate(const std::string& word, const SourceLine& where);
Time listed_delay(const std::string& word, const SourceLine& where);

}  // namespace weft
