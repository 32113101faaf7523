// SPDX-License-Identifier: GPL-2.0-only
// Agreement on failures over MPI.
#include "results/processes/agreement.hpp"

namespace weft {

namespace {

std::string broadcast_from(MPI_Comm comm, int root, std::string text) {
  auto length = static_cast<unsigned long long>(text.size());
  MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG_LONG, root, comm);
  text.resize(length);
  constexpr unsigned long long max = 1U << 30;  // MPI counts are ints
  for (unsigned long long done = 0; done < length; done += max)
    MPI_Bcast(text.data() + done, static_cast<int>(std::min(max, length - done)), MPI_CHAR, root, comm);
  return text;
}

}  // namespace

void throw_if_any_failed(MPI_Comm comm, const StepOutcome& mine) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int candidate = mine.failed ? rank : size;
  int first = size;
  MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == size) return;
  int exit_code = mine.exit_code;
  MPI_Bcast(&exit_code, 1, MPI_INT, first, comm);
  const std::string message = broadcast_from(comm, first, mine.message);
  if (exit_code == exit_environment) throw EnvironmentError(message);
  throw InternalError(message);
}

std::string broadcast_text(MPI_Comm comm, std::string text) { return broadcast_from(comm, 0, std::move(text)); }

}  // namespace weft
