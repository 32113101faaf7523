// SPDX-License-Identifier: GPL-2.0-only
#include "transport/recovery/reliable_receiver.hpp"

#include <algorithm>
#include <utility>

#include "support/basics/contract.hpp"

namespace weft {

bool ReliableReceiver::arrived(std::uint64_t psn) const {
  const std::uint64_t size = bits_.size() * 64;
  return psn - expected_ < size && (bits_[psn / 64 % bits_.size()] >> (psn % 64) & 1U) != 0;
}

void ReliableReceiver::mark_arrived(std::uint64_t psn) {
  if (psn - expected_ >= bits_.size() * 64) {
    std::size_t words = std::max<std::size_t>(1, bits_.size());
    while (psn - expected_ >= words * 64) words *= 2;
    std::vector<std::uint64_t> larger(words, 0);
    for (std::uint64_t i = expected_; i < expected_ + bits_.size() * 64; ++i)
      if (arrived(i)) larger[i / 64 % words] |= std::uint64_t{1} << (i % 64);
    bits_.swap(larger);
  }
  bits_[psn / 64 % bits_.size()] |= std::uint64_t{1} << (psn % 64);
}

void ReliableReceiver::keep_descriptor(std::uint64_t psn, std::uint32_t slot) {
  const auto place = std::lower_bound(pending_.begin(), pending_.end(), std::pair(psn, slot));
  pending_.insert(place, {psn, slot});
}

std::uint32_t ReliableReceiver::take_delivered() {
  const std::uint32_t slot = pending_.front().second;
  pending_.erase(pending_.begin());
  return slot;
}

ReliableReceiver::Answer ReliableReceiver::on_data(Time now, const Packet& packet, MessagePool& pool,
                                                   const RecoveryRules& rules, Time cnp_interval) {
  Answer answer;
  answer.caused_by = packet.psn;
  const bool marked = (packet.flags & packet_ecn) != 0;
  if (marked && cnp_interval > Time() && now >= next_cnp_) {
    answer.cnp = true;
    next_cnp_ = now + cnp_interval;
  }
  const auto distance = static_cast<std::int32_t>(packet.psn - static_cast<std::uint32_t>(expected_));
  if ((packet.flags & packet_trimmed) != 0) {
    if (rules.keeps_gaps()) {
      answer.nack = answer.trimmed = distance >= 0;
    } else if (distance >= 0) {
      on_ahead(expected_ + static_cast<std::uint64_t>(distance), packet, pool, rules, answer);
    }
  } else if (distance == 0) {
    if (rules.separate_marks && marked != last_marked_ && unacknowledged_ > 0) {
      answer.ack_before = static_cast<std::uint32_t>(expected_);
      answer.ecn_before = std::exchange(marked_, false);
      unacknowledged_ = 0;
    }
    marked_ |= marked;
    on_expected(packet, rules, answer);
    answer.ack |= marked != last_marked_;  // a change of marking is reported at once
    last_marked_ = marked;
    answer.ack |= (packet.flags & packet_ask) != 0;
  } else if (distance > 0) {
    marked_ |= marked && rules.keeps_gaps();
    on_ahead(expected_ + static_cast<std::uint64_t>(distance), packet, pool, rules, answer);
  } else {
    ++duplicates_;
    if ((packet.flags & packet_last) != 0) pool.release(packet.message);
    answer.ack = true;
  }
  answer.expected = static_cast<std::uint32_t>(expected_);
  if (answer.ack) {
    answer.ecn = marked_;
    marked_ = false;
    unacknowledged_ = 0;
  }
  return answer;
}

void ReliableReceiver::on_expected(const Packet& packet, const RecoveryRules& rules, Answer& answer) {
  const bool last = (packet.flags & packet_last) != 0;
  if (last) keep_descriptor(expected_, packet.message);
  ++expected_;
  while (!bits_.empty() && arrived(expected_)) {
    bits_[expected_ / 64 % bits_.size()] &= ~(std::uint64_t{1} << (expected_ % 64));
    ++expected_;
    answer.ack = true;  // a gap is closed
  }
  gap_reported_ = false;
  for (const auto& [end, slot] : pending_) {
    if (end >= expected_) break;
    ++answer.delivered;
    message_start_ = end + 1;
  }
  answer.ack |= last || ++unacknowledged_ >= rules.ack_interval;
}

void ReliableReceiver::on_ahead(std::uint64_t psn, const Packet& packet, MessagePool& pool, const RecoveryRules& rules,
                                Answer& answer) {
  ++out_of_order_;
  widest_gap_ = std::max(widest_gap_, psn - expected_);
  const bool last = (packet.flags & packet_last) != 0;
  if (rules.keeps_gaps()) {
    answer.ack = true;
    if (arrived(psn)) {
      ++duplicates_;
      if (last) pool.release(packet.message);
      return;
    }
    mark_arrived(psn);
    if (last) keep_descriptor(psn, packet.message);
    return;
  }
  if (last) pool.release(packet.message);
  // One NACK for a gap (IBTA vol. 1, 9.7.5.1.2). Decreasing numbers show that the sender has started again and the gap
  // is a new one.
  answer.nack = !gap_reported_ || psn <= last_ahead_;
  gap_reported_ = true;
  last_ahead_ = psn;
  if (rules.kind == Recovery::go_back_0 && answer.nack) {
    expected_ = message_start_;
    last_ahead_ = psn;
  }
}

}  // namespace weft
