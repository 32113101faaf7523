// SPDX-License-Identifier: GPL-2.0-only
// Agreement and neighbour exchange between the MPI processes of one simulation.
#include "engine/process_group.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "engine/mpi_session.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr int batch_tag = 7;

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

ProcessGroup ProcessGroup::twin() const {
  if (size_ == 1) return alone();
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(communicator_, &copy);
  return ProcessGroup(copy, largest_message_);
}

MPI_Comm ProcessGroup::communicator() const {
  if (communicator_ == MPI_COMM_SELF) begin_mpi();
  return communicator_;
}

void ProcessGroup::exchange(std::span<const int> neighbours, std::span<const std::vector<std::byte>> outgoing,
                            std::span<std::vector<std::byte>> incoming) {
  WEFT_EXPECT(neighbours.size() == outgoing.size() && neighbours.size() == incoming.size(),
              "{} neighbours, {} outgoing and {} incoming batches", neighbours.size(), outgoing.size(),
              incoming.size());
  for (std::size_t i = 0; i < neighbours.size(); ++i) send_batch(neighbours[i], outgoing[i]);
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    incoming[i].clear();
    receive_batch(neighbours[i], incoming[i]);
  }
  finish_sends();
}

void ProcessGroup::send_batch(int neighbour, std::span<const std::byte> batch) {
  WEFT_EXPECT(neighbour != rank_ && neighbour >= 0 && neighbour < size_, "neighbour {} of rank {} of {}", neighbour,
              rank_, size_);
  // A message of exactly the largest size says that another one follows; so the last one is shorter, and may be empty.
  for (std::size_t sent = 0;; sent += largest_message_) {
    const std::size_t count = std::min(batch.size() - sent, largest_message_);
    MPI_Isend(batch.data() + sent, static_cast<int>(count), MPI_BYTE, neighbour, batch_tag, communicator_,
              &requests_.emplace_back());
    if (count < largest_message_) return;
  }
}

void ProcessGroup::receive_batch(int neighbour, std::vector<std::byte>& batch) const {
  for (;;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Mprobe(neighbour, batch_tag, communicator_, &message, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    const std::size_t received = batch.size();
    const std::size_t bytes = static_cast<std::size_t>(count);
    batch.resize(received + bytes);
    MPI_Mrecv(batch.data() + received, count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    if (bytes < largest_message_) return;
  }
}

void ProcessGroup::finish_sends() {
  if (requests_.empty()) return;
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  requests_.clear();
}

std::vector<std::vector<std::byte>> ProcessGroup::gather(const std::vector<std::byte>& batch) {
  const auto others = static_cast<std::size_t>(size_ - 1);
  std::vector<int> ranks(others);
  for (std::size_t i = 0; i < others; ++i) ranks[i] = static_cast<int>(i) + (static_cast<int>(i) >= rank_ ? 1 : 0);
  std::vector<std::vector<std::byte>> incoming(others);
  exchange(ranks, std::vector<std::vector<std::byte>>(others, batch), incoming);
  return incoming;
}

std::uint64_t ProcessGroup::sum(std::uint64_t value) const {
  return size_ == 1 ? value : reduce(value, MPI_UINT64_T, MPI_SUM, communicator_);
}

void ProcessGroup::add_up(std::span<std::uint64_t> values) const {
  constexpr std::size_t max = 1 << 30;  // MPI counts are 31 bit
  for (std::size_t at = 0; size_ > 1 && at < values.size(); at += max)
    MPI_Allreduce(MPI_IN_PLACE, values.data() + at, static_cast<int>(std::min(max, values.size() - at)), MPI_UINT64_T,
                  MPI_SUM, communicator_);
}

std::int64_t ProcessGroup::maximum(std::int64_t value) const {
  return size_ == 1 ? value : reduce(value, MPI_INT64_T, MPI_MAX, communicator_);
}

std::int64_t ProcessGroup::minimum(std::int64_t value) const {
  return size_ == 1 ? value : reduce(value, MPI_INT64_T, MPI_MIN, communicator_);
}

void ProcessGroup::sleep_until_all_arrive() const {
  if (size_ == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(communicator_, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace weft
