// SPDX-License-Identifier: GPL-2.0-only
#include "app/analysis/volume.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/reports/job_results.hpp"
#include "routing/algorithm/path.hpp"
#include "schedule/collective/countable.hpp"
#include "schedule/program/aggregation.hpp"
#include "support/basics/error.hpp"
#include "transport/messages/message.hpp"

namespace weft {
namespace {

// The traffic of one rank to one peer.
struct PairVolume {
  double messages = 0;
  double packets = 0;
  double credits = 0;
  double payload = 0;
  /// Communicators and channels that have a connection; sends are those of no communicator. Most pairs have one.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> connections;
};
using PeerVolumes = std::map<std::uint32_t, PairVolume>;

void add_messages(PairVolume& pair, double number, Bytes bytes, Bytes mtu, bool credits) {
  pair.messages += number;
  pair.packets += number * static_cast<double>(packet_count(bytes, mtu));
  if (credits) pair.credits += number;
  pair.payload += number * static_cast<double>(bytes.count());
}

void add_connection(PairVolume& pair, std::uint32_t communicator, std::uint32_t channel) {
  const std::pair connection{communicator, channel};
  if (std::find(pair.connections.rbegin(), pair.connections.rend(), connection) == pair.connections.rend())
    pair.connections.push_back(connection);
}

const NodeProperties& host_of(const Experiment& experiment, std::uint32_t rank) {
  return experiment.topology->graph.node(experiment.placement.host(rank));
}

Bytes mtu_between(const Experiment& experiment, std::uint32_t sender, std::uint32_t peer) {
  return experiment.network.mtu_between(host_of(experiment, sender), host_of(experiment, peer));
}

bool in_one_server(const Experiment& experiment, std::uint32_t sender, std::uint32_t peer) {
  const std::uint32_t server = host_of(experiment, sender).block;
  return server != no_block && server == host_of(experiment, peer).block;
}

void add_member(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, double times, std::uint32_t index,
                const Experiment& experiment, std::map<std::uint32_t, PeerVolumes>& of_rank) {
  const NetworkParameters& network = experiment.network;
  for (std::uint32_t lane = 0; lane < algorithm.lanes(call); ++lane) {
    const std::uint32_t channel = lane % algorithm.channels(call);
    const std::uint32_t sender = rank_of(algorithm, call, index, channel, experiment.placement);
    PeerVolumes& peers = of_rank[sender];
    const auto stream = algorithm.steps(call, index, lane);
    for (Step step; stream->next(step);) {
      for (std::uint32_t i = 0; i < step.send_count(); ++i) {
        const std::uint32_t peer = rank_of(algorithm, call, step.send_to(i), channel, experiment.placement);
        PairVolume& pair = peers[peer];
        const Bytes mtu = mtu_between(experiment, sender, peer);
        add_connection(pair, call.communicator->id(), channel);
        const std::int64_t whole = step.bytes / step.slice;
        const Bytes rest = step.bytes - whole * step.slice;
        const auto add = [&](std::int64_t number, Bytes slice) {
          add_messages(pair, times * static_cast<double>(number), wire_bytes(call.tuning.protocol, slice), mtu,
                       network.acks);
        };
        if (whole > 0) add(whole, step.slice);
        if (rest > Bytes(0)) add(1, rest);
      }
    }
  }
}

// Adds the messages of a rank; the first rank of a communicator also adds those of the aggregators.
void add_collective(const CollectiveCall& whole, double calls, Rank rank, const Experiment& experiment,
                    std::map<std::uint32_t, PeerVolumes>& of_rank) {
  const auto [call, parts] = countable(whole);
  const double times = calls * parts;
  const auto algorithm = find_collective(call.algorithm);
  const std::uint32_t index = call.communicator->index_of(rank);
  add_member(*algorithm, call, times, index, experiment, of_rank);
  const std::uint32_t members = call.communicator->size();
  for (std::uint32_t i = 0; index == 0 && i < algorithm->aggregators(call); ++i)
    add_member(*algorithm, call, times, members + i, experiment, of_rank);
}

/// Calls of one rank that have the same steps, whose steps are walked once: a layer's collectives come again with each
/// layer and micro-batch.
class RepeatedCalls {
 public:
  void add(const std::shared_ptr<const CollectiveCall>& call) {
    const Key key{call->communicator, call->kind,         call->size.count(), call->root,
                  call->algorithm,    call->blocks.get(), call->graph.get(),  call->tuning};
    auto [at, is_new] = calls_.try_emplace(key, Entry{call, 0});
    at->second.times += 1;
  }
  bool is_full() const { return calls_.size() >= max_calls; }
  /// Hands out (call, number of such calls), and forgets them.
  template <typename Visit>
  void take(const Visit& visit) {
    for (const auto& [key, entry] : calls_) visit(*entry.call, entry.times);
    calls_.clear();
  }

