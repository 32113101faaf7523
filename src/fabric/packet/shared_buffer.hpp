// SPDX-License-Identifier: GPL-2.0-only
// The packet memory of a switch: who may use how much of it, and when a sender has to pause.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric/buffer_sharing/buffer_sharing.hpp"

namespace weft {

/// What a switch does with its packet memory. Bytes are those of frames, without preamble and gap.
struct BufferRules {
  std::int64_t shared = INT64_MAX;         ///< bytes that all queues share, without reserves and headroom
  const BufferSharing* sharing = nullptr;  ///< how much of them a queue may hold; outlives the buffer
  std::int64_t reserve = 0;                ///< of each ingress queue, beside the shared bytes
  std::int64_t xon_offset = 0;             ///< a paused ingress queue resumes that far below its threshold
};

/// Accounting of one switch by ingress port and traffic class, as shared-memory switches do it. Thresholds are those of
/// a discipline of sharing; thresholds, pauses and headroom together: Zhu et al., "Congestion control for large-scale
/// RDMA deployments", SIGCOMM 2015, doi:10.1145/2785956.2787484, section 4.
///
/// A frame takes from the queue's reserve first, then from the shared bytes while the queue stays within its threshold,
/// then (lossless classes only) from the queue's headroom; if none of them has room for the whole frame it is dropped.
class SharedBuffer {
 public:
  enum class Place : std::uint8_t { shared, headroom, none };

  SharedBuffer(const BufferRules& rules, std::size_t queues) : rules_(rules), queues_(queues) {}

  /// Bytes of headroom make an ingress queue lossless.
  void set_headroom(std::size_t queue, std::int64_t bytes) { queues_[queue].headroom = bytes; }

  Place admit(std::size_t queue, std::int64_t frame) {
    Queue& q = queues_[queue];
    if (q.in_headroom == 0) {
      const std::int64_t more = shared_part(q.bytes + frame) - shared_part(q.bytes);
      if (more == 0 || (shared_part(q.bytes + frame) <= threshold() && used_ + more <= rules_.shared)) {
        q.bytes += frame;
        used_ += more;
        return Place::shared;
      }
    }
    if (q.in_headroom + frame > q.headroom) return Place::none;
    q.in_headroom += frame;
    all_in_headroom_ += frame;
    return Place::headroom;
  }

  /// Admits a frame if there is so much room that another one of up to `largest` bytes would not have to pause its
  /// sender (must_pause() says no): mostly, and with half of the arithmetic. Otherwise it does nothing.
  bool admit_easily(std::size_t queue, std::int64_t frame, std::int64_t largest) {
    Queue& q = queues_[queue];
    const std::int64_t used = used_ + more_shared(q.bytes, frame);
    const std::int64_t held = shared_part(q.bytes + frame + largest);
    if (q.in_headroom > 0) return false;
    if ((used > known_use_ || held > known_limit_) && !fits_anew(used, held)) [[unlikely]]
      return false;
    q.bytes += frame;
    used_ = used;
    return true;
  }
  /// admit_easily() would say yes, as far as can be told without arithmetic: who leaves at once need not come in.
  bool has_plenty(std::size_t queue, std::int64_t frame, std::int64_t largest) const {
    const Queue& q = queues_[queue];
    return q.in_headroom == 0 && used_ + frame <= known_use_ && q.bytes + frame + largest <= known_limit_;
  }

