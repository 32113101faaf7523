// SPDX-License-Identifier: GPL-2.0-only
// The engine's events, epochs and clock.
#include "engine/parallel_simulator_impl.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <span>
#include <utility>

#include <ns3/default-simulator-impl.h>
#include <ns3/global-value.h>
#include <ns3/make-event.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include "engine/epoch_exchange.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::uint32_t no_context = ns3::Simulator::NO_CONTEXT;
// An epoch also ends after this many ns-3 events, so that interrupts are seen where no data path bounds it.
constexpr int events_per_epoch = 1 << 14;

constexpr std::uint32_t slot_of(std::uint32_t uid) { return uid - ns3::EventId::VALID; }

/// Bind the global value and return the engine that ns3::Simulator has then.
ns3::Ptr<ns3::SimulatorImpl> select_engine(const ns3::TypeId& type) {
  ns3::GlobalValue::Bind("SimulatorImplementationType", ns3::StringValue(type.GetName()));
  ns3::Ptr<ns3::SimulatorImpl> engine = ns3::Simulator::GetImplementation();
  WEFT_EXPECT(
      engine->GetInstanceTypeId() == type,
      "ns3::Simulator already uses {}: select {} before any other call of it, or after ns3::Simulator::Destroy()",
      engine->GetInstanceTypeId().GetName(), type.GetName());
  return engine;
}

/// Destroys what all processes have built together while an exception is still on its way: later it would not be known
/// that the others may never get to do their part.
class BoundaryGuard {
 public:
  explicit BoundaryGuard(std::unique_ptr<EpochExchange>& boundary) : boundary_(boundary) {}
  ~BoundaryGuard() {
    if (std::uncaught_exceptions() > exceptions_) boundary_.reset();
  }
  BoundaryGuard(const BoundaryGuard&) = delete;
  BoundaryGuard& operator=(const BoundaryGuard&) = delete;

