// SPDX-License-Identifier: GPL-2.0-only
// T. Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation", 2024,
// arXiv:2407.21625.
#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {
namespace {

/// Entropies whose ACKs returned unmarked are used again, the oldest first; others are drawn again.
class RecycledEntropies final : public SenderBalancer {
 public:
  std::uint8_t entropy(const EntropyDraw& draw) override {
    if (good_.empty()) return draw.value();
    const std::uint8_t entropy = good_.front();
    good_.erase(good_.begin());
    return entropy;
  }
  void acknowledged(std::uint8_t entropy, bool marked) override {
    if (!marked && good_.size() < max) good_.push_back(entropy);
  }

 private:
  static constexpr std::size_t max = 64;
  std::vector<std::uint8_t> good_;
};

class Reps final : public SpreadingBalancing<Reps> {
 public:
  static std::uint32_t flow_of(const Packet& packet) {
    return static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(packet.queue_pair) << 8 | packet.entropy));
  }
  /// An ACK travels with the entropy of its packet, as in the authors' simulator (csg-htsim, uecpacket.h): if all ACKs
  /// of a connection had one path, its failure would stop a sender that has avoided the failed link.
  void spread(std::span<const Arrival> arrivals, RouteRequest* requests) const override {
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      const Packet& packet = *arrivals[i].packet;
      if (packet.kind == PacketKind::data || packet.kind == PacketKind::ack) requests[i].queue_pair = flow_of(packet);
    }
  }
  std::unique_ptr<SenderBalancer> at_sender() const override { return std::make_unique<RecycledEntropies>(); }
};

const Registration<LoadBalancing, Reps> reps_registration(
    "reps", "the sender draws an entropy per packet, and uses those again that came back unmarked");

}  // namespace
}  // namespace weft
