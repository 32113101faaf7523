// SPDX-License-Identifier: GPL-2.0-only
#include "transport/recovery/reliable_sender.hpp"

#include <algorithm>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

// So many times in a row a packet that was sent again is lost by chance in one of 10^16 cases at a loss of 1 %.
constexpr std::uint32_t max_in_vain = 8;

}  // namespace

void ReliableSender::post(std::uint32_t slot, MessagePool& pool) {
  Message& message = pool[slot];
  message.packets = packet_count(message.bytes, mtu());
  message.first_psn = posted_;
  posted_ += message.packets;
  if (oldest_ == no_slot)
    oldest_ = slot;
  else
    pool[tail_].next = slot;
  tail_ = slot;
  if (fresh_ == no_slot) fresh_ = slot;
}

void ReliableSender::learn_of_loss(const std::optional<SendWaits::Taken>& taken, MessagePool& pool) {
  if (taken)
    for (std::uint32_t slot = fresh_; slot != no_slot; slot = pool[slot].next)
      pool[slot].posted_in_wait_for_loss(*taken);
  fresh_ = no_slot;
}

Bytes ReliableSender::payload_of(const Message& message, std::uint64_t psn) const {
  const Bytes before = static_cast<std::int64_t>(psn - message.first_psn) * mtu();
  return std::min(mtu(), message.bytes - before);
}

std::uint32_t ReliableSender::message_of(std::uint64_t psn, const MessagePool& pool) const {
  std::uint32_t slot = cursor_ != no_slot && pool[cursor_].first_psn <= psn ? cursor_ : oldest_;
  while (psn >= pool[slot].first_psn + pool[slot].packets) slot = pool[slot].next;
  return slot;
}

void ReliableSender::grow() {
  std::vector<Sent> larger(std::max<std::size_t>(8, ring_.size() * 2));
  for (std::uint64_t i = acked_; i < high_; ++i) larger[i & (larger.size() - 1)] = sent(i);
  ring_.swap(larger);
}

std::uint64_t ReliableSender::next_psn() const {
  if (lost_ == 0) return next_;
  std::uint64_t psn = std::max(first_lost_, acked_);
  while (sent(psn).state != State::lost) ++psn;
  return psn;
}

Bytes ReliableSender::next_payload(const MessagePool& pool) const {
  const std::uint64_t psn = next_psn();
  return lost_ > 0 ? Bytes(sent(psn).payload) : payload_of(pool[message_of(psn, pool)], psn);
}

Packet ReliableSender::next_packet(Time now, NodeId source, MessagePool& pool, const SendWaits& waits) {
  const std::uint64_t psn = next_psn();
  const bool missed = lost_ > 0 || psn == missed_;
  if (lost_ > 0) {
    first_lost_ = psn + 1;
    --lost_;
  } else {
    ++next_;
  }
  const std::uint32_t slot = message_of(psn, pool);
  if (psn + 1 == next_) cursor_ = slot;
  fresh_ = no_slot;
  const Bytes payload = payload_of(pool[slot], psn);
  reserve(psn);
  const bool again = psn < high_;
  if (!again) high_ = psn + 1;
  if (missed) [[unlikely]]
    count_recovery(now, psn, pool[slot]);
  if (psn == pool[slot].first_psn) {
    pool[slot].first_sent = now;
    if (!again) pool[slot].begin_sending(waits.until(now));
  }
  sent(psn) = {now, static_cast<std::uint16_t>(payload.count()), State::flying, again};
  repeated_ += again ? 1 : 0;
  if (flying_++ == 0 || (again && psn == acked_)) progress_at_ = now;
  in_flight_ += payload;

  Packet packet;
  packet.set_ends(source, destination_);
  packet.queue_pair = number_;
  packet.psn = static_cast<std::uint32_t>(psn);
  packet.payload = static_cast<std::uint16_t>(payload.count());
  if (again) packet.flags |= packet_again;
  Message& message = pool[slot];
  if (psn == message.first_psn) packet.flags |= packet_first;
  if (psn + 1 == message.first_psn + message.packets) {
    packet.flags |= packet_last;
    message.end_sending(now, waits.until(now));
    Message travelling = message;
    packet.message = pool.add(travelling);
  }
  return packet;
}

