// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/recording.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include "app/reports/call_times.hpp"
#include "app/reports/job_results.hpp"
#include "results/hdf5/hdf5_recorder.hpp"
#include "results/tables/fingerprint.hpp"
#include "results/tables/result_tables.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

std::vector<LinkRecord> link_records(const Experiment& experiment, const HostNetwork& network, Time simulated) {
  const Topology& topology = *experiment.topology;
  std::vector<LinkRecord> rows;
  for (const LinkCounters& counters : network.link_counters()) {
    const LinkId link(counters.directed_link / 2);
    LinkRecord row;
    row.id = counters.directed_link;
    row.from = counters.from.value();
    row.to = counters.to.value();
    row.from_port = counters.from_port;
    row.rate = counters.times.rate.bps();
    row.delay = counters.times.delay.ps();
    row.bytes = counters.bytes.count();
    row.payload_bytes = counters.payload_bytes.count();
    row.packets = counters.packets;
    row.data_packets = counters.data_packets;
    row.busy = counters.busy_until(simulated).ps();
    row.slowed = std::min(counters.slowed, counters.busy_until(simulated)).ps();
    row.peak_queue = counters.peak_queue_bytes.count();
    row.dropped = counters.dropped;
    row.lost = counters.lost;
    row.mean_queue = simulated > Time() ? counters.queue_byte_ps / static_cast<double>(simulated.ps()) : 0;
    row.from_name = topology.graph.name(counters.from);
    row.to_name = topology.graph.name(counters.to);
    row.link_class = topology.link_classes[topology.link_class[link.value()]];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LinkClassRecord> link_class_records(Simulation& simulation, Time end) {
  std::vector<LinkClassRecord> rows;
  if (!simulation.has_fabric()) return rows;
  for (const LinkClassCounters& c : simulation.fabric().results().class_counters(end))
    rows.push_back({c.directed_link, c.lane, c.priority, c.packets, c.frame_bytes.count(), c.peak_queue_bytes.count(),
                    c.marked, c.dropped, c.trimmed, c.paused.ps(), c.pauses_received, c.stopped.ps(), c.pauses_sent});
  return rows;
}

std::vector<LinkWaitRecord> link_wait_records(const Fabric& fabric) {
  const auto job = [](std::uint16_t number) {
    return number == JobsOfHosts::no_job ? std::int64_t{-1} : std::int64_t{number};
  };
  std::vector<LinkWaitRecord> rows;
  for (const auto& [link, wait] : fabric.results().link_waits())
    rows.push_back(
        {link, job(wait.waiter), job(wait.ahead), wait.waits, wait.time.ps(), wait.first.ps(), wait.last.ps()});
  return rows;
}

std::vector<LinkPauseRecord> link_pause_records(const Fabric& fabric, Time end) {
  std::vector<LinkPauseRecord> rows;
  for (const auto& [link, lane, by, cause] : fabric.results().link_pauses(end))
    rows.push_back({link, lane, by, cause.stops, cause.time.ps(), cause.first.ps(), cause.last.ps()});
  return rows;
}

std::vector<QueueDepthRecord> queue_depth_records(const Fabric& fabric, Time end) {
  std::vector<QueueDepthRecord> rows;
  for (const QueueDepth& d : fabric.results().queue_depths(end))
    rows.push_back({d.directed_link, d.lane, d.priority, d.occupied.ps(), d.peak.count(), d.mean, d.p50.count(),
                    d.p90.count(), d.p99.count(), d.p999.count()});
  return rows;
}

/// As in files: -1 is unlimited.
std::int64_t window_of(Bytes window) { return window == Bytes::max() ? -1 : window.count(); }

std::vector<QueuePairRecord> queue_pair_records(const Fabric& fabric) {
  std::vector<QueuePairRecord> rows;
  for (const QueuePairCounters& c : fabric.results().queue_pair_counters())
    rows.push_back({c.host.value(), c.number, c.destination.value(), c.packets, c.repeated, c.timeouts, c.cnps,
                    c.rate.bps(), window_of(c.window), c.messages, c.bytes.count()});
  return rows;
}

std::vector<LinkSample> samples(const std::vector<PortSample>& taken) {
  std::vector<LinkSample> rows;
  rows.reserve(taken.size());
  for (const PortSample& s : taken) rows.push_back({s.directed_link, s.interval, s.busy.ps(), s.queue_bytes.count()});
  return rows;
}

std::vector<QueuePairRate> rates(const std::vector<QueuePairSample>& taken) {
  std::vector<QueuePairRate> rows;
  rows.reserve(taken.size());
  for (const QueuePairSample& s : taken)
    rows.push_back({s.host.value(), s.number, s.destination.value(), s.interval, s.rate.bps(), window_of(s.window),
                    s.in_flight.count(), s.sent.count()});
  return rows;
}

std::vector<ReceiverRecord> receiver_records(const Fabric& fabric) {
  std::vector<ReceiverRecord> rows;
  for (const ReceiverCounters& c : fabric.results().receiver_counters())
    rows.push_back({c.host.value(), c.source.value(), c.number, c.packets, c.out_of_order, c.widest_gap, c.duplicates});
  return rows;
}

template <class Row>
std::uint64_t sum_of(const std::vector<Row>& rows) {
  return fingerprint_sum(std::span<const Row>(rows));
}

/// Bytes. Not getrusage(): the kernel counts what the process that has started this one had, too (proc(5), VmHWM;
/// Linux, fs/exec.c, exec_mmap()). Without /proc it is 0.
std::uint64_t largest_resident_set() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(std::strlen("VmHWM:"))) * 1024;
  return 0;
}

}  // namespace

