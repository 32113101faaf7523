// SPDX-License-Identifier: GPL-2.0-only
// A static limit of each queue, while the memory lasts: M. Irland, "Buffer management in a packet switch", IEEE
// Transactions on Communications 26(3), 1978, doi:10.1109/TCOM.1978.1094076.
#include <string>

#include <fmt/format.h>

#include "fabric/buffer_sharing/buffer_sharing.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

class StaticThreshold final : public BufferSharing {
 public:
  void configure(const Spec& buffer) override {
    constexpr Bytes max = Bytes(std::int64_t{1} << 50);
    const Spec value = buffer.at("threshold");
    for (const std::string key : {"alpha", "alpha_rate"})
      if (buffer.has(key))
        throw value.error(fmt::format("found beside {}; a queue's limit is either a number of bytes or alpha", key));
    threshold_ = value.bytes();
    if (threshold_ < Bytes() || threshold_ > max)
      throw value.error(fmt::format("found {}; expected a threshold of {} to {}", to_text(threshold_), to_text(Bytes()),
                                    to_text(max)));
  }
  Bytes limit(const BufferUse&) const override { return threshold_; }
  std::string remedy(const MissingRoom& missing) const override {
    return fmt::format(
        "found a threshold of {} and a reserve of {}, where no frame of {} fits; expected a threshold of at least {}",
        to_text(threshold_), to_text(missing.reserve), to_text(missing.frame), to_text(missing.beyond_reserve()));
  }

 private:
  Bytes threshold_;
};

const Registration<BufferSharing, StaticThreshold> static_threshold_registration(
    "static_threshold", "a queue may hold `threshold`, while there is memory (where that key is given)");

}  // namespace
}  // namespace weft
