// SPDX-License-Identifier: GPL-2.0-only
// Headers of trimmed packets before data, but not for ever: Handley et al., "Re-architecting datacenter networks and
// stacks for low latency and high performance", SIGCOMM 2017, doi:10.1145/3098822.3098825, section 3.1.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "fabric/scheduling/port_scheduler.hpp"

namespace weft {

/// The most urgent class, with headers and answers, goes first; after ten of its packets in a row another class that
/// waits sends one. Were it strictly first, headers, the answers to them and what is sent again for those could fill a
/// link for ever, without a packet of data. The other classes are as their own discipline wants it.
class HeadersFirst final : public PortScheduler {
 public:
  static constexpr int headers_per_packet = 10;

  /// `others`: the scheduler of the classes in the set `sharing`; null if none share the link.
  HeadersFirst(LaneId headers, std::unique_ptr<PortScheduler> others, std::uint32_t sharing)
      : headers_(headers), others_(std::move(others)), sharing_(sharing) {}

  LaneId choose(const ReadyClasses& ready) override {
    asked_ = false;
    const std::uint32_t rest = ready.lanes & ~headers_.bit();
    if (ready.has(headers_) && (in_a_row_ < headers_per_packet || rest == 0)) return headers_;
    const LaneId first = LaneId::first_of(rest);
    ReadyClasses others = ready;
    others.lanes = rest & sharing_;
    asked_ = first.in(others.lanes) && others.lanes != first.bit();
    return asked_ ? others_->choose(others) : first;
  }
  void sends(LaneId lane, Bytes frame) override {
    in_a_row_ = lane == headers_ ? in_a_row_ + 1 : 0;
    if (asked_) others_->sends(lane, frame);
  }
  void emptied(std::uint32_t lanes) override {
    if (headers_.in(lanes)) in_a_row_ = 0;
    if (others_ && (lanes & sharing_) != 0) others_->emptied(lanes & sharing_);
  }

 private:
  const LaneId headers_;
  const std::unique_ptr<PortScheduler> others_;
  const std::uint32_t sharing_;
  int in_a_row_ = 0;    // packets of the headers' class that were sent while others waited
  bool asked_ = false;  // `others_` has chosen
};

}  // namespace weft
