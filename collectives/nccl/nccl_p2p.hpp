// SPDX-License-Identifier: GPL-2.0-only
// The order in which NCCL lets every rank send to and receive from every other one.
#pragma once

#include <cstdint>

namespace weft {

/// Rounds one after another; the first one is with oneself. NCCL src/init.cc, ncclP2pSchedule.
class P2pRounds {
 public:
  struct Peers {
    std::uint32_t to = 0;
    std::uint32_t from = 0;
  };
  /// `server`: consecutive ranks that share a server.
  P2pRounds(std::uint32_t ranks, std::uint32_t server);
  /// Consecutive ranks of a server that change places with each other in the rounds of a group.
  static std::uint32_t group_of(std::uint32_t server);
  bool done() const { return round_ == ranks_; }
  std::uint32_t round() const { return round_; }
  Peers peers(std::uint32_t index) const;
  void advance();

 private:
  std::uint32_t ranks_;
  std::uint32_t group_ = 1;
  std::uint32_t groups_ = 1;
  std::uint32_t round_ = 0;
  std::uint32_t step_ = 0;    ///< rotation within groups
  std::uint32_t number_ = 0;  ///< of the group delta, those beyond included
  std::uint32_t delta_ = 0;
};

}  // namespace weft
