// SPDX-License-Identifier: GPL-2.0-only
// Results of transfers of ns-3 applications.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/process_group.hpp"
#include "results/tables/records.hpp"
#include "units/time.hpp"

namespace weft {

/// Has a row for each transfer on every process; the process of the sender and that of the receiver fill in what they
/// see.
class TransferLog {
 public:
  /// `sampling`: interval of samples(); Time(): none are kept.
  explicit TransferLog(Time sampling) : sampling_(sampling) {}

  /// Returns its number. `receiver_here`: this process owns the destination.
  std::uint32_t add(TransferRecord row, bool receiver_here);
  std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }
  // At the sender.
  void connected(std::uint32_t transfer, Time now) { rows_[transfer].connected = now.ps(); }
  void repeated(std::uint32_t transfer, std::int64_t bytes) { rows_[transfer].repeated += bytes; }
  /// TCP has given up: nothing of this transfer is sent again.
  void gave_up(std::uint32_t transfer);
  /// At the receiver: payload has arrived.
  void received(std::uint32_t transfer, Time now, std::int64_t bytes);

  /// Collective: whether a transfer of given size is neither complete nor given up.
  bool unfinished(ProcessGroup& group);
  /// Some go on until the run ends; the same on every process.
  bool has_endless() const { return has_endless_; }
  /// Collective, once: every process gets the whole rows.
  std::vector<TransferRecord> whole_rows(ProcessGroup& group) const;
  /// Of receivers of this process, ascending in time for each transfer; intervals without a byte have none.
  const std::vector<TransferSample>& samples() const { return samples_; }

 private:
  Time sampling_;
  std::vector<TransferRecord> rows_;
  std::vector<std::uint32_t> last_sample_;  // [transfers] -> samples_, or no_sample
  std::vector<TransferSample> samples_;
  std::uint64_t unfinished_ = 0;  // transfers of a size whose last byte has not come, at receivers of this process
  std::vector<std::uint32_t> given_up_;  // of a size, at senders of this process
  /// What unfinished() found for so many of both, on all processes: to match them takes a message for each transfer.
  struct Known {
    std::uint64_t unfinished = 0;
    std::uint64_t given_up = 0;
    bool any = false;
  };
  Known known_;
  bool has_endless_ = false;
};

}  // namespace weft