CollectiveDirectory collective_directory(const Workload& workload) {
  return {workload.call_count(), [&workload, jobs = workload.jobs()](std::uint32_t id) {
            const CollectiveCall call = workload.call(id);
            return CollectiveInfo{id,
                                  std::string(to_text(call.kind)),
                                  call.algorithm,
                                  call.label,
                                  call.communicator->size(),
                                  counted_bytes(call),
                                  bus_bandwidth_factor(call.kind, call.communicator->size()),
                                  job_of_call(jobs, id)};
          }};
}

namespace {

/// What each counted table adds to a run's fingerprint: a table that is declared to count has to be listed here.
class FingerprintParts {
 public:
  FingerprintParts(const Experiment& experiment, Simulation& simulation, const RunFacts& facts)
      : experiment_(experiment), simulation_(simulation), end_(facts.simulated) {}

  /// Collective: of all processes.
  template <class... Rows>
  std::uint64_t sum(std::type_identity<std::tuple<Rows...>>) {
    std::uint64_t total = 0;
    ((total += sum_of_table<Rows>()), ...);
    return total;
  }

 private:
  template <class Row>
  std::uint64_t sum_of_table() {
    // For collectives the parts are counted: their sums belong to no single process.
    if constexpr (std::is_same_v<Row, CollectiveResult>)
      return part(std::type_identity<CollectivePart>());
    else if constexpr (Counted<Row>)
      return part(std::type_identity<Row>());
    else
      return 0;
  }
  std::uint64_t all(std::uint64_t mine) { return simulation_.group().sum(mine); }
  std::uint64_t part(std::type_identity<MessageRecord>) {
    return all(simulation_.runtime().records().messages.fingerprint());
  }
  std::uint64_t part(std::type_identity<CollectivePart>) {
    return all(simulation_.runtime().records().collectives.fingerprint());
  }
  std::uint64_t part(std::type_identity<LinkRecord>) {
    return all(sum_of(link_records(experiment_, simulation_.network(), end_)));
  }
  std::uint64_t part(std::type_identity<LinkClassRecord>) { return all(sum_of(link_class_records(simulation_, end_))); }
  std::uint64_t part(std::type_identity<RankRecord>) { return all(sum_of(simulation_.runtime().rank_records(end_))); }
  std::uint64_t part(std::type_identity<TransferRecord>) {
    return sum_of(simulation_.transfers().whole_rows(simulation_.group()));
  }

  const Experiment& experiment_;
  Simulation& simulation_;
  Time end_;
};

}  // namespace

std::uint64_t run_fingerprint(const Experiment& experiment, Simulation& simulation, const RunFacts& facts) {
  return FingerprintParts(experiment, simulation, facts).sum(std::type_identity<AllTables>());
}

