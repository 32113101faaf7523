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

/// A first window at line rate, then a packet for each pull.
class NdpSender final : public CongestionControl {
 public:
  explicit NdpSender(std::uint64_t initial_window) : initial_window_(initial_window), max_(initial_window) {}

  Allowance start(Time) override { return allowance(); }
  Allowance on_ack(const AckEvent&) override { return allowance(); }
  Allowance on_cnp(Moment) override { return allowance(); }
  Allowance on_timer(Moment) override { return allowance(); }
  Allowance on_bytes_sent(Moment) override { return allowance(); }
  /// A trimmed packet's header has requested a pull. A packet that was lost as a whole has not: it starts again.
  Allowance on_loss(const LossEvent& loss) override {
    if (loss.timeout) max_ = std::max(max_, loss.at.sent_packets + initial_window_);
    return allowance();
  }
  Allowance on_pull(Moment, std::uint32_t packets) override {
    max_ += packets;
    return allowance();
  }

 private:
  Allowance allowance() const {
    Allowance result;
    result.max_packets = max_;
    return result;
  }

  const std::uint64_t initial_window_;
  std::uint64_t max_;
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
    back_.push_back({data.source, data.queue_pair, flow.rest});
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
