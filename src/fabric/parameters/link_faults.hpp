// SPDX-License-Identifier: GPL-2.0-only
// Faults of links: lost packets, outages, lower rates. Known to all processes before the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/topology/topology_builder.hpp"
#include "support/documents/spec.hpp"
#include "units/bandwidth.hpp"
#include "units/time.hpp"

namespace weft {

/// A span in which a link carries nothing; what is on it when it begins is lost.
struct Outage {
  Time from;
  Time until = Time::max();
};
struct RateChange {
  Time at;
  Bandwidth rate;  ///< at most the link's own
};
/// A span in which a link is slower.
struct Slowdown {
  Time from;
  Time until = Time::max();
  Bandwidth rate;  ///< at most the link's own
};
/// The rates of a link whose own rate is `full`: at any time the lowest of the slowdowns that last.
std::vector<RateChange> rate_changes(const std::vector<Slowdown>& slowdowns, Bandwidth full);

/// The faults of one link, which both of its directions have.
struct LinkFault {
  double loss = 0;            ///< probability for each packet
  double bit_error_rate = 0;  ///< a packet with a wrong bit is lost: its frame check sequence does not fit
  std::vector<Outage> outages;
  std::vector<Slowdown> slowdowns;
  std::vector<RateChange> rates;  ///< by the slowdowns, ascending

  bool is_down_at(Time time) const;
};

struct LinkFaults {
  std::map<std::uint32_t, LinkFault> links;  ///< by link number
  Time reconvergence = Time::from_ms(1);     ///< from a change of the links to routing that knows of it
  std::optional<Time> local_repair;          ///< from a change to the nodes at its ends, if they know of it earlier
  bool resilient = false;                    ///< flows keep their ports where these still lead to their ends
  bool empty() const { return links.empty(); }
  /// Some link does, by chance or while it is down.
  bool lose_packets() const {
    for (const auto& [link, fault] : links)
      if (fault.loss > 0 || fault.bit_error_rate > 0 || !fault.outages.empty()) return true;
    return false;
  }
  Time known_at_ends() const { return local_repair.value_or(reconvergence); }
  /// Times from which on routing, or the switches at the ends, know another set of dead links, ascending, each with
  /// these sets as bits by link number.
  struct RoutingPeriod {
    Time from;
    std::vector<bool> dead;          ///< known on the whole machine
    std::vector<bool> dead_at_ends;  ///< known only to the nodes at their ends
  };
  std::vector<RoutingPeriod> routing_periods(const Topology& topology) const;
};

/// Where the experiment has them; the machine is needed to read them.
struct LinkFaultKeys {
  std::optional<Spec> loss, failures, reconvergence, local_repair, resilient_hashing;
};
/// Throws InputError.
LinkFaults read_link_faults(const LinkFaultKeys& keys, const Topology& topology);

}  // namespace weft
