// SPDX-License-Identifier: GPL-2.0-only
// The slowest links on the ways out of a host's server, and for how long the host's own packets keep them busy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "units/time.hpp"

namespace weft {

/// A link behind the host's port, such as that of its NIC. Packets of the host are sent in the order in which they
/// leave it, as on an idle network.
class SharedLink {
 public:
  /// The packet that leaves the host at `now`, not before any earlier one, takes `time` here.
  void occupy(Time now, Time time) {
    free_ = bounded_sum(std::max(free_, now), time);
    total_ = bounded_sum(total_, time);
  }
  /// For how long it was busy until `now`, which is not before the last packet left the host.
  Time busy_until(Time now) const { return total_ - std::max(Time(), free_ - now); }

 private:
  Time free_;
  Time total_;
};

/// Those of one host, by directed link. References stay valid.
class SharedLinks {
 public:
  SharedLink& of(std::uint32_t link) {
    for (const auto& [known, shared] : links_)
      if (known == link) return *shared;
    return *links_.emplace_back(link, std::make_unique<SharedLink>()).second;
  }

 private:
  std::vector<std::pair<std::uint32_t, std::unique_ptr<SharedLink>>> links_;
};

}  // namespace weft
