// SPDX-License-Identifier: GPL-2.0-only
// How a stage's plan is made: the state that the walk over its slots, the sums of gradients and the end of the step
// share.
#pragma once

#include <array>
#include <deque>
#include <initializer_list>
#include <optional>
#include <vector>

#include "workloads/parallel/gradient_buckets.hpp"
#include "workloads/step/stage_plan.hpp"

namespace weft {

/// A part of the model: embedding, a block, or the head.
struct Part {
  std::int32_t layer = -1;
  const PartPasses* passes = nullptr;
  const std::vector<Tensor>* tensors = nullptr;
  HeldParameters held;
};

/// Gradients that are reduced together, and by whom.
struct Pending {
  GradientBucket bucket;
  GroupKind group = GroupKind::data;
};

/// A model chunk: consecutive parts.
struct Chunk {
  std::uint32_t stage = 0;
  std::vector<Part> parts;
  std::vector<std::int32_t> gathered;  ///< the newest gathering of each part's parameters, or no_operation
  std::vector<std::int32_t> awaited;   ///< the gathering at the start of the step that each part's first pass waits for
  std::vector<bool> started;           ///< parts that have had a forward pass
  std::deque<Pending> pending;         ///< buckets to come
  std::uint32_t bucket_number = 0;
};

/// Walks a slot segment by segment, so that two slots can be worked on in turn.
struct SlotWalk {
  PipelineSlot slot;
  Chunk* chunk = nullptr;
  bool reversed = false;  ///< parts from the last to the first
  bool started = false;
  bool done = false;
  std::size_t part = 0;  ///< counted in the direction of the walk
  std::size_t segment = 0;
  bool again = false;                            ///< in the recomputation before a part's backward pass
  std::int32_t chain = StagePlan::no_operation;  ///< what the next segment waits for
  std::vector<std::int32_t> beside;
  std::int32_t host_waits = StagePlan::no_operation;  ///< what the host waits for before it goes on with this slot
};

/// Makes one plan. Its functions are in these files: parts and operations in stage_planner.cpp, slots and their
/// messages in stage_slots.cpp, GEMMs in parts in stage_exchanges.cpp, parameters and gradients in stage_gradients.cpp,
/// the end of the step in stage_end.cpp.
class StagePlanner {
 public:
  StagePlanner(const StageSetup& setup, std::uint32_t rank);
  StagePlan make();

 private:
  static constexpr std::int32_t no_operation = StagePlan::no_operation;

  // The model
  void make_chunks();
  void add_part(Chunk& chunk, std::int32_t layer, const PartPasses& passes, const std::vector<Tensor>& tensors);
  void add_predictions(Chunk& chunk);
  /// The slots with which each chunk's gradients are complete.
  void find_last_slots();
  static bool completes_weights(PipelineSlot::Pass pass);

  // Operations
  std::int32_t add(PlannedOperation operation, std::initializer_list<std::int32_t> after,
                   const std::vector<std::int32_t>& more = {});
  PlannedOperation collective(GroupKind group, CollectiveKind kind, Bytes size, Stream stream, std::string_view what);
  bool alone(GroupKind group) const { return setup_.layout->size(group) < 2; }

  // Slots
  SlotWalk start(const PipelineSlot& slot);
  const Part& part_of(const SlotWalk& walk) const;
  bool recomputes(const SlotWalk& walk) const;
  const std::vector<Segment>& segments(const SlotWalk& walk) const;
  Phase phase_of(const SlotWalk& walk) const;
  /// The next piece; true if another walk goes on behind it.
  bool advance(SlotWalk& walk);
  /// Slots that are worked on at the same time, to their ends.
  void walk_together(std::vector<SlotWalk>& walks);
  /// The walk goes on to the next piece behind which it yields, or to its end.
  void take_turn(SlotWalk& walk);
  void enter_part(SlotWalk& walk);
  void leave_part(SlotWalk& walk);
  /// The next part of the walk is no block, or there is none.
  bool leaves_blocks(const SlotWalk& walk) const;
  /// Largest magnitudes in fp8 with delayed scaling.
  void reduce_magnitudes(SlotWalk& walk);
  void run(SlotWalk& walk, const Segment& segment);
  void describe(const SlotWalk& walk, PlannedOperation& operation) const;
  /// The host's work for the operation of a segment, which cannot start before; nothing if the host takes no time.
  std::int32_t launch(const Segment& segment, const PlannedOperation& operation);
  /// The same for so many kernels.
  std::int32_t launch_kernels(std::int64_t kernels, const PlannedOperation& operation);
  std::int32_t launches(std::int64_t kernels, Time each, const PlannedOperation& operation);
  /// Launches that are still to come of what the device has begun with.
  void launch_rest();
  std::int32_t launch_for(Time duration, const PlannedOperation& operation);
  /// c computations; before each but the first, the next block of keys and values comes from the neighbour, sent on as
  /// soon as it is there.
  void run_ring(SlotWalk& walk, const Segment& segment);
  void rotate(SlotWalk& walk, const Segment& segment);

