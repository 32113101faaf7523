// SPDX-License-Identifier: GPL-2.0-only
// Observers of single ports.
#pragma once

#include "transport/messages/packet.hpp"
#include "units/time.hpp"

namespace weft {

/// Sees every packet whose transmission through a port is committed; `start` is when its first bit leaves. Called in
/// the order of departure.
class PortTap {
 public:
  virtual ~PortTap() = default;
  virtual void transmitted(Time start, const Packet& packet) = 0;
};

}  // namespace weft
