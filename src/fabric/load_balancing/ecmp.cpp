// SPDX-License-Identifier: GPL-2.0-only
// Equal-cost multi-path: routing's own hash of the connection (RFC 2992), and nothing beyond it.
#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {
namespace {

class Ecmp final : public LoadBalancing {
 public:
  Overtaking overtaking() const override { return Overtaking::never; }
};

const Registration<LoadBalancing, Ecmp> ecmp_registration(
    "ecmp", "a hash of source, destination and queue pair: one path per connection (the default)");

}  // namespace
}  // namespace weft
