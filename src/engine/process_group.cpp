// SPDX-License-Identifier: GPL-2.0-only
// Agreement and neighbour exchange between the MPI processes of one simulation.
#include "engine/process_group.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "support/contract.hpp"

namespace weft {
namespace {

constexpr int batch_tag = 7;

/// Adds the wall-clock time of its life to a sum.
class WaitTimer {
 public:
  explicit WaitTimer(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
  ~WaitTimer() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_;
};

template <class Integer>
Integer reduce(Integer value, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator) {
  Integer result = value;
  MPI_Allreduce(&value, &result, 1, type, operation, communicator);
  return result;
}

}  // namespace

ProcessGroup::ProcessGroup(MPI_Comm communicator, std::size_t largest_message)
    : communicator_(communicator), largest_message_(largest_message) {
  WEFT_EXPECT(largest_message > 0 && largest_message <= std::numeric_limits<int>::max(), "largest_message = {}",
              largest_message);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
}

ProcessGroup ProcessGroup::alone() { return ProcessGroup(); }

ProcessGroup::Agreement ProcessGroup::agree(Time next, bool stop) {
  if (size_ == 1) return {next, stop};
  WaitTimer timer(wait_seconds_);
  // One reduction for both: the minimum of 0 and -1 is -1, so that one rank's wish to stop is enough.
  const std::array<std::int64_t, 2> mine{next.ps(), stop ? -1 : 0};
  std::array<std::int64_t, 2> all{};
  MPI_Allreduce(mine.data(), all.data(), 2, MPI_INT64_T, MPI_MIN, communicator_);
  return {Time::from_ps(all[0]), all[1] != 0};
}

void ProcessGroup::exchange(std::span<const int> neighbours, std::span<const std::vector<std::byte>> outgoing,
                            std::span<std::vector<std::byte>> incoming) {
  WEFT_EXPECT(neighbours.size() == outgoing.size() && neighbours.size() == incoming.size(),
              "{} neighbours, {} outgoing and {} incoming batches", neighbours.size(), outgoing.size(),
              incoming.size());
  if (neighbours.empty()) return;
  WaitTimer timer(wait_seconds_);
  requests_.clear();
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    WEFT_EXPECT(neighbours[i] != rank_ && neighbours[i] >= 0 && neighbours[i] < size_, "neighbour {} of rank {} of {}",
                neighbours[i], rank_, size_);
    const std::vector<std::byte>& batch = outgoing[i];
    // A message of exactly the largest size says that another one follows; so the last one is shorter, and may be
    // empty.
    for (std::size_t sent = 0;; sent += largest_message_) {
      const std::size_t count = std::min(batch.size() - sent, largest_message_);
      MPI_Isend(batch.data() + sent, static_cast<int>(count), MPI_BYTE, neighbours[i], batch_tag, communicator_,
                &requests_.emplace_back());
      if (count < largest_message_) break;
    }
  }
  for (std::size_t i = 0; i < neighbours.size(); ++i) receive_batch(neighbours[i], incoming[i]);
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
}

void ProcessGroup::receive_batch(int neighbour, std::vector<std::byte>& batch) const {
  std::size_t received = 0;
  for (;;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Mprobe(neighbour, batch_tag, communicator_, &message, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    const std::size_t bytes = static_cast<std::size_t>(count);
    batch.resize(received + bytes);
    MPI_Mrecv(batch.data() + received, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    received += bytes;
    if (bytes < largest_message_) return;
  }
}

std::uint64_t ProcessGroup::sum(std::uint64_t value) const {
  return size_ == 1 ? value : reduce(value, MPI_UINT64_T, MPI_SUM, communicator_);
}

std::int64_t ProcessGroup::maximum(std::int64_t value) const {
  return size_ == 1 ? value : reduce(value, MPI_INT64_T, MPI_MAX, communicator_);
}

std::int64_t ProcessGroup::minimum(std::int64_t value) const {
  return size_ == 1 ? value : reduce(value, MPI_INT64_T, MPI_MIN, communicator_);
}

}  // namespace weft