 private:
  std::unique_ptr<EpochExchange>& boundary_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(ParallelSimulatorImpl);

ns3::TypeId ParallelSimulatorImpl::GetTypeId() {
  static const ns3::TypeId type = ns3::TypeId("weft::ParallelSimulatorImpl")
                                      .SetParent<ns3::SimulatorImpl>()
                                      .SetGroupName("weft")
                                      .AddConstructor<ParallelSimulatorImpl>();
  return type;
}

ParallelSimulatorImpl::ParallelSimulatorImpl() : context_(no_context) {}
ParallelSimulatorImpl::~ParallelSimulatorImpl() = default;

void ParallelSimulatorImpl::DoDispose() {
  while (!queue_.empty()) queue_.pop().impl->Unref();
  destroy_events_.clear();
  SimulatorImpl::DoDispose();
}

// Scheduling ---------------------------------------------------------------------------------------------------------

ns3::EventId ParallelSimulatorImpl::insert(std::uint32_t context, const ns3::Time& delay, ns3::EventImpl* event) {
  const ns3::Ptr<ns3::EventImpl> owner(event,
                                       false);  // the reference passed with the event, also if a check throws
  const std::int64_t steps = delay.GetTimeStep();
  WEFT_EXPECT(steps >= 0, "an event was scheduled {} steps in the past of {}", -steps, now_);
  WEFT_EXPECT(steps < never - now_, "an event at {} + {} lies beyond the largest time", now_, steps);
  const std::int64_t time = now_ + steps;
  const std::uint32_t uid = insert_at({time, now_, scheduled_by_[context_]++, context_}, context, owner);
  return ns3::EventId(owner, static_cast<std::uint64_t>(time), context, uid);
}

std::uint32_t ParallelSimulatorImpl::insert_at(const EventKey& key, std::uint32_t context,
                                               ns3::Ptr<ns3::EventImpl> event) {
  const std::int64_t earliest = advancing_ ? epoch_end_ : horizon_;
  WEFT_EXPECT(
      key.time >= earliest,
      "an event was scheduled at {} for {}, but the data path has advanced or will advance to {} in this epoch (from "
      "within the data path the delay must be at least its lookahead)",
      now_, key.time, earliest);
  return ns3::EventId::VALID + queue_.insert(key, ns3::GetPointer(event), context);
}

void ParallelSimulatorImpl::schedule_arrival(std::uint32_t context, Time time, std::uint64_t number,
                                             ns3::EventImpl* event) {
  constexpr std::int64_t before_all = -1;  // in place of when it was scheduled
  insert_at({time.ps(), before_all, number, context}, context, ns3::Ptr<ns3::EventImpl>(event, false));
}

ns3::EventId ParallelSimulatorImpl::Schedule(const ns3::Time& delay, ns3::EventImpl* event) {
  return insert(context_, delay, event);
}

void ParallelSimulatorImpl::ScheduleWithContext(std::uint32_t context, const ns3::Time& delay, ns3::EventImpl* event) {
  insert(context, delay, event);
}

ns3::EventId ParallelSimulatorImpl::ScheduleNow(ns3::EventImpl* event) {
  return insert(context_, ns3::TimeStep(0), event);
}

ns3::EventId ParallelSimulatorImpl::ScheduleDestroy(ns3::EventImpl* event) {
  // The list takes over the reference passed with the event.
  return destroy_events_.emplace_back(ns3::Ptr<ns3::EventImpl>(event, false), static_cast<std::uint64_t>(now_),
                                      no_context, ns3::EventId::DESTROY);
}

void ParallelSimulatorImpl::Remove(const ns3::EventId& id) {
  if (id.GetUid() == ns3::EventId::DESTROY) {
    const auto found = std::find(destroy_events_.begin(), destroy_events_.end(), id);
    if (found != destroy_events_.end()) destroy_events_.erase(found);
    return;
  }
  if (IsExpired(id)) return;
  ns3::EventImpl* event = id.PeekEventImpl();
  queue_.erase(slot_of(id.GetUid()));
  event->Cancel();
  event->Unref();  // the queue's reference; `id` still holds one
}

void ParallelSimulatorImpl::Cancel(const ns3::EventId& id) {
  if (!IsExpired(id)) id.PeekEventImpl()->Cancel();
}

bool ParallelSimulatorImpl::IsExpired(const ns3::EventId& id) const {
  ns3::EventImpl* event = id.PeekEventImpl();
  if (event == nullptr || event->IsCancelled()) return true;
  if (id.GetUid() == ns3::EventId::DESTROY) {
    return std::find(destroy_events_.begin(), destroy_events_.end(), id) == destroy_events_.end();
  }
  return !queue_.holds(slot_of(id.GetUid()), event, static_cast<std::int64_t>(id.GetTs()));
}

ns3::Time ParallelSimulatorImpl::GetDelayLeft(const ns3::EventId& id) const {
  return ns3::TimeStep(IsExpired(id) ? 0 : id.GetTs() - static_cast<std::uint64_t>(now_));
}

// The keys of events give their order, and no other order is wanted; but ns3::Simulator hands every engine a scheduler.
void ParallelSimulatorImpl::SetScheduler(ns3::ObjectFactory /*factory*/) {}

// Running ------------------------------------------------------------------------------------------------------------

void ParallelSimulatorImpl::attach(DataPath* data_path) {
  WEFT_EXPECT(!running_, "a data path was attached during a run, at {}", now_);
  WEFT_EXPECT(data_path == nullptr || ns3::Time::GetResolution() == ns3::Time::PS,
              "the data path counts picoseconds, but the resolution of ns3::Time is number {}: call "
              "ns3::Time::SetResolution(ns3::Time::PS) first",
              static_cast<int>(ns3::Time::GetResolution()));
  data_path_ = data_path;
  boundary_.reset();
  if (data_path_ != nullptr) build_boundary();
}

void ParallelSimulatorImpl::build_boundary() {
  boundary_ = std::make_unique<EpochExchange>(
      group_, data_path_ != nullptr ? data_path_->neighbours() : std::span<const int>());
}

Time ParallelSimulatorImpl::local_next() const {
  const std::int64_t event = queue_.empty() ? never : queue_.next_time();
  std::int64_t data = data_path_ == nullptr ? never : data_path_->next_time().ps();
  // A data path may name the beginning of a span that contains the end of simulated time, when all before it is done.
  if (horizon_ >= Time::limit().ps()) data = std::max(data, horizon_);
  return Time::from_ps(std::min(event, data));
}

void ParallelSimulatorImpl::Run() {
  WEFT_EXPECT(!running_, "ns3::Simulator::Run() was called within a run, at {}", now_);
  running_ = true;
  stop_ = false;
  failure_ = nullptr;
  if (boundary_ == nullptr) build_boundary();
  const BoundaryGuard guard(boundary_);
  const double waited_before = boundary_->wait_seconds();
  Time begin = Time::from_ps(now_);
  if (data_path_ != nullptr && group_.size() > 1)
    data_path_->set_boundary_done([this, &begin] {
      if (last_advance_ && boundary_->may_arrive_early()) arrive(begin);
    });
  for (;;) {
    const EpochVote agreed = wait(begin);
    stop_ = stop_ || agreed.stop;
    critical_events_ += agreed.critical;
    if (agreed.stop || agreed.next == Time::max()) break;
    if (agreed.next >= Time::limit() && data_path_ != nullptr) {  // on all processes
      failure_ = std::make_exception_ptr(TimeLimitError("what is left to do lies too far ahead"));
      break;
    }
    if (agreed.pause && on_pause_) on_pause_(agreed.next);
    begin = agreed.next;
    Time end = Time::max();
    if (data_path_ != nullptr) {
      const Time lookahead = data_path_->lookahead();
      WEFT_EXPECT(lookahead > Time(), "the data path's lookahead is {} ps at {} ps", lookahead.ps(), begin.ps());
      end = std::min(bounded_sum(begin, lookahead), Time::limit());
    }
    run_epoch(end);
    ++epochs_;
  }
  if (data_path_ != nullptr) data_path_->set_boundary_done(nullptr);
  critical_events_ += static_cast<std::uint64_t>(group_.maximum(static_cast<std::int64_t>(critical_of_last_)));
  critical_of_last_ = 0;
  boundary_->end_loans();
  wait_seconds_ += boundary_->wait_seconds() - waited_before;
  settle_clock();
  running_ = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Arrives at the barrier with this process's vote and batches. Also after a local Stop(): the neighbours wait for this
/// process's batch, and learn of the stop with it. The longest chain of the epoch is not known before its end, and is
/// sent at the next barrier.
void ParallelSimulatorImpl::arrive(Time begin) {
  const Look look = between_epochs_ ? between_epochs_(begin) : Look::go_on;
  std::span<const Batch> outgoing;
  if (data_path_ != nullptr) outgoing = data_path_->outgoing();
  boundary_->arrive({local_next(), stop_ || look == Look::stop, look == Look::pause, critical_of_last_}, outgoing);
  has_arrived_ = true;
}

/// An epoch that was given up half-way is the last one of this process: Stop() informs the others. So all reach the end
/// of Run() together, and no process waits for ever.
template <class Step>
void ParallelSimulatorImpl::give_up_if_it_throws(Step&& step) {
  try {
    step();
    return;
  } catch (const Interrupted&) {
  } catch (...) {
    if (group_.size() == 1) throw;
    failure_ = std::current_exception();
  }
  advancing_ = false;
  last_advance_ = false;
  Stop();
}

/// Hands over the packets of the last epoch, and agrees on the next one.
EpochVote ParallelSimulatorImpl::wait(Time begin) {
  if (!has_arrived_) arrive(begin);
  has_arrived_ = false;
  if (data_path_ == nullptr) return boundary_->wait({}, {});
  critical_of_last_ = data_path_->take_critical_events();
  return boundary_->wait(data_path_->outgoing(), [this](std::size_t neighbour, std::span<const std::byte> batch) {
    give_up_if_it_throws([&] { data_path_->incoming(neighbour, batch); });
  });
}

void ParallelSimulatorImpl::run_epoch(Time end) {
  give_up_if_it_throws([&] { run_events_and_data_path(end); });
}

void ParallelSimulatorImpl::run_events_and_data_path(Time end) {
  epoch_end_ = end.ps();
  int events = 0;
  while (!stop_ && !queue_.empty() && queue_.next_time() < epoch_end_) {
    // Ending an epoch early is always allowed: the next one begins no earlier than this one did.
    if (events++ == events_per_epoch) return;
    advance_data_path(queue_.next_time());
    if (!stop_) run_one_event();
  }
  last_advance_ = true;
  if (!stop_) advance_data_path(epoch_end_);
  last_advance_ = false;
}

void ParallelSimulatorImpl::run_one_event() {
  const EventQueue::Event event = queue_.pop();
  WEFT_EXPECT(event.time >= now_, "an event of {} comes up at {}", event.time, now_);
  now_ = event.time;
  context_ = event.context;
  ++event_count_;
  event.impl->Invoke();  // does nothing if it was cancelled
  event.impl->Unref();
}

void ParallelSimulatorImpl::advance_data_path(std::int64_t end) {
  if (data_path_ == nullptr || end <= horizon_) return;
  horizon_ = end;
  const std::int64_t now = now_;
  const std::uint32_t context = context_;
  advancing_ = true;
  data_path_->advance(Time::from_ps(end));
  advancing_ = false;
  now_ = now;
  context_ = context;
}

void ParallelSimulatorImpl::enter(std::uint32_t context, Time time) {
  WEFT_EXPECT(advancing_, "a data path entered node {} at {} ps outside of advance()", context, time.ps());
  WEFT_EXPECT(time.ps() < horizon_, "a data path entered node {} at {} ps, but was told to stay below {} ps", context,
              time.ps(), horizon_);
  now_ = time.ps();
  context_ = context;
}

/// After a run: the time of the last event anywhere; or, if the run was stopped, the time up to which this process has
/// arrived, so that the next scheduled event is not in the data path's past.
void ParallelSimulatorImpl::settle_clock() {
  context_ = no_context;
  if (stop_) {
    if (data_path_ != nullptr) now_ = std::max(now_, horizon_);
    return;
  }
  if (data_path_ != nullptr) now_ = std::max(now_, data_path_->now().ps());
  now_ = group_.maximum(now_);
  horizon_ = now_;
}

void ParallelSimulatorImpl::Stop() { stop_ = true; }

void ParallelSimulatorImpl::Stop(const ns3::Time& delay) {
  Schedule(delay, ns3::MakeEvent(static_cast<void (*)()>(&ns3::Simulator::Stop)));
}

void ParallelSimulatorImpl::Destroy() {
  boundary_.reset();
  while (!destroy_events_.empty()) {
    const ns3::EventId id = destroy_events_.front();
    destroy_events_.pop_front();
    id.PeekEventImpl()->Invoke();
  }
}

// State --------------------------------------------------------------------------------------------------------------

bool ParallelSimulatorImpl::IsFinished() const { return stop_ || local_next() == Time::max(); }
ns3::Time ParallelSimulatorImpl::Now() const { return ns3::TimeStep(static_cast<std::uint64_t>(now_)); }
ns3::Time ParallelSimulatorImpl::GetMaximumSimulationTime() const { return ns3::TimeStep(never - 1); }
std::uint32_t ParallelSimulatorImpl::GetSystemId() const { return static_cast<std::uint32_t>(group_.rank()); }
std::uint32_t ParallelSimulatorImpl::GetContext() const { return context_; }
std::uint64_t ParallelSimulatorImpl::GetEventCount() const { return event_count_; }

// Selecting ----------------------------------------------------------------------------------------------------------

ns3::Ptr<ParallelSimulatorImpl> use_parallel_simulator(ProcessGroup group) {
  const auto engine = ns3::DynamicCast<ParallelSimulatorImpl>(select_engine(ParallelSimulatorImpl::GetTypeId()));
  engine->set_process_group(std::move(group));
  return engine;
}

void use_default_simulator() { select_engine(ns3::DefaultSimulatorImpl::GetTypeId()); }

}  // namespace weft
