// SPDX-License-Identifier: GPL-2.0-only
// Derives numbers of ranks, experts and sequences of a training description.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "workloads/parallel/settling.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Ranks from the world or the machine, experts over them, and sequences.
class RankSettling {
 public:
  RankSettling(TrainingDescription& description, std::int64_t hosts, const Complaints& complaints)
      : d_(description), p_(description.parallel), hosts_(hosts), complaints_(complaints) {}

  void settle() {
    settle_ranks();
    settle_experts();
    settle_batches();
  }

 private:
  void settle_ranks() {
    const std::int64_t replica = complaints_.ranks_of({p_.tensor, p_.context, p_.pipeline});
    if (p_.data == 0) p_.data = data_of(replica);
    const std::int64_t product = complaints_.ranks_of({replica, p_.data});
    const std::string shape = fmt::format("tensor {} x context {} x data {} x pipeline {} = {} ranks", p_.tensor,
                                          p_.context, p_.data, p_.pipeline, grouped(product));
    if (d_.world != 0 && d_.world != product)
      complaints_.raise({"data", "world", "tensor", "pipeline", "context"},
                        fmt::format("{}, but the world is {}; {}", shape, grouped(d_.world), right_data(replica)));
    d_.world = product;
    if (hosts_ > 0 && d_.world > hosts_)
      complaints_.raise({"world", "data", "tensor", "pipeline", "context"},
                        fmt::format("{}, but the machine has {} accelerators; use a machine of {}", shape,
                                    grouped(hosts_), grouped(d_.world)));
  }

  std::string right_data(std::int64_t replica) const {
    if (d_.world % replica == 0) return fmt::format("use data {}", d_.world / replica);
    return fmt::format("use a world of {}", grouped(replica * p_.data));
  }

  /// The number of data-parallel ranks if it is not given; each copy has `replica` ranks.
  std::int64_t data_of(std::int64_t replica) const {
    const std::int64_t world = d_.world != 0 ? d_.world : hosts_;
    if (world == 0) return min_data();
    if (world % replica != 0)
      complaints_.raise(
          {"world", "tensor", "pipeline", "context"},
          fmt::format("tensor {} x context {} x pipeline {} = {} ranks do not divide the {} of {}; use {}", p_.tensor,
                      p_.context, p_.pipeline, grouped(replica), d_.world != 0 ? "world" : "machine's accelerators",
                      grouped(world), near_multiples(replica, world)));
    return world / replica;
  }

  /// If the number of ranks is not given: the number that the batches need, or the least that hold the experts.
  std::int64_t min_data() const {
    if (d_.global_batch != 0 && d_.micro_batches != 0 && d_.micro_batch != 0) {
      const std::int64_t share = d_.micro_batch * d_.micro_batches;
      if (d_.global_batch % share == 0) return d_.global_batch / share;
    }
    const std::int64_t holding =
        complaints_.ranks_of({p_.expert, p_.expert_tensor == 0 ? p_.tensor : p_.expert_tensor});
    return holding / std::gcd(holding, p_.tensor * p_.context);
  }

