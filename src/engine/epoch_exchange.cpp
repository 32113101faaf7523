// SPDX-License-Identifier: GPL-2.0-only
// The barrier of processes between two epochs.
#include "engine/epoch_exchange.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>

#include "engine/core_turns.hpp"
#include "engine/gate.hpp"
#include "engine/mpi_session.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t smallest_slot = 4096;
constexpr std::size_t largest_slot = std::size_t{8} << 20;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::byte* at_line(std::byte* begin) {
  return begin + (cache_line - reinterpret_cast<std::uintptr_t>(begin) % cache_line) % cache_line;
}

constexpr std::size_t in_lines(std::size_t bytes) { return (bytes + cache_line - 1) / cache_line * cache_line; }

EpochVote together(const EpochVote& a, const EpochVote& b) {
  return {std::min(a.next, b.next), a.stop || b.stop, a.pause || b.pause, std::max(a.critical, b.critical)};
}

}  // namespace

// The head of a process's part of the shared memory. Two votes and two sets of slots: a process that is one barrier
// ahead must not overwrite what a slower one still reads; it cannot be two ahead.
struct EpochExchange::Board {
  alignas(cache_line) std::uint64_t arrived = 0;  // barriers at which this process has arrived
  alignas(cache_line) EpochVote votes[2];
  bool messages[2] = {false, false};  // if it has sent batches as MPI messages
  CoreTurns::Place turns;
  // Of the host's first process:
  alignas(cache_line) std::uint64_t arrivals = 0;  // of all processes of the host, at all barriers
  alignas(cache_line) Gate all_here;
  alignas(cache_line) std::uint64_t decided = 0;  // barriers that all hosts have agreed on
  Gate all_agreed;
  EpochVote decision[2];
};

// Segment of each process: its board; [processes of the host] where its slots for that process begin, 0 if there are
// none; slots: for each parity of the barrier the size of the batch, and as much of it as fits.
struct EpochExchange::SharedMemory {
  MPI_Comm host = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  MPI_Win window = MPI_WIN_NULL;
  std::size_t slot = 0;  // bytes of a batch that fit
  std::vector<std::byte*> segments;
  std::vector<int> place_of_neighbour;  // [neighbours] -> rank on this host, or -1

  Board& board(int process) const { return *reinterpret_cast<Board*>(segments[static_cast<std::size_t>(process)]); }
  std::uint64_t* offsets(int process) const {
    return reinterpret_cast<std::uint64_t*>(segments[static_cast<std::size_t>(process)] + sizeof(Board));
  }
  std::size_t stride() const { return cache_line + slot; }
  /// The place of the batch from `from` to `to` of a barrier: eight bytes of size, and after a cache line the content.
  std::byte* place(int from, int to, std::uint64_t barrier) const {
    return segments[static_cast<std::size_t>(from)] + offsets(from)[to] + (barrier & 1) * stride();
  }

  ~SharedMemory() {
    if (window != MPI_WIN_NULL) {
      MPI_Win_unlock_all(window);
      MPI_Win_free(&window);
    }
    MPI_Comm_free(&host);
  }
};

EpochExchange::EpochExchange(ProcessGroup& group, std::span<const int> neighbours, const Options& options)
    : group_(group), neighbours_(neighbours.begin(), neighbours.end()) {
  for (const int neighbour : neighbours_)
    WEFT_EXPECT(neighbour != group.rank() && neighbour >= 0 && neighbour < group.size(),
                "neighbour {} of rank {} of {}", neighbour, group.rank(), group.size());
  if (group_.size() > 1) join_hosts(options);
}

EpochExchange::~EpochExchange() {
  // This process may fail alone: then the others never free the common memory with it.
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(shared_.release());
    return;
  }
  end_loans();
  if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
}

