// SPDX-License-Identifier: GPL-2.0-only
// Queues of packets in small blocks from one pool, so that memory follows the packets that are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "support/system/huge_pages.hpp"
#include "transport/messages/packet.hpp"

namespace weft {

/// As many entries as fit and, after them, the next block, whose address is so in the same cache line as the last
/// entry. The block's address is a multiple of its size, so that a pointer to an entry gives the block, and whether it
/// is the last of the block.
template <class Entry, std::size_t Size>
struct alignas(Size) Block {
  static constexpr std::size_t size = Size;
  static constexpr std::size_t capacity = (Size - sizeof(void*)) / sizeof(Entry);

  std::byte storage[Size - sizeof(void*)];
  Block* next = nullptr;

  Entry* entries() { return reinterpret_cast<Entry*>(this); }
  /// The block of the entry before `end`.
  static Block* before(const Entry* end) {
    return reinterpret_cast<Block*>((reinterpret_cast<std::uintptr_t>(end) - 1) & ~(size - 1));
  }
  /// The end of the block in which an entry stands.
  static const void* end_of(const Entry* entry) {
    return reinterpret_cast<const void*>((reinterpret_cast<std::uintptr_t>(entry) | (size - 1)) + 1);
  }
  static constexpr std::uintptr_t end_offset = capacity * sizeof(Entry);
  static bool is_end(const Entry* entry) {
    return (reinterpret_cast<std::uintptr_t>(entry) & (size - 1)) == end_offset;
  }
  /// Stands for no entry, and for the end of a block, so that the first entry of a queue needs a new one.
  static Entry* none() { return reinterpret_cast<Entry*>(end_offset); }
};

/// Blocks for all queues of a process. What was freed last is used first: it is still in the processor's cache, which
/// a ring per queue would walk through from end to end.
template <class Entry, std::size_t Size>
class Blocks {
 public:
  using BlockType = Block<Entry, Size>;
  static_assert(sizeof(BlockType) == Size && Size % alignof(Entry) == 0);

  BlockType* take() {
    BlockType* block = free_;
    if (block == nullptr) [[unlikely]]
      return fresh();
    free_ = block->next;
    if (free_ != nullptr) __builtin_prefetch(&free_->next);
    return block;
  }
  /// The block's entries stay readable until reuse_retired().
  void retire(BlockType* block) {
    block->next = retired_;
    if (retired_ == nullptr) oldest_retired_ = block;
    retired_ = block;
  }
  void reuse_retired() {
    if (retired_ == nullptr) return;
    oldest_retired_->next = free_;
    free_ = retired_;
    retired_ = nullptr;
  }
  std::uint64_t memory() const { return chunks_.empty() ? 0 : (chunks_.size() - 1) * chunk_bytes + used_; }

 private:
  static constexpr std::size_t chunk_bytes = huge_page;
  struct Free {
    void operator()(std::byte* chunk) const { std::free(chunk); }
  };

  [[gnu::noinline]] BlockType* fresh() {
    if (used_ == chunk_bytes || chunks_.empty()) {
      chunks_.emplace_back(static_cast<std::byte*>(allocate_huge(chunk_bytes)));
      used_ = 0;
    }
    auto* block = new (chunks_.back().get() + used_) BlockType;
    used_ += Size;
    return block;
  }

  BlockType* free_ = nullptr;
  BlockType* retired_ = nullptr;
  BlockType* oldest_retired_ = nullptr;
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
  std::size_t used_ = 0;  // bytes of the last chunk
};

/// First in, first out.
template <class Entry, std::size_t Size>
class BlockQueue {
 public:
  using Pool = Blocks<Entry, Size>;

