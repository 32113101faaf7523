// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <ns3/simulator.h>

#include "app/processes/prepare.hpp"
#include "app/processes/shared_partition.hpp"
#include "app/running/standstill.hpp"
#include "engine/mpi_session.hpp"
#include "fabric/ideal/ideal_network.hpp"
#include "fabric/ideal/loggp_network.hpp"
#include "fabric/ns3/ns3_view.hpp"
#include "internet/background.hpp"
#include "support/basics/contract.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Processor time of this process.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Under ns-3's own engine there is no check between epochs: an event checks, as long as there are others and the
// network has work. Connections of ns-3's stack end minutes after their last packet. While nothing happens, the checks
// become rarer.
struct Poll {
  const Simulation::Looker& look;
  const HostNetwork& network;
  std::int64_t min_interval;  // ps
  bool& interrupted;
  std::int64_t interval = min_interval;
  std::uint64_t events = 0;  // at the last one
};

void poll(Poll* state) {
  constexpr std::int64_t max_interval = Time::from_s(10).ps();
  if (ns3::Simulator::IsFinished() || state->network.idle()) return;
  state->interrupted = state->look(Time::from_ps(ns3::Simulator::Now().GetTimeStep())) == Simulation::Look::stop;
  if (state->interrupted) return ns3::Simulator::Stop();
  const std::uint64_t events = state->network.events();
  const bool quiet = events == state->events && state->interval < max_interval;
  state->interval = events != state->events ? state->min_interval : quiet ? 2 * state->interval : state->interval;
  state->events = events;
  ns3::Simulator::Schedule(ns3::TimeStep(static_cast<std::uint64_t>(state->interval)), &poll, state);
}

/// All nodes belong to the first process; the others wait.
Partition partition_of_one(const Topology& topology, int processes) {
  Partition partition;
  partition.method = "one process";
  partition.parts = static_cast<std::uint32_t>(processes);
  partition.owner.assign(topology.graph.node_count(), 0);
  partition.balance = processes;
  return partition;
}

JobsOfHosts jobs_of_hosts(const Experiment& experiment) {
  const std::vector<JobInfo> all = experiment.workload->jobs();
  JobsOfHosts jobs;
  jobs.count = static_cast<std::uint32_t>(all.size());
  jobs.job.resize(experiment.topology->graph.host_count(), JobsOfHosts::no_job);
  PerNode<std::vector<bool>> several(jobs.job.size());
  for (std::uint32_t number = 0; number < std::min<std::size_t>(all.size(), JobsOfHosts::no_job); ++number) {
    for (std::uint32_t rank = all[number].first_rank; rank < all[number].first_rank + all[number].ranks; ++rank) {
      const NodeId host = experiment.placement.host(rank);
      several[host] = several[host] || (jobs.job[host] != JobsOfHosts::no_job && jobs.job[host] != number);
      jobs.job[host] = several[host] ? JobsOfHosts::no_job : static_cast<std::uint16_t>(number);
    }
  }
  return jobs;
}

}  // namespace

Simulation::Simulation(const Experiment& experiment, ProcessGroup group, EngineChoice engine)
    : group_(std::move(group)),
      engine_(engine),
      until_(experiment.until),
      background_check_(experiment.workload->background_check()),
      experiment_(experiment),
      transfers_(experiment.output.sampling) {
  const auto start = Clock::now();
  const double before = processor_seconds();
  partition_ = shared_partition(group_, *experiment.topology, experiment.partition, experiment.network.min_wire(),
                                experiment.seed);
  // Its messages inform their senders of each other at once, which epochs between processes would not allow.
  if (experiment.network.fidelity == Fidelity::loggp)
    partition_ = partition_of_one(*experiment.topology, group_.size());
  // The engine is first: ns-3 must know it before anything is scheduled.
  if (engine == EngineChoice::weft)
    use_parallel_simulator(group_);
  else
    use_default_simulator();
  const auto build = [&] {
    build_network(experiment);
    runtime_ = std::make_unique<Runtime>(
        *experiment.workload, experiment.placement, *network_, experiment.output.messages, experiment.output.operations,
        experiment.output.attribution != Attribution::none, experiment.output.attribution == Attribution::full);
    network_->set_client(runtime_.get());
  };
  // Each process builds its own nodes, and some may find that theirs cannot be had. One that is alone, as in --verify,
  // may be within a step that others take as well: that step agrees.
  if (group_.size() > 1)
    prepare(group_, build);
  else
    build();
  build_seconds_ = seconds_since(start);
  processor_seconds_ = processor_seconds() - before;
}