void EpochExchange::join_hosts(const Options& options) {
  auto shared = std::make_unique<SharedMemory>();
  MPI_Comm_split_type(group_.communicator(), MPI_COMM_TYPE_SHARED, group_.rank(), MPI_INFO_NULL, &shared->host);
  if (options.processes_per_host > 0) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_rank(shared->host, &shared->rank);
    MPI_Comm_split(shared->host, shared->rank / options.processes_per_host, shared->rank, &part);
    MPI_Comm_free(&shared->host);
    shared->host = part;
  }
  MPI_Comm_rank(shared->host, &shared->rank);
  MPI_Comm_size(shared->host, &shared->size);
  int smallest_host = shared->size;
  MPI_Allreduce(MPI_IN_PLACE, &smallest_host, 1, MPI_INT, MPI_MIN, group_.communicator());
  several_hosts_ = smallest_host < group_.size();
  if (several_hosts_)
    MPI_Comm_split(group_.communicator(), shared->rank == 0 ? 0 : MPI_UNDEFINED, group_.rank(), &leaders_);
  // Processes with a core of their own poll: waking up takes longer than most waits last.
  spin_limit_ = shares_cores(shared->size) ? 0 : 1 << 14;
  shared_ = std::move(shared);
  build_shared_memory(options.shared_bytes);
  if (options.turns && !several_hosts_) take_turns();
}

void EpochExchange::take_turns() {
  SharedMemory& shared = *shared_;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  std::vector<cpu_set_t> sets(static_cast<std::size_t>(shared.size));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, sets.data(), sizeof mine, MPI_BYTE, shared.host);
  std::vector<int> cores = CoreTurns::shared_cores(sets);
  if (cores.empty()) return;
  std::vector<CoreTurns::Place*> places;
  for (int process = 0; process < shared.size; ++process) places.push_back(&shared.board(process).turns);
  turns_ = std::make_unique<CoreTurns>(std::move(places), shared.rank, std::move(cores));
  // No other process needs the core of one that waits.
  spin_limit_ = 1 << 12;
  MPI_Barrier(shared.host);
}

void EpochExchange::build_shared_memory(std::size_t bytes) {
  SharedMemory& shared = *shared_;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group here = MPI_GROUP_NULL;
  MPI_Comm_group(group_.communicator(), &all);
  MPI_Comm_group(shared.host, &here);
  shared.place_of_neighbour.resize(neighbours_.size());
  MPI_Group_translate_ranks(all, static_cast<int>(neighbours_.size()), neighbours_.data(), here,
                            shared.place_of_neighbour.data());
  MPI_Group_free(&all);
  MPI_Group_free(&here);
  std::uint64_t mine = 0;
  for (int& place : shared.place_of_neighbour) {
    if (place == MPI_UNDEFINED) place = -1;
    if (place >= 0) mine += 2;
  }
  std::uint64_t slots = mine;
  MPI_Allreduce(MPI_IN_PLACE, &slots, 1, MPI_UINT64_T, MPI_SUM, shared.host);
  const std::size_t share = bytes / std::max<std::uint64_t>(slots, 1);
  shared.slot = std::clamp(share / cache_line * cache_line, smallest_slot, largest_slot);

  const std::size_t head = in_lines(sizeof(Board) + sizeof(std::uint64_t) * static_cast<std::size_t>(shared.size));
  // Space to begin at a cache line, which MPI does not promise. Every process finds the same one, as memory is mapped
  // in pages.
  std::byte* anywhere = nullptr;
  MPI_Win_allocate_shared(static_cast<MPI_Aint>(head + mine * shared.stride() + cache_line), 1, MPI_INFO_NULL,
                          shared.host, &anywhere, &shared.window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, shared.window);
  shared.segments.resize(static_cast<std::size_t>(shared.size));
  for (int process = 0; process < shared.size; ++process) {
    MPI_Aint size = 0;
    int unit = 0;
    std::byte* begin = nullptr;
    MPI_Win_shared_query(shared.window, process, &size, &unit, &begin);
    shared.segments[static_cast<std::size_t>(process)] = at_line(begin);
  }
  new (shared.segments[static_cast<std::size_t>(shared.rank)]) Board();
  std::uint64_t* offsets = shared.offsets(shared.rank);
  std::fill(offsets, offsets + shared.size, 0);
  std::size_t at = head;
  for (const int place : shared.place_of_neighbour) {
    if (place < 0) continue;
    offsets[place] = at;
    at += 2 * shared.stride();
  }
  MPI_Barrier(shared.host);
}

