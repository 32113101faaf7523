// SPDX-License-Identifier: GPL-2.0-only
#include "schedule/program/program_counts.hpp"

#include <algorithm>

#include "schedule/collective/countable.hpp"

namespace weft {
namespace {

/// Bytes that one member sends.
double bytes_of_member(const CollectiveCall& call, const CollectiveAlgorithm& algorithm, std::uint32_t index) {
  std::int64_t sum = 0;
  for (std::uint32_t lane = 0; lane < algorithm.lanes(call); ++lane) {
    const auto steps = algorithm.steps(call, index, lane);
    for (Step step; steps->next(step);) {
      if (!sends(step.primitive)) continue;
      const std::int64_t whole = step.bytes / step.slice;
      const Bytes rest = step.bytes - step.slice * whole;
      std::int64_t bytes = whole * wire_bytes(call.tuning.protocol, step.slice).count();
      if (rest > Bytes(0)) bytes += wire_bytes(call.tuning.protocol, rest).count();
      sum += bytes * step.send_count();
    }
  }
  return static_cast<double>(sum);
}

/// The bytes of one member: the size, or if that is the sum of all members' rows, a member's share of it.
double bytes_of_each(const CollectiveCall& call) {
  const bool of_all = call.blocks && call.blocks->of_pairs();
  return static_cast<double>(call.size.count()) / (of_all ? call.communicator->size() : 1);
}

/// Remembers what calls of one kind, size, algorithm and tuning send.
class CallBytes {
 public:
  double of(const CollectiveCall& call) {
    if (call.blocks) return bytes_of_call(call);
    const CollectiveTuning& t = call.tuning;
    const auto [at, fresh] =
        known_.try_emplace({static_cast<int>(call.kind), call.size.count(), call.communicator->size(), call.root,
                            call.algorithm, t.channels, t.chunk.count(), t.slices, static_cast<int>(t.protocol),
                            t.ranks_per_server, t.dimensions, t.dimension_algorithms, t.splits, t.each_dimension_whole},
                           0.0);
    if (fresh) at->second = bytes_of_call(call);
    return at->second;
  }

 private:
  using Key = std::tuple<int, std::int64_t, std::uint32_t, std::uint32_t, std::string, std::uint32_t, std::int64_t,
                         std::uint32_t, int, std::uint32_t, std::vector<std::uint32_t>, DimensionAlgorithms,
                         std::uint32_t, bool>;
  std::map<Key, double> known_;
};

std::string kind_name(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::compute:
      return operation.worker == Worker::device ? "compute" : "host";
    case Operation::Kind::send:
      return "send";
    case Operation::Kind::recv:
      return "recv";
    case Operation::Kind::collective:
      break;
  }
  return std::string(to_text(operation.call->kind));
}

}  // namespace

void OperationCount::add(const OperationCount& other) {
  operations += other.operations;
  bytes += other.bytes;
  size += other.size;
  flops += other.flops;
  seconds += other.seconds;
}

double bytes_of_call(const CollectiveCall& whole) {
  constexpr std::uint32_t all = 64, some = 16;
  const auto [call, times] = countable(whole);
  const auto algorithm = find_collective(call.algorithm);
  const std::uint32_t n = call.communicator->size();
  if (n < 2) return 0;
  const std::uint32_t every = n <= all ? 1 : n / some;
  double sum = 0;
  std::uint32_t asked = 0;
  for (std::uint32_t index = 0; index < n; index += every, ++asked) sum += bytes_of_member(call, *algorithm, index);
  return times * sum * n / asked;
}

std::map<std::string, OperationCount> ProgramCounts::by(Part part) const {
  std::map<std::string, OperationCount> sums;
  for (const auto& [key, count] : counts) {
    const std::string name = part == kind    ? std::get<kind>(key)
                             : part == phase ? std::get<phase>(key)
                             : part == group ? std::get<group>(key)
                                             : std::get<operator_name>(key);
    sums[name.empty() ? "other" : name].add(count);
  }
  return sums;
}

OperationCount ProgramCounts::sum() const {
  OperationCount sum;
  for (const auto& [key, count] : counts) sum.add(count);
  return sum;
}

ProgramCounts count_programs(const Workload& workload) {
  ProgramCounts result;
  CallBytes bytes;
  for (std::uint32_t k = 0; k < workload.kind_count(); ++k) {
    const auto ranks = static_cast<double>(workload.ranks_of_kind(k));
    Time compute;
    std::uint64_t operations = 0;
    const auto program = workload.program(workload.first_of_kind(k));
    for (Operation operation; program->next(operation); operation = Operation()) {
      ++operations;
      OperationCount one;
      one.operations = workload.ranks_of_kind(k);
      if (operation.kind == Operation::Kind::compute) {
        if (operation.worker == Worker::device) compute += operation.duration;
        one.seconds = operation.duration.seconds() * ranks;
        one.flops = operation.flops * ranks;
      } else if (operation.kind == Operation::Kind::send || operation.kind == Operation::Kind::recv) {
        one.size = static_cast<double>(operation.bytes.count()) * ranks;
        if (operation.kind == Operation::Kind::send) one.bytes = one.size;
      } else if (operation.kind == Operation::Kind::collective) {
        one.bytes = bytes.of(*operation.call) * ranks / operation.call->communicator->size();
        one.size = bytes_of_each(*operation.call) * ranks;
      }
      result
          .counts[{kind_name(operation), std::string(operation.phase), std::string(operation.group),
                   std::string(operation.operator_name)}]
          .add(one);
    }
    result.compute.push_back(compute);
    result.operations.push_back(operations);
  }
  return result;
}

}  // namespace weft
