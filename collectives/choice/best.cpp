// SPDX-License-Identifier: GPL-2.0-only
// The selection `best`: whichever algorithm is fastest in the alpha-beta model.
#include <fmt/format.h>

#include "schedule/collective/collective_cost.hpp"
#include "schedule/collective/selection.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

class Best final : public CollectiveSelector {
 public:
  Selection select(const CollectiveCall& call, const SelectionContext& context) const override {
    Selection best;
    Time min = Time::max();
    Time second = Time::max();
    std::string next;
    for (const auto& [name, entry] : CollectiveRegistry::instance().entries()) {
      const auto algorithm = entry.make();
      if (!algorithm->supports(call.kind)) continue;
      CollectiveCall tried = call;
      tried.algorithm = name;
      if (tried.tuning.channels == 0) tried.tuning.channels = algorithm->usual_channels(tried);
      if (!algorithm->refuses(tried).empty()) continue;
      if (algorithm->aggregators(tried) > 0 && !context.switches_reduce) continue;
      const CollectiveCost cost = model_cost(*algorithm, tried, context.latency, context.rate, {}, second);
      if (!cost.finished) continue;
      if (cost.time < min) {
        second = min;
        next = best.algorithm;
        min = cost.time;
        best.algorithm = name;
      } else if (cost.time < second) {
        second = cost.time;
        next = name;
      }
    }
    best.protocol = call.tuning.protocol;
    best.reason = fmt::format("the alpha-beta model gives it {}", to_text(min));
    if (!next.empty()) best.reason += fmt::format("; next is {} with {}", next, to_text(second));
    return best;
  }
};

const Registration<CollectiveSelector, Best> best_registration("best", "the fastest in the alpha-beta model");

}  // namespace
}  // namespace weft