 private:
  static constexpr std::size_t max_calls = 4096;
  /// All that steps depend on. The entry's call keeps what these addresses point to.
  using Key = std::tuple<const Communicator*, CollectiveKind, std::int64_t, std::uint32_t, std::string,
                         const BlockTable*, const ChannelGraph*, CollectiveTuning>;
  struct Entry {
    std::shared_ptr<const CollectiveCall> call;
    double times = 0;
  };
  std::map<Key, Entry> calls_;
};

/// A rank, and the number of ranks that it represents.
struct Representative {
  std::uint32_t rank = 0;
  double weight = 1;
};

/// Some of the ranks, of which each represents as many. Their distance is coprime to the number of ranks: whatever
/// repeats with a divisor of that number, such as the place in a server or below a leaf switch, comes as often among
/// them as among all. It is near the golden section of the number, which spreads them evenly also over what does not
/// repeat.
void choose(const std::vector<std::uint32_t>& ranks, std::size_t some, std::vector<Representative>& chosen) {
  constexpr double golden = 0.6180339887498949;
  const std::size_t all = ranks.size();
  auto distance = std::max<std::size_t>(1, static_cast<std::size_t>(golden * static_cast<double>(all)));
  while (std::gcd(distance, all) != 1) ++distance;
  for (std::size_t i = 0; i < some; ++i)
    chosen.push_back({ranks[i * distance % all], static_cast<double>(all) / static_cast<double>(some)});
}

std::vector<Representative> representatives(const Workload& workload) {
  constexpr std::uint32_t few = 1024;                     // ranks that are all visited
  constexpr std::uint32_t max = 256;                      // of larger jobs, unless they have more kinds
  constexpr std::uint64_t many = std::uint64_t{1} << 28;  // messages that take too long to count one by one
  std::vector<Representative> chosen;
  const std::uint32_t ranks = workload.ranks(), kinds = workload.kind_count();
  const bool each_its_own = kinds == ranks;
  // Nothing is known about the ranks of a trace.
  if (ranks <= few || (each_its_own && (workload.from_user() || workload.estimate().messages < many))) {
    for (std::uint32_t r = 0; r < ranks; ++r) chosen.push_back({r, 1});
    return chosen;
  }
  if (each_its_own) {
    // So many messages are those of ranks that each send to many others, or of rings: ranks of a job stand for its
    // others.
    for (const JobInfo& job : workload.jobs()) {
      std::vector<std::uint32_t> all(job.ranks);
      std::iota(all.begin(), all.end(), job.first_rank);
      choose(all, job.ranks <= few ? job.ranks : max, chosen);
    }
    return chosen;
  }
  std::vector<std::vector<std::uint32_t>> of_kind(kinds);
  for (std::uint32_t r = 0; r < ranks; ++r) of_kind[workload.kind_of(Rank(r))].push_back(r);
  const std::size_t of_each = std::max(1U, max / kinds);
  for (const auto& all : of_kind) choose(all, std::min(of_each, all.size()), chosen);
  return chosen;
}

std::string kind_of_operation(const Operation& operation) {
  if (operation.kind == Operation::Kind::collective) return std::string(to_text(operation.call->kind));
  return operation.kind == Operation::Kind::compute ? "compute"
         : operation.kind == Operation::Kind::send  ? "send"
                                                    : "recv";
}

constexpr std::uint64_t max_operations = 100'000'000;  // of a rank

std::uint64_t rounded(double value) {
  return static_cast<std::uint64_t>(std::llround(std::min(value, 0x1.fffffffffffffp62)));
}

/// Sums of weighted counts, rounded once.
class VolumeCounts {
 public:
  explicit VolumeCounts(const Experiment& experiment)
      : experiment_(experiment), wire_(experiment.topology->link_classes.size()) {}

  /// All that a rank does. Its calls also say what switches send for it.
  void add_rank(const Representative& chosen) {
    std::map<std::uint32_t, PeerVolumes> of_sender;
    add_operations(chosen, of_sender);
    for (const auto& [sender, to] : of_sender)
      for (const auto& [peer, pair] : to) add_pair(sender, peer, pair, chosen.weight);
  }

