// SPDX-License-Identifier: GPL-2.0-only
// Packets on their way over the cut, to and from the neighbour processes, as records in batches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/batch.hpp"
#include "fabric/local/local_nodes.hpp"
#include "fabric/packet/port.hpp"
#include "support/basics/contract.hpp"
#include "transport/messages/packet.hpp"
#include "units/time.hpp"

namespace weft {

/// Where a cut link ends here.
struct CutEnd {
  PortId port;
  std::uint32_t node = 0;  ///< of that port
};

/// A process to and from which cut links lead.
struct Neighbour {
  int process = 0;
  std::vector<CutEnd> ends;          ///< [cut links], in the same order there
  unsigned link_bits = 0;            ///< of a record's key: enough for no_link()
  std::uint64_t reach = 0;           ///< times from `origin` to this much later fit in a record
  Time origin;                       ///< of the times in the records on their way there
  Time first_arrival = Time::max();  ///< of what is on its way there

  /// Stands for no cut link in a record.
  std::uint64_t no_link() const { return (std::uint64_t{1} << link_bits) - 1; }
};

/// A packet behind which its message's descriptor follows.
inline bool carries_descriptor(const Packet& packet) {
  return packet.kind == PacketKind::data && (packet.flags & packet_last) != 0;
}

/// A record is a packet, and behind it whatever a model adds. In place of its time of arrival a packet has a key: the
/// number of the cut link below, the time above, counted from an origin, so that a record is half a cache line. A
/// record of the reserved link number sets a new origin: at the beginning, and where a time would not fit. The key and
/// the rest are written and read one by one, as what they are: a processor does not hand a value from a store to a load
/// that begins elsewhere and follows soon.
class CutCodec {
 public:
  CutCodec(const Topology& topology, const Partition& partition, int process, const LocalNodes& nodes);

  /// Names the far ends of cut links in their ports.
  void mark_ports(std::span<OutputPort> outputs) const;
  bool cuts(std::uint32_t link) const { return cut_[link]; }
  /// A local node has links over the cut.
  bool on_boundary(std::uint32_t local) const { return on_boundary_[local]; }
  std::span<const int> processes() const { return processes_; }
  std::span<const Neighbour> neighbours() const { return neighbours_; }
  std::span<Batch> outgoing() { return outgoing_; }
  /// When the first packet in outgoing() arrives at another process, or never.
  Time first_arrival() const;

  /// Writes a packet that leaves through a cut link and arrives at a time; what follows it goes into the batch given.
  Batch& write(const OutputPort& port, const Packet& packet, Time arrival) {
    Batch& batch = outgoing_[port.peer_node];
    Neighbour& neighbour = neighbours_[port.peer_node];
    auto since = static_cast<std::uint64_t>((arrival - neighbour.origin).ps());
    if (since >= neighbour.reach || batch.empty() || batch.room() < sizeof(Packet)) [[unlikely]] {
      prepare(port.peer_node, arrival);
      since = static_cast<std::uint64_t>((arrival - neighbour.origin).ps());
    }
    neighbour.first_arrival = std::min(neighbour.first_arrival, arrival);
    const Key key = since << neighbour.link_bits | (port.peer_port & ~OutputPort::remote);
    std::byte* const record = batch.extend(sizeof(Packet));
    std::memcpy(record, &packet, sizeof(Packet));
    std::memcpy(record, &key, sizeof(key));
    return batch;
  }

  /// Reads the batch of a neighbour. `fetch(port)`: prefetches the memory of a port that is used soon. `take(end,
  /// packet, arrival, at)`: takes a packet; `at`: where in the batch the rest of its record begins, to be moved behind
  /// it.
  template <class Fetch, class Take>
  void read(std::size_t neighbour, std::span<const std::byte> batch, const Fetch& fetch, const Take& take) const {
    const Neighbour& from = neighbours_[neighbour];
    const Key no_link = from.no_link();
    const unsigned link_bits = from.link_bits;
    const std::span<const CutEnd> ends(from.ends);
    Time origin;
    for (std::size_t at = 0; at < batch.size();) {
      // The ports lie anywhere in memory. Most records are packets alone: where another lies, a guess is in vain.
      constexpr std::size_t ahead = 6 * sizeof(Packet);
      Key key = 0;
      if (at + ahead < batch.size()) {
        std::memcpy(&key, batch.data() + at + ahead, sizeof(key));
        if ((key & no_link) < ends.size()) fetch(ends[key & no_link].port);
      }
      key = take_record<Key>(batch, at);
      const Key cut_link = key & no_link;
      if (cut_link == no_link) [[unlikely]] {
        origin = take_record<Time>(batch, at);
        continue;
      }
      at -= sizeof(key);
      WEFT_EXPECT(at + sizeof(Packet) <= batch.size(), "batch of {} bytes ends at {}", batch.size(), at);
      const Packet& packet = *reinterpret_cast<const Packet*>(batch.data() + at);
      at += sizeof(Packet);
      take(ends[cut_link], packet, origin + Time::from_ps(static_cast<std::int64_t>(key >> link_bits)), at);
    }
  }

 private:
  using Key = std::uint64_t;
  static_assert(offsetof(Packet, time) == 0 && sizeof(Packet::time) == sizeof(Key));

  Neighbour& neighbour_of(int process);
  void prepare(std::uint32_t neighbour, Time arrival);

  std::vector<Neighbour> neighbours_;
  std::vector<int> processes_;  // of the neighbours
  std::vector<Batch> outgoing_;
  std::vector<bool> on_boundary_;  // [local nodes]
  std::vector<bool> cut_;          // [links of the machine] -> the partition cuts it
};

}  // namespace weft
