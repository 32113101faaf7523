// SPDX-License-Identifier: GPL-2.0-only
// How topologies read the rates and delays of their links.
#include "graph/link_spec.hpp"

namespace weft {

Time read_link_delay(const Spec& value) {
  const Time delay = value.time();
  if (delay <= Time()) {
    throw value.error(
        "zero delay links cannot be simulated in parallel (the delay is how far one process may run ahead of another); "
        "write at least '1 ps', usually '500 ns' (about 100 m)");
  }
  return delay;
}

LinkSpec read_link(const Spec& map) { return {map.at("link_rate").bandwidth(), read_link_delay(map.at("link_delay"))}; }

LinkSpec read_link(const Spec& map, const std::string& prefix, const LinkSpec& otherwise) {
  LinkSpec link = otherwise;
  if (const auto rate = map.find(prefix + "_rate")) link.rate = rate->bandwidth();
  if (const auto delay = map.find(prefix + "_delay")) link.delay = read_link_delay(*delay);
  return link;
}

}  // namespace weft
