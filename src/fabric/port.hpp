// SPDX-License-Identifier: GPL-2.0-only
// Ports: what a packet-hop touches.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/packet.hpp"

namespace weft {

/// The sending side of a port. The first cache line is what deciding a departure needs.
struct OutputPort {
  static constexpr std::uint32_t remote = 0x80000000U;

  std::int64_t free_at = 0;         ///< its last committed bit leaves then
  std::int64_t after = 0;           ///< propagation, plus the next node's latency if that is a switch
  std::int64_t full_packet = 0;     ///< serialisation of a full-MTU data packet
  std::int64_t control_packet = 0;  ///< of an ACK or credit
  std::uint32_t peer_port = 0;  ///< local port index at the peer, or remote | position among the neighbour's cut links
  std::uint32_t peer_node = 0;  ///< local node index of the peer, or index of the neighbour process
  std::int64_t next_sample = 0;
  std::int64_t rate_bps = 0;
  std::uint32_t directed_link = 0;
  bool tapped = false;

  std::uint64_t packets = 0;
  std::uint64_t data_packets = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t bytes = 0;
  std::int64_t busy = 0;
  std::int64_t peak_backlog = 0;  ///< ps of unsent work, including the packet that has just come
  unsigned __int128 waited = 0;   ///< sum of bytes * waiting time, B ps
  std::int64_t sampled_busy = 0;  ///< busy time up to the last sample
};

/// Packets on a link, and in the output queue before it, in the order of their arrival at the receiving end: a growing
/// ring.
class InputQueue {
 public:
  bool empty() const { return head_ == tail_; }
  std::uint64_t size() const { return tail_ - head_; }
  const Packet& front() const { return ring_[head_ & mask_]; }
  void push(const Packet& packet, std::int64_t arrival) {
    if (tail_ - head_ == ring_.size()) [[unlikely]]
      grow();
    Packet& place = ring_[tail_ & mask_];
    place = packet;
    place.time = arrival;
    ++tail_;
  }
  void pop(std::uint64_t count) { head_ += count; }
  /// Number of packets taken so far: the link sequence of the first one in the queue.
  std::uint64_t taken() const { return head_; }
  std::uint64_t pushed() const { return tail_; }
  std::uint64_t memory() const { return ring_.size() * sizeof(Packet); }

  std::uint64_t tie_salt = 0;  ///< from the seed and the directed link

 private:
  void grow() {
    std::vector<Packet> larger(ring_.empty() ? 8 : ring_.size() * 2);
    const std::uint64_t count = tail_ - head_;
    for (std::uint64_t i = 0; i < count; ++i) larger[(head_ + i) & (larger.size() - 1)] = ring_[(head_ + i) & mask_];
    ring_.swap(larger);
    mask_ = ring_.size() - 1;
  }

  std::vector<Packet> ring_;
  std::uint64_t mask_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace weft
