// SPDX-License-Identifier: GPL-2.0-only
// The mixture of experts of a block: router, tokens on their way to experts and back, experts, shared experts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/pass/mlp_passes.hpp"

namespace weft {

class MixturePasses : private MlpPasses {
 public:
  // Megatron-LM gives no buffers to experts (megatron/core/extensions/transformer_engine.py, TELinear: ub_overlap_ag
  // and ub_overlap_rs are false if is_expert). Shared experts are taken to have none either.
  explicit MixturePasses(const PassSetup& setup) : MlpPasses(setup, false) {}

  void forward(const MlpShape& mlp, std::vector<Segment>& to) const;
  /// The two parts of it: the choice of experts, and all else.
  void route(const MlpShape& mlp, std::vector<Segment>& to) const;
  void compute(const MlpShape& mlp, std::vector<Segment>& to) const;
  /// All but the router. `inputs_too`, `weights_too`: gradients of inputs, of weights.
  void backward(const MlpShape& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const;
  void route_back(const MlpShape& mlp, std::vector<Segment>& to) const;

 private:
  /// All-to-all of the copies of a rank's tokens.
  Segment dispatch(const MlpShape& mlp, std::string_view what, const std::string& precision, bool combine) const;
  void count_tokens(const MlpShape& mlp, std::vector<Segment>& to) const;
  void travel(const MlpShape& mlp, std::string_view what, const std::string& precision, bool combine, bool beside,
              std::vector<Segment>& to) const;
  /// Behind the newest piece another pass goes on (ParallelPlan::combined()): the one whose computation hides the
  /// exchange that was launched last.
  void yield(std::vector<Segment>& to) const;
  Segment expert_collective(const MlpShape& mlp, std::string_view what, CollectiveKind kind) const;
  std::string dispatch_precision() const;
  std::string gradient_precision() const;
  std::string router_precision() const;

  FeedForward expert(const MlpShape& mlp) const;
  KernelUnits units_of_choices(const MlpShape& mlp) const;
  KernelUnits units_of_copies(const MlpShape& mlp, const FeedForward& inner) const;
  void experts_forward(const MlpShape& mlp, std::vector<Segment>& to) const;
  void experts_backward(const MlpShape& mlp, std::vector<Segment>& to, bool inputs_too, bool weights_too) const;
};

}  // namespace weft
