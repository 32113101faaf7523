// SPDX-License-Identifier: GPL-2.0-only
// How topologies read the rates and delays of their links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/machine/cluster_graph.hpp"
#include "support/documents/spec.hpp"
#include "units/bandwidth.hpp"
#include "units/time.hpp"

namespace weft {

/// The properties of a link that a family of machines sets.
struct LinkSpec {
  Bandwidth rate;  ///< of each direction, > 0
  Time delay;      ///< propagation, > 0
};

/// A delay that is not 0, else InputError at its place. (Spec::bandwidth() refuses rates of 0 itself.)
Time read_link_delay(const Spec& value);

/// `{payload: 128 B, overhead: 16 B, answer: 16 B}`; answer is 0 unless it is given.
LinkFraming read_link_framing(const Spec& map);

/// `link_rate` and `link_delay` of a map; both must be there.
LinkSpec read_link(const Spec& map);
/// `<prefix>_rate` and `<prefix>_delay` of a map; each may be absent and is then that of `otherwise`.
LinkSpec read_link(const Spec& map, const std::string& prefix, const LinkSpec& otherwise);

/// A list of `min` to `max` whole numbers of `smallest` to `largest`. Throws InputError otherwise.
std::vector<std::uint32_t> read_numbers(const Spec& value, std::size_t min, std::size_t max, std::uint32_t smallest,
                                        std::uint32_t largest);
/// One link for all of `count` dimensions or levels, or lists of as many: `<prefix>_rate` and `<prefix>_delay`. Those
/// absent are as `otherwise` says; if that is absent too, it is an error.
std::vector<LinkSpec> read_links(const Spec& map, const std::string& prefix, std::size_t count,
                                 const std::optional<LinkSpec>& otherwise = std::nullopt);

/// A number of nodes that a machine can have; else an InputError at `spec` that says the limit.
std::uint32_t require_nodes(const Spec& spec, std::uint64_t nodes);
/// a * b, or the largest number if that is larger.
constexpr std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}
/// Ports that a switch can have; else an InputError at `spec`.
void require_ports(const Spec& spec, std::uint64_t ports);

}  // namespace weft
