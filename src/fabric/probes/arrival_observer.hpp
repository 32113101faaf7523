// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <functional>

#include "transport/messages/packet.hpp"
#include "units/time.hpp"

namespace weft {

/// Sees each packet that comes in through a port from another process, with the arrival of its last bit; in order.
/// Packets from this process are seen by a tap of the port that sends them.
using ArrivalObserver = std::function<void(Time last_bit, const Packet&)>;

}  // namespace weft
