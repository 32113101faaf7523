// SPDX-License-Identifier: GPL-2.0-only
// Dynamic thresholds: A. Choudhury, E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
// IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262.
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "fabric/buffer_sharing/buffer_sharing.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

/// A queue may hold alpha times the free memory. Where `alpha_rate` is given, alpha is in proportion to the rate of the
/// queue's link, so that a queue may hold what its link brings in a time that is the same for links of all rates. The
/// switches of Li et al., SIGCOMM 2019, do so ("set pfc alpha, proportional to link bw", scratch/third.cc of
/// github.com/alibaba-edu/High-Precision-Congestion-Control).
class DynamicThreshold final : public BufferSharing {
 public:
  void configure(const Spec& buffer) override {
    if (const auto value = buffer.find("alpha")) alpha_ = value->number(1e-6, 1e6);
    if (const auto value = buffer.find("alpha_rate")) rate_ = value->bandwidth();
  }
  Bytes limit(const BufferUse& use) const override {
    return Bytes(static_cast<std::int64_t>(alpha_at(use.rate) * static_cast<double>((use.shared - use.used).count())));
  }
  std::string remedy(const MissingRoom& missing) const override {
    const double alpha = alpha_at(missing.empty.rate);
    const auto needed =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(missing.beyond_reserve().count()) / alpha));
    return fmt::format(
        "found a size of {} and an alpha of {}, with which a queue of {} may hold {}: no frame of {} fits; expected "
        "a size of at least {}, or a larger alpha",
        to_text(missing.size), alpha, missing.node, to_text(limit(missing.empty)), to_text(missing.frame),
        to_text(missing.set_aside + Bytes(needed)));
  }

 private:
  double alpha_at(Bandwidth rate) const {
    return rate_ ? alpha_ * static_cast<double>(rate.bps()) / static_cast<double>(rate_->bps()) : alpha_;
  }

  std::optional<Bandwidth> rate_;  // where alpha is alpha_
  double alpha_ = 0.125;           // the value of Zhu et al., SIGCOMM 2015, section 4 (there beta = 8)
};

const Registration<BufferSharing, DynamicThreshold> dynamic_threshold_registration(
    "dynamic_threshold", "a queue may hold alpha times the free memory (the default)");

}  // namespace
}  // namespace weft