Recording::Recording(Hdf5Recorder& recorder, const Experiment& experiment, Simulation& simulation)
    : recorder_(recorder), experiment_(experiment), simulation_(simulation), jobs_(experiment.workload->jobs()) {}

std::size_t Recording::rows_held() const {
  const std::size_t samples = simulation_.has_fabric() ? simulation_.fabric().results().samples_held() : 0;
  return simulation_.runtime().records().messages.rows().size() + samples;
}

// Those that the last portion had to keep are no reason for the next one.
bool Recording::portion_due() const { return rows_held() >= experiment_.output.rows_in_memory + kept_rows_; }

void Recording::append_messages(bool last) {
  MessageLog& log = simulation_.runtime().records().messages;
  recorder_.append(log.rows(), last, 0, experiment_.output.attribution == Attribution::full);
  log.forget_rows();
}

// Interval by interval in pieces, after each of which a signal is heard: no table may be left half-written for long.
template <class Sample, class ToRows>
void Recording::append_series(std::vector<Sample> taken, Time interval, ToRows&& to_rows) {
  constexpr std::int64_t rows_at_once = 1'000'000;
  const ProcessGroup& group = simulation_.group();
  const std::int64_t pieces = group.maximum(static_cast<std::int64_t>(taken.size())) / rows_at_once + 1;
  std::int64_t first = INT64_MAX, last = -1;
  if (pieces > 1)
    for (const Sample& one : taken) {
      first = std::min<std::int64_t>(first, one.interval);
      last = std::max<std::int64_t>(last, one.interval);
    }
  first = group.minimum(first);
  last = group.maximum(last);
  for (std::int64_t piece = 1; piece < pieces; ++piece) {
    const std::int64_t end = first + (last - first) / pieces * piece;
    recorder_.append(to_rows(take_of_intervals_before(taken, end)), false, interval.ps());
    if (group.sum(interrupted() ? 1 : 0) > 0) {
      left_out_ += group.sum(taken.size());
      return;
    }
  }
  recorder_.append(to_rows(taken), false, interval.ps());
}

// Series: only of intervals that have ended while something still happened, so that none lasts longer than the run. An
// event of `now` may be of no effect, and the run may have ended before.
void Recording::write_portion(Time now) {
  if (simulation_.group().sum(interrupted() ? 1 : 0) > 0) return;  // write_rest() follows, and has little time
  ++portions_;
  const OutputOptions& output = experiment_.output;
  if (output.messages.every > 0) append_messages(false);
  const Time ended = std::min(now, Time::from_ps(simulation_.group().maximum(simulation_.network().now().ps())));
  if (output.sampling > Time())
    append_series(simulation_.fabric().results().take_closed_samples(ended), output.sampling,
                  [](const std::vector<PortSample>& taken) { return samples(taken); });
  if (output.rates.interval > Time())
    append_series(simulation_.fabric().results().take_closed_queue_pair_samples(ended), output.rates.interval,
                  [](const std::vector<QueuePairSample>& taken) { return rates(taken); });
  kept_rows_ = rows_held();
}

// After a signal the file is to be closed within seconds. Where links are long against the interval, an epoch makes
// millions of rows at once, which take longer than that to write.
void Recording::write_rest_of_series(const RunFacts& facts) {
  constexpr std::uint64_t max_rows_after_signal = 2'000'000;  // a second of a processor
  const OutputOptions& output = experiment_.output;
  if (!simulation_.has_fabric()) return;
  Fabric& fabric = simulation_.fabric();
  const Time end = facts.simulated;
  if (facts.interrupted && left_out_ == 0) {
    const std::uint64_t rows = simulation_.group().sum(fabric.results().samples_until(end));
    if (rows > max_rows_after_signal) left_out_ = rows;
  }
  const bool write = left_out_ == 0;
  if (output.sampling > Time())
    recorder_.append(write ? samples(fabric.results().take_samples(end)) : std::vector<LinkSample>(), true,
                     output.sampling.ps());
  if (output.rates.interval > Time())
    recorder_.append(write ? rates(fabric.results().take_queue_pair_samples(end)) : std::vector<QueuePairRate>(), true,
                     output.rates.interval.ps());
}

