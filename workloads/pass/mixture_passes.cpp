// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/pass/mixture_passes.hpp"

#include <utility>

namespace weft {
namespace {

MlpKind of_experts(const FeedForward& experts) {
  return {.gated = experts.gated, .dense = false, .experts = true, .several = experts.up.count > 1};
}

}  // namespace

Segment MixturePasses::dispatch(const MlpShape& mlp, std::string_view what, const std::string& precision,
                                bool combine) const {
  Segment segment;
  segment.kind = Segment::Kind::collective;
  segment.what = what;
  segment.stream = Stream::expert;
  segment.group = GroupKind::expert;
  segment.collective = CollectiveKind::all_to_all;
  segment.size = bytes_of(routed_tokens(*setup_.description) * mlp.experts_per_token, h_, element_bytes(precision));
  segment.by_load = true;
  segment.combine = combine;
  return segment;
}

// Numbers of 8 B (NVIDIA/Megatron-LM, commit 0014f137, megatron/core/transformer/moe/token_dispatcher.py,
// MoEAlltoAllTokenDispatcher): each rank gathers how many tokens every other one has for each expert, and the host
// reads from them how much it exchanges. Alone, it reads its own.
void MixturePasses::count_tokens(const MlpShape& mlp, std::vector<Segment>& to) const {
  if (!setup_.kernels().counts_tokens || setup_.description->pad_to_capacity) return;
  if (plan_.expert > 1) {
    Segment numbers;
    numbers.kind = Segment::Kind::collective;
    numbers.what = "numbers of tokens";
    numbers.stream = Stream::expert;
    numbers.group = GroupKind::expert;
    numbers.collective = CollectiveKind::all_gather;
    numbers.size = bytes_of(mlp.experts, plan_.expert, 8);
    to.push_back(numbers);
  }
  to.back().host_waits = true;
}

// Copies of tokens to their experts (`combine`: back). By servers: one copy for each server that a token goes to, as
// many as may be, then on to the experts there; in parts both at the same time, so that the slower of them counts
// (DeepEP, csrc/kernels/internode.cu: forwarders send on what arrives, some tokens at a time).
void MixturePasses::travel(const MlpShape& mlp, std::string_view what, const std::string& precision, bool combine,
                           bool beside, std::vector<Segment>& to) const {
  if (plan_.expert < 2) return;
  std::vector<Segment> legs{dispatch(mlp, what, precision, combine)};
  if (plan_.expert_server > 0) {
    legs.push_back(legs.front());
    legs[0].group = GroupKind::expert_rail;
    legs[0].size =
        bytes_of(routed_tokens(*setup_.description) * servers_of_token(plan_, mlp), h_, element_bytes(precision));
    legs[1].group = GroupKind::expert_server;
    if (combine) std::swap(legs[0], legs[1]);
  }
  const bool in_parts = legs.size() == 2 && plan_.forward_in_parts;
  if (in_parts) legs[1].stream = Stream::context;
  for (Segment& leg : legs) {
    leg.beside = beside || in_parts;  // the second one waits for the first in their stream
    to.push_back(leg);
  }
  if (!in_parts || beside) return;
  Segment arrived;
  arrived.what = what;
  arrived.stream = Stream::none;
  arrived.join = true;
  to.push_back(arrived);
}

// Rows of one local expert when the tokens are spread evenly.
FeedForward MixturePasses::expert(const MlpShape& mlp) const {
  const std::int64_t here = share_of(mlp.experts, plan_.expert);
  const std::int64_t rows =
      share_of(routed_tokens(*setup_.description) * mlp.experts_per_token * plan_.expert_tensor, here);
  FeedForward result = feed_forward(rows, mlp.expert_inner, mlp.gated, plan_.expert_tensor, here);
  result.up.grouped = result.down.grouped = true;
  return result;
}

KernelUnits MixturePasses::units_of_choices(const MlpShape& mlp) const {
  KernelUnits units = common_units();
  unit(units, KernelUnit::choices) = routed_tokens(*setup_.description) * mlp.experts;
  unit(units, KernelUnit::chosen) = routed_tokens(*setup_.description) * mlp.experts_per_token;
  return units;
}

// The units of the copies of tokens that leave, and of those that arrive at the experts here, when they are spread
// evenly: as many as leave, and where several ranks share an expert those of all of them.
KernelUnits MixturePasses::units_of_copies(const MlpShape& mlp, const FeedForward& inner) const {
  KernelUnits units = units_of_choices(mlp);
  unit(units, KernelUnit::sent) = unit(units, KernelUnit::chosen) * h_;
  unit(units, KernelUnit::tensors) = inner.up.count;
  unit(units, KernelUnit::copies) = inner.up.rows * inner.up.count * h_;
  unit(units, KernelUnit::inner) = inner.down.rows * inner.down.inner * inner.down.count;
  return units;
}

// All rows of the experts here, for the ranks that share them.
Segment MixturePasses::expert_collective(const MlpShape& mlp, std::string_view what, CollectiveKind kind) const {
  Segment segment = dispatch(mlp, what, activation_precision(*setup_.description), false);
  segment.group = GroupKind::expert_tensor;
  segment.collective = kind;
  segment.size = segment.size * plan_.expert_tensor;
  segment.by_load = false;
  return segment;
}

std::string MixturePasses::dispatch_precision() const {
  const TrainingDescription& d = *setup_.description;
  return d.dispatch_precision.empty() ? activation_precision(d) : d.dispatch_precision;
}

// The precision of gradients on their way to experts: as tokens if GEMMs have fp8, also for gradients (DeepSeek-AI,
// arXiv:2412.19437, 3.3.3).
std::string MixturePasses::gradient_precision() const {
  const TrainingDescription& d = *setup_.description;
  return is_fp8(d.precision) ? dispatch_precision() : d.precision;
}

// The precision of the GEMMs of the router's backward pass: that of its scores, if the device has it.
std::string MixturePasses::router_precision() const {
  const std::string& named = setup_.kernels().router_gradients;
  const bool has = !named.empty() && setup_.times->device().peak.contains(named);
  return has ? named : activation_precision(*setup_.description);
}

void MixturePasses::forward(const MlpShape& mlp, std::vector<Segment>& to) const {
  route(mlp, to);
  compute(mlp, to);
}

void MixturePasses::route(const MlpShape& mlp, std::vector<Segment>& to) const {
  Work router = unquantised();
  router.gemm(routed_tokens(*setup_.description), mlp.experts, h_);
  router.small(KernelPlace::router, false, units_of_choices(mlp));
  to.push_back(router.segment("router"));
  count_tokens(mlp, to);
}

void MixturePasses::compute(const MlpShape& mlp, std::vector<Segment>& to) const {
  // The shared experts compute while the tokens travel, or, where another pass goes beside, before.
  const bool shared = mlp.shared_inner > 0;
  if (shared && plan_.combined()) MlpPasses::forward(shape(mlp.shared_inner, mlp.gated), "shared expert", to);
  yield(to);
  travel(mlp, "dispatch", dispatch_precision(), false, shared && !plan_.combined(), to);
  yield(to);
  if (shared && !plan_.combined()) MlpPasses::forward(shape(mlp.shared_inner, mlp.gated), "shared expert", to);
  experts_forward(mlp, to);
  travel(mlp, "combine", activation_precision(*setup_.description), true, false, to);
}

void MixturePasses::experts_forward(const MlpShape& mlp, std::vector<Segment>& to) const {
  if (plan_.expert_tensor > 1) {
    to.push_back(expert_collective(mlp, "expert gather", CollectiveKind::all_gather));
    to.back().join = true;
  }
  const FeedForward inner = expert(mlp);
  Work work(setup_);
  work.small(KernelPlace::experts_input, false, units_of_copies(mlp, inner), of_experts(inner));
  inner.up.forward(work);
  work.small(KernelPlace::mlp_activation, false, units_of(inner), of_experts(inner));
  inner.down.forward(work);
  work.small(KernelPlace::experts_output, false, units_of_copies(mlp, inner), of_experts(inner));
  to.push_back(work.segment("experts"));
  to.back().by_load = to.back().join = true;
  if (plan_.expert_tensor > 1) to.push_back(expert_collective(mlp, "expert sum", CollectiveKind::reduce_scatter));
}

void MixturePasses::backward(const MlpShape& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const {
  experts_backward(mlp, to, inputs_too, weights_too);
  if (mlp.shared_inner > 0) {
    const FeedForward shared = shape(mlp.shared_inner, mlp.gated);
    if (inputs_too && setup_.description->recompute_modules.shared_experts)
      MlpPasses::forward(shared, "shared expert again", to);
    MlpPasses::backward(shared, to, inputs_too, weights_too);
  }
}

void MixturePasses::yield(std::vector<Segment>& to) const {
  if (plan_.combined() && plan_.expert > 1) to.back().yields = true;
}

void MixturePasses::route_back(const MlpShape& mlp, std::vector<Segment>& to) const {
  Work router(setup_, router_precision());
  const std::int64_t more = element_bytes(router_precision()) - element_;
  router.small(KernelPlace::router, true, units_of_choices(mlp));
  router.wide_gemm(routed_tokens(*setup_.description), h_, mlp.experts, more);
  router.wide_gemm(h_, mlp.experts, routed_tokens(*setup_.description), more, true);
  to.push_back(router.segment("router gradient"));
  to.back().join = true;
}

void MixturePasses::experts_backward(const MlpShape& mlp, std::vector<Segment>& to, bool inputs_too,
                                     bool weights_too) const {
  const FeedForward inner = expert(mlp);
  if (inputs_too) {
    travel(mlp, "combine gradient", gradient_precision(), false, false, to);
    yield(to);
    if (plan_.expert_tensor > 1)
      to.push_back(expert_collective(mlp, "expert gradient gather", CollectiveKind::all_gather));
    Work work(setup_);
    work.small(KernelPlace::experts_output, true, units_of_copies(mlp, inner), of_experts(inner));
    inner.down.input_gradient(work);
    work.small(KernelPlace::mlp_activation, true, units_of(inner), of_experts(inner));
    inner.up.input_gradient(work);
    work.small(KernelPlace::experts_input, true, units_of_copies(mlp, inner), of_experts(inner));
    to.push_back(work.segment("experts input gradient"));
    to.back().by_load = true;
    if (plan_.expert_tensor > 1)
      to.push_back(expert_collective(mlp, "expert gradient sum", CollectiveKind::reduce_scatter));
    yield(to);
  }
  // The gradients of tokens travel beside the GEMMs for those of weights, which are launched first where another pass
  // goes beside.
  const bool weights_first = plan_.combined() && inputs_too && weights_too;
  if (inputs_too && !weights_first)
    travel(mlp, "dispatch gradient", activation_precision(*setup_.description), true, weights_too, to);
  if (weights_too) {
    Work work(setup_);
    inner.up.weight_gradient(work);
    inner.down.weight_gradient(work);
    to.push_back(work.segment("experts weight gradient"));
    to.back().by_load = true;
    to.back().beside = weights_first;
  }
  if (!weights_first) return;
  travel(mlp, "dispatch gradient", activation_precision(*setup_.description), true, false, to);
  yield(to);
}

}  // namespace weft
