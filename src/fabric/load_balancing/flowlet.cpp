// SPDX-License-Identifier: GPL-2.0-only
// Flowlet switching: S. Kandula et al., "Dynamic load balancing without packet reordering", CCR 37(2), 2007,
// doi:10.1145/1232919.1232925; the least loaded port as E. Vanini et al., "Let it flow", NSDI 2017, compare with.
#include "fabric/load_balancing/load_balancing.hpp"

namespace weft {
namespace {

/// A table of hashed flows; it is made when the first packet has a choice.
class Flowlets final : public SwitchBalancer {
 public:
  explicit Flowlets(Time gap) : gap_(gap) {}
  std::uint16_t choose(const SwitchPorts& at, std::span<const std::uint16_t> ports, const RouteRequest& flow,
                       std::uint32_t psn, Time now) override {
    if (table_.empty()) table_.resize(entries);
    Entry& entry = table_[ecmp_hash(flow, at.node(), at.seed() + 1) % entries];
    const bool known = std::find(ports.begin(), ports.end(), entry.port) != ports.end();
    if (!known || now - entry.last > gap_) entry.port = at.least_loaded(ports, flow, psn, now);
    entry.last = now;
    return entry.port;
  }

 private:
  struct Entry {
    Time last = Time::from_ps(INT64_MIN / 2);
    std::uint16_t port = 0;
  };
  static constexpr std::size_t entries = 4096;

  Time gap_;
  std::vector<Entry> table_;
};

class Flowlet final : public LoadBalancing {
 public:
  bool has_parameters() const override { return true; }
  void configure(const Spec& own) override {
    if (const auto gap = own.find("gap")) {
      gap_ = gap->time();
      if (gap_ <= Time()) throw gap->error("found 0; expected a time above 0");
    }
    own.finish();
  }
  // A flowlet may overtake the one before it, whose way may be longer than the gap between them.
  Overtaking overtaking() const override { return Overtaking::between_bursts; }
  std::unique_ptr<SwitchBalancer> at_switch() const override { return std::make_unique<Flowlets>(gap_); }

 private:
  Time gap_ = Time::from_us(50);
};

const Registration<LoadBalancing, Flowlet> flowlet_registration(
    "flowlet", "a connection changes to the least loaded port after a pause of flowlet.gap (50 us)");

}  // namespace
}  // namespace weft
