// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/parallel/rank_layout.hpp"

#include <algorithm>
#include <initializer_list>
#include <sstream>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::array<std::string_view, group_kind_count> names{
    "tensor", "context",       "data",        "expert",   "expert tensor",  "expert data",
    "shard",  "replica",       "model",       "pipeline", "embedding",      "mirror",
    "world",  "expert server", "expert rail", "stage",    "tensor context", "tensor overlap"};

constexpr std::array<std::string_view, 5> dimension_names{"tp", "cp", "ep", "dp", "pp"};

constexpr std::uint32_t to_count(std::int64_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

std::string_view to_text(GroupKind kind) { return names.at(static_cast<std::size_t>(kind)); }

RankLayout::Grid RankLayout::make_grid(const std::string& order, const std::array<std::uint32_t, 5>& sizes,
                                       Dimension left_out) {
  Grid grid;
  grid.sizes = sizes;
  grid.sizes[left_out] = 1;
  std::istringstream words(order);
  std::uint32_t stride = 1;
  for (std::string word; std::getline(words, word, '-');)
    for (std::uint8_t d = 0; d < dimension_names.size(); ++d) {
      if (word != dimension_names[d] || d == left_out) continue;
      grid.dimensions.push_back(static_cast<Dimension>(d));
      grid.strides[d] = stride;
      stride *= grid.sizes[d];
    }
  return grid;
}

RankLayout::RankLayout(const ParallelPlan& plan) {
  const std::uint32_t t = to_count(plan.tensor), c = to_count(plan.context), d = to_count(plan.data),
                      p = to_count(plan.pipeline), e = to_count(plan.expert), et = to_count(plan.expert_tensor);
  WEFT_EXPECT(t * c * d % (e * et) == 0, "{} expert ranks of {} tensor ranks in {}", e, et, t * c * d);
  world_ = t * c * d * p;
  pipeline_ = p;
  embedding_copy_ = plan.embedding_copy > 0 ? to_count(plan.embedding_copy) : p - 1;
  shard_ = plan.shard_group > 0 ? to_count(plan.shard_group) : d * c;
  server_ = plan.expert_server > 0 ? to_count(plan.expert_server) : 1;
  dense_ = make_grid(plan.order, {t, c, 1, d, p}, expert_dim);
  experts_ = make_grid(plan.order, {et, 1, e, t * c * d / (e * et), p}, context_dim);
  WEFT_EXPECT(dense_.dimensions.size() == 4 && experts_.dimensions.size() == 4, "order {}", plan.order);
}

bool RankLayout::spans_pipeline(GroupKind kind) {
  return kind == GroupKind::model || kind == GroupKind::pipeline || kind == GroupKind::embedding ||
         kind == GroupKind::mirror || kind == GroupKind::world;
}

RankLayout::Span RankLayout::span(GroupKind kind) const {
  Span result{&dense_, {}};
  const auto vary = [&result](std::initializer_list<Dimension> dimensions) {
    for (const Dimension d : dimensions) result.varies[d] = true;
  };
  switch (kind) {
    case GroupKind::tensor:
    case GroupKind::tensor_overlap:
      vary({tensor_dim});
      break;
    case GroupKind::context:
      vary({context_dim});
      break;
    case GroupKind::data:
    case GroupKind::shard:
    case GroupKind::replica:
      vary({context_dim, data_dim});
      break;
    case GroupKind::expert:
    case GroupKind::expert_server:
    case GroupKind::expert_rail:
      result.grid = &experts_;
      vary({expert_dim});
      break;
    case GroupKind::expert_tensor:
      result.grid = &experts_;
      vary({tensor_dim});
      break;
    case GroupKind::expert_data:
      result.grid = &experts_;
      vary({data_dim});
      break;
    case GroupKind::model:
      vary({tensor_dim, pipeline_dim});
      break;
    case GroupKind::pipeline:
    case GroupKind::embedding:
    case GroupKind::mirror:
      vary({pipeline_dim});
      break;
    case GroupKind::stage:
      vary({tensor_dim, context_dim, data_dim});
      break;
    case GroupKind::tensor_context:
      vary({tensor_dim, context_dim});
      break;
    case GroupKind::world:
      vary({tensor_dim, context_dim, data_dim, pipeline_dim});
      break;
  }
  return result;
}

std::uint32_t RankLayout::digit(const Grid& grid, Dimension dimension, Rank rank) const {
  return rank.value() / grid.strides[dimension] % grid.sizes[dimension];
}

RankPlace RankLayout::place(Rank rank) const {
  return {digit(dense_, tensor_dim, rank), digit(dense_, context_dim, rank), digit(dense_, data_dim, rank),
          digit(dense_, pipeline_dim, rank)};
}

Rank RankLayout::rank(const RankPlace& place) const {
  return Rank(place.tensor * dense_.strides[tensor_dim] + place.context * dense_.strides[context_dim] +
              place.data * dense_.strides[data_dim] + place.pipeline * dense_.strides[pipeline_dim]);
}

std::uint32_t RankLayout::whole_size(const Span& span) const {
  std::uint32_t size = 1;
  for (const Dimension d : span.grid->dimensions)
    if (span.varies[d]) size *= span.grid->sizes[d];
  return size;
}

// The pipeline's digit counts most, then the others in their order.
std::uint32_t RankLayout::whole_group(const Span& span, Rank rank) const {
  std::uint32_t group = 0;
  std::uint32_t stride = 1;
  for (const Dimension d : span.grid->dimensions) {
    if (span.varies[d] || d == pipeline_dim) continue;
    group += digit(*span.grid, d, rank) * stride;
    stride *= span.grid->sizes[d];
  }
  return span.varies[pipeline_dim] ? group : group + digit(*span.grid, pipeline_dim, rank) * stride;
}

std::uint32_t RankLayout::whole_index(const Span& span, Rank rank) const {
  std::uint32_t index = 0;
  std::uint32_t stride = 1;
  for (const Dimension d : span.grid->dimensions) {
    if (!span.varies[d]) continue;
    index += digit(*span.grid, d, rank) * stride;
    stride *= span.grid->sizes[d];
  }
  return index;
}

Rank RankLayout::whole_member(const Span& span, std::uint32_t group, std::uint32_t index) const {
  std::uint32_t rank = 0;
  for (const Dimension d : span.grid->dimensions) {
    if (!span.varies[d] && d == pipeline_dim) continue;
    std::uint32_t& rest = span.varies[d] ? index : group;
    rank += rest % span.grid->sizes[d] * span.grid->strides[d];
    rest /= span.grid->sizes[d];
  }
  if (!span.varies[pipeline_dim]) rank += group * span.grid->strides[pipeline_dim];
  return Rank(rank);
}

std::uint32_t RankLayout::size(GroupKind kind) const {
  const std::uint32_t whole = whole_size(span(kind));
  if (kind == GroupKind::shard) return shard_;
  if (kind == GroupKind::replica) return whole / shard_;
  if (kind == GroupKind::expert_server) return server_;
  if (kind == GroupKind::expert_rail) return whole / server_;
  if (kind == GroupKind::embedding || kind == GroupKind::mirror) return pipeline_ > 1 ? 2 : 1;
  return whole;
}

std::uint32_t RankLayout::groups(GroupKind kind) const {
  const Span all = span(kind);
  const std::uint32_t whole = whole_size(all);
  if (kind == GroupKind::embedding) return world_ / whole;
  // The middle of an odd pipeline is its own mirror image.
  if (kind == GroupKind::mirror) return world_ / whole * ((pipeline_ + 1) / 2);
  return world_ / size(kind);
}

std::uint32_t RankLayout::group_of(GroupKind kind, Rank rank) const {
  const Span all = span(kind);
  const std::uint32_t group = whole_group(all, rank);
  const std::uint32_t index = whole_index(all, rank);
  const std::uint32_t whole = whole_size(all);
  if (kind == GroupKind::shard) return group * (whole / shard_) + index / shard_;
  if (kind == GroupKind::replica) return group * shard_ + index % shard_;
  if (kind == GroupKind::expert_server) return group * (whole / server_) + index / server_;
  if (kind == GroupKind::expert_rail) return group * server_ + index % server_;
  if (kind == GroupKind::mirror) return group * ((pipeline_ + 1) / 2) + std::min(index, pipeline_ - 1 - index);
  return group;
}

std::uint32_t RankLayout::index_of(GroupKind kind, Rank rank) const {
  const std::uint32_t index = whole_index(span(kind), rank);
  if (kind == GroupKind::shard) return index % shard_;
  if (kind == GroupKind::replica) return index / shard_;
  if (kind == GroupKind::expert_server) return index % server_;
  if (kind == GroupKind::expert_rail) return index / server_;
  if (kind == GroupKind::embedding) return index == 0 ? 0 : 1;
  if (kind == GroupKind::mirror) return index <= pipeline_ - 1 - index ? 0 : 1;
  return index;
}

Rank RankLayout::member(GroupKind kind, std::uint32_t group, std::uint32_t index) const {
  const Span all = span(kind);
  const std::uint32_t whole = whole_size(all);
  if (kind == GroupKind::shard) {
    const std::uint32_t parts = whole / shard_;
    return whole_member(all, group / parts, group % parts * shard_ + index);
  }
  if (kind == GroupKind::replica) return whole_member(all, group / shard_, index * shard_ + group % shard_);
  if (kind == GroupKind::expert_server) {
    const std::uint32_t servers = whole / server_;
    return whole_member(all, group / servers, group % servers * server_ + index);
  }
  if (kind == GroupKind::expert_rail) return whole_member(all, group / server_, index * server_ + group % server_);
  if (kind == GroupKind::embedding) return whole_member(all, group, index == 0 ? 0 : embedding_copy_);
  if (kind == GroupKind::mirror) {
    const std::uint32_t pairs = (pipeline_ + 1) / 2;
    return whole_member(all, group / pairs, index == 0 ? group % pairs : pipeline_ - 1 - group % pairs);
  }
  return whole_member(all, group, index);
}

std::uint32_t RankLayout::communicator_id(GroupKind kind, std::uint32_t group) const {
  std::uint32_t first = 0;
  for (std::uint8_t k = 0; k < static_cast<std::uint8_t>(kind); ++k) first += groups(static_cast<GroupKind>(k));
  return first + group;
}

Communicator RankLayout::communicator(GroupKind kind, std::uint32_t group) const {
  const std::uint32_t count = size(kind);
  const std::uint32_t id = communicator_id(kind, group);
  std::vector<Rank> ranks;
  ranks.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) ranks.push_back(member(kind, group, i));
  const std::uint32_t stride = count > 1 ? ranks[1].value() - ranks[0].value() : 1;
  bool even = count == 1 || ranks[1].value() > ranks[0].value();
  for (std::uint32_t i = 1; even && i < count; ++i) even = ranks[i].value() == ranks[0].value() + i * stride;
  if (even) return {id, count, ranks[0].value(), stride};  // needs no list
  return {id, std::move(ranks)};
}

}  // namespace weft
