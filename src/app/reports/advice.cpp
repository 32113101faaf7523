// SPDX-License-Identifier: GPL-2.0-only
#include "app/reports/advice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "app/reports/summary.hpp"
#include "graph/shapes/torus_shape.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

// An early packet, or a late acknowledgement, looks like a loss to a sender. The time of such a run is that of its
// recovery and does not describe the network.
std::string too_short_timeout(const RecoveryRules& rules, const std::string& what) {
  const char* kind = rules.kind == Recovery::go_back_0   ? "go_back_0"
                     : rules.kind == Recovery::go_back_n ? "go_back_n"
                                                         : "selective_repeat";
  return fmt::format(
      "{}: acknowledgements took longer than the timeout of {}; set a longer network.{}.timeout, or a smaller "
      "network.window",
      what, to_text(std::min(rules.timeout, rules.timeout_low)), kind);
}

std::string needless_repeats(const Experiment& experiment, const CongestionTotals& totals) {
  const RecoveryRules& rules = experiment.network.recovery;
  const std::string what = fmt::format("{} packets were sent again though none was lost", totals.repeated);
  if (totals.out_of_order == 0) return too_short_timeout(rules, what);
  const std::string why = fmt::format("{}: packets of a connection overtook each other", what);
  if (!rules.keeps_gaps()) return why + "; set network.recovery: selective_repeat, which keeps what comes early";
  constexpr std::uint32_t max = 32'767;
  if (rules.reordering == max) return why + "; set a smaller network.window";
  return fmt::format("{} by more than {} packets; set network.selective_repeat.reordering: {}", why, rules.reordering,
                     std::min(max, 8 * std::max<std::uint32_t>(rules.reordering, 16)));
}

// Beside losses: packets that were sent again and had arrived. A lost ACK may be the reason for as many as it
// acknowledges, so that only what is beyond these is certain. The receiver of go-back-0 forgets what it had.
std::uint64_t certainly_needless(const RecoveryRules& rules, const CongestionTotals& totals) {
  const std::uint64_t excused = (totals.dropped + totals.lost + totals.trimmed) * rules.ack_interval;
  return totals.timeouts == 0 || totals.duplicates <= excused ? 0 : totals.duplicates - excused;
}

// All processes stop for each portion, for milliseconds.
constexpr std::uint64_t many_portions = 20, few_rows = 1000;

}  // namespace

std::vector<std::string> advice(const Experiment& experiment, const CongestionTotals& totals) {
  std::vector<std::string> result;
  const RecoveryRules& rules = experiment.network.recovery;
  if (totals.repeated > 0 && totals.dropped + totals.lost + totals.trimmed == 0) {
    result.push_back(needless_repeats(experiment, totals));
  } else if (const std::uint64_t needless = certainly_needless(rules, totals); needless > 0) {
    result.push_back(too_short_timeout(rules, fmt::format("{} of {} packets that were sent again had arrived before",
                                                          totals.duplicates, totals.repeated)));
  }
  return result;
}

// A link that is stopped waits, in the end, for one that is busy meanwhile, unless full buffers of a ring wait for each
// other: packets that wait for the next link of the ring keep those behind them from getting off, and hosts fill each
// place that becomes free (C. Carrion, R. Beivide, J. Gregorio, F. Vallejo, "A flow control mechanism to avoid message
// deadlock in k-ary n-cube networks", HiPC 1997). The rules of real tori for packets that enter a ring are not
// modelled.
void advise_on_rings(const Experiment& experiment, Time stopped, Time busy, std::vector<std::string>& warnings) {
  if (shape_of<TorusShape>(*experiment.topology) == nullptr || stopped <= busy) return;
  const bool credit = experiment.network.fabric.flow_control == FlowControl::credit;
  warnings.push_back(
      fmt::format("a link of the torus was stopped by flow control for {}, and none was busy for more than {}: full "
                  "buffers of its rings wait for each other, and hosts fill them at once; real tori have rules against "
                  "that, which are not modelled. Set a larger {}, or a smaller network.window",
                  readable(stopped), readable(busy), credit ? "network.credit.buffer" : "network.buffer.size"));
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