  // GEMMs in parts (stage_exchanges.cpp)
  void run_in_parts(SlotWalk& walk, const Segment& segment);
  void gather_in_parts(SlotWalk& walk, const Segment& segment);
  void sum_in_parts(SlotWalk& walk, const Segment& segment);
  void scatter_in_parts(SlotWalk& walk, const Segment& segment);
  /// Sent to the rank so many places further, or received from as many places before.
  PlannedOperation message_of_part(const SlotWalk& walk, const Segment& segment, std::int32_t places) const;
  /// Both messages after an operation; gives the one that arrives.
  std::int32_t exchange_part(SlotWalk& walk, const PlannedOperation& send, PlannedOperation recv, std::int32_t after);
  std::int32_t compute_part(SlotWalk& walk, const Segment& segment, std::int32_t after);

  // Pipeline messages
  std::uint32_t message_tag(std::uint32_t stage, bool backward, std::uint32_t micro_batch) const;
  std::uint32_t ring_tag(const SlotWalk& walk) const;
  /// Of the message that asks for the one with this tag.
  std::uint32_t ready_tag(std::uint32_t tag) const;
  /// The neighbour stage from which the slot's input comes, or to which its output goes.
  std::optional<std::uint32_t> neighbour(const SlotWalk& walk, bool input) const;
  std::optional<PlannedOperation> message(const SlotWalk& walk, bool input) const;
  void receive(SlotWalk& walk);
  /// What tensor ranks have of a message in parts is gathered.
  void gather_message(SlotWalk& walk, const PlannedOperation& message);
  void finish(SlotWalk& walk);
  /// With blocking messages: what the slot sends, perhaps together with what the one before has not sent yet.
  void exchange(const SlotWalk& walk, const std::optional<PlannedOperation>& operation);
  void send_held(std::int32_t after);
  /// With messages in turn: sends what the slot before has to send, and receives the slot's input.
  void meet(SlotWalk& walk);
  /// One message, which begins when both ranks have come to it.
  std::int32_t transfer_in_turn(const PlannedOperation& operation, std::int32_t after,
                                const std::vector<std::int32_t>& more = {});
  std::int32_t send_in_turn(std::int32_t after);

  // Parameters and gradients
  bool sharded() const { return plan_.sharding == Sharding::parameters && !alone(GroupKind::shard); }
  std::int32_t gathered_of(const SlotWalk& walk) const;
  /// Parameters of this part and of those that come next, if they are shared out.
  void gather_ahead(SlotWalk& walk);
  std::int32_t gather(const Part& part, const SlotWalk& walk);
  /// The newest operation waits for the optimizer of the step before.
  void wait_for_optimizer();
  bool fetches() const { return sharded() || description_.offload_parameters; }
  /// The last piece of a part's backward pass: with ParallelPlan::combined() it may be one that nothing waits for.
  std::int32_t computed(const SlotWalk& walk) const;
  /// The newest operation is the last one of a part's backward pass.
  void reduce_part(SlotWalk& walk);
  void scatter_part(const SlotWalk& walk, const Part& part, bool last_micro_batch);
  void start_buckets(Chunk& chunk);
  /// Megatron-LM, core/pipeline_parallel/schedules.py: stage r begins the sums of a chunk r backward slots behind the
  /// one with which its gradients are complete, which the stages before it have as many slots later.
  void reduce_aligned();
  void reduce_ready(Chunk& chunk, std::size_t part, std::int32_t after, std::int32_t micro_batch);

