// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `traffic`: synthetic flows, sent as one-sided writes.
#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "units/text.hpp"
#include "workloads/kinds/traffic_pattern.hpp"
#include "workloads/kinds/traffic_starts.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// A flow's bytes, split evenly over queue pairs; the first ones take the remainder.
struct FlowShape {
  Bytes size;
  std::uint32_t queue_pairs = 1;

  /// Queue pairs without a byte send nothing, but an empty flow is one empty message.
  std::uint32_t messages() const {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(size.count(), 1, queue_pairs));
  }
  Bytes share(std::uint32_t queue_pair) const {
    return size / std::int64_t{queue_pairs} + Bytes(queue_pair < size.count() % queue_pairs ? 1 : 0);
  }
  /// Payload, and the overhead of each packet; an empty message is one packet.
  Bytes wire(const WorkloadContext& context) const {
    unsigned __int128 packets = 0;
    for (std::uint32_t q = 0; q < messages(); ++q)
      packets +=
          static_cast<unsigned __int128>(std::max<std::int64_t>(1, (share(q).count() - 1) / context.mtu.count() + 1));
    return saturated(static_cast<unsigned __int128>(size.count()) +
                     packets * static_cast<unsigned __int128>(context.packet_overhead.count()));
  }
};

/// At each start: all flows of the rank, each with all its messages. Nothing but the position is kept.
class TrafficProgram : public RankProgram {
 public:
  TrafficProgram(const TrafficPattern& pattern, const TrafficStarts& starts, FlowShape shape, std::uint32_t rank,
                 Bytes flow_wire)
      : pattern_(pattern),
        starts_(starts),
        shape_(shape),
        rank_(rank),
        flows_(pattern.flows(rank)),
        interval_ps_(starts.interval_ps(flow_wire * std::int64_t{flows_})) {}

  bool next(Operation& operation) override {
    if (flows_ == 0 || (flow_ == 0 && message_ == 0 && !starts_.next(clock_, rank_, interval_ps_))) return false;
    operation = Operation{};
    operation.id = id_++;
    operation.kind = Operation::Kind::send;
    operation.not_before = clock_.time;
    operation.peer = Rank(pattern_.destination_at(rank_, flow_, clock_.starts - 1));
    operation.bytes = shape_.share(message_);
    operation.queue_pair = message_;
    advance();
    return true;
  }
  bool accepts_unexpected() const override { return true; }
  bool in_order_of_time() const override { return true; }

 private:
  void advance() {
    if (++message_ < shape_.messages()) return;
    message_ = 0;
    if (++flow_ < flows_) return;
    flow_ = 0;
  }

  const TrafficPattern& pattern_;
  const TrafficStarts& starts_;
  FlowShape shape_;
  std::uint32_t rank_;
  std::uint32_t flows_;
  double interval_ps_;
  std::uint64_t id_ = 0;
  std::uint32_t flow_ = 0;
  std::uint32_t message_ = 0;
  TrafficStarts::Clock clock_;
};

class TrafficWorkload : public Workload {
 public:
  TrafficWorkload(std::uint32_t ranks, std::string name, std::unique_ptr<TrafficPattern> pattern, TrafficStarts starts,
                  FlowShape shape, Bytes flow_wire)
      : ranks_(ranks),
        name_(std::move(name)),
        pattern_(std::move(pattern)),
        starts_(std::move(starts)),
        shape_(shape),
        flow_wire_(flow_wire) {}

  std::uint32_t ranks() const override { return ranks_; }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t) const override { return {}; }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks_, "rank {} of {}", rank.value(), ranks_);
    return std::make_unique<TrafficProgram>(*pattern_, starts_, shape_, rank.value(), flow_wire_);
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    const unsigned __int128 flows =
        static_cast<unsigned __int128>(pattern_->all_flows()) * starts_.expected_count(starts_.interval_ps(flow_wire_));
    estimate.messages = static_cast<std::uint64_t>(saturated(flows * shape_.messages()).count());
    estimate.bytes = saturated(static_cast<unsigned __int128>(shape_.size.count()) *
                               std::min<unsigned __int128>(flows, std::numeric_limits<std::int64_t>::max()));
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    const std::uint64_t count = starts_.expected_count(starts_.interval_ps(flow_wire_));
    return {{"pattern", name_},
            {"ranks", std::to_string(ranks_)},
            {"flows per start", grouped(static_cast<std::int64_t>(pattern_->all_flows()))},
            {"starts", count > 0 ? grouped(static_cast<std::int64_t>(count)) : "without end"},
            {"flow size", to_text(shape_.size)},
            {"queue pairs per flow", std::to_string(shape_.queue_pairs)}};
  }

 private:
  std::uint32_t ranks_;
  std::string name_;
  std::unique_ptr<TrafficPattern> pattern_;
  TrafficStarts starts_;
  FlowShape shape_;
  Bytes flow_wire_;
};

