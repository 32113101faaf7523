// SPDX-License-Identifier: GPL-2.0-only
// Who picks algorithm, protocol and channels of a call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "support/basics/registry.hpp"

namespace weft {

/// What a selection may know of the machine: one message of b bytes takes latency + b / rate.
struct SelectionContext {
  Time latency;                  ///< alpha
  Bandwidth rate;                ///< 1/beta, of a host's port
  bool switches_reduce = false;  ///< algorithms with aggregators are possible
};

/// A choice, with the reason in words.
struct Selection {
  std::string algorithm;
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 0;  ///< 0: as the call has it
  Bytes chunk{0};              ///< 0: as the call has it
  std::string reason;
};

/// A library's way to choose. Names stand where algorithms' names stand: `algorithm: nccl`.
class CollectiveSelector {
 public:
  virtual ~CollectiveSelector() = default;
  virtual Selection select(const CollectiveCall& call, const SelectionContext& context) const = 0;
};
using SelectorRegistry = Registry<CollectiveSelector>;

/// A selector by its registered name, or of a table (*.yaml, or a name in collectives/selections). Null if there is
/// neither. Throws InputError for a table that is wrong.
std::shared_ptr<const CollectiveSelector> find_selector(const std::string& name);

/// Puts the choice of the selector that call.algorithm names into the call; any other call stays as it is. Gives the
/// reason, or an empty text.
std::string apply_selection(CollectiveCall& call, const SelectionContext& context);

/// The algorithm of calls for which nobody names one and no library chooses: the ring, and for kinds that it cannot do
/// NCCL's sends and receives, or its tree.
std::string algorithm_of_network(CollectiveKind kind);

/// All names that may stand for `algorithm`.
std::vector<std::string> algorithm_names();

}  // namespace weft
