// SPDX-License-Identifier: GPL-2.0-only
// The engine: ns-3's events and the lean data path in one clock, over MPI processes.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <unordered_map>

#include <ns3/event-id.h>
#include <ns3/event-impl.h>
#include <ns3/nstime.h>
#include <ns3/object-factory.h>
#include <ns3/ptr.h>
#include <ns3/simulator-impl.h>
#include <ns3/type-id.h>

#include "engine/data_path.hpp"
#include "engine/epoch_exchange.hpp"
#include "engine/event_queue.hpp"
#include "engine/process_group.hpp"
#include "units/time.hpp"

namespace weft {

/// An ns3::SimulatorImpl without ns-3's MPI module: everything behind ns3::Simulator works as ns-3's manual says, on
/// one process or on each of several. Three things are more exact than in ns3::DefaultSimulatorImpl:
/// * Order: events run by (time, time at which they were scheduled, context that scheduled them, how many that context
/// had
///   scheduled before). Within one context this is ns-3's order of insertion; between contexts it does not depend on
///   which other nodes live on this process. Outside of events the context is ns3::Simulator::NO_CONTEXT, which comes
///   last.
/// * Between epochs all processes agree on the earliest next event; an epoch lasts for the data path's lookahead() and
/// its
///   end is exclusive. Without a data path nothing crosses between processes and an epoch is a fixed number of events.
/// * After Run() the context is NO_CONTEXT, and if everything is finished Now() is the time of the last event or packet
/// of
///   any process.
///
/// ns3::Simulator::Stop() ends this process's part after the current event, and all others' at the next agreement; the
/// moment at which *they* stop depends on the epochs. For results that do not depend on the number of processes,
/// schedule the same Stop(delay) on all of them.
///
/// Not thread-safe (ns-3's packets and objects are not either): parallel work is in processes.
class ParallelSimulatorImpl final : public ns3::SimulatorImpl {
 public:
  static ns3::TypeId GetTypeId();
  ParallelSimulatorImpl();
  ~ParallelSimulatorImpl() override;

  // ns3::SimulatorImpl -----------------------------------------------------------------------------------------------
  void Destroy() override;
  bool IsFinished() const override;
  void Stop() override;
  void Stop(const ns3::Time& delay) override;
  ns3::EventId Schedule(const ns3::Time& delay, ns3::EventImpl* event) override;
  void ScheduleWithContext(std::uint32_t context, const ns3::Time& delay, ns3::EventImpl* event) override;
  ns3::EventId ScheduleNow(ns3::EventImpl* event) override;
  ns3::EventId ScheduleDestroy(ns3::EventImpl* event) override;
  void Remove(const ns3::EventId& id) override;
  void Cancel(const ns3::EventId& id) override;
  bool IsExpired(const ns3::EventId& id) const override;
  void Run() override;
  ns3::Time Now() const override;
  ns3::Time GetDelayLeft(const ns3::EventId& id) const override;
  ns3::Time GetMaximumSimulationTime() const override;
  void SetScheduler(ns3::ObjectFactory factory) override;
  std::uint32_t GetSystemId() const override;
  std::uint32_t GetContext() const override;
  std::uint64_t GetEventCount() const override;

