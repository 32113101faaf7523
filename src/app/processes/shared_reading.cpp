// SPDX-License-Identifier: GPL-2.0-only
#include "app/processes/shared_reading.hpp"

#include "app/processes/prepare.hpp"

namespace weft {

std::vector<SharedReading::Bytes> GroupReading::exchange(std::vector<Bytes> parts) const {
  require_agreement(group_);
  const auto own = static_cast<std::size_t>(group_.rank());
  std::vector<int> others;
  std::vector<Bytes> outgoing;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.rank()) continue;
    others.push_back(i);
    outgoing.push_back(std::move(parts[static_cast<std::size_t>(i)]));
  }
  std::vector<Bytes> incoming(others.size());
  group_.exchange(others, outgoing, incoming);
  incoming.insert(incoming.begin() + static_cast<std::ptrdiff_t>(own), std::move(parts[own]));
  return incoming;
}

}  // namespace weft
