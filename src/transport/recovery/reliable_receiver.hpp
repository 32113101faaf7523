// SPDX-License-Identifier: GPL-2.0-only
// The receiving half of a reliable connection on a network that loses or reorders packets.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "transport/messages/message.hpp"
#include "transport/messages/packet.hpp"
#include "transport/recovery/recovery.hpp"
#include "units/time.hpp"

namespace weft {

/// Puts packets in order, or drops those after a gap, and returns the answer to send. Messages are delivered in the
/// order in which they were posted, when all their packets are there. Payload needs no buffer: it is placed where it
/// belongs as it comes (RDMA WRITE).
class ReliableReceiver {
 public:
  /// `first`: number of the first packet, which both ends agree on.
  explicit ReliableReceiver(std::uint64_t first = 0) : expected_(first), message_start_(first) {}

  /// The answer to the sender for one packet.
  struct Answer {
    bool ack = false;
    /// Before that, an ACK of the packets that were marked like `ecn_before` and not like this one; up to here.
    std::optional<std::uint32_t> ack_before;
    bool ecn_before = false;
    bool nack = false;
    bool trimmed = false;         ///< the NACK names caused_by, not expected
    bool cnp = false;             ///< a congestion notification is due
    bool ecn = false;             ///< congestion marks since the last ACK
    std::uint32_t expected = 0;   ///< next number that is missing
    std::uint32_t caused_by = 0;  ///< number of the packet that came
    std::uint32_t delivered = 0;  ///< messages that are complete; take them with take_delivered()
  };
  /// `cnp_interval`: least time between two notifications; 0: none are sent.
  Answer on_data(Time now, const Packet& packet, MessagePool& pool, const RecoveryRules& rules, Time cnp_interval);
  /// Slot of the oldest complete message; the caller releases it.
  std::uint32_t take_delivered();

  std::uint64_t expected() const { return expected_; }
  std::uint64_t duplicates() const { return duplicates_; }
  std::uint64_t out_of_order() const { return out_of_order_; }  ///< packets that came behind a gap
  std::uint64_t widest_gap() const { return widest_gap_; }      ///< most packets by which one came too early

 private:
  void on_ahead(std::uint64_t psn, const Packet& packet, MessagePool& pool, const RecoveryRules& rules, Answer& answer);
  void on_expected(const Packet& packet, const RecoveryRules& rules, Answer& answer);
  void keep_descriptor(std::uint64_t psn, std::uint32_t slot);
  bool arrived(std::uint64_t psn) const;
  void mark_arrived(std::uint64_t psn);

  std::uint64_t expected_ = 0;
  std::uint64_t message_start_ = 0;  // first number of the message that is arriving, if packets come in order
  std::uint64_t last_ahead_ = 0;     // number of the last packet behind the gap
  std::uint32_t unacknowledged_ = 0;
  bool gap_reported_ = false;
  bool marked_ = false;       // some packet since the last ACK
  bool last_marked_ = false;  // the packet before
  Time next_cnp_;
  std::uint64_t duplicates_ = 0;
  std::uint64_t out_of_order_ = 0;
  std::uint64_t widest_gap_ = 0;
  std::vector<std::uint64_t> bits_;                               // by number modulo 64 times its size
  std::vector<std::pair<std::uint64_t, std::uint32_t>> pending_;  // (last number, descriptor), ascending
};

}  // namespace weft