bool EpochExchange::may_arrive_early() const { return turns_ == nullptr || !turns_->all_at_once(); }

void EpochExchange::arrive(const EpochVote& mine, std::span<const Batch> outgoing) {
  WEFT_EXPECT(outgoing.size() == neighbours_.size(), "{} batches for {} neighbours", outgoing.size(),
              neighbours_.size());
  mine_ = mine;
  if (group_.size() == 1) return;
  ++barriers_;
  send(outgoing);
  SharedMemory& shared = *shared_;
  Board& board = shared.board(shared.rank);
  Board& first = shared.board(0);
  board.votes[barriers_ & 1] = mine;
  if (turns_ != nullptr) turns_->arrive(barriers_);
  // Counted before the arrival is visible: a process that sees all arrivals here may go on to the next barrier, and
  // must not be counted there while another is still to be counted here. Otherwise no process would notice that the
  // last one has arrived, and sleeping processes would never wake up.
  last_ = ++std::atomic_ref(first.arrivals) == barriers_ * static_cast<std::uint64_t>(shared.size);
  std::atomic_ref(board.arrived).store(barriers_, std::memory_order_release);
  if (last_) first.all_here.open(static_cast<std::uint32_t>(barriers_));
}

EpochVote EpochExchange::wait(std::span<Batch> outgoing, const Take& take) {
  if (group_.size() == 1) return mine_;
  await_others();
  const EpochVote here = reduce_here();
  const EpochVote all = several_hosts_ ? reduce_everywhere(here) : here;
  receive(take);
  group_.finish_sends();
  for (Batch& batch : outgoing) batch.clear();
  lend_slots(outgoing);
  return all;
}

void EpochExchange::send(std::span<const Batch> outgoing) {
  SharedMemory& shared = *shared_;
  bool& messages = shared.board(shared.rank).messages[barriers_ & 1];
  messages = false;
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    const Batch& batch = outgoing[i];
    const int place = shared.place_of_neighbour[i];
    std::size_t here = 0;
    if (place >= 0) {
      std::byte* slot = shared.place(shared.rank, place, barriers_);
      const std::uint64_t size = batch.size();
      here = std::min(batch.size(), shared.slot);
      std::memcpy(slot, &size, sizeof size);
      if (here > 0 && batch.data() != slot + cache_line) std::memcpy(slot + cache_line, batch.data(), here);
      if (here == batch.size()) continue;
    }
    group_.send_batch(neighbours_[i], batch.bytes().subspan(here));
    ++mpi_batches_;
    messages = true;
  }
}

// The slots of the next barrier. Their last content has been read: it was that of the barrier before this one, and each
// process that has arrived at this one had read it.
void EpochExchange::lend_slots(std::span<Batch> batches) {
  const SharedMemory& shared = *shared_;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const int place = shared.place_of_neighbour[i];
    if (place >= 0) batches[i].lend({shared.place(shared.rank, place, barriers_ + 1) + cache_line, shared.slot});
  }
  lent_ = batches;
}

void EpochExchange::end_loans() {
  for (Batch& batch : lent_) batch.lend({});
  lent_ = {};
}

void EpochExchange::await_others() {
  const double start = seconds();
  if (turns_ != nullptr)
    wait_for_turn();
  else
    wait_for_all();
  wait_seconds_ += seconds() - start;
}

// Until all processes of the host have arrived. The last to arrive wakes those that sleep.
void EpochExchange::wait_for_all() {
  SharedMemory& shared = *shared_;
  if (last_) return;
  for (int process = 0; process < shared.size; ++process)
    wait_for(shared.board(process).arrived, shared.board(0).all_here);
}

