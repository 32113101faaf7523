// SPDX-License-Identifier: GPL-2.0-only
// NCCL's double binary tree: the parent of each rank.
#pragma once

#include <array>
#include <cstdint>

#include "schedule/collective/channel_graph.hpp"

namespace weft {

constexpr std::uint32_t no_rank = 0xffffffffU;

/// A place in a tree. Children as NCCL numbers them; existing children come first.
struct TreePlace {
  std::uint32_t parent = no_rank;
  std::array<std::uint32_t, 3> children{no_rank, no_rank, no_rank};
  std::uint32_t child_count = 0;
};

/// Node of a tree over `nodes` nodes, with both children even if one is no_rank. NCCL src/graph/trees.cc.
struct BinaryTreeNode {
  std::uint32_t up = no_rank;
  std::uint32_t down0 = no_rank;
  std::uint32_t down1 = no_rank;
};
/// ncclGetBtree: the first tree.
BinaryTreeNode nccl_binary_tree(std::uint32_t nodes, std::uint32_t node);
/// ncclGetDtree: the first (0) or second (1) tree. The second one is the mirror image for an even number of nodes, and
/// shifted by one for an odd number.
BinaryTreeNode nccl_double_tree(std::uint32_t nodes, std::uint32_t node, std::uint32_t tree);

/// Place of a rank among `ranks` ranks in servers of `server` each.
TreePlace nccl_tree_place(std::uint32_t ranks, std::uint32_t server, std::uint32_t rank, std::uint32_t tree);
/// The same on a machine's graph, on a channel.
TreePlace nccl_tree_place(const ChannelGraph& graph, std::uint32_t channel, std::uint32_t member, std::uint32_t tree);

}  // namespace weft
