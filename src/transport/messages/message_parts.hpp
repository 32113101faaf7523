// SPDX-License-Identifier: GPL-2.0-only
// On what a message has spent its time.
#pragma once

#include <cstdint>

#include "support/basics/time_parts.hpp"
#include "transport/messages/message.hpp"
#include "units/time.hpp"

namespace weft {

/// Parts of `delivered` - message.issued, to the picosecond. Its last packet speaks for the message: what the queue
/// pair has met until that packet left its host, what the packet has met on its way, and what the message has waited
/// for after it. `transfer` is what an idle network takes as well: the packet's way, the message's own packets before
/// it at the host, and, if a later link is slower, there.
TimeParts parts_of(const Message& message, Time delivered);

}  // namespace weft
