// SPDX-License-Identifier: GPL-2.0-only
// The packet memory of a switch: how much each queue may use, and when a sender has to pause.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fabric/buffer_sharing/buffer_sharing.hpp"

namespace weft {

/// Parameters of a switch's packet memory. Bytes are those of frames, without preamble and gap.
struct BufferRules {
  Bytes shared = Bytes::max();             ///< bytes that all queues share, without reserves and headroom
  const BufferSharing* sharing = nullptr;  ///< how much of them a queue may hold; outlives the buffer
  Bytes reserve;                           ///< of each ingress queue, beside the shared bytes
  Bytes xon_offset;                        ///< a paused ingress queue resumes that far below its threshold
  Bytes largest_frame;                     ///< that the switch gets
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

  /// The link that a queue is filled by has this rate. Disciplines may have other limits at other rates.
  void set_rate(std::size_t queue, Bandwidth rate) {
    queues_[queue].rate = rate;
    if (std::find(rates_.begin(), rates_.end(), rate) == rates_.end()) rates_.push_back(rate);
  }
  /// Bytes of headroom make an ingress queue lossless.
  void set_headroom(std::size_t queue, Bytes bytes) { queues_[queue].headroom = bytes; }

  Place admit(std::size_t queue, Bytes frame) {
    Queue& q = queues_[queue];
    if (q.in_headroom == Bytes()) {
      const Bytes more = shared_part(q.bytes + frame) - shared_part(q.bytes);
      if (more == Bytes() || (shared_part(q.bytes + frame) <= threshold(queue) && used_ + more <= rules_.shared)) {
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

  /// Admits a frame if there is so much room that another one would not have to pause its sender (must_pause() says
  /// no): mostly, and with half of the arithmetic. Otherwise it does nothing.
  bool admit_easily(std::size_t queue, Bytes frame) {
    Queue& q = queues_[queue];
    const Bytes used = used_ + more_shared(q.bytes, frame);
    const Bytes held = shared_part(q.bytes + frame + rules_.largest_frame);
    if (q.in_headroom > Bytes()) return false;
    if ((used > known_use_ || held > known_limit_) && !fits_anew(used, held, q.rate)) [[unlikely]]
      return false;
    q.bytes += frame;
    used_ = used;
    return true;
  }
  /// admit_easily() would succeed, as far as this is known without arithmetic: a frame that leaves at once need not be
  /// admitted.
  bool has_plenty(std::size_t queue, Bytes frame) const {
    const Queue& q = queues_[queue];
    return q.in_headroom == Bytes() && used_ + frame <= known_use_ &&
           q.bytes + frame + rules_.largest_frame <= known_limit_;
  }

  /// No queue needs headroom while `more` bytes come in, through whichever port, and none leave: no queue holds more
  /// than all of them. False also where that is not known.
  bool stays_small(Bytes more) {
    const Bytes used = used_ + more;
    if (all_in_headroom_ > Bytes()) return false;
    if (used <= known_use_ && used <= known_limit_) return true;
    return learn_limit(used) && (used <= known_limit_ || used <= least_threshold_at(used));
  }
  /// What any queue may hold while `more` bytes come in and none leave: negative if they do not fit.
  Bytes limit_after(Bytes more) const {
    const Bytes used = used_ + more;
    if (used > rules_.shared) return Bytes(-1);
    return used <= known_use_ ? known_limit_ : least_threshold_at(used);
  }
  /// A queue that gets `more` bytes needs no headroom while it may hold `limit`.
  bool stays_within(std::size_t queue, Bytes more, Bytes limit) const {
    const Queue& q = queues_[queue];
    return q.in_headroom == Bytes() && shared_part(q.bytes + more) <= limit;
  }
  /// Takes a frame for which there is room, as is known from stays_within().
  void take(std::size_t queue, Bytes frame) {
    Queue& q = queues_[queue];
    used_ += more_shared(q.bytes, frame);
    q.bytes += frame;
  }

  /// A frame of the queue has left. What is in headroom counts as gone first.
  void release(std::size_t queue, Bytes frame) {
    Queue& q = queues_[queue];
    if (q.in_headroom > Bytes()) [[unlikely]] {
      const Bytes from_headroom = std::min(frame, q.in_headroom);
      q.in_headroom -= from_headroom;
      all_in_headroom_ -= from_headroom;
      frame -= from_headroom;
    }
    q.bytes -= frame;
    used_ -= more_shared(q.bytes, frame);
  }

  /// The queue's sender has to stop: another frame might not fit outside the headroom.
  bool must_pause(std::size_t queue) const {
    const Queue& q = queues_[queue];
    return q.in_headroom > Bytes() || shared_part(q.bytes + rules_.largest_frame) > threshold(queue);
  }
  /// A stopped sender may go on.
  bool may_resume(std::size_t queue) const {
    const Queue& q = queues_[queue];
    if (q.in_headroom > Bytes()) return false;
    const Bytes max = threshold(queue) - rules_.xon_offset;
    return q.bytes == Bytes() || shared_part(q.bytes) <= std::max(max, Bytes());
  }
  bool lossless(std::size_t queue) const { return queues_[queue].headroom > Bytes(); }

  /// Shared bytes that a queue may hold now.
  Bytes threshold(std::size_t queue) const { return threshold_at(used_, queues_[queue].rate); }
  Bytes shared_used() const { return used_; }
  Bytes largest_frame() const { return rules_.largest_frame; }
  Bytes held(std::size_t queue) const { return queues_[queue].bytes + queues_[queue].in_headroom; }
  Bytes in_headroom(std::size_t queue) const { return queues_[queue].in_headroom; }
  /// Its data on a queue. For prefetching.
  const void* account_of(std::size_t queue) const { return queues_.data() + queue; }
  std::uint64_t memory_bytes() const { return queues_.capacity() * sizeof(Queue); }

 private:
  struct Queue {
    Bytes bytes;        // in reserve and shared
    Bytes in_headroom;  // in headroom
    Bytes headroom;     // its size
    Bandwidth rate;     // of its link
  };
  Bytes threshold_at(Bytes used, Bandwidth rate) const {
    return rules_.sharing->limit({rules_.shared, used, queues_.size(), rate});
  }
  /// What a queue of any link may hold.
  Bytes least_threshold_at(Bytes used) const {
    Bytes least = threshold_at(used, rates_.empty() ? Bandwidth() : rates_.front());
    for (std::size_t i = 1; i < rates_.size(); ++i) least = std::min(least, threshold_at(used, rates_[i]));
    return least;
  }
  /// Keeps the limit for a 64th more of the memory: limits do not rise while more is used. False if so much does not
  /// fit.
  bool learn_limit(Bytes used) {
    if (used > rules_.shared) return false;
    known_use_ = std::min(rules_.shared, used + rules_.shared / 64);
    known_limit_ = least_threshold_at(known_use_);
    return true;
  }
  bool fits_anew(Bytes used, Bytes held, Bandwidth rate) {
    return learn_limit(used) && (held <= known_limit_ || held <= threshold_at(used, rate));
  }
  /// The shared bytes that another `frame` bytes take in a queue that holds so many.
  Bytes more_shared(Bytes bytes, Bytes frame) const {
    if (bytes >= rules_.reserve) [[likely]]
      return frame;
    return shared_part(bytes + frame);
  }
  Bytes shared_part(Bytes bytes) const { return bytes > rules_.reserve ? bytes - rules_.reserve : Bytes(); }

  BufferRules rules_;
  std::vector<Queue> queues_;
  std::vector<Bandwidth> rates_;  // of the queues' links, each once
  Bytes used_;
  Bytes all_in_headroom_;
  Bytes known_use_ = Bytes(-1);  // as long as no more is used, a queue may hold known_limit_
  Bytes known_limit_ = Bytes(-1);
};

}  // namespace weft
