// SPDX-License-Identifier: GPL-2.0-only
#include "app/processes/prepare.hpp"

#include <cstdint>
#include <new>

#include "support/basics/error.hpp"

namespace weft {
namespace {

/// The process that has failed with the lowest part, or the first of them, determines the exit code of all.
void agree(ProcessGroup& group, int code, const std::string& message, std::uint32_t part = 0) {
  const std::int64_t mine = std::int64_t{part} * group.size() + group.rank();
  const std::int64_t first = group.minimum(code == exit_done ? INT64_MAX : mine);
  if (first == INT64_MAX) return;
  const auto agreed = static_cast<int>(group.maximum(first == mine ? code : 0));
  throw AgreedFailure{agreed, first == mine ? message : ""};
}

}  // namespace

void prepare(ProcessGroup& group, const std::function<void()>& step) {
  int code = exit_done;
  std::uint32_t part = 0;
  std::string message;
  try {
    step();
  } catch (const AgreedFailure&) {
    throw;  // of require_agreement()
  } catch (const InputError& error) {
    code = exit_input;
    message = error.what();
    part = error.part();
  } catch (const EnvironmentError& error) {
    code = exit_environment;
    message = error.what();
  } catch (const std::bad_alloc&) {
    code = exit_environment;
    message = "out of memory";
  } catch (const std::exception& error) {
    code = exit_bug;
    message = error.what();
  }
  agree(group, code, message, part);
}

void require_agreement(ProcessGroup& group) { agree(group, exit_done, ""); }

std::vector<std::string> gather_text(ProcessGroup& group, const std::string& text) {
  std::vector<std::string> result(1, text);
  if (group.size() == 1) return result;
  const int length = static_cast<int>(text.size());
  const auto processes = static_cast<std::size_t>(group.size());
  std::vector<int> lengths(processes);
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, group.communicator());
  std::vector<int> places(processes, 0);
  for (std::size_t i = 1; i < processes; ++i) places[i] = places[i - 1] + lengths[i - 1];
  std::string all(static_cast<std::size_t>(places.back() + lengths.back()), '\0');
  MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(), MPI_CHAR, 0,
              group.communicator());
  result.clear();
  for (std::size_t i = 0; i < processes; ++i)
    result.push_back(all.substr(static_cast<std::size_t>(places[i]), static_cast<std::size_t>(lengths[i])));
  return result;
}

}  // namespace weft