  // Beyond ns-3 ------------------------------------------------------------------------------------------------------
  /// The processes that share this simulation; alone() until set. Before Run().
  void set_process_group(ProcessGroup group) { group_ = std::move(group); }
  const ProcessGroup& process_group() const { return group_; }
  /// Collective. The data path that runs beside the events, or nullptr. Not owned: it outlives Run(). Needs
  /// ns3::Time::SetResolution(ns3::Time::PS). Either all processes have one or none. This also builds the barrier
  /// between epochs, which stays until the next attach() or Destroy().
  void attach(DataPath* data_path);
  /// The action between two epochs.
  enum class Look { go_on, pause, stop };
  /// `look` is called before every epoch, with the beginning of the last one, the same on all processes: for progress
  /// and interrupts. `stop` on any process ends the Run() of all before that epoch; if any process returns `pause`, all
  /// call the function of set_on_pause().
  void set_between_epochs(std::function<Look(Time begin)> look) { between_epochs_ = std::move(look); }
  /// Called by all processes together, with the time before which everything has happened everywhere. Not at the end.
  void set_on_pause(std::function<void(Time now)> action) { on_pause_ = std::move(action); }
  /// For a data path within advance(): what follows is done by the node `context` at `time`. ns-3 code called from
  /// there sees both in GetContext() and Now().
  void enter(std::uint32_t context, Time time);
  /// For a data path, also while it is handed a batch: `event` happens at the node `context` at `time`, which is not
  /// before the end of this epoch. It runs before all events that ns-3 has scheduled for that time; several events of
  /// one node and time run in the order of `number`. The order does not depend on the caller or the time of the call.
  void schedule_arrival(std::uint32_t context, Time time, std::uint64_t number, ns3::EventImpl* event);

  /// The last Run() ended because of Stop() or the look between epochs, not because everything was finished.
  bool stopped() const { return stop_; }
  std::uint64_t epochs() const { return epochs_; }
  /// Wall-clock seconds that this process has waited for the others.
  double wait_seconds() const { return wait_seconds_; }
  /// Events of the data path that could not have happened at the same time as others, whatever the number of processes;
  /// see DataPath::take_critical_events().
  std::uint64_t critical_events() const { return critical_events_; }

 private:
  void DoDispose() override;
  ns3::EventId insert(std::uint32_t context, const ns3::Time& delay, ns3::EventImpl* event);
  std::uint32_t insert_at(const EventKey& key, std::uint32_t context, ns3::Ptr<ns3::EventImpl> event);
  Time local_next() const;
  void build_boundary();
  void arrive(Time begin);
  EpochVote wait(Time begin);
  void run_epoch(Time end);
  template <class Step>
  void give_up_if_it_throws(Step&& step);
  void run_events_and_data_path(Time end);
  void run_one_event();
  void advance_data_path(std::int64_t end);
  void settle_clock();

  ProcessGroup group_ = ProcessGroup::alone();
  DataPath* data_path_ = nullptr;
  std::unique_ptr<EpochExchange> boundary_;  // kept from run to run; none before the first, if no data path is attached
  std::function<Look(Time)> between_epochs_;
  std::function<void(Time)> on_pause_;

  EventQueue queue_;
  std::unordered_map<std::uint32_t, std::uint64_t> scheduled_by_;  // context -> events that it has scheduled
  std::list<ns3::EventId> destroy_events_;

  std::int64_t now_ = 0;        // in ns-3's resolution
  std::int64_t horizon_ = 0;    // up to here (exclusive) the data path has advanced
  std::int64_t epoch_end_ = 0;  // exclusive
  std::uint32_t context_;
  std::exception_ptr failure_;  // what this process could not go on with; Run() ends as with Stop() and throws it here
  bool stop_ = false;
  bool running_ = false;
  bool advancing_ = false;
  bool last_advance_ = false;           // of this epoch
  bool has_arrived_ = false;            // to the barrier at the end of this epoch
  std::uint64_t critical_of_last_ = 0;  // events on the longest chain of the last epoch here
  std::uint64_t event_count_ = 0;
  std::uint64_t epochs_ = 0;
  std::uint64_t critical_events_ = 0;
  double wait_seconds_ = 0;
};

/// Let ns3::Simulator use a ParallelSimulatorImpl of these processes. Before the first ns3::Simulator call (so also
/// before the first ns3::Node), or after ns3::Simulator::Destroy(). Throws InternalError if ns3::Simulator already uses
/// another engine.
ns3::Ptr<ParallelSimulatorImpl> use_parallel_simulator(ProcessGroup group = ProcessGroup::alone());

/// Let ns3::Simulator use ns3::DefaultSimulatorImpl, ns-3's own engine. When and throws: as use_parallel_simulator().
void use_default_simulator();

}  // namespace weft
