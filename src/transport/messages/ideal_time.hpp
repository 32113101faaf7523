// SPDX-License-Identifier: GPL-2.0-only
// Time of one message on an idle path.
#pragma once

#include <cstdint>
#include <vector>

#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// One link of a path: its rate, and the time from its last bit to the next node's output (propagation + switch
/// latency).
struct PathLink {
  Bandwidth rate;
  Time delay;
  /// Cut through: from a packet's first bit on this link until the next node has what it needs to send it on, without
  /// `delay`. 0: the next node stores the packet.
  Time head = Time();
  /// Payload of the link's own frames and bytes of each beyond it; 0: packets are as they are.
  std::uint32_t frame_payload = 0;
  std::uint32_t frame_overhead = 0;
  bool to_end = false;  ///< leads to a host or to a node in a server, and not to a switch of the network
  friend bool operator==(const PathLink&, const PathLink&) = default;
};

/// Exact time from the first bit at the source to the last bit at the destination, packets back to back, no window
/// limit. Packet j begins on link i at S(i,j) = max(S(i-1,j) + h(i-1,j) + delay(i-1), S(i,j-1) + s(j-1)/C(i)), where
/// h(i,j) is its serialisation s(j)/C(i), or with cut-through the time of its head if that is shorter (Kermani and
/// Kleinrock, "Virtual cut-through: a new computer communication switching technique", Computer Networks 3, 1979,
/// doi:10.1016/0376-5075(79)90032-1). All packets but the last are equal, so that S(i,j) = S(i,0) + j s / min C(0..i)
/// for them: integers, in O(links). `overhead`: wire bytes per packet beyond its payload.
Time ideal_message_time(const std::vector<PathLink>& path, Bytes message, Bytes mtu, Bytes overhead);

/// How long the packets of a queue pair take on the slowest link of its path, if that is slower than the first one.
class SlowestLink {
 public:
  SlowestLink() = default;
  /// `overhead`: as for ideal_message_time().
  SlowestLink(const std::vector<PathLink>& path, Bytes mtu, Bytes overhead);

  bool is_later() const { return full_time_ > Time(); }
  Time of_full_packet() const { return full_time_; }
  /// Of a packet on the same path, if is_later(). Of other sizes than full ones the last is remembered.
  Time time_of(Bytes payload, const std::vector<PathLink>& path, Bytes overhead) {
    if (payload == full_) return full_time_;
    if (payload != other_) {
      other_ = payload;
      other_time_ = of_path(path, payload, overhead);
    }
    return other_time_;
  }

 private:
  static Time of_path(const std::vector<PathLink>& path, Bytes payload, Bytes overhead);

  Time full_time_;  // 0: the first link is as slow as any
  Time other_time_;
  Bytes full_;
  Bytes other_ = Bytes(-1);
};

}  // namespace weft