  // End of the step
  void end_of_step();
  void reduce_at_end(GroupKind group, std::int64_t elements, std::string_view what);
  void sum_what_is_shared();
  /// A stage is on two ranks (DualPipe).
  bool keeps_two_copies() const;
  void clip();
  /// Parameters that this rank's optimizer works on.
  std::int64_t kept_elements() const;
  void step_optimizer();
  /// Kernels that each go over all parameters.
  PlannedOperation whole_pass(std::string_view what, const std::vector<SmallKernel>& kernels) const;
  bool shards_state() const { return plan_.sharding == Sharding::optimizer || plan_.sharding == Sharding::gradients; }
  /// Each part's first pass waits for its own parameters, as with Megatron-LM's --overlap-param-gather, whose forward
  /// hooks start them (megatron/core/distributed/distributed_data_parallel.py, _make_forward_pre_hook).
  bool gathers_at_start() const { return shards_state() && description_.overlap_parameters; }
  /// All first passes of the next step wait for the last of them.
  bool gathers_late() const { return shards_state() && !description_.overlap_parameters; }
  /// Parameters in forward order, so that what is needed first comes first; gives the last of them.
  std::int32_t gather_parameters();

  // Transfers between the device and the memory of the host (stage_offload.cpp)
  enum class Way : std::uint8_t { to_host, to_device };
  /// After what came before in this direction: each of them moves one thing at a time.
  std::int32_t transfer(Way way, Bytes bytes, std::string_view what, std::initializer_list<std::int32_t> after,
                        const std::vector<std::int32_t>& more = {});
  /// Gradients of a bucket whose sum is complete, for the optimizer on the host.
  void gradients_to_host(std::int32_t reduced, Bytes whole, GroupKind group);
  void step_optimizer_on_host();
  /// Parameters of a part from the host, each rank's share; gives what is to be waited for.
  std::int32_t fetch(const Part& part, const SlotWalk& walk);

  const StageSetup& setup_;
  const TrainingDescription& description_;
  const ParallelPlan& plan_;
  std::uint32_t rank_;
  std::int64_t gradient_bytes_ = 2, parameter_bytes_ = 2;
  PartPasses embedding_, head_, prediction_input_, prediction_head_, magnitudes_, message_;
  std::vector<Tensor> head_tensors_, embedding_copy_;
  std::vector<PartPasses> blocks_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> last_;    // [chunk] slots to come that add to the gradients of weights
  std::vector<std::uint32_t> passes_;  // [chunk] all slots that do
  StagePlan result_;
  std::int32_t last_compute_ = no_operation;
  std::int32_t last_of_slot_ = no_operation;
  std::int32_t host_ = no_operation;        // what the host did last
  std::int32_t host_waits_ = no_operation;  // what it waits for before it goes on
  Time rest_of_launches_;                   // of kernels behind the first one of what was launched last
  PlannedOperation launched_;               // that
  struct HeldMessage {
    PlannedOperation operation;
    std::vector<std::int32_t> after;
  };
  std::optional<HeldMessage> held_message_;
  std::vector<std::int32_t> sent_;  // what the next computation waits for
  std::vector<std::int32_t> reductions_;
  /// Gradients that are complete; the number of backward slots behind which their sums begin, if all begin at once.
  struct Complete {
    Chunk* chunk = nullptr;
    std::uint32_t slots = 0;
    std::int32_t micro_batch = 0;
  };
  std::deque<Complete> complete_;
  std::uint32_t backward_slots_ = 0;
  std::vector<std::uint32_t> after_optimizer_;  // places in StagePlan::after: the optimizer of the step before
  std::vector<std::uint32_t> first_forward_;    // the same: the last of its parameters, if they are gathered late
  std::array<std::int32_t, 2> last_transfer_{no_operation, no_operation};  // by Way
  std::vector<std::int32_t> gradients_on_host_;
};

}  // namespace weft
