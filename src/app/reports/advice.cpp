// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/advice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "units/text.hpp"

namespace weft {
namespace {

// An early packet, or a late acknowledgement, looks like a loss to a sender. The time of such a run is that of its
// recovery and does not describe the network.
std::string needless_repeats(const Experiment& experiment, const CongestionTotals& totals) {
  const RecoveryRules& rules = experiment.network.recovery;
  const std::string what = fmt::format("{} packets were sent again though none was lost", totals.repeated);
  if (totals.out_of_order == 0)
    return fmt::format(
        "{}: acknowledgements took longer than the timeout of {}; set a longer "
        "network.{}.timeout, or a smaller network.window",
        what, to_text(rules.timeout_low),
        rules.kind == Recovery::go_back_0   ? "go_back_0"
        : rules.kind == Recovery::go_back_n ? "go_back_n"
                                            : "selective_repeat");
  const std::string why = fmt::format("{}: packets of a connection overtook each other", what);
  if (!rules.keeps_gaps()) return why + "; set network.recovery: selective_repeat, which keeps what comes early";
  constexpr std::uint32_t max = 32'767;
  if (rules.reordering == max) return why + "; set a smaller network.window";
  return fmt::format("{} by more than {} packets; set network.selective_repeat.reordering: {}", why, rules.reordering,
                     std::min(max, 8 * std::max<std::uint32_t>(rules.reordering, 16)));
}

// All processes stop for each portion, for milliseconds.
constexpr std::uint64_t many_portions = 20, few_rows = 1000;

}  // namespace

std::vector<std::string> advice(const Experiment& experiment, const CongestionTotals& totals) {
  std::vector<std::string> result;
  if (totals.repeated > 0 && totals.dropped + totals.lost + totals.trimmed == 0)
    result.push_back(needless_repeats(experiment, totals));
  return result;
}

void advise_on_transfers(const std::vector<TransferRecord>& transfers, std::vector<std::string>& warnings) {
  for (const TransferRecord& transfer : transfers)
    if (transfer.size >= 0 && !transfer.complete())
      warnings.push_back(
          fmt::format("transfer {}, '{}', has delivered {} of {} B: TCP has given up, as what it sent got lost or came "
                      "too late too often",
                      transfer.transfer, transfer.name, transfer.bytes, transfer.size));
}

void advise_on_portions(const Experiment& experiment, std::uint64_t portions, std::vector<std::string>& warnings) {
  const std::uint64_t rows = experiment.output.rows_in_memory;
  if (portions < many_portions || rows >= few_rows) return;
  warnings.push_back(
      fmt::format("all processes stopped {} times to write rows, which takes most of the time of such a run; set "
                  "output.rows_in_memory: {} or more",
                  portions, few_rows));
}

}  // namespace weft