// Until all of the host have arrived and there is a core for this process.
void EpochExchange::wait_for_turn() {
  if (turns_->all_at_once()) {
    if (last_)
      turns_->go_on(barriers_);
    else
      turns_->sleep(barriers_);
  } else {
    const int heir = turns_->next(barriers_);
    if (heir != CoreTurns::nobody) {
      turns_->give(barriers_, heir);
    } else {
      wait_for_all();
      turns_->go_on(barriers_);
    }
  }
  // A process that waits for the others in MPI must not keep a core from them: outside of epochs and for messages all
  // run at the same time.
  const EpochVote all = reduce_here();
  bool at_once = all.stop || all.pause || all.next >= Time::limit();
  for (int process = 0; process < shared_->size; ++process)
    at_once = at_once || shared_->board(process).messages[barriers_ & 1];
  turns_->resume(barriers_, at_once);
}

// Until `counter` has arrived at this barrier; asleep until the gate opens if that takes long.
void EpochExchange::wait_for(const std::uint64_t& counter, Gate& gate) {
  const std::atomic_ref reached(const_cast<std::uint64_t&>(counter));
  if (reached.load(std::memory_order_acquire) >= barriers_) return;
  for (int look = 0; look < spin_limit_ && reached.load(std::memory_order_acquire) < barriers_; ++look) relax();
  if (reached.load(std::memory_order_acquire) < barriers_) gate.wait(static_cast<std::uint32_t>(barriers_));
}

EpochVote EpochExchange::reduce_here() const {
  EpochVote all;
  for (int process = 0; process < shared_->size; ++process)
    all = together(all, shared_->board(process).votes[barriers_ & 1]);
  return all;
}

EpochVote EpochExchange::reduce_everywhere(const EpochVote& here) {
  Board& first = shared_->board(0);
  EpochVote& decision = first.decision[barriers_ & 1];
  const double start = seconds();
  if (shared_->rank != 0) {
    wait_for(first.decided, first.all_agreed);
    wait_seconds_ += seconds() - start;
    return decision;
  }
  // Wishes as negative numbers, so that one minimum does for all.
  std::array<std::int64_t, 4> votes{here.next.ps(), here.stop ? -1 : 0, here.pause ? -1 : 0,
                                    -static_cast<std::int64_t>(here.critical)};
  MPI_Allreduce(MPI_IN_PLACE, votes.data(), static_cast<int>(votes.size()), MPI_INT64_T, MPI_MIN, leaders_);
  wait_seconds_ += seconds() - start;
  decision = {Time::from_ps(votes[0]), votes[1] != 0, votes[2] != 0, static_cast<std::uint64_t>(-votes[3])};
  std::atomic_ref(first.decided).store(barriers_, std::memory_order_release);
  first.all_agreed.open(static_cast<std::uint32_t>(barriers_));
  return decision;
}

void EpochExchange::receive(const Take& take) {
  SharedMemory& shared = *shared_;
  for (std::size_t i = 0; i < neighbours_.size(); ++i) {
    const int place = shared.place_of_neighbour[i];
    const double start = seconds();
    if (place < 0) {
      assembled_.clear();
      group_.receive_batch(neighbours_[i], assembled_);
      wait_seconds_ += seconds() - start;
      if (!assembled_.empty()) take(i, assembled_);
      continue;
    }
    const std::byte* slot = shared.place(place, shared.rank, barriers_);
    std::uint64_t size = 0;
    std::memcpy(&size, slot, sizeof size);
    const std::byte* content = slot + cache_line;
    if (size > shared.slot) {
      assembled_.assign(content, content + shared.slot);
      group_.receive_batch(neighbours_[i], assembled_);
      wait_seconds_ += seconds() - start;
      take(i, assembled_);
    } else if (size > 0) {
      take(i, {content, size});
    }
  }
}

}  // namespace weft
