// SPDX-License-Identifier: GPL-2.0-only
// The collective calls of a trace: communicators, options, and the ranks that take part.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "workloads/importers/program_trace.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {

/// Reads ranks of a program that has so many.
class ProgramRanks {
 public:
  explicit ProgramRanks(std::uint32_t count) : count_(count) {}
  std::uint32_t count() const { return count_; }
  std::uint32_t read(const Spec& value) const;
  /// A number, a list of different numbers, or `all`.
  RankSet read_set(const Spec& value) const;

 private:
  std::uint32_t count_;
};

/// Calls with a number, `call`. Several items with one number are one call, each for some of its ranks.
class NumberedCalls {
 public:
  /// Appends the call at its first item; throws InputError at `number` if it is another one than there, or if a rank
  /// takes part twice.
  void take_part(const Spec& number, CollectiveCall call, const RankSet& ranks, std::uint32_t ranks_of_program,
                 std::vector<CollectiveCall>& calls);
  /// Numbers of calls are 0, 1, ...; each call has all members of its communicator.
  void order(std::vector<CollectiveCall>& calls) const;

 private:
  std::map<std::uint32_t, std::uint32_t> positions_;  ///< number -> position among the calls
  std::unordered_set<std::uint64_t> taking_part_;     ///< number << 32 | rank
  std::vector<std::size_t> ranks_found_;              ///< of each call
};

/// Reads collectives into a trace.
class CallReader {
 public:
  /// Reads the options that hold for all calls.
  CallReader(const Spec& spec, const WorkloadContext& context, const ProgramRanks& ranks, Trace& trace);
  /// Reads `communicators` and `tunings`, which calls name.
  void read_named(const Spec& spec);
  /// Reads an item with the key `collective`; the caller finishes it.
  void read(const Spec& item, TraceOperation& entry);
  /// After the last item.
  void finish();

 private:
  void read_communicators(const Spec& spec);
  void read_tunings(const Spec& spec);
  std::uint32_t read_communicator(const Spec& item) const;
  const CollectiveSettings& tuning_of(const Spec& item) const;
  static void read_blocks(const Spec& item, CollectiveCall& call);
  RankSet members_of(const Communicator& communicator) const;
  /// Members that have this item; others have another one with the same number.
  RankSet some_members(const Spec& value, const Communicator& communicator) const;
  /// A collective is issued by every member and by no other rank.
  void require_members(const Spec& value, const RankSet& members) const;

  const WorkloadContext& context_;
  const ProgramRanks& ranks_;
  Trace& trace_;
  CollectiveSettings options_;
  std::map<std::string, CollectiveSettings> tunings_;
  std::map<std::string, std::uint32_t> communicators_;  ///< name -> id
  bool numbered_ = false;                               ///< collectives give their numbers
  NumberedCalls numbered_calls_;
};

}  // namespace weft