// A lost packet is sent again: its message has waited for it until now.
void ReliableSender::count_recovery(Time now, std::uint64_t psn, Message& message) {
  missed_ = UINT64_MAX;
  // With go_back_0 the ring may have forgotten the first packet.
  const Time sent_at = psn == message.first_psn ? message.first_sent : sent(psn).at;
  message.retransmission += now - std::max(sent_at, message.recovered);
  message.recovered = now;
}

Bytes ReliableSender::take_arrived(std::uint64_t psn) {
  Sent& entry = sent(psn);
  if (entry.state == State::arrived) return {};
  if (entry.state == State::flying) {
    in_flight_ -= Bytes(entry.payload);
    --flying_;
  } else if (entry.state == State::lost) {
    --lost_;
  }
  entry.state = State::arrived;
  return Bytes(entry.payload);
}

Bytes ReliableSender::take_acked(std::uint64_t up_to) {
  Bytes bytes;
  for (; acked_ < up_to; ++acked_) bytes += take_arrived(acked_);
  if (next_ < acked_) {  // it had gone back behind packets that the receiver had
    next_ = acked_;
    cursor_ = no_slot;
  }
  return bytes;
}

void ReliableSender::finish_messages(const MessagePool& pool, Progress& progress) {
  std::uint32_t slot = oldest_;
  for (std::uint32_t i = 0; i < done_; ++i) slot = pool[slot].next;
  while (slot != no_slot && pool[slot].first_psn + pool[slot].packets <= acked_) {
    ++done_;
    ++progress.done;
    slot = pool[slot].next;
  }
}

std::uint32_t ReliableSender::take_done(MessagePool& pool) {
  WEFT_EXPECT(done_ > 0, "queue pair {}: no message is done", number_);
  const std::uint32_t slot = oldest_;
  oldest_ = pool[slot].next;
  if (oldest_ == no_slot) tail_ = no_slot;
  if (cursor_ == slot) cursor_ = no_slot;
  --done_;
  return slot;
}

Bytes ReliableSender::lose(std::uint64_t psn) {
  Sent& entry = sent(psn);
  if (entry.state != State::flying) return {};
  entry.state = State::lost;
  in_flight_ -= Bytes(entry.payload);
  --flying_;
  if (lost_++ == 0 || psn < first_lost_) first_lost_ = psn;
  return Bytes(entry.payload);
}

// Packets sent before one that has arrived are lost if the network keeps the order of what it carries; a network that
// spreads packets gets some slack, counted in packets. A repeated packet is judged by its time of sending.
Bytes ReliableSender::lose_overtaken(std::uint64_t arrived, const RecoveryRules& rules) {
  Bytes bytes;
  const Time at = sent(arrived).at;
  const std::uint64_t end =
      rules.reordering > 1 ? arrived + 1 - std::min<std::uint64_t>(rules.reordering, arrived + 1) : high_;
  for (std::uint64_t psn = acked_; psn < end; ++psn) {
    const Sent& entry = sent(psn);
    if (entry.state != State::flying || entry.at >= at) continue;
    if (entry.again && rules.reordering > 1) continue;  // its successors may have had shorter paths: the timer runs
    bytes += lose(psn);
  }
  return bytes;
}

Bytes ReliableSender::go_back(std::uint64_t to) {
  Bytes bytes;
  for (std::uint64_t psn = std::max(to, acked_); psn < high_; ++psn) {
    Sent& entry = sent(psn);
    if (entry.state == State::flying) bytes += Bytes(entry.payload);
    entry.state = State::unsent;
  }
  if (to < acked_) {  // the beginning of a message counts as never received
    acked_ = to;
    std::size_t size = ring_.size();
    while (size < high_ - to) size *= 2;
    ring_.assign(size, {});
  }
  if (to < high_) missed_ = to;
  next_ = to;
  cursor_ = no_slot;
  in_flight_ = {};
  flying_ = 0;
  lost_ = 0;
  return bytes;
}

std::uint64_t ReliableSender::message_start(std::uint64_t psn, const MessagePool& pool) const {
  std::uint32_t slot = oldest_;
  while (psn >= pool[slot].first_psn + pool[slot].packets) slot = pool[slot].next;
  return pool[slot].first_psn;
}

