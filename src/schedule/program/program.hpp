// SPDX-License-Identifier: GPL-2.0-only
// The program of one rank: operations with dependencies, created lazily.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective/collective.hpp"
#include "support/basics/error.hpp"
#include "support/basics/label.hpp"
#include "units/bytes.hpp"
#include "units/id.hpp"
#include "units/time.hpp"

namespace weft {

/// In-order execution resources of a rank: operations of one stream run one after another, as CUDA streams do. `none`:
/// the operation waits for its dependencies only. The collectives of one communicator run one after another in any
/// case.
enum class Stream : std::uint8_t {
  none,
  compute,
  communication,  ///< of gradients, and of all else that needs only one stream
  parameters,     ///< gathering of sharded parameters
  tensor,
  context,
  expert,
  storage,
  host,  ///< the processor that feeds the accelerator
};
constexpr std::size_t stream_count = 9;
std::string_view to_text(Stream stream);
/// Names in the order of the values.
std::vector<std::string> stream_names();

/// Who does what a compute operation stands for. Communication slows the device alone, and only its time is compute.
enum class Worker : std::uint8_t {
  device,
  host,    ///< launches and other work of the processor that feeds the accelerator
  nobody,  ///< a pause
};

/// One operation of a rank. Ids are given by the program, increase strictly in the order of next(), and `after` and
/// `after_start` name smaller ids of the same rank only.
struct Operation {
  enum class Kind : std::uint8_t { compute, collective, send, recv };
  std::uint64_t id = 0;
  Kind kind = Kind::compute;
  Stream stream = Stream::none;
  std::vector<std::uint64_t> after;            ///< operations of this rank that must be complete
  std::vector<std::uint64_t> after_start;      ///< and those that must have started
  Time not_before;                             ///< simulated time before which it does not start
  Time duration;                               ///< compute
  std::shared_ptr<const CollectiveCall> call;  ///< collective
  Rank peer;                                   ///< send: destination; recv: source
  std::uint32_t tag = 0;                       ///< send, recv: matched with (peer, tag) in order
  Bytes bytes;                                 ///< send, recv
  bool any_source = false;                     ///< recv: of any rank; `peer` says nothing
  bool any_tag = false;                        ///< recv: with any tag; `tag` says nothing
  bool at_most = false;                        ///< recv: its message may have fewer bytes, as in MPI
  std::uint32_t queue_pair = 0;                ///< send: which of several queue pairs to the peer carries it
  std::uint8_t cpu = 0;                        ///< whose time it takes, where the time of processors is modelled
  std::uint32_t line = 0;                      ///< of the workload's file, 0 if generated
  Label label;                                 ///< for people and timelines; may be empty
  // For sums in reports; they live for ever, and are empty where a workload does not say.
  std::string_view phase;          ///< part of a step: "forward"
  std::string_view group;          ///< whom it communicates with: "tensor", "pipeline"
  std::string_view operator_name;  ///< what it computes or sends: "attention"
  double flops = 0;                ///< compute: floating-point operations
  double slowdown = 0;  ///< compute: RankProgram::compute_slowdown() of this one; at least 1, or 0: as the program says
  Worker worker = Worker::device;  ///< compute
};

/// The operations of one rank in program order, one at a time.
class RankProgram {
 public:
  virtual ~RankProgram() = default;
  virtual bool next(Operation& operation) = 0;
  /// True if a receiver need not post a recv: messages to this rank complete on arrival (one-sided writes, as traffic
  /// generators use).
  virtual bool accepts_unexpected() const { return false; }
  /// True if a recv may take messages of any rank or tag. Then all messages to the rank are matched as MPI does: a recv
  /// takes the first matching message that has arrived, else it waits behind earlier recvs; messages of one source and
  /// tag arrive in the order in which they were sent.
  virtual bool receives_any() const { return false; }
  /// True if `not_before` never decreases. Then no further operation is read while the newest lies in the future: a
  /// generator is read no further than its clock. Otherwise operations after a delayed one need not wait for it.
  virtual bool in_order_of_time() const { return false; }
  /// Operations that may be admitted and not complete at a time; 0: no limit. With a limit, no further operation is
  /// read until one completes, so that a long program needs memory for only so many. The program must make progress
  /// with any limit, that is, also if its operations were executed one after another.
  virtual std::size_t read_ahead() const { return 0; }
  /// True if the limit counts only operations that have not started: any number may be under way.
  virtual bool reads_past_started() const { return false; }
  /// True if a stream runs the operation with the smallest id among those that could start, and not the next one in
  /// program order: an operation that waits does not block those after it.
  virtual bool takes_what_is_ready() const { return false; }
  /// True if streams represent processors, Operation::cpu: a network that models processors orders the operations on
  /// them.
  virtual bool streams_are_processors() const { return false; }
  /// The duration of a compute operation that starts now; called once. It depends only on its arguments, for instance
  /// for noise that varies over time.
  virtual Time compute_time(const Operation& operation, Time now) const {
    static_cast<void>(now);
    return operation.duration;
  }
  /// The factor, at least 1, by which compute operations are slower while collectives or sends of the rank are under
  /// way, unless an operation has its own factor; 1: no slowdown.
  virtual double compute_slowdown() const { return 1; }
};

}  // namespace weft