  /// No queue needs headroom while `more` bytes come in, through whichever port, and none leave: no queue holds more
  /// than all of them. False also where that is not known.
  bool stays_small(std::int64_t more) {
    const std::int64_t used = used_ + more;
    if (all_in_headroom_ > 0) return false;
    return (used <= known_use_ && used <= known_limit_) || fits_anew(used, used);
  }
  /// What a queue may hold while `more` bytes come in and none leave: negative if they do not fit.
  std::int64_t limit_after(std::int64_t more) const {
    const std::int64_t used = used_ + more;
    if (used > rules_.shared) return -1;
    return used <= known_use_ ? known_limit_ : threshold_at(used);
  }
  /// A queue that gets `more` bytes needs no headroom while it may hold `limit`.
  bool stays_within(std::size_t queue, std::int64_t more, std::int64_t limit) const {
    const Queue& q = queues_[queue];
    return q.in_headroom == 0 && shared_part(q.bytes + more) <= limit;
  }
  /// Takes a frame for which there is room, as is known from stays_within().
  void take(std::size_t queue, std::int64_t frame) {
    Queue& q = queues_[queue];
    used_ += more_shared(q.bytes, frame);
    q.bytes += frame;
  }

  /// A frame of the queue has left. What is in headroom counts as gone first.
  void release(std::size_t queue, std::int64_t frame) {
    Queue& q = queues_[queue];
    if (q.in_headroom > 0) [[unlikely]] {
      const std::int64_t from_headroom = std::min(frame, q.in_headroom);
      q.in_headroom -= from_headroom;
      all_in_headroom_ -= from_headroom;
      frame -= from_headroom;
    }
    q.bytes -= frame;
    used_ -= more_shared(q.bytes, frame);
  }

  /// Its sender has to stop: another frame of up to `largest` bytes might not find room outside the headroom.
  bool must_pause(std::size_t queue, std::int64_t largest) const {
    const Queue& q = queues_[queue];
    return q.in_headroom > 0 || shared_part(q.bytes + largest) > threshold();
  }
  /// A stopped sender may go on.
  bool may_resume(std::size_t queue) const {
    const Queue& q = queues_[queue];
    if (q.in_headroom > 0) return false;
    const std::int64_t most = threshold() - rules_.xon_offset;
    return q.bytes == 0 || shared_part(q.bytes) <= (most > 0 ? most : 0);
  }
  bool lossless(std::size_t queue) const { return queues_[queue].headroom > 0; }

  /// Shared bytes that one queue may hold now.
  std::int64_t threshold() const { return threshold_at(used_); }
  std::int64_t shared_used() const { return used_; }
  std::int64_t held(std::size_t queue) const { return queues_[queue].bytes + queues_[queue].in_headroom; }
  std::int64_t in_headroom(std::size_t queue) const { return queues_[queue].in_headroom; }
  /// What it knows of a queue. For fetching ahead.
  const void* account_of(std::size_t queue) const { return queues_.data() + queue; }
  std::uint64_t memory_bytes() const { return queues_.capacity() * sizeof(Queue); }

 private:
  struct Queue {
    std::int64_t bytes = 0;        // in reserve and shared
    std::int64_t in_headroom = 0;  // in headroom
    std::int64_t headroom = 0;     // its size
  };
  std::int64_t threshold_at(std::int64_t used) const {
    return rules_.sharing->limit({Bytes(rules_.shared), Bytes(used), queues_.size()}).count();
  }
  /// Keeps the limit for a 64th more of the memory: limits do not rise while more is used.
  bool fits_anew(std::int64_t used, std::int64_t held) {
    if (used > rules_.shared) return false;
    known_use_ = std::min(rules_.shared, used + rules_.shared / 64);
    known_limit_ = threshold_at(known_use_);
    return held <= known_limit_ || held <= threshold_at(used);
  }
  /// What `frame` bytes more take of the shared ones in a queue that holds so many.
  std::int64_t more_shared(std::int64_t bytes, std::int64_t frame) const {
    if (bytes >= rules_.reserve) [[likely]]
      return frame;
    return shared_part(bytes + frame);
  }
  std::int64_t shared_part(std::int64_t bytes) const { return bytes > rules_.reserve ? bytes - rules_.reserve : 0; }

  BufferRules rules_;
  std::vector<Queue> queues_;
  std::int64_t used_ = 0;
  std::int64_t all_in_headroom_ = 0;
  std::int64_t known_use_ = -1;  // as long as no more is used, a queue may hold known_limit_
  std::int64_t known_limit_ = -1;
};

}  // namespace weft
