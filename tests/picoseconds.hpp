// SPDX-License-Identifier: GPL-2.0-only
// The resolution of time that weft wants of ns-3.
#pragma once

#include <ns3/nstime.h>

namespace weft {

/// Once per program: ns-3 3.37 does not survive a second change (Time::ConvertTimes, src/core/model/time.cc).
inline void count_in_picoseconds() {
  if (ns3::Time::GetResolution() != ns3::Time::PS) ns3::Time::SetResolution(ns3::Time::PS);
}

}  // namespace weft
