// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/network_parameters.hpp"

#include "routing/routing_algorithm.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

Bytes bytes_between(const Spec& spec, std::int64_t least, std::int64_t most) {
  const Bytes value = spec.bytes();
  if (value.count() < least || value.count() > most)
    throw spec.error("found " + to_text(value) + "; a size from " + to_text(Bytes(least)) + " to " +
                     to_text(Bytes(most)) + " is due here");
  return value;
}

}  // namespace

NetworkParameters read_network_parameters(const std::optional<Spec>& spec) {
  NetworkParameters result;
  if (!spec) return result;
  if (const auto value = spec->find("mtu")) result.mtu = bytes_between(*value, 1, 65'535);
  if (const auto value = spec->find("header")) result.header = bytes_between(*value, 1, 65'535);
  if (const auto value = spec->find("wire_overhead")) result.wire_overhead = bytes_between(*value, 0, 65'535);
  if (const auto value = spec->find("ack")) {
    if (value->is_scalar() && value->text() == "none")
      result.acks = false;
    else
      result.ack = bytes_between(*value, 1, 65'535);
  }
  if (const auto value = spec->find("switch_latency")) result.switch_latency = value->time();
  if (const auto value = spec->find("window")) result.window = bytes_between(*value, 1, std::int64_t{1} << 50);
  if (const auto value = spec->find("routing")) {
    result.routing = value->one_of(RoutingRegistry::instance().names());
    result.routing_place = value->where();
  }
  spec->finish();
  return result;
}

}  // namespace weft
