// SPDX-License-Identifier: GPL-2.0-only
// One step of data-parallel training: what every rank computes and reduces, in order.
#include "workloads/training_plan.hpp"

#include <fmt/format.h>

#include "workloads/reading.hpp"

namespace weft {
namespace {

class Planner {
 public:
  Planner(const TrainingSetup& setup, const Spec& where, Time longest)
      : setup_(setup), where_(where), longest_(longest), head_(static_cast<std::uint32_t>(setup.model.layers()) + 1) {
    const std::int64_t element = element_bytes(setup.precision);
    embedding_cost_ = embedding_cost(setup.model, setup.batch, element);
    block_cost_ = block_cost(setup.model, setup.model.layer_shape(0), setup.batch, element);
    head_cost_ = head_cost(setup.model, setup.batch, element);
    plan_.buckets = gradient_buckets(setup.model, element_bytes(setup.gradient_precision), setup.buckets);
  }

  StepPlan plan() {
    for (std::uint32_t part = embedding_part; part <= head_; ++part) {
      plan_.forward += compute("forward " + name(part), cost(part), 1);
      plan_.forward_flops += cost(part).flops;
    }
    for (std::uint32_t part = head_ + 1; part-- > embedding_part;) {
      plan_.backward += compute("backward " + name(part), cost(part), 2);
      reduce_buckets_of(part);
    }
    const std::int64_t per_parameter =
        adam_traffic(element_bytes(setup_.gradient_precision), element_bytes(setup_.precision));
    plan_.optimizer = compute("optimizer", {0, Bytes(setup_.model.parameters() * per_parameter)}, 1);
    plan_.operations.back().after = reductions_;
    return std::move(plan_);
  }

 private:
  const PartCost& cost(std::uint32_t part) const {
    return part == embedding_part ? embedding_cost_ : part == head_ ? head_cost_ : block_cost_;
  }
  std::string name(std::uint32_t part) const {
    if (part == embedding_part) return "embedding";
    return part == head_ ? "head" : fmt::format("block {}", part - 1);
  }

  Time compute(std::string label, const PartCost& cost, std::int64_t passes) {
    PlannedOperation operation;
    operation.duration = roofline_time(setup_.device, setup_.precision, cost.flops * static_cast<double>(passes),
                                       saturated(static_cast<unsigned __int128>(cost.traffic.count()) * passes));
    operation.label = std::move(label);
    if (operation.duration > longest_ - total_)
      throw where_.error(fmt::format("one step would compute for longer than {:.3g} s", longest_.seconds()));
    total_ += operation.duration;
    plan_.operations.push_back(operation);
    return operation.duration;
  }

  /// Reductions of the buckets that the newest operation, the backward pass of `part`, completes.
  void reduce_buckets_of(std::uint32_t part) {
    const auto backward = static_cast<std::uint32_t>(plan_.operations.size() - 1);
    for (; bucket_ < plan_.buckets.size() && plan_.buckets[bucket_].ready_after == part; ++bucket_) {
      PlannedOperation operation;
      operation.collective = true;
      operation.bucket = bucket_;
      operation.after = {backward};
      operation.label = fmt::format("grad bucket {}", bucket_);
      reductions_.push_back(static_cast<std::uint32_t>(plan_.operations.size()));
      plan_.operations.push_back(std::move(operation));
    }
  }

  const TrainingSetup& setup_;
  const Spec& where_;
  Time longest_;
  std::uint32_t head_;
  PartCost embedding_cost_, block_cost_, head_cost_;
  StepPlan plan_;
  Time total_;
  std::uint32_t bucket_ = 0;
  std::vector<std::uint32_t> reductions_;
};

}  // namespace

StepPlan plan_step(const TrainingSetup& setup, const Spec& where, Time longest) {
  return Planner(setup, where, longest).plan();
}

}  // namespace weft
