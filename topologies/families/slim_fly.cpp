// SPDX-License-Identifier: GPL-2.0-only
// Slim Fly: routers on the graphs of McKay, Miller and Siran, of diameter 2 (M. Besta, T. Hoefler, "Slim Fly: a cost
// effective low-diameter network topology", SC 2014, doi:10.1109/SC.2014.34).
#include <fmt/format.h>

#include "graph/topology/link_spec.hpp"
#include "graph/topology/topology_builder.hpp"
#include "topologies/families/galois_field.hpp"

namespace weft {
namespace {

constexpr std::int64_t max_q = 127;

/// q = 4 w + delta with delta in {-1, 0, 1}.
int delta_of(std::uint32_t q) { return q % 4 == 1 ? 1 : q % 4 == 3 ? -1 : 0; }

GaloisField read_field(const Spec& spec) {
  const auto q = static_cast<std::uint32_t>(spec.integer(3, max_q));
  const auto suits = [](std::uint32_t n) { return n % 4 != 2 && GaloisField::of_size(n).has_value(); };
  if (suits(q)) return *GaloisField::of_size(q);
  std::uint32_t below = q;
  while (!suits(below)) --below;
  std::uint32_t above = q;
  while (!suits(above)) ++above;
  throw spec.error(
      fmt::format("found {}; Slim Fly needs a prime power 4 w - 1, 4 w or 4 w + 1; use {} or {}", q, below, above));
}

/// The two sets of powers of a primitive element that join routers of one column: exponents as in Besta and Hoefler
/// 2014, section 2.1.2, and P. Hafner, "Geometric realisation of the graphs of McKay-Miller-Siran", J. Comb. Theory B
/// 90, 2004.
struct Generators {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> second;
};

Generators generators(const GaloisField& field) {
  const std::uint32_t q = field.size();
  const int delta = delta_of(q);
  std::vector<std::uint32_t> power = {1};
  for (std::uint32_t i = 1; i < q; ++i) power.push_back(field.multiply(power.back(), field.primitive_element()));
  Generators result;
  if (delta >= 0) {
    // Even powers; odd powers.
    for (std::uint32_t i = 0; i + 1 < q; i += 2) result.first.push_back(power[i]);
    for (std::uint32_t i = 1; i < q; i += 2) result.second.push_back(power[i]);
  } else {
    // -1 is an odd power: even powers up to 2 w - 2 with their negatives; times the primitive element.
    const std::uint32_t w = (q + 1) / 4;
    for (std::uint32_t i = 0; i <= 2 * w - 2; i += 2) result.first.push_back(power[i]);
    for (std::uint32_t i = 2 * w - 1; i <= 4 * w - 3; i += 2) result.first.push_back(power[i]);
    for (std::uint32_t i = 1; i <= 2 * w - 1; i += 2) result.second.push_back(power[i]);
    for (std::uint32_t i = 2 * w; i <= 4 * w - 2; i += 2) result.second.push_back(power[i]);
  }
  return result;
}

/// Routers (0, x, y) are nodes hosts + x q + y, routers (1, m, c) are nodes hosts + q^2 + m q + c; p hosts on each.
class SlimFly final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const GaloisField field = read_field(spec.at("q"));
    const std::uint32_t q = field.size();
    const auto degree = static_cast<std::uint32_t>((3 * static_cast<int>(q) - delta_of(q)) / 2);
    std::uint32_t p = (degree + 1) / 2;  // k'/2 rounded up: full bandwidth at uniform load (section 2.3)
    if (const auto hosts = spec.find("p")) p = static_cast<std::uint32_t>(hosts->integer(1, 4096));
    require_nodes(spec.at("q"), std::uint64_t{2} * q * q * (p + 1));
    const LinkSpec link = read_link(spec);
    const LinkSpec host_link = read_link(spec, "host_link", link);
    spec.finish();

    Topology topology;
    const std::uint32_t routers = 2 * q * q;
    for (std::uint32_t i = 0; i < routers * p; ++i) topology.graph.add_host(i / p % (q * q) / q);
    for (std::uint32_t i = 0; i < routers; ++i) topology.graph.add_switch(1, i % (q * q) / q);
    const std::uint8_t host_class = topology.add_class("host");
    for (std::uint32_t i = 0; i < routers * p; ++i)
      topology.add(host_class, NodeId(i), NodeId(routers * p + i / p), host_link.rate, host_link.delay);
    add_links(topology, field, link);
    topology.routing = "shortest_path";
    return topology;
  }

 private:
  static void add_links(Topology& topology, const GaloisField& field, const LinkSpec& link) {
    const std::uint32_t q = field.size();
    const std::uint32_t hosts = topology.graph.host_count();
    const auto router = [&](std::uint32_t half, std::uint32_t x, std::uint32_t y) {
      return NodeId(hosts + (half * q + x) * q + y);
    };
    const Generators sets = generators(field);
    const std::uint8_t column = topology.add_class("column");
    for (std::uint32_t half = 0; half < 2; ++half)
      for (std::uint32_t x = 0; x < q; ++x)
        for (std::uint32_t y = 0; y < q; ++y)
          for (const std::uint32_t step : half == 0 ? sets.first : sets.second) {
            const std::uint32_t other = field.add(y, step);
            if (y < other) topology.add(column, router(half, x, y), router(half, x, other), link.rate, link.delay);
          }
    const std::uint8_t between = topology.add_class("between halves");
    for (std::uint32_t m = 0; m < q; ++m)
      for (std::uint32_t c = 0; c < q; ++c)
        for (std::uint32_t x = 0; x < q; ++x)
          topology.add(between, router(0, x, field.add(field.multiply(m, x), c)), router(1, m, c), link.rate,
                       link.delay);
  }
};

const Registration<TopologyBuilder, SlimFly> slim_fly_registration(
    "slim_fly",
    "2 q^2 routers at most two hops apart, q a prime power 4w-1, 4w or 4w+1: {q, link_rate, link_delay, [p, "
    "host_link_rate, host_link_delay]}");

}  // namespace
}  // namespace weft
