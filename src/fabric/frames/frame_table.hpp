// SPDX-License-Identifier: GPL-2.0-only
// ns-3's packets on their way through the fabric: lean packets of PacketKind::frame name them by their slot here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ns3/packet.h>
#include <ns3/ptr.h>

#include "engine/batch.hpp"
#include "transport/messages/packet.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// Counts of the frames that entered at the hosts of this process, or ended here. Bytes are those of Ethernet frames
/// with their check sequence.
struct FrameCounters {
  std::uint64_t sent = 0;  ///< entered a port's queue
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;  ///< no room, no route, or lost by a link
  Bytes sent_bytes;
  Bytes delivered_bytes;
  Bytes dropped_bytes;
};

/// One per fabric and process. A packet is held here while it is on a link or in a queue of this process; it travels to
/// another process in bytes. Frames have their Ethernet header, and no check sequence.
class FrameTable {
 public:
  using Frame = ns3::Ptr<ns3::Packet>;
  /// A frame that will have arrived at a host of this process.
  struct Arrival {
    NodeId host;
    std::uint32_t port = 0;  ///< of the host
    Time time;               ///< of the last bit; not before the end of the engine's window
    Frame frame;
    Bytes bytes;  ///< of the lean packet: with padding and check sequence
  };
  /// Sees to it that the frame is handed to the host at its time, and that it is counted then.
  using Receiver = std::function<void(Arrival)>;

  /// nullptr: frames that arrive are dropped.
  void set_receiver(Receiver receiver) { receiver_ = std::move(receiver); }

  /// Returns the slot.
  std::uint32_t add(Frame frame);
  const Frame& at(std::uint32_t slot) const { return slots_[slot].frame; }
  /// The frame leaves the table.
  Frame take(std::uint32_t slot);
  /// Frames held.
  std::uint64_t live() const { return live_; }

  /// Congestion experienced: sets both bits of the IPv4 header's ECN field (RFC 3168), in a copy.
  void mark(std::uint32_t slot);
  /// Takes a frame out and appends it to `batch`, a multiple of eight bytes.
  void export_to(Batch& batch, std::uint32_t slot);
  /// The other way round: reads at `at`, which goes on, and returns the slot.
  std::uint32_t import_from(std::span<const std::byte> batch, std::size_t& at);

  void count_sent(Bytes bytes);
  void count_delivered(Bytes bytes);
  /// Throws away what a lean packet holds.
  void drop(const Packet& packet);
  /// Hands what a lean packet holds to the receiver.
  void arrive(NodeId host, std::uint32_t port, Time time, const Packet& packet);
  const FrameCounters& counters() const { return counters_; }

 private:
  struct Slot {
    Frame frame;
    std::uint32_t next = 0;  // of the free list
  };
  std::vector<Slot> slots_;
  std::uint32_t free_ = 0xffffffffU;
  std::uint64_t live_ = 0;
  Receiver receiver_;
  FrameCounters counters_;
  std::vector<std::uint32_t> scratch_;  // ns-3 writes words
};

}  // namespace weft
