// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `traffic`: synthetic flows, sent as one-sided writes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"
#include "units/text.hpp"
#include "workloads/kinds/flow_sizes.hpp"
#include "workloads/kinds/traffic_pattern.hpp"
#include "workloads/kinds/traffic_starts.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Entities of random numbers from here on: sizes of the flows of each rank.
constexpr std::uint64_t size_entity = std::uint64_t{1} << 57;

/// A flow's bytes, split evenly over queue pairs; the first ones take the remainder.
struct FlowShape {
  FlowSizes sizes;
  std::uint32_t queue_pairs = 1;
  bool reuse_queue_pairs = true;  ///< flows of a rank to the same destination take the same ones
  std::uint64_t seed = 1;

  Bytes size(std::uint32_t rank, std::uint64_t flow) const {
    return sizes.fixed() ? sizes.largest() : sizes.quantile(random_unit(seed, size_entity + rank, flow));
  }
  /// Queue pairs without a byte send nothing, but an empty flow is one empty message.
  std::uint32_t messages(Bytes size) const {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(size.count(), 1, queue_pairs));
  }
  Bytes share(Bytes size, std::uint32_t queue_pair) const {
    return size / std::int64_t{queue_pairs} + Bytes(queue_pair < size.count() % queue_pairs ? 1 : 0);
  }
  /// Mean of payload, and the overhead of each packet; an empty message is one packet. Of a distribution as if flows
  /// had a byte for each queue pair.
  Bytes wire(const WorkloadContext& context) const {
    if (!sizes.fixed())
      return Bytes(
          std::llround(sizes.mean() + static_cast<double>(queue_pairs) * sizes.mean_packets(context.mtu * queue_pairs) *
                                          static_cast<double>(context.packet_overhead.count())));
    const Bytes size = sizes.largest();
    unsigned __int128 packets = 0;
    for (std::uint32_t q = 0; q < messages(size); ++q)
      packets += static_cast<unsigned __int128>(
          std::max<std::int64_t>(1, (share(size, q).count() - 1) / context.mtu.count() + 1));
    return saturated(static_cast<unsigned __int128>(size.count()) +
                     packets * static_cast<unsigned __int128>(context.packet_overhead.count()));
  }
};

/// What a source puts on its port at each start, on average: if all have the same starts, only some of them send.
Bytes wire_at_start(const TrafficPattern& pattern, std::uint32_t rank, std::uint32_t ranks, Bytes flow_wire) {
  if (!pattern.common_starts())
    return saturated(static_cast<unsigned __int128>(flow_wire.count()) * pattern.flows(rank));
  return saturated(static_cast<unsigned __int128>(flow_wire.count()) * pattern.all_flows() / ranks);
}

/// At each start: all flows of the rank, each with all its messages. Nothing but the position is kept.
class TrafficProgram : public RankProgram {
 public:
  TrafficProgram(const TrafficPattern& pattern, const TrafficStarts& starts, const FlowShape& shape, std::uint32_t rank,
                 Bytes wire)
      : pattern_(pattern),
        starts_(starts),
        shape_(shape),
        rank_(rank),
        flows_(pattern.flows(rank)),
        interval_ps_(starts.interval_ps(wire)) {}

  bool next(Operation& operation) override {
    if (flows_ == 0 || (flow_ == 0 && message_ == 0 && !next_start())) return false;
    const std::uint64_t flow = (clock_.starts - 1) * flows_ + flow_;
    if (message_ == 0) size_ = shape_.size(rank_, flow);
    operation = Operation{};
    operation.id = id_++;
    operation.kind = Operation::Kind::send;
    operation.not_before = clock_.time;
    operation.peer = Rank(pattern_.destination_at(rank_, flow_, clock_.starts - 1));
    operation.bytes = shape_.share(size_, message_);
    operation.queue_pair =
        message_ + (shape_.reuse_queue_pairs ? 0 : static_cast<std::uint32_t>(flow * shape_.queue_pairs));
    advance();
    return true;
  }
  bool accepts_unexpected() const override { return true; }
  bool in_order_of_time() const override { return true; }

 private:
  bool next_start() {
    const std::uint32_t source = pattern_.common_starts() ? 0 : rank_;
    do {
      if (!starts_.next(clock_, source, interval_ps_)) return false;
    } while (!pattern_.sends_at(rank_, clock_.starts - 1));
    return true;
  }
  void advance() {
    if (++message_ < shape_.messages(size_)) return;
    message_ = 0;
    if (++flow_ < flows_) return;
    flow_ = 0;
  }

  const TrafficPattern& pattern_;
  const TrafficStarts& starts_;
  const FlowShape& shape_;
  std::uint32_t rank_;
  std::uint32_t flows_;
  double interval_ps_;
  Bytes size_;  // of the flow under way
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
        shape_(std::move(shape)),
        flow_wire_(flow_wire) {}

