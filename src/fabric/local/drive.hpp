// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace weft {

/// The way time advances: by epochs of Fabric, or by one ns-3 event per packet arrival (the reference).
enum class Drive { epochs, ns3_events };

}  // namespace weft
