// SPDX-License-Identifier: GPL-2.0-only
// Packets on links: queues of small blocks from one pool, so that memory follows the packets that are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "transport/packet.hpp"

namespace weft {

/// Seven packets and the block after it. Its address is a multiple of its size, so that a pointer to a packet tells the
/// block, and whether it is the last of the block.
struct alignas(256) PacketBlock {
  static constexpr std::size_t size = 256;
  PacketBlock* next = nullptr;
  alignas(sizeof(Packet)) Packet packets[7];

  /// The block of the packet before `end`.
  static PacketBlock* before(Packet* end) {
    return reinterpret_cast<PacketBlock*>((reinterpret_cast<std::uintptr_t>(end) - 1) & ~(size - 1));
  }
  static bool is_end(const Packet* packet) { return (reinterpret_cast<std::uintptr_t>(packet) & (size - 1)) == 0; }
};
static_assert(sizeof(PacketBlock) == PacketBlock::size);

/// Blocks for all queues of a process. What was freed last is used first: it is still in the processor's cache, which
/// a ring per queue would walk through from end to end.
class PacketBlocks {
 public:
  PacketBlock* take() {
    PacketBlock* block = free_;
    if (block == nullptr) [[unlikely]]
      return fresh();
    free_ = block->next;
    return block;
  }
  /// The block's packets stay readable until reuse_retired().
  void retire(PacketBlock* block) {
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
  // A chunk is a huge page, where the system gives such.
  static constexpr std::size_t chunk_bytes = std::size_t{2} << 20;
  struct Free {
    void operator()(std::byte* chunk) const { std::free(chunk); }
  };

  PacketBlock* fresh() {
    if (used_ == chunk_bytes || chunks_.empty()) {
      auto* chunk = static_cast<std::byte*>(std::aligned_alloc(chunk_bytes, chunk_bytes));
      if (chunk == nullptr) throw std::bad_alloc();
      madvise(chunk, chunk_bytes, MADV_HUGEPAGE);  // advice only: it may be refused
      chunks_.emplace_back(chunk);
      used_ = 0;
    }
    auto* block = new (chunks_.back().get() + used_) PacketBlock;
    used_ += sizeof(PacketBlock);
    return block;
  }

  PacketBlock* free_ = nullptr;
  PacketBlock* retired_ = nullptr;
  PacketBlock* oldest_retired_ = nullptr;
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
  std::size_t used_ = 0;  // bytes of the last chunk
};

/// Packets on a link, and in the output queue before it, in the order of their arrival at the receiving end.
class PacketQueue {
 public:
  bool empty() const { return pushed_ == taken_; }
  std::uint64_t size() const { return pushed_ - taken_; }
  const Packet& front() const { return *head_; }
  void push(const Packet& packet, std::int64_t arrival, PacketBlocks& blocks) {
    if (PacketBlock::is_end(tail_)) {
      PacketBlock* block = blocks.take();
      if (tail_ == nullptr)
        head_ = block->packets;
      else
        PacketBlock::before(tail_)->next = block;
      tail_ = block->packets;
    }
    *tail_ = packet;
    tail_->time = arrival;
    ++tail_;
    ++pushed_;
  }
  /// The packet stays where it is until blocks.reuse_retired().
  void pop(PacketBlocks& blocks) {
    ++head_;
    ++taken_;
    if (pushed_ == taken_) {
      blocks.retire(PacketBlock::before(head_));
      head_ = tail_ = nullptr;
    } else if (PacketBlock::is_end(head_)) {
      PacketBlock* drained = PacketBlock::before(head_);
      head_ = drained->next->packets;
      blocks.retire(drained);
    }
  }
  /// Number of packets taken so far: the link sequence of the first one in the queue.
  std::uint64_t taken() const { return taken_; }
  std::uint64_t pushed() const { return pushed_; }

  std::uint64_t tie_salt = 0;  ///< from the seed and the directed link

 private:
  Packet* head_ = nullptr;  // first packet; both are null in an empty queue
  Packet* tail_ = nullptr;  // where the next one goes, or the end of the last block
  std::uint64_t taken_ = 0;
  std::uint64_t pushed_ = 0;
};

}  // namespace weft
