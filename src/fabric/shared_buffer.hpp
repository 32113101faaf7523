// SPDX-License-Identifier: GPL-2.0-only
// The packet memory of a switch: who may use how much of it, and when a sender has to pause.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

/// What a switch does with its packet memory. Bytes are those of frames, without preamble and gap.
struct BufferRules {
  std::int64_t shared = INT64_MAX;     ///< bytes that all queues share, without reserves and headroom
  double alpha = 0;                    ///< dynamic threshold: a queue may hold alpha * (free shared bytes); 0: static
  std::int64_t threshold = INT64_MAX;  ///< static threshold of a queue; with alpha > 0 an upper bound
  std::int64_t reserve = 0;            ///< of each ingress queue, beside the shared bytes
  std::int64_t xon_offset = 0;         ///< a paused ingress queue resumes that far below its threshold
};

/// Accounting of one switch by ingress port and traffic class, as shared-memory switches do it: Choudhury and Hahne,
/// "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262,
/// for the thresholds, and Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015,
/// doi:10.1145/2785956.2787484, section 4, for thresholds, pauses and headroom together.
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
    return Place::headroom;
  }

  /// Admits a frame if there is so much room that another one of up to `largest` bytes would not have to pause its
  /// sender (must_pause() says no): mostly, and with half of the arithmetic. Otherwise it does nothing.
  bool admit_easily(std::size_t queue, std::int64_t frame, std::int64_t largest) {
    Queue& q = queues_[queue];
    const std::int64_t more = shared_part(q.bytes + frame) - shared_part(q.bytes);
    if (q.in_headroom > 0 || used_ + more > rules_.shared) return false;
    if (shared_part(q.bytes + frame + largest) > threshold_at(used_ + more)) return false;
    q.bytes += frame;
    used_ += more;
    return true;
  }

  /// A frame of the queue has left. What is in headroom counts as gone first.
  void release(std::size_t queue, std::int64_t frame) {
    Queue& q = queues_[queue];
    const std::int64_t from_headroom = frame < q.in_headroom ? frame : q.in_headroom;
    q.in_headroom -= from_headroom;
    const std::int64_t rest = frame - from_headroom;
    used_ -= shared_part(q.bytes) - shared_part(q.bytes - rest);
    q.bytes -= rest;
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
  std::uint64_t memory_bytes() const { return queues_.capacity() * sizeof(Queue); }

 private:
  struct Queue {
    std::int64_t bytes = 0;        // in reserve and shared
    std::int64_t in_headroom = 0;  // in headroom
    std::int64_t headroom = 0;     // its size
  };
  std::int64_t threshold_at(std::int64_t used) const {
    if (rules_.alpha <= 0) return rules_.threshold;
    const auto dynamic = static_cast<std::int64_t>(rules_.alpha * static_cast<double>(rules_.shared - used));
    return dynamic < rules_.threshold ? dynamic : rules_.threshold;
  }
  std::int64_t shared_part(std::int64_t bytes) const { return bytes > rules_.reserve ? bytes - rules_.reserve : 0; }

  BufferRules rules_;
  std::vector<Queue> queues_;
  std::int64_t used_ = 0;
};

}  // namespace weft
