// SPDX-License-Identifier: GPL-2.0-only
// The `background:` list of an experiment: traffic of ns-3 applications beside the workload.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/parameters/network_parameters.hpp"
#include "internet/internet.hpp"
#include "internet/transfer_log.hpp"
#include "support/basics/registry.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// Facts about the experiment that an entry may need.
struct BackgroundContext {
  std::uint32_t hosts = 0;
  const NetworkParameters* network = nullptr;
};

/// One entry, read.
class BackgroundTraffic {
 public:
  virtual ~BackgroundTraffic() = default;
  /// Hosts that need a stack.
  virtual std::vector<NodeId> hosts() const = 0;
  /// Puts its applications on the hosts and its transfers into the log; the same calls on every MPI process.
  virtual void install(Internet& internet, TransferLog& log) const = 0;
};

/// One kind of entry. Adding one: a file in src/internet with a Registration<BackgroundKind, ...>, and a test.
class BackgroundKind {
 public:
  virtual ~BackgroundKind() = default;
  /// Reads and finishes the entry's map, whose key `kind` has been read. Throws InputError.
  virtual std::unique_ptr<BackgroundTraffic> read(const Spec& spec, const BackgroundContext& context) const = 0;
};
using BackgroundRegistry = Registry<BackgroundKind>;

/// Reads the list. Throws InputError.
std::vector<std::shared_ptr<const BackgroundTraffic>> read_background(const Spec& list,
                                                                      const BackgroundContext& context);

/// Installs the stacks that the entries need, and the entries. Before the run, on every process.
void install_background(const std::vector<std::shared_ptr<const BackgroundTraffic>>& entries, Internet& internet,
                        TransferLog& log);

}  // namespace weft
