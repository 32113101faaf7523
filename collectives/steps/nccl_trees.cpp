// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/steps/nccl_trees.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

void add(TreePlace& place, std::uint32_t child) {
  if (child != no_rank) place.children[place.child_count++] = child;
}

}  // namespace

// In the first tree a node's height is the number of its trailing zero bits: the odd ones are leaves, 0 is the root
// with one child.
BinaryTreeNode nccl_binary_tree(std::uint32_t nodes, std::uint32_t node) {
  WEFT_EXPECT(node < nodes, "node {} of {}", node, nodes);
  BinaryTreeNode result;
  std::uint32_t bit = 1;
  while (bit < nodes && (bit & node) == 0) bit <<= 1;
  if (node == 0) {
    if (nodes > 1) result.down1 = bit >> 1;
    return result;
  }
  result.up = (node ^ bit) | (bit << 1);
  if (result.up >= nodes) result.up = node ^ bit;
  std::uint32_t low = bit >> 1;
  if (low == 0) return result;
  result.down0 = node - low;
  while (low != 0 && node + low >= nodes) low >>= 1;
  if (low != 0) result.down1 = node + low;
  return result;
}

BinaryTreeNode nccl_double_tree(std::uint32_t nodes, std::uint32_t node, std::uint32_t tree) {
  if (tree == 0) return nccl_binary_tree(nodes, node);
  const bool mirrored = nodes % 2 == 0;
  const auto there = [&](std::uint32_t x) { return mirrored ? nodes - 1 - x : (x + nodes - 1) % nodes; };
  const auto back = [&](std::uint32_t x) {
    if (x == no_rank) return no_rank;
    return mirrored ? nodes - 1 - x : (x + 1) % nodes;
  };
  const BinaryTreeNode image = nccl_binary_tree(nodes, there(node));
  return {back(image.up), back(image.down0), back(image.down1)};
}

TreePlace nccl_tree_place(std::uint32_t ranks, std::uint32_t server, std::uint32_t rank, std::uint32_t tree) {
  WEFT_EXPECT(ranks % server == 0, "{} ranks in servers of {}", ranks, server);
  const std::uint32_t local = rank % server;
  const BinaryTreeNode node = nccl_double_tree(ranks / server, rank / server, tree);
  const std::uint32_t first_child_at = server > 1 ? 1 : 0;  // of the members of a server
  TreePlace place;
  if (local != 0)
    place.parent = rank - 1;
  else if (node.up != no_rank) {
    // The parent's member that has this server as its child.
    const bool first = nccl_double_tree(ranks / server, node.up, tree).down0 == rank / server;
    place.parent = node.up * server + (first ? first_child_at : 0);
  }
  if (local == first_child_at && node.down0 != no_rank) add(place, node.down0 * server);
  if (local == 0 && node.down1 != no_rank) add(place, node.down1 * server);
  if (local + 1 < server) add(place, rank + 1);
  return place;
}

// src/graph/connect.cc, connectTrees: a server's chain starts at the member that links up, and its children are at the
// first or second one, as the pattern says.
TreePlace nccl_tree_place(const ChannelGraph& graph, std::uint32_t channel, std::uint32_t member, std::uint32_t tree) {
  const std::uint32_t server = graph.server_of(member);
  const auto& chain = graph.tree_in(server, channel).places;
  const auto found = std::find(chain.begin(), chain.end(), graph.place_of(member));
  const auto at = static_cast<std::size_t>(found - chain.begin());
  const auto head = [&](std::uint32_t of) { return graph.member_at(of, graph.tree_in(of, channel).places[0]); };
  const auto child_at = [&](std::uint32_t of, bool second_child) -> std::size_t {
    const ServerChannels& kind = graph.kind_of(of);
    const bool second = second_child ? kind.second_child_at_second_place : kind.first_child_at_second_place;
    return second && kind.accelerators.size() > 1 ? 1 : 0;
  };
  const BinaryTreeNode node = nccl_double_tree(graph.servers(), server, tree);
  TreePlace place;
  if (at > 0) {
    place.parent = graph.member_at(server, chain[at - 1]);
  } else if (node.up != no_rank) {
    const bool second = nccl_double_tree(graph.servers(), node.up, tree).down0 != server;
    place.parent = graph.member_at(node.up, graph.tree_in(node.up, channel).places[child_at(node.up, second)]);
  }
  if (node.down0 != no_rank && at == child_at(server, false)) add(place, head(node.down0));
  if (node.down1 != no_rank && at == child_at(server, true)) add(place, head(node.down1));
  if (at + 1 < chain.size()) add(place, graph.member_at(server, chain[at + 1]));
  return place;
}

}  // namespace weft