  Volume volume() const {
    Volume result;
    result.messages = rounded(messages_);
    result.connections = rounded(connections_);
    result.payload = Bytes(static_cast<std::int64_t>(rounded(payload_)));
    result.data_packets = rounded(data_packets_);
    result.control_packets = rounded(control_packets_);
    result.packet_hops = rounded(packet_hops_);
    result.hops_inside_servers = rounded(hops_inside_servers_);
    result.operations = rounded(operations_);
    result.busiest_compute = busiest_compute_;
    for (const auto& [kind, count] : of_kind_) result.operations_of_kind[kind] = rounded(count);
    for (const double wire : wire_) result.wire_by_class.emplace_back(static_cast<std::int64_t>(rounded(wire)));
    return result;
  }

 private:
  void add_operations(const Representative& chosen, std::map<std::uint32_t, PeerVolumes>& of_sender) {
    PeerVolumes& peers = of_sender[chosen.rank];
    Time compute;
    std::uint64_t operations = 0;
    RepeatedCalls calls;
    const auto add_calls = [&] {
      calls.take([&](const CollectiveCall& call, double times) {
        add_collective(call, times, Rank(chosen.rank), experiment_, of_sender);
      });
    };
    const auto program = experiment_.workload->program(Rank(chosen.rank));
    for (Operation operation; program->next(operation); operation = Operation()) {
      operations_ += chosen.weight;
      of_kind_[kind_of_operation(operation)] += chosen.weight;
      if (++operations > max_operations) throw too_many_operations(chosen.rank);
      if (operation.kind == Operation::Kind::compute && operation.worker == Worker::device)
        compute = bounded_sum(compute, operation.duration);
      if (operation.kind == Operation::Kind::send) {
        const Bytes mtu = mtu_between(experiment_, chosen.rank, operation.peer.value());
        add_messages(peers[operation.peer.value()], 1, operation.bytes, mtu, false);
        add_connection(peers[operation.peer.value()], no_slot, 0);
      }
      if (operation.kind == Operation::Kind::collective) {
        calls.add(operation.call);
        if (calls.is_full()) add_calls();
      }
    }
    add_calls();
    busiest_compute_ = std::max(busiest_compute_, compute);
  }

  InputError too_many_operations(std::uint32_t rank) const {
    return InputError({experiment_.path, 0},
                      fmt::format("rank {} has more than {} operations, which are counted one by one; expected fewer "
                                  "starts or iterations, or use `weft run`, which counts nothing",
                                  rank, max_operations));
  }

  void add_pair(std::uint32_t sender, std::uint32_t peer, const PairVolume& pair, double weight) {
    const NetworkParameters& network = experiment_.network;
    const double control = (network.acks ? pair.packets : 0) + pair.credits;
    messages_ += weight * pair.messages;
    connections_ += weight * static_cast<double>(pair.connections.size());
    payload_ += weight * pair.payload;
    data_packets_ += weight * pair.packets;
    control_packets_ += weight * control;
    const double wire = pair.payload + pair.packets * static_cast<double>(network.data_overhead().count()) +
                        control * static_cast<double>(network.control_wire().count());
    // Control packets take a path of the same length and classes the other way.
    const auto path = trace_path(*experiment_.topology, *experiment_.routing,
                                 RouteRequest{experiment_.placement.host(sender), experiment_.placement.host(peer), 0});
    const double hops = weight * (pair.packets + control) * static_cast<double>(path.size());
    packet_hops_ += hops;
    if (in_one_server(experiment_, sender, peer)) hops_inside_servers_ += hops;
    for (const auto& hop : path) wire_[experiment_.topology->link_class[hop.directed_link / 2]] += weight * wire;
  }

  const Experiment& experiment_;
  double messages_ = 0, connections_ = 0, payload_ = 0, data_packets_ = 0, control_packets_ = 0, packet_hops_ = 0,
         hops_inside_servers_ = 0, operations_ = 0;
  std::vector<double> wire_;
  std::map<std::string, double> of_kind_;
  Time busiest_compute_;
};

}  // namespace

Volume expected_volume(const Experiment& experiment, Progress& progress) {
  const auto jobs = experiment.workload->jobs();
  const auto chosen = representatives(*experiment.workload);
  VolumeCounts counts(experiment);
  double visited = 0;
  for (const Representative& one : chosen) {
    progress.update(visited++ / static_cast<double>(chosen.size()), "ranks counted");
    // The amount of a background job is not known in advance.
    if (!jobs[job_of_rank(jobs, one.rank)].background) counts.add_rank(one);
  }
  progress.finish();
  Volume volume = counts.volume();
  if (chosen.size() < experiment.workload->ranks()) volume.walked = static_cast<std::uint32_t>(chosen.size());
  return volume;
}

}  // namespace weft
