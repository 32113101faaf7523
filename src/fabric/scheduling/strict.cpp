// SPDX-License-Identifier: GPL-2.0-only
// Strict priority (IEEE 802.1Q-2018, 8.6.8.1): the most urgent class that has something to send.
#include "fabric/scheduling/port_scheduler.hpp"

namespace weft {
namespace {

class Strict final : public SchedulingDiscipline {
 public:
  bool shares() const override { return false; }
  std::unique_ptr<PortScheduler> make(const ClassShares&) const override { return nullptr; }
};

const Registration<SchedulingDiscipline, Strict> strict_registration("strict",
                                                                     "the most urgent class first (the default)");

}  // namespace
}  // namespace weft
