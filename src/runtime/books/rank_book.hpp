// SPDX-License-Identifier: GPL-2.0-only
// The books of a rank: for how long it computed, communicated and did neither, and what its exposed time was spent on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "results/tables/records.hpp"
#include "runtime/books/open_waits.hpp"
#include "runtime/books/transfer_book.hpp"
#include "schedule/program/program.hpp"
#include "support/system/sorted_records.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

/// To be called for all events in the order of time: account(), settle() or explain() first, then the functions for the
/// change.
class RankBook {
 public:
  /// `explains`: keeps what exposed time was spent on. `undecided` takes TransferBook::take_kept() now and then.
  RankBook(std::uint32_t rank, NodeId host, bool explains, SortedRecords<RankSpan>& undecided)
      : explains_(explains), undecided_(undecided) {
    record_.rank = rank;
    record_.node = host.value();
  }
  bool explains() const { return explains_; }

  /// The rank begins.
  void open(Time now) { last_change_ = now; }
  /// The time since the last call goes to what was under way.
  void account(Time now);
  /// The same; and what has happened now is what the rank has waited for, as far as it communicates and does not
  /// compute. `why`: runtime/books/explanation.hpp.
  template <class Why>
  void explain(Time now, const Why& why) {
    if (!explains_) return;
    account(now);
    why.add_to(record_.parts, unexplained_.take());
  }
  /// Until now `busy` of the `lanes` of a collective handled slices.
  void settle(Time now, std::uint32_t busy, std::uint32_t lanes) {
    account(now);
    unexplained_.settle(record_.parts, busy, lanes);
  }
  /// A collective was being launched since the last call.
  void explain_launch(Time now) {
    if (!explains_) return;
    account(now);
    record_.parts[TimePart::launch] += unexplained_.take_fresh();
  }
  /// A wait of `wait` ps of a lane has ended, after settle().
  template <class Why>
  void explain_wait(const Why& why, std::int64_t wait) {
    record_.parts += parts_of_wait(why, wait, unexplained_.take());
  }

  void begin_compute(Worker worker) { ++working_[static_cast<std::size_t>(worker)]; }
  void end_compute(Worker worker) { --working_[static_cast<std::size_t>(worker)]; }
  /// `start`: of the operation.
  void begin_communication(Operation::Kind kind, Time start);
  /// `sent`: recv: when its message was.
  void end_communication(Operation::Kind kind, Time start, Time sent);
  void end_operation(Time now) { record_.finished = now.ps(); }
  void add_sent(std::uint32_t messages) { record_.messages_sent += messages; }
  void add_bytes_sent(Bytes bytes) { record_.bytes_sent += bytes.count(); }
  void add_received(Bytes bytes) {
    ++record_.messages_received;
    record_.bytes_received += bytes.count();
  }

  /// Closes the books at `end` (idle time runs until there).
  RankRecord record(Time end) const;
  /// The transferred part of its communication until `end`, except RankTransfers::under_way.
  RankTransfers transfers(Time end) const;

 private:
  /// `span` ps of what is under way, except what exposed time was spent on.
  void add_to(RankRecord& record, std::int64_t span) const;
  bool works(Worker worker) const { return working_[static_cast<std::size_t>(worker)] > 0; }
  bool exposed() const { return communicating_ > 0 && !works(Worker::device); }

  bool explains_;
  Time last_change_;
  std::array<std::uint32_t, 3> working_{};  // compute operations by Worker
  std::uint32_t communicating_ = 0;
  OpenWaits unexplained_;  // of record_.exposed
  RankRecord record_;
  TransferBook transfers_;
  SortedRecords<RankSpan>& undecided_;
};

}  // namespace weft