  void settle_experts() {
    if (p_.expert_tensor == 0) p_.expert_tensor = p_.tensor;
    if (p_.expert_server > 0 && (p_.expert % p_.expert_server != 0 || p_.expert == p_.expert_server))
      complaints_.raise(
          {"expert_server", "expert"},
          fmt::format("expert {} is not several times expert_server {}; expected the same number of expert ranks in "
                      "each of several servers",
                      p_.expert, p_.expert_server));
    if (p_.forward_in_parts && p_.expert_server == 0)
      complaints_.raise({"expert_forwarding"}, "it needs expert_server, the expert ranks of one server");
    if (p_.servers_per_token > 0 && p_.expert_server == 0)
      complaints_.raise({"servers_per_token"}, "it needs expert_server, the expert ranks of one server");
    if (p_.expert == 1) return;
    const MlpShape* mixture = largest_mixture();
    if (mixture == nullptr)
      complaints_.raise({"expert"}, fmt::format("expert {}, but no block of the model has experts; use 1", p_.expert));
    const std::int64_t group = complaints_.ranks_of({p_.expert, p_.expert_tensor});
    const std::int64_t stage = complaints_.ranks_of({p_.tensor, p_.context, p_.data});
    if (stage % group != 0)
      complaints_.raise(
          {"expert", "expert_tensor"},
          fmt::format("expert {} x expert_tensor {} = {} ranks do not divide the tensor {} x context {} x data {} = "
                      "{} ranks of a pipeline stage; use {}",
                      p_.expert, p_.expert_tensor, grouped(group), p_.tensor, p_.context, p_.data, grouped(stage),
                      near_divisors(stage, group)));
  }

  const MlpShape* largest_mixture() const {
    const MlpShape* mixture = nullptr;
    for (const BlockShape& shape : d_.model.shapes)
      if (shape.mlp.mixture()) mixture = &shape.mlp;
    return mixture;
  }

  void settle_batches() {
    if (d_.micro_batch == 0) settle_micro_batch();
    const std::int64_t share = d_.micro_batch * p_.data;
    if (d_.micro_batches == 0) {
      if (d_.global_batch % share != 0)
        complaints_.raise({"global_batch", "micro_batch", "data"},
                          fmt::format("global_batch {} is no multiple of micro_batch {} x data {} = {}; use {}",
                                      grouped(d_.global_batch), d_.micro_batch, p_.data, grouped(share),
                                      near_multiples(share, d_.global_batch)));
      d_.micro_batches = std::max<std::int64_t>(1, d_.global_batch / share);
    }
    if (d_.micro_batches > Complaints::max / share)
      complaints_.raise({"micro_batches", "global_batch", "micro_batch"},
                        fmt::format("micro_batch {} x data {} x micro_batches {} is more than {} sequences a step",
                                    d_.micro_batch, p_.data, d_.micro_batches, grouped(Complaints::max)));
    const std::int64_t batch = share * d_.micro_batches;
    if (d_.global_batch != 0 && d_.global_batch != batch)
      complaints_.raise({"global_batch", "micro_batches", "micro_batch"},
                        fmt::format("global_batch {}, but micro_batch {} x data {} x micro_batches {} = {}; {}",
                                    grouped(d_.global_batch), d_.micro_batch, p_.data, d_.micro_batches, grouped(batch),
                                    right_batch(share, batch)));
    d_.global_batch = batch;
  }

  void settle_micro_batch() {
    const std::int64_t share = p_.data * std::max<std::int64_t>(1, d_.micro_batches);
    if (d_.global_batch == 0 || d_.global_batch % share != 0)
      complaints_.raise({"global_batch", "micro_batches", "data"},
                        fmt::format("global_batch {} is no multiple of data {} x micro_batches {} = {}; use {}",
                                    grouped(d_.global_batch), p_.data, std::max<std::int64_t>(1, d_.micro_batches),
                                    grouped(share), near_multiples(share, d_.global_batch)));
    d_.micro_batch = d_.global_batch / share;
    complaints_.require("micro_batch", d_.micro_batch, 1, 65536);
  }

  std::string right_batch(std::int64_t share, std::int64_t batch) const {
    if (d_.global_batch % share == 0) return fmt::format("use micro_batches {}", d_.global_batch / share);
    return fmt::format("use a global_batch of {}", grouped(batch));
  }

  TrainingDescription& d_;
  ParallelPlan& p_;
  std::int64_t hosts_;
  const Complaints& complaints_;
};

}  // namespace

void settle_ranks_and_batches(TrainingDescription& description, std::int64_t hosts, const Complaints& complaints) {
  RankSettling(description, hosts, complaints).settle();
}

}  // namespace weft