void Simulation::build_network(const Experiment& experiment) {
  if (experiment.network.fidelity == Fidelity::ideal) {
    WEFT_EXPECT(engine_ == EngineChoice::weft, "the ideal network runs in epochs only");
    network_ = std::make_unique<IdealNetwork>(*experiment.topology, partition_, group_.rank(), experiment.network,
                                              *experiment.routing);
    return;
  }
  if (experiment.network.fidelity == Fidelity::loggp) {
    WEFT_EXPECT(engine_ == EngineChoice::weft, "the LogGOPS network runs in epochs only");
    network_ = std::make_unique<LogGpNetwork>(*experiment.topology, partition_, group_.rank(), experiment.network);
    return;
  }
  const auto drive = engine_ == EngineChoice::weft ? Fabric::Drive::epochs : Fabric::Drive::ns3_events;
  auto fabric = std::make_unique<Fabric>(*experiment.topology, partition_, group_.rank(), experiment.network,
                                         *experiment.routing, experiment.seed, drive);
  if (shares_cores()) fabric->expect_cold_caches();
  if (experiment.output.sampling > Time()) fabric->probes().sample_ports(experiment.output.sampling);
  if (const RateOptions& rates = experiment.output.rates; rates.interval > Time())
    fabric->probes().sample_queue_pairs(rates.interval, rates.hosts, rates.destinations);
  if (experiment.output.queue_depths) fabric->probes().queue_depths();
  if (experiment.output.attribution != Attribution::none) {
    fabric->probes().waits_by_job(jobs_of_hosts(experiment));
    fabric->probes().pause_causes();
  }
  fabric_ = fabric.get();
  network_ = std::move(fabric);
}

Fabric& Simulation::fabric() {
  WEFT_EXPECT(fabric_ != nullptr, "the ideal network has no fabric");
  return *fabric_;
}

// Applications hold on to the log: they go first.
Simulation::~Simulation() { ns3::Simulator::Destroy(); }

// After the links have been settled, so that attributes of ports could be set by another view.
void Simulation::start_background() {
  view_ = std::make_unique<Ns3View>(*fabric_, *experiment_.topology);
  Internet internet(*view_, experiment_.seed);
  install_background(experiment_.background, internet, transfers_);
  // Endless background traffic ends when everything else has ended, which is checked from time to time.
  constexpr Time usual_check = Time::from_us(100);
  if (transfers_.has_endless() && background_check_ == Time::max()) background_check_ = usual_check;
}

/// On any process. Collective.
bool Simulation::transfers_unfinished() { return transfers_.unfinished(group_); }

RunFacts Simulation::run(const Looker& look) {
  RunFacts facts;
  facts.build_seconds = build_seconds_;
  const double before = processor_seconds();
  if (fabric_ != nullptr) {
    fabric_->settle_links(group_);
    fabric_->close_links();
  }
  if (!experiment_.background.empty()) start_background();
  const auto engine = ns3::DynamicCast<ParallelSimulatorImpl>(ns3::Simulator::GetImplementation());
  const auto attaching = Clock::now();
  if (engine != nullptr) engine->attach(network_.get());
  facts.build_seconds += seconds_since(attaching);
  const auto start = Clock::now();
  // Before anything else is scheduled, so that under ns-3's engine too it is the first event of its time.
  if (until_ < Time::max()) ns3::Simulator::Stop(ns3::TimeStep(static_cast<std::uint64_t>(until_.ps())));
  if (engine_ == EngineChoice::weft)
    run_epochs(look, facts);
  else
    run_reference(look, facts);
  facts.wall_seconds = seconds_since(start);
  facts.processor_seconds = processor_seconds_ + processor_seconds() - before;
  if (engine != nullptr) engine->attach(nullptr);
  facts.interrupted = group_.sum(facts.interrupted ? 1 : 0) > 0;
  if (facts.interrupted) interruption_noticed();
  const bool idle = group_.sum(network_->idle() ? 0 : 1) == 0;
  // Checked on all processes: one that is idle alone may only be waiting for another.
  if (idle && !facts.interrupted && fabric_ != nullptr && group_.sum(fabric_->deadlocks().packets_wait() ? 1 : 0) > 0)
    refuse_deadlock(Time::max());
  facts.outlived = facts.outlived && !idle;
  facts.cut_short = !facts.interrupted && !idle && !facts.outlived;
  // TCP may be waiting for a timeout, with nothing on its way.
  if (until_ < Time::max() && !facts.interrupted && !facts.outlived && transfers_unfinished()) facts.cut_short = true;
  WEFT_EXPECT(!facts.cut_short || until_ < Time::max(), "the run ended with packets on links");
  if (!facts.outlived) facts.simulated = facts.cut_short ? until_ : Time::from_ps(group_.maximum(network_->now().ps()));
  if (fabric_ != nullptr) fabric_->results().settle_waits(group_, facts.simulated);
  facts.packet_hops = group_.sum(network_->packet_hops());
  facts.events = group_.sum(network_->events());
  facts.messages = group_.sum(runtime_->messages_delivered());
  facts.bytes_delivered = group_.sum(static_cast<std::uint64_t>(runtime_->bytes_delivered()));
  facts.operations = group_.sum(runtime_->operations_done());
  facts.congestion = congestion();
  network_->finish(group_, idle);
  return facts;
}

