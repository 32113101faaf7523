// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/buffer_sharing/buffer_sharing.hpp"

#include <fmt/format.h>

#include "units/text.hpp"

namespace weft {

std::string BufferSharing::remedy(const MissingRoom& missing) const {
  return fmt::format(
      "found a size of {}, with which a queue of {} may hold {}: no frame of {} fits; expected a larger size",
      to_text(missing.size), missing.node, to_text(limit(missing.empty)), to_text(missing.frame));
}

}  // namespace weft
