// SPDX-License-Identifier: GPL-2.0-only
// Schedules that are written out step by step, as files have them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedule/collective/collective.hpp"

namespace weft {

/// A step of `count` chunks. Offsets are chunks of the buffer.
struct StaticStep {
  Primitive primitive = Primitive::nop;
  Buffer source = Buffer::input;
  Buffer target = Buffer::output;
  std::uint32_t source_chunk = 0;
  std::uint32_t target_chunk = 0;
  std::uint32_t count = 1;
  std::uint32_t send_peer = no_lane;     ///< no_lane: the lane's
  std::uint32_t receive_peer = no_lane;  ///< the same
  std::uint32_t wait_lane = no_lane;     ///< position in the rank's list of lanes
  std::uint32_t wait_step = 0;           ///< number of the step of that lane that must be done in the same loop
  int line = 0;                          ///< of the file
  friend bool operator==(const StaticStep& a, const StaticStep& b);
};

/// Steps in order; one peer to send to and one to receive from (MSCCL's thread block), unless steps name their own.
struct StaticLane {
  std::uint32_t id = 0;  ///< as the file calls it
  std::uint32_t channel = 0;
  std::uint32_t send_peer = no_lane;     ///< no_lane: none
  std::uint32_t receive_peer = no_lane;  ///< the same
  std::vector<StaticStep> steps;
  friend bool operator==(const StaticLane&, const StaticLane&) = default;
};

/// A switch that reduces, above the ranks first, first + stride, ..., `count` of them, inside their server.
struct StaticSwitch {
  std::uint32_t first = 0;
  std::uint32_t count = 2;
  std::uint32_t stride = 1;
  friend bool operator==(const StaticSwitch&, const StaticSwitch&) = default;
};

struct StaticSchedule {
  std::string file;
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t chunks = 1;  ///< that S has (MSCCL's nchunksperloop)
  std::uint32_t channels = 1;
  bool in_place = false;
  Protocol protocol = Protocol::simple;
  std::vector<std::vector<StaticLane>> ranks;  ///< and behind them the switches, which have scratch alone
  std::vector<StaticSwitch> switches;
  /// Ranks without the switches.
  std::uint32_t members() const { return static_cast<std::uint32_t>(ranks.size() - switches.size()); }
};

/// Checks the whole schedule by replay and throws InputError if it is wrong: incomplete, unmatched, or waiting for
/// ever.
std::unique_ptr<CollectiveAlgorithm> make_static_algorithm(StaticSchedule schedule);

/// The text form: one word per line's beginning, then key-value pairs (docs/reference/schedule_format.md).
std::string to_text(const StaticSchedule& schedule);
/// Throws InputError with the line.
StaticSchedule parse_schedule_text(const std::string& text, const std::string& file);

}  // namespace weft
