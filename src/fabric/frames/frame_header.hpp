// SPDX-License-Identifier: GPL-2.0-only
// The fields of a frame of other software that switches use.
#pragma once

#include <cstdint>

#include "units/bytes.hpp"
#include "units/id.hpp"

namespace weft {

/// Destination of a frame of other software, and the fields that switches use.
struct FrameHeader {
  NodeId source;              ///< host
  NodeId destination;         ///< host
  std::uint32_t flow = 0;     ///< packets that are alike in this, too, take the same path
  Bytes bytes;                ///< of the frame, without preamble and gap; at most 65,535
  std::uint8_t priority = 0;  ///< IEEE 802.1Q; the numbers of other classes than data's mean that of other traffic
  bool ecn_capable = false;   ///< a switch may set its congestion experienced bits
};

}  // namespace weft
