// SPDX-License-Identifier: GPL-2.0-only
// The nodes that have events in each epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace weft {

/// Nodes by the number of the epoch in which they act next: a ring of the near epochs and a heap for the far ones. A
/// node that is moved to an earlier epoch leaves a stale entry behind, which is skipped. The heap takes no second entry
/// of a node that is not earlier than the first: in each epoch, a host may have nothing but its retransmission timer
/// ahead until the next packet arrives.
class NodeCalendar {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  void resize(std::size_t nodes) {
    epoch_of_.assign(nodes, none);
    far_of_.assign(nodes, none);
  }

  /// Make sure that `node` is visited in `epoch` or before.
  void schedule(std::uint32_t node, std::uint64_t epoch) {
    if (epoch < epoch_of_[node]) enter(node, epoch);
  }

  /// First epoch in which some node acts, or none.
  std::uint64_t first() {
    while (entries_ > 0) {
      if (!far_.empty() && far_.top().first < base_ + near_epochs) far_to_near();
      for (std::uint64_t i = 0; i < near_epochs; ++i) {
        const std::uint64_t epoch = base_ + i;
        if (live(epoch)) {
          base_ = epoch;
          return epoch;
        }
      }
      base_ = earliest_entry();
    }
    return none;
  }

  /// Move out the nodes of `epoch`, which must be first(); they are no longer scheduled.
  void take(std::uint64_t epoch, std::vector<std::uint32_t>& nodes) {
    nodes.clear();
    auto& bucket = near_[epoch % near_epochs];
    std::size_t kept = 0;
    for (const auto& entry : bucket) {
      if (entry.first != epoch) {
        bucket[kept++] = entry;
        continue;
      }
      --entries_;
      if (epoch_of_[entry.second] != epoch) continue;
      epoch_of_[entry.second] = none;
      nodes.push_back(entry.second);
    }
    bucket.resize(kept);
    if (kept == 0) spare_.push_back(std::exchange(bucket, {}));
  }

 private:
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  static constexpr std::uint64_t near_epochs = 256;

  // Out of line: once per node and epoch, and whoever sends a packet need not save registers for it.
  [[gnu::noinline]] void enter(std::uint32_t node, std::uint64_t epoch) {
    epoch_of_[node] = epoch;
    if (epoch < base_) base_ = epoch;
    if (epoch - base_ < near_epochs)
      enter_near({epoch, node});
    else if (epoch < far_of_[node])
      enter_far({epoch, node});
  }
  void enter_far(const Entry& entry) {
    far_of_[entry.second] = entry.first;
    far_.push(entry);
    ++entries_;
  }
  void enter_near(const Entry& entry) {
    auto& bucket = near_[entry.first % near_epochs];
    if (bucket.capacity() == 0 && !spare_.empty()) {
      bucket = std::move(spare_.back());
      spare_.pop_back();
    }
    bucket.push_back(entry);
    ++entries_;
  }
  void far_to_near() {
    while (!far_.empty() && far_.top().first < base_ + near_epochs) {
      const auto [epoch, node] = far_.top();
      far_.pop();
      --entries_;
      if (far_of_[node] != epoch) continue;  // the node has an earlier one
      far_of_[node] = none;
      const std::uint64_t acts = epoch_of_[node];
      if (acts == none) continue;
      if (acts < base_ + near_epochs)
        enter_near({acts, node});  // again, if it was moved there before: one of the two is then skipped
      else
        enter_far({acts, node});
    }
  }
  // Some node acts in `epoch`. If none does, stale entries of that epoch go.
  bool live(std::uint64_t epoch) {
    auto& bucket = near_[epoch % near_epochs];
    if (bucket.empty()) return false;
    for (const Entry& entry : bucket)
      if (entry.first == epoch && epoch_of_[entry.second] == epoch) return true;
    entries_ -= std::erase_if(bucket, [epoch](const Entry& entry) { return entry.first == epoch; });
    return false;
  }
  // The ring may hold epochs beyond its span: the base moves back when an earlier epoch is scheduled.
  std::uint64_t earliest_entry() const {
    std::uint64_t min = far_.empty() ? none : far_.top().first;
    for (const auto& bucket : near_)
      for (const Entry& entry : bucket) min = entry.first < min ? entry.first : min;
    return min;
  }

  std::vector<std::uint64_t> epoch_of_;  // [nodes]
  std::vector<std::uint64_t> far_of_;    // [nodes] epoch of the node's entry in the heap
  std::vector<Entry> near_[near_epochs];
  /// Memory of epochs that are over, for those that begin: few epochs have entries at a time, so little memory does,
  /// and it stays in the cache.
  std::vector<std::vector<Entry>> spare_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> far_;
  std::uint64_t base_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace weft
