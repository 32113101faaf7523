// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/client/host_network.hpp"

#include "support/basics/error.hpp"

namespace weft {

void HostNetwork::request(NodeId /*host*/, Time /*now*/, const ProcessorRequest& /*request*/) {
  throw InternalError("this network has no processors");
}

void HostNetwork::run_on_processor(NodeId /*host*/, Time /*now*/, const ProcessorRequest& /*request*/,
                                   Time /*duration*/) {
  throw InternalError("this network has no processors");
}

}  // namespace weft