std::uint32_t require_rank(const Spec& value, std::int64_t rank, std::uint32_t ranks) {
  if (rank < 0 || rank >= ranks)
    throw value.error(fmt::format("rank {} is out of range: there are ranks 0 to {}", rank, ranks - 1));
  return static_cast<std::uint32_t>(rank);
}

void require_two_ranks(const Spec& where, const std::string& pattern, std::uint32_t ranks) {
  if (ranks < 2) throw where.error(fmt::format("the pattern '{}' needs at least 2 ranks, found {}", pattern, ranks));
}

std::unique_ptr<TrafficPattern> read_permutation(const Spec& spec, std::uint32_t ranks, std::uint64_t seed) {
  const auto shift = spec.find("shift");
  if (!shift) return permutation_pattern(ranks, seed);
  const std::int64_t by = ((shift->integer() % ranks) + ranks) % ranks;
  if (by == 0) throw shift->error(fmt::format("a shift by {} of {} ranks sends to itself", shift->integer(), ranks));
  return shift_pattern(ranks, static_cast<std::uint32_t>(by));
}

std::unique_ptr<TrafficPattern> read_uniform(const Spec& spec, std::uint32_t ranks, std::uint64_t seed) {
  const auto size = spec.find("group");
  const auto shift = spec.find("shift");
  if (shift && !size) throw shift->error("found without 'group', the number of consecutive ranks that form a group");
  const std::uint32_t group = size ? static_cast<std::uint32_t>(size->integer(1, ranks)) : ranks;
  if (ranks % group != 0)
    throw size->error(fmt::format("groups of {} ranks do not fit {} ranks; expected a divisor", group, ranks));
  const std::uint32_t groups = ranks / group;
  const std::int64_t by = shift ? ((shift->integer() % groups) + groups) % groups : 0;
  if (group == 1 && by == 0) throw size->error("each rank is a group of its own and would send to itself");
  return uniform_pattern(ranks, group, static_cast<std::uint32_t>(by), seed);
}

std::unique_ptr<TrafficPattern> read_incast(const Spec& spec, std::uint32_t ranks) {
  const auto destination = spec.find("destination");
  const auto sources = spec.find("sources");
  return incast_pattern(ranks, destination ? require_rank(*destination, destination->integer(), ranks) : 0,
                        sources ? static_cast<std::uint32_t>(sources->integer(1, ranks - 1)) : ranks - 1);
}

std::unique_ptr<TrafficPattern> read_pairs(const Spec& spec, std::uint32_t ranks) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Spec& pair : spec.at("pairs").items()) {
    if (!pair.is_sequence() || pair.size() != 2) throw pair.error("a pair is [source, destination], such as [0, 1]");
    const std::uint32_t source = require_rank(pair[0], pair[0].integer(), ranks);
    const std::uint32_t destination = require_rank(pair[1], pair[1].integer(), ranks);
    if (source == destination) throw pair.error(fmt::format("rank {} sends to itself", source));
    pairs.emplace_back(source, destination);
  }
  return pairs_pattern(ranks, pairs);
}

class TrafficReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const Spec pattern = spec.at("pattern");
    const std::string name = pattern.one_of({"permutation", "incast", "all_to_all", "pairs", "uniform"});
    const auto count = spec.find("ranks");
    const std::uint32_t ranks = count ? require_ranks(*count, count->integer(), context) : context.hosts;
    require_two_ranks(pattern, name, ranks);
    auto flows = name == "permutation" ? read_permutation(spec, ranks, context.seed)
                 : name == "incast"    ? read_incast(spec, ranks)
                 : name == "pairs"     ? read_pairs(spec, ranks)
                 : name == "uniform"   ? read_uniform(spec, ranks, context.seed)
                                       : all_to_all_pattern(ranks);
    FlowShape shape;
    shape.size = spec.at("size").bytes();
    if (const auto pairs = spec.find("queue_pairs"))
      shape.queue_pairs = static_cast<std::uint32_t>(pairs->integer(1, 65536));
    TrafficStarts starts = TrafficStarts::read(spec, context);
    const Bytes wire = shape.wire(context);
    std::uint32_t max = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) max = std::max(max, flows->flows(rank));
    starts.require_range(saturated(static_cast<unsigned __int128>(wire.count()) * max), spec);
    spec.finish();
    return std::make_unique<TrafficWorkload>(ranks, name, std::move(flows), std::move(starts), shape, wire);
  }
};

const Registration<WorkloadReader, TrafficReader> traffic_registration(
    "traffic", "permutation, incast, all-to-all, uniform or listed flows");

}  // namespace
}  // namespace weft