ReliableSender::Progress ReliableSender::on_ack(Time now, std::uint32_t expected, std::uint32_t caused_by,
                                                MessagePool& pool, const RecoveryRules& rules) {
  Progress progress;
  const std::uint64_t up_to = unwrap(expected);
  const std::uint64_t cause = unwrap(caused_by);
  WEFT_EXPECT(static_cast<std::int64_t>(up_to - high_) <= 0, "queue pair {}: ACK of {}, sent up to {}", number_, up_to,
              high_);
  // An ACK that later ones have overtaken may name a packet that is acknowledged: its place is another packet's by now.
  const bool kept = static_cast<std::int64_t>(cause - acked_) >= 0 && cause < high_;
  if (kept && !sent(cause).again && sent(cause).state != State::unsent) progress.rtt = now - sent(cause).at;
  const bool ahead = rules.keeps_gaps() && kept && static_cast<std::int64_t>(cause - up_to) > 0;
  if (ahead) progress.acked += take_arrived(cause);
  // The timer is that of the oldest packet (RFC 6298, 5.3, and RFC 6675): if answers to later ones started it anew, a
  // lost packet that no other sign tells of would hold its place in the window as long as anything arrives.
  if (static_cast<std::int64_t>(up_to - acked_) > 0) {
    progress.acked += take_acked(up_to);
    progress_at_ = now;
  }
  if (ahead) progress.lost = lose_overtaken(cause, rules);
  finish_messages(pool, progress);
  return progress;
}

ReliableSender::Progress ReliableSender::on_nack(Time now, std::uint32_t expected, MessagePool& pool,
                                                 const RecoveryRules& rules) {
  Progress progress;
  const std::uint64_t missing = unwrap(expected);
  if (static_cast<std::int64_t>(missing - acked_) < 0) {
    // An old NACK, unless the receiver has thrown away the beginning of a message that is not done.
    if (rules.kind != Recovery::go_back_0 || idle() || missing < message_start(acked_, pool)) return progress;
  }
  if (static_cast<std::int64_t>(missing - acked_) > 0) progress.acked = take_acked(missing);
  finish_messages(pool, progress);
  if (rules.kind == Recovery::go_back_n && missing < next_) {
    in_vain_ = missing == nacked_ ? in_vain_ + 1 : 0;
    nacked_ = missing;
    // A responder of InfiniBand sends one NACK until the packet has arrived (IBTA vol. 1, 9.7.5.1.2), and everything
    // else is the timer's. Ours reports each further loss, which is faster where chance loses packets. But if a queue
    // is full of repeated packets of the sender, and its packets arrive in step with those that leave, the first of
    // them never finds space: then only a pause helps.
    if (in_vain_ >= max_in_vain) return progress;
  }
  if (rules.keeps_gaps()) {
    if (missing < high_) progress.lost = lose(missing);
  } else if (missing < next_) {
    progress.lost = go_back(missing);
  }
  progress_at_ = now;
  return progress;
}

ReliableSender::Progress ReliableSender::on_trimmed(Time now, std::uint32_t missing, MessagePool& pool,
                                                    const RecoveryRules& rules) {
  if (!rules.keeps_gaps()) return on_nack(now, missing, pool, rules);
  Progress progress;
  const std::uint64_t psn = unwrap(missing);
  if (static_cast<std::int64_t>(psn - acked_) >= 0 && psn < high_) progress.lost = lose(psn);
  progress_at_ = now;
  return progress;
}

ReliableSender::Progress ReliableSender::on_timeout(Time now, MessagePool& pool, const RecoveryRules& rules) {
  Progress progress;
  ++timeouts_;
  progress_at_ = now;
  if (rules.keeps_gaps()) {
    for (std::uint64_t psn = acked_; psn < high_; ++psn) progress.lost += lose(psn);
  } else {
    progress.lost = go_back(rules.kind == Recovery::go_back_0 ? message_start(acked_, pool) : acked_);
  }
  return progress;
}

Time ReliableSender::deadline(const RecoveryRules& rules) const {
  if (flying_ == 0) return Time::max();
  return progress_at_ + (flying_ <= rules.few ? rules.timeout_low : rules.timeout);
}

}  // namespace weft
