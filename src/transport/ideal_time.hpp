// SPDX-License-Identifier: GPL-2.0-only
// Time of one message on an idle store-and-forward path.
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
  friend bool operator==(const PathLink&, const PathLink&) = default;
};

/// Exact time from the first bit at the source to the last bit at the destination, packets back to back, no window
/// limit. Store and forward: departure of packet j from link i is D(i,j) = max(D(i-1,j) + delay(i-1), D(i,j-1)) +
/// s(j)/C(i); for P equal packets of s bytes and a last one of s_l this is sum_i s/C_i + (P-2) s/min C + ..., evaluated
/// here in integers in O(links). `overhead`: wire bytes per packet beyond its payload.
Time ideal_message_time(const std::vector<PathLink>& path, Bytes message, Bytes mtu, Bytes overhead);

}  // namespace weft