  bool empty() const { return head_ == tail_; }
  Entry& front() { return *head_; }
  const Entry& front() const { return *head_; }
  /// The next entry needs add_block() before it.
  bool needs_block() const { return BlockType::is_end(tail_); }
  void add_block(Pool& blocks) {
    BlockType* block = blocks.take();
    if (tail_ == BlockType::none())
      head_ = block->entries();
    else
      BlockType::before(tail_)->next = block;
    tail_ = block->entries();
  }
  /// The new last entry, if no block is needed.
  Entry& push(const Entry& entry) {
    *tail_ = entry;
    return *tail_++;
  }
  Entry& push(const Entry& entry, Pool& blocks) { return extend(blocks) = entry; }
  /// A new last entry, to be filled in.
  Entry& extend(Pool& blocks) {
    if (needs_block()) add_block(blocks);
    return *tail_++;
  }
  /// From the first to the last.
  template <class Action>
  void for_each(Action&& action) const {
    for (Entry* entry = head_; entry != tail_; ++entry) {
      if (BlockType::is_end(entry)) entry = BlockType::before(entry)->next->entries();
      action(*entry);
    }
  }
  /// The entry stays where it is until blocks.reuse_retired().
  void pop(Pool& blocks) {
    ++head_;
    if (head_ == tail_) {
      blocks.retire(BlockType::before(head_));
      head_ = tail_ = BlockType::none();
    } else if (BlockType::is_end(head_)) {
      BlockType* drained = BlockType::before(head_);
      head_ = drained->next->entries();
      blocks.retire(drained);
    }
  }
  /// Pops entries from the first on while `wanted(entry)`, each given to `take(entry)`, and returns their number.
  template <class Wanted, class Take>
  std::uint64_t pop_while(Pool& blocks, Wanted&& wanted, Take&& take) {
    std::uint64_t popped = 0;
    Entry* head = head_;
    Entry* const tail = tail_;
    while (head != tail && wanted(*head)) {
      take(*head);
      ++head;
      ++popped;
      if (!BlockType::is_end(head) || head == tail) continue;
      BlockType* drained = BlockType::before(head);
      head = drained->next->entries();
      blocks.retire(drained);
    }
    head_ = head;
    if (head == tail && popped > 0) {
      blocks.retire(BlockType::before(head));
      head_ = tail_ = BlockType::none();
    }
    return popped;
  }
  /// The block after that of the first entry, if it has an entry; otherwise any address. For prefetching.
  const void* second_block() const { return BlockType::before(head_ + 1)->next; }

 private:
  using BlockType = Block<Entry, Size>;
  Entry* head_ = BlockType::none();  // first entry; both are none in an empty queue
  Entry* tail_ = BlockType::none();  // where the next one goes, or the end of the last block
};

constexpr std::size_t link_block = 256;  ///< bytes: seven packets
using PacketBlocks = Blocks<Packet, link_block>;
using PacketBlock = PacketBlocks::BlockType;

/// Packets on a link, and in the output queue before it, in the order of their arrival at the receiving end. In half a
/// cache line, because a sender uses the queues of many nodes.
class alignas(32) PacketQueue {
 public:
  bool empty() const { return pushed_ == taken_; }
  std::uint64_t size() const { return pushed_ - taken_; }
  const Packet& front() const { return queue_.front(); }
  void push(const Packet& packet, Time arrival, PacketBlocks& blocks) {
    if (needs_block()) add_block(blocks);
    push(packet, arrival);
  }
  /// The next packet needs add_block() before it.
  bool needs_block() const { return queue_.needs_block(); }
  void add_block(PacketBlocks& blocks) { queue_.add_block(blocks); }
  void push(const Packet& packet, Time arrival) {
    queue_.push(packet).time = arrival;
    ++pushed_;
  }
  /// The packet stays where it is until blocks.reuse_retired().
  void pop(PacketBlocks& blocks) {
    queue_.pop(blocks);
    ++taken_;
  }
  /// Pops the packets that arrive before `end`, each given to `take(packet, sequence)`. They stay where they are until
  /// blocks.reuse_retired().
  template <class Take>
  void pop_before(Time end, PacketBlocks& blocks, Take&& take) {
    std::uint64_t sequence = taken_;
    taken_ += queue_.pop_while(
        blocks, [end](const Packet& packet) { return packet.time < end; },
        [&](Packet& packet) { take(packet, sequence++); });
  }
  template <class Action>
  void for_each(Action&& action) const {
    queue_.for_each(std::forward<Action>(action));
  }
  const void* second_block() const { return queue_.second_block(); }
  /// Number of packets taken so far: the link sequence of the first one in the queue.
  std::uint64_t taken() const { return taken_; }
  std::uint64_t pushed() const { return pushed_; }

 private:
  BlockQueue<Packet, link_block> queue_;
  std::uint64_t taken_ = 0;
  std::uint64_t pushed_ = 0;
};
static_assert(sizeof(PacketQueue) == 32);

}  // namespace weft