void Simulation::run_epochs(const Looker& look, RunFacts& facts) {
  const auto engine = ns3::DynamicCast<ParallelSimulatorImpl>(ns3::Simulator::GetImplementation());
  engine->set_between_epochs([this, &look, &facts](Time now) {
    const Look wish = look(now);
    facts.interrupted = wish == Look::stop;
    if (wish != Look::go_on || fabric_ == nullptr) return wish;
    return fabric_->deadlocks().suspicious() || fabric_->path_refusal().at < Time::max() ? Look::pause : wish;
  });
  engine->set_on_pause([this](Time now) {
    refuse_path(now);
    if (fabric_ != nullptr && group_.sum(fabric_->deadlocks().take_suspicion() ? 1 : 0) > 0)
      refuse_deadlock(now - fabric_->parameters().fabric.pfc.watchdog);
    if (on_pause_) on_pause_(now);
  });
  run_events(facts);
  facts.epochs = engine->epochs();
  facts.wait_seconds = engine->wait_seconds();
  facts.critical_events = engine->critical_events();
}

void Simulation::run_reference(const Looker& look, RunFacts& facts) {
  constexpr std::int64_t epochs = 256;
  const std::int64_t interval = epochs * fabric_->inner_epoch().ps();
  const Looker watching = [this, &look](Time now) {
    refuse_path(now);
    if (fabric_->deadlocks().take_suspicion()) refuse_deadlock(now - fabric_->parameters().fabric.pfc.watchdog);
    return look(now);
  };
  Poll state{watching, *network_, interval, facts.interrupted};
  ns3::Simulator::Schedule(ns3::TimeStep(static_cast<std::uint64_t>(interval)), &poll, &state);
  try {
    run_events(facts);
  } catch (const Interrupted&) {
    facts.interrupted = true;
  }
}

// Background jobs end with the others, and a run in which everything is lost does not continue. All processes stop at
// the same times to check this: for any number of processes and any epochs, the same events have happened everywhere
// then. The times are 1 ps before round ones, since round times in the input lead to events at round times, and under
// ns3's own engine those may run before the check.
void Simulation::run_events(RunFacts& facts) {
  Standstill standstill(experiment_, fabric_);
  Time background = background_check_;
  for (;;) {
    const Time check = std::min(background, standstill.next_look());
    if (check >= std::min(until_, Time::limit())) break;
    const Time stop = check - Time::from_ps(1);
    ns3::Simulator::Stop(ns3::TimeStep(static_cast<std::uint64_t>(stop.ps())) - ns3::Simulator::Now());
    run_engine();
    if (group_.sum(facts.interrupted ? 1 : 0) > 0) return;
    const bool transferring = transfers_unfinished();
    if (!transferring && !transfers_.has_endless() && group_.sum(network_->idle() ? 0 : 1) == 0) return;
    if (check == standstill.next_look()) standstill.look(check, group_);
    if (check < background) continue;
    background = bounded_sum(background, background_check_);
    if (transferring || unfinished_ranks() > 0) continue;
    facts.outlived = true;
    facts.simulated = stop;
    return;
  }
  run_engine();
}

// A failure of one process ends the run of all, and one of them reports it.
void Simulation::run_engine() {
  if (group_.size() > 1)
    prepare(group_, [] { ns3::Simulator::Run(); });
  else
    ns3::Simulator::Run();
  refuse_path(Time::max());
}

// All events before `time` have happened on all processes: for any number of them the same refusal is the first.
void Simulation::refuse_path(Time time) {
  if (fabric_ == nullptr) return;
  const PathRefusal mine = fabric_->path_refusal();
  const Time first = Time::from_ps(group_.minimum(mine.at.ps()));
  if (first >= time) return;
  const std::int64_t host = mine.at == first ? mine.host.value() : INT64_MAX;
  throw AgreedFailure{exit_input, group_.minimum(host) == host ? mine.message : ""};
}

// A cycle counts only if all of its links have been stopped for as long as the watchdog waits: one that is stopped for
// a moment may still drain to elsewhere.
void Simulation::refuse_deadlock(Time stopped_by) {
  const std::string cycle = fabric_->deadlocks().find(group_, stopped_by);
  if (cycle.empty()) return;
  const InputError error(
      fabric_->parameters().fabric.flow_control_place,
      "the network is in a deadlock: these ports wait for each other's buffers for ever: " + cycle +
          "; expected a routing whose channel dependencies have no cycle (up and down in trees; virtual "
          "lanes: dimension_order_lanes on tori, dragonfly_minimal_lanes on dragonflies, shortest_path_lanes on "
          "others)");
  // On all processes; one of them reports it.
  throw AgreedFailure{exit_input, group_.rank() == 0 ? error.what() : ""};
}

CongestionTotals Simulation::congestion() {
  if (fabric_ == nullptr) return {};
  CongestionTotals totals = fabric_->results().congestion();
  for (std::uint64_t* count :
       {&totals.dropped, &totals.lost, &totals.trimmed, &totals.marked, &totals.pauses, &totals.repeated,
        &totals.timeouts, &totals.cnps, &totals.out_of_order, &totals.duplicates})
    *count = group_.sum(*count);
  return totals;
}

std::uint64_t Simulation::unfinished_ranks() const { return group_.sum(runtime_->unfinished()); }

}  // namespace weft