  std::uint32_t ranks() const override { return ranks_; }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t) const override { return {}; }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks_, "rank {} of {}", rank.value(), ranks_);
    return std::make_unique<TrafficProgram>(*pattern_, starts_, shape_, rank.value(),
                                            wire_at_start(*pattern_, rank.value(), ranks_, flow_wire_));
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    const unsigned __int128 flows = all_flows();
    const bool fixed = shape_.sizes.fixed();
    const std::uint32_t messages = fixed ? shape_.messages(shape_.sizes.largest()) : shape_.queue_pairs;
    estimate.messages = static_cast<std::uint64_t>(saturated(flows * messages).count());
    const auto size = fixed ? shape_.sizes.largest().count() : std::llround(shape_.sizes.mean());
    estimate.bytes = saturated(static_cast<unsigned __int128>(size) *
                               std::min<unsigned __int128>(flows, std::numeric_limits<std::int64_t>::max()));
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    const std::uint64_t count = starts_of(busiest());
    const FlowSizes& sizes = shape_.sizes;
    const std::string size = sizes.fixed()
                                 ? to_text(sizes.largest())
                                 : fmt::format("{} on average, up to {}", to_text(Bytes(std::llround(sizes.mean()))),
                                               to_text(sizes.largest()));
    return {{"pattern", name_},
            {"flows per start", grouped(static_cast<std::int64_t>(pattern_->all_flows()))},
            {"starts", count > 0 ? grouped(static_cast<std::int64_t>(count)) : "without end"},
            {"flow size", size},
            {"queue pairs per flow", std::to_string(shape_.queue_pairs)}};
  }

 private:
  /// A rank of those that issue most flows at a start.
  std::uint32_t busiest() const {
    std::uint32_t found = 0;
    for (std::uint32_t rank = 1; rank < ranks_; ++rank)
      if (pattern_->flows(rank) > pattern_->flows(found)) found = rank;
    return found;
  }
  std::uint64_t starts_of(std::uint32_t rank) const {
    return starts_.expected_count(starts_.interval_ps(wire_at_start(*pattern_, rank, ranks_, flow_wire_)));
  }
  /// Of the whole run; 0 without an end.
  unsigned __int128 all_flows() const {
    if (pattern_->common_starts()) return static_cast<unsigned __int128>(pattern_->all_flows()) * starts_of(0);
    unsigned __int128 sum = 0;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank)
      if (pattern_->flows(rank) > 0) sum += static_cast<unsigned __int128>(pattern_->flows(rank)) * starts_of(rank);
    return sum;
  }

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

std::unique_ptr<TrafficPattern> read_incast(const Spec& spec, std::uint32_t ranks, std::uint64_t seed) {
  const auto destination = spec.find("destination");
  const auto found = spec.find("sources");
  const std::uint32_t sources = found ? static_cast<std::uint32_t>(found->integer(1, ranks - 1)) : ranks - 1;
  if (destination && destination->text() == "random") return random_incast_pattern(ranks, sources, seed);
  return incast_pattern(ranks, destination ? require_rank(*destination, destination->integer(), ranks) : 0, sources);
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
                 : name == "incast"    ? read_incast(spec, ranks, context.seed)
                 : name == "pairs"     ? read_pairs(spec, ranks)
                 : name == "uniform"   ? read_uniform(spec, ranks, context.seed)
                                       : all_to_all_pattern(ranks);
    FlowShape shape;
    shape.seed = context.seed;
    const auto sizes = spec.find("sizes");
    if (sizes && spec.find("size")) throw sizes->error("both 'size' and 'sizes' are given; give one of them");
    shape.sizes = sizes ? FlowSizes::read(*sizes, context.directory) : FlowSizes(spec.at("size").bytes());
    if (const auto pairs = spec.find("queue_pairs"))
      shape.queue_pairs = static_cast<std::uint32_t>(pairs->integer(1, 65536));
    if (const auto reuse = spec.find("reuse_queue_pairs")) shape.reuse_queue_pairs = reuse->boolean();
    TrafficStarts starts = TrafficStarts::read(spec, context);
    const Bytes wire = shape.wire(context);
    Bytes max;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) max = std::max(max, wire_at_start(*flows, rank, ranks, wire));
    starts.require_range(max, spec);
    spec.finish();
    return std::make_unique<TrafficWorkload>(ranks, name, std::move(flows), std::move(starts), std::move(shape), wire);
  }
};

const Registration<WorkloadReader, TrafficReader> traffic_registration(
    "traffic", "permutation, incast, all-to-all, uniform or listed flows");

}  // namespace
}  // namespace weft