std::uint64_t Recording::write_rest(const RunFacts& facts) {
  const OutputOptions& output = experiment_.output;
  RunRecords& records = simulation_.runtime().records();
  const Time end = facts.simulated;
  const std::uint64_t fingerprint = run_fingerprint(experiment_, simulation_, facts);
  shares_ =
      shares_of_run(*experiment_.workload, simulation_, end, !facts.interrupted && !facts.cut_short && !facts.outlived);
  recorder_.write_outcome(end.ps(), fingerprint);
  if (output.messages.every > 0) append_messages(true);
  const bool explained = output.attribution != Attribution::none;
  recorder_.write_collectives(records.collectives, collective_directory(*experiment_.workload), explained);
  recorder_.write(link_records(experiment_, simulation_.network(), end));
  if (simulation_.has_fabric() && explained) recorder_.write(link_wait_records(simulation_.fabric()));
  if (simulation_.has_fabric() && simulation_.fabric().buffered()) {
    recorder_.write(link_class_records(simulation_, end));
    if (explained) recorder_.write(link_pause_records(simulation_.fabric(), end));
    if (output.queue_depths) recorder_.write(queue_depth_records(simulation_.fabric(), end));
    if (output.queue_pairs) {
      recorder_.write(queue_pair_records(simulation_.fabric()));
      recorder_.write(receiver_records(simulation_.fabric()));
    }
  }
  write_rest_of_series(facts);
  auto ranks = simulation_.runtime().rank_records(end);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].job = job_of_rank(jobs_, ranks[i].rank);
    ranks[i].waiting = shares_.ranks[i].waiting;
  }
  job_rows_ = sum_up_jobs(jobs_, ranks, end, simulation_.group(), explained);
  job_shares_ = shares_of_jobs(job_rows_, ranks, shares_.ranks, simulation_.group());
  recorder_.write(simulation_.group().rank() == 0 ? job_rows_ : std::vector<JobRecord>(), 0, explained);
  recorder_.write(std::move(ranks), 0, explained);
  write_transfers();
  if (records.keep_operations.any) {
    recorder_.write(std::move(records.operations));
    recorder_.write(std::move(records.dependencies));
  }
  write_parallel(facts);
  return fingerprint;
}

void Recording::write_transfers() {
  const TransferLog& log = simulation_.transfers();
  if (log.size() == 0) return;
  transfer_rows_ = log.whole_rows(simulation_.group());
  recorder_.write(simulation_.group().rank() == 0 ? transfer_rows_ : std::vector<TransferRecord>());
  const Time interval = experiment_.output.sampling;
  if (interval > Time()) recorder_.write(log.samples(), interval.ps());
}

void Recording::write_parallel(const RunFacts& facts) {
  const HostNetwork& network = simulation_.network();
  ProcessRecord row;
  row.process = static_cast<std::uint32_t>(simulation_.group().rank());
  row.nodes = network.node_count();
  row.hosts = static_cast<std::uint32_t>(network.hosts().size());
  row.packet_hops = network.packet_hops();
  row.events = network.events();
  row.wait = facts.wait_seconds;
  row.wait_share = facts.wall_seconds > 0 ? facts.wait_seconds / facts.wall_seconds : 0;
  row.memory = network.memory_bytes();
  row.peak = largest_resident_set();
  const Partition& partition = simulation_.partition();
  const Time lookahead = partition.cut_links > 0 ? network.lookahead() : Time();  // none if nothing is cut
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  recorder_.write_processes({row}, {{"wall_seconds", facts.wall_seconds, "s"},
                                    {"build_seconds", facts.build_seconds, "s"},
                                    {"processor_seconds", facts.processor_seconds, "s"},
                                    {"epochs", number(facts.epochs), "1"},
                                    {"packet_hops_per_epoch", facts.hops_per_epoch(), "1"},
                                    {"cut_links", number(partition.cut_links), "1"},
                                    {"lookahead", static_cast<double>(lookahead.ps()), "ps"},
                                    {"events", number(facts.events), "1"},
                                    {"critical_events", number(facts.critical_events), "1"},
                                    {"parallelism", facts.parallelism(), "1"}});
}

}  // namespace weft
