// SPDX-License-Identifier: GPL-2.0-only
// T. Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation", 2024,
// arXiv:2407.21625.
#include <algorithm>

#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {
namespace {

struct RepsParameters {
  std::size_t buffer = 8;             ///< entropies that are kept
  Time freezing = Time::from_ms(10);  ///< how long at least a sender draws none after a loss; 0: it always draws
};

/// The paper's algorithms 1 and 2. Entropies whose ACKs returned unmarked are used again, the oldest first, and once
/// each; without one another is drawn. After a timeout, which congestion does not cause where queues are long or
/// packets are trimmed, a drawn one may lead to a link that has failed: then those that were good are used over and
/// over (freezing).
class RecycledEntropies final : public SenderBalancer {
 public:
  explicit RecycledEntropies(const RepsParameters& parameters) : parameters_(parameters) {}

  std::uint8_t entropy(const EntropyDraw& draw) override {
    if (explore_ > 0 && --explore_ % parameters_.buffer == 0) return draw.value();
    if (valid_ > 0) {
      const std::size_t oldest = (head_ + parameters_.buffer - valid_) % parameters_.buffer;
      --valid_;
      return kept_[oldest];
    }
    if (!frozen_ || kept_.empty()) return draw.value();
    again_ = (again_ + 1) % kept_.size();
    return kept_[again_];
  }
  void acknowledged(std::uint8_t entropy, bool marked, Time now, std::uint32_t round_trip) override {
    if (marked) return;
    if (kept_.size() < parameters_.buffer)
      kept_.push_back(entropy);
    else
      kept_[head_] = entropy;
    head_ = (head_ + 1) % parameters_.buffer;
    valid_ = std::min(valid_ + 1, parameters_.buffer);
    if (!frozen_ || now <= thaws_at_) return;
    frozen_ = false;
    explore_ = round_trip;
  }
  void lost(Time now) override {
    if (frozen_ || explore_ > 0 || parameters_.freezing == Time()) return;
    frozen_ = true;
    thaws_at_ = now + parameters_.freezing;
  }

 private:
  const RepsParameters parameters_;
  std::vector<std::uint8_t> kept_;  // a ring, written at head_
  std::size_t head_ = 0;
  std::size_t valid_ = 0;  // the last of them before head_ have not been used again
  std::size_t again_ = 0;  // of those that were, the one that was used last
  bool frozen_ = false;
  Time thaws_at_;
  std::size_t explore_ = 0;  // packets until drawing is as before; of each `buffer` of them one is drawn
};

class Reps final : public SpreadingBalancing<Reps> {
 public:
  bool has_parameters() const override { return true; }
  void configure(const Spec& own) override {
    if (const auto value = own.find("buffer"))
      parameters_.buffer = static_cast<std::size_t>(value->integer(1, max_buffer));
    if (const auto value = own.find("freezing")) parameters_.freezing = value->wait();
    own.finish();
  }
  /// An answer travels with the entropy of its packet, as in the authors' simulator (csg-htsim, uecpacket.h): if all
  /// ACKs of a connection had one path, its failure would stop a sender that has avoided the failed link.
  static std::uint32_t flow_of(const Packet& packet) {
    return static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(packet.queue_pair) << 8 | packet.entropy));
  }
  std::unique_ptr<SenderBalancer> at_sender() const override {
    return std::make_unique<RecycledEntropies>(parameters_);
  }

 private:
  static constexpr std::int64_t max_buffer = 256;  // as many as there are entropies
  RepsParameters parameters_;
};

const Registration<LoadBalancing, Reps> reps_registration(
    "reps", "the sender draws an entropy per packet, and uses those again that came back unmarked");

}  // namespace
}  // namespace weft
