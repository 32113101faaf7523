// SPDX-License-Identifier: GPL-2.0-only
// The MPI processes that share one simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

#include "units/time.hpp"

namespace weft {

/// A communicator of MPI ranks with the few exchanges that the engine needs. Does not own MPI_Init/Finalize (see
/// MpiSession) nor the communicator.
class ProcessGroup {
 public:
  /// `largest_message`: batches above this many bytes travel in several MPI messages, because MPI counts are 31 bit.
  /// The same number on all ranks, in [1, 2^31).
  explicit ProcessGroup(MPI_Comm communicator, std::size_t largest_message = std::size_t{1} << 30);
  /// The same processes with a communicator of their own, which no one frees. Collective.
  ProcessGroup twin() const;
  /// This process alone. No function calls MPI, except communicator(), which begins it.
  static ProcessGroup alone();

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm communicator() const;

  /// Send one batch of bytes to each neighbour rank and receive one from each (possibly empty). outgoing[i] goes to
  /// neighbours[i]; incoming[i] is resized and filled with what neighbours[i] sent. Both sides list each other as
  /// neighbours, once, and never themselves.
  void exchange(std::span<const int> neighbours, std::span<const std::vector<std::byte>> outgoing,
                std::span<std::vector<std::byte>> incoming);

  /// The batches of all other ranks, in their order. Collective; for rare occasions, as every rank sends to every
  /// other.
  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& batch);

  // The pieces of exchange(), for those who have other things to do in between. Batches of one pair of ranks arrive in
  // the order in which they were sent.
  /// Begin to send; `batch` stays as it is until finish_sends().
  void send_batch(int neighbour, std::span<const std::byte> batch);
  /// Append the next batch of `neighbour` to `batch`.
  void receive_batch(int neighbour, std::vector<std::byte>& batch) const;
  void finish_sends();

  /// Returns when all ranks have called it; leaves the core to others until then, unlike MPI's own barrier.
  void sleep_until_all_arrive() const;

  std::uint64_t sum(std::uint64_t value) const;        ///< over all ranks, modulo 2^64
  void add_up(std::span<std::uint64_t> values) const;  ///< each over all ranks, modulo 2^64
  std::int64_t maximum(std::int64_t value) const;
  std::int64_t minimum(std::int64_t value) const;

 private:
  ProcessGroup() = default;

  MPI_Comm communicator_ = MPI_COMM_SELF;
  int rank_ = 0;
  int size_ = 1;
  std::size_t largest_message_ = 0;
  std::vector<MPI_Request> requests_;
};

}  // namespace weft
