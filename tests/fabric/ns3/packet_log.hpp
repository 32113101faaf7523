// SPDX-License-Identifier: GPL-2.0-only
// The packets that a trace source of ns-3 reports.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <ns3/callback.h>
#include <ns3/object.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>

#include "tests/fabric/ns3/ns3_scenario.hpp"

namespace weft::test {

/// When it saw packets, and their bytes.
using Seen = std::vector<std::pair<Time, std::uint32_t>>;
struct PacketLog {
  Seen seen;
  void note(ns3::Ptr<const ns3::Packet> packet) { seen.emplace_back(now(), packet->GetSize()); }
  void watch(const ns3::Ptr<ns3::Object>& object, const std::string& source) {
    EXPECT_TRUE(object->TraceConnectWithoutContext(source, ns3::MakeCallback(&PacketLog::note, this)));
  }
};

}  // namespace weft::test
