// SPDX-License-Identifier: GPL-2.0-only
// NDP: the receiver pulls. M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high
// performance", SIGCOMM 2017, doi:10.1145/3098822.3098825, section 3.2. Trimming and spraying, the rest of it, are keys
// of the network.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "transport/congestion_control/congestion_parameters.hpp"

namespace weft {
namespace {

/// A first window of new packets at line rate, then a packet for each pull. Packets are sent again for pulls only, and
/// before new ones: a first window that a short message has not used is no licence to send trimmed packets at once,
/// into the queue that has trimmed them.
class NdpSender final : public CongestionControl {
 public:
  explicit NdpSender(std::uint64_t initial_window) : initial_window_(initial_window), first_(initial_window) {}

  Allowance start(Time) override { return allowance(0); }
  Allowance on_ack(const AckEvent& ack) override { return allowance(ack.at.sent_packets); }
  Allowance on_cnp(Moment at) override { return allowance(at.sent_packets); }
  Allowance on_timer(Moment at) override { return allowance(at.sent_packets); }
  Allowance on_bytes_sent(Moment at) override { return allowance(at.sent_packets); }
  /// A trimmed packet's header has requested a pull. A packet that was lost as a whole has not: it starts again.
  Allowance on_loss(const LossEvent& loss) override {
    const std::uint64_t sent = loss.at.sent_packets;
    repeated_ = loss.repeated;
    waiting_ = loss.waiting;
    sent_ = sent;
    if (loss.timeout) {
      pulls_ = std::max(pulls_, repeated_ + initial_window_);
      first_ = std::max(first_ + pulls_, sent + initial_window_) - pulls_;
    }
    return allowance(sent);
  }
  Allowance on_pull(Moment at, std::uint32_t packets, bool returned) override {
    (returned ? first_ : pulls_) += packets;
    return allowance(at.sent_packets);
  }

 private:
  /// Since the last loss all packets were sent again, as long as one waits for that.
  Allowance allowance(std::uint64_t sent) {
    const std::uint64_t again = std::min(sent - sent_, waiting_);
    repeated_ += again;
    waiting_ -= again;
    sent_ = sent;
    Allowance result;
    result.max_packets = first_ + pulls_;
    const std::uint64_t pulled = pulls_ - std::min(pulls_, repeated_);
    if (waiting_ > pulled) result.max_packets = std::min(result.max_packets, sent + pulled);
    return result;
  }

  const std::uint64_t initial_window_;
  std::uint64_t first_;  // packets of first windows
  std::uint64_t pulls_ = 0;
  std::uint64_t repeated_ = 0;  // sent again
  std::uint64_t waiting_ = 0;   // to be sent again
  std::uint64_t sent_ = 0;      // when these were counted
};

/// Each packet that arrives, trimmed or not, requests another one. Pulls leave at the rate at which full packets fill
/// the port, those of one sender after another. A sender that has nothing more to send gets back at once the pulls that
/// it will not use, so that it begins its next message with a first window and no sender waits for it.
class NdpReceiver final : public ReceiverControl {
 public:
  explicit NdpReceiver(Time packet_time) : packet_time_(packet_time) {}

  void on_data(const ReceivedData& data) override {
    Flow& flow = flows_[{data.source, data.queue_pair}];
    ++(data.trimmed ? flow.again : flow.rest);
    ++waiting_;
    if (!data.trimmed && !data.more) give_back(data, flow);
    if (flow.again + flow.rest > 0 && !flow.listed) {
      flow.listed = true;
      turns_.emplace_back(data.source, data.queue_pair);
    }
  }
  Time next_pull() const override {
    if (!back_.empty()) return {};
    return waiting_ > 0 ? next_ : Time::max();
  }
  Pull take_pull(Time now) override {
    if (!back_.empty()) {
      const Pull pull = back_.front();
      back_.pop_front();
      return pull;
    }
    while (true) {
      const Key key = turns_.front();
      turns_.pop_front();
      Flow& flow = flows_[key];
      flow.listed = flow.again + flow.rest > 1;
      if (flow.listed) turns_.push_back(key);
      if (flow.again + flow.rest == 0) continue;
      --(flow.again > 0 ? flow.again : flow.rest);
      --waiting_;
      next_ = std::max(next_, now) + packet_time_;
      return {key.first, key.second, 1};
    }
  }

 private:
  using Key = std::pair<NodeId, std::uint32_t>;  // source, its queue pair
  struct Flow {
    std::uint32_t again = 0;  // pulls that it needs for trimmed packets
    std::uint32_t rest = 0;
    bool listed = false;  // in turns_
  };

  void give_back(const ReceivedData& data, Flow& flow) {
    back_.push_back({data.source, data.queue_pair, flow.rest, true});
    waiting_ -= std::exchange(flow.rest, 0);
  }

  const Time packet_time_;
  Time next_;
  std::uint64_t waiting_ = 0;  // pulls of all flows
  std::map<Key, Flow> flows_;
  std::deque<Key> turns_;
  std::deque<Pull> back_;
};

class Ndp final : public CongestionControlKind {
 public:
  void configure(const std::optional<Spec>& spec) override {
    const CongestionParameters in(spec);
    in.read("initial_window", initial_window_, std::int64_t{1}, std::int64_t{1} << 20);
    in.read("pull_rate", pull_rate_, 0.01, 1);
    in.finish();
  }
  void check(const FlowPath&) const override {}
  Services services() const override {
    Services result;
    result.acks = false;
    result.pulls = true;
    return result;
  }
  EcnMarking default_marking(Bandwidth, Time) const override { return {}; }
  /// By default the packets in flight in a round trip, as in the paper's section 3.2, and one more, for a full
  /// path.
  std::unique_ptr<CongestionControl> make(const FlowPath& path) const override {
    const double product = wire_bdp(path) / static_cast<double>(path.wire_packet().count());
    return std::make_unique<NdpSender>(
        static_cast<std::uint64_t>(initial_window_.value_or(static_cast<std::int64_t>(product) + 2)));
  }
  std::unique_ptr<ReceiverControl> make_receiver(Time packet_time) const override {
    const double spacing = static_cast<double>(packet_time.ps()) / pull_rate_;
    return std::make_unique<NdpReceiver>(Time::from_ps(static_cast<std::int64_t>(spacing)));
  }

 private:
  std::optional<std::int64_t> initial_window_;
  double pull_rate_ = 1;  // of that of full packets at the port
};

const Registration<CongestionControlKind, Ndp> ndp_registration(
    "ndp", "pulls of the receiver, of Handley et al. 2017; for trimming: true and load_balancing: spray");

}  // namespace
}  // namespace weft
