// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/graph_search.hpp"

#include <algorithm>
#include <span>

#include "nccl/channel_search.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

using Kind = NcclNode::Kind;

// Speeds that are tried, highest first: src/graph/search.cc, speedArrayIntra and the others.
constexpr double ampere_intra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double ampere_inter[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double hopper_intra[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double hopper_inter[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double blackwell_intra[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double blackwell_inter[] = {96, 86,   80, 48, 45.1, 42, 40,  30,  24,   22,
                                      20, 17.5, 15, 12, 6,    3,  2.4, 1.2, 0.24, 0.12};

std::span<const double> speeds_of(const NcclSystem& system) {
  const bool inter = system.several_servers();
  switch (system.architecture()) {
    case GpuArchitecture::blackwell:
      return inter ? std::span<const double>(blackwell_inter) : blackwell_intra;
    case GpuArchitecture::hopper:
      return inter ? std::span<const double>(hopper_inter) : hopper_intra;
    default:
      return inter ? std::span<const double>(ampere_inter) : ampere_intra;
  }
}

// Steps that one search may take (NCCL_SEARCH_TIMEOUT_*).
constexpr int steps_of_same_channels = 1 << 8;
constexpr int steps_of_different_channels = 1 << 14;
constexpr std::int64_t steps_in_all = 1 << 19;

PathType worse(PathType type) { return static_cast<PathType>(static_cast<int>(type) + 1); }

struct TypeRange {
  PathType best = PathType::none;
  PathType worst = PathType::local;
};
TypeRange types_to(const NcclSystem& system, Kind kind) {
  TypeRange range;
  for (std::uint32_t gpu = 0; gpu < system.count(Kind::gpu); ++gpu) {
    for (std::uint32_t other = 0; other < system.count(kind); ++other) {
      if (kind == Kind::gpu && other == gpu) continue;
      const PathType type = system.path(Kind::gpu, gpu, kind, other).type;
      range.best = std::min(range.best, type);
      range.worst = std::max(range.worst, type);
    }
  }
  return range;
}

/// ncclTopoCompute: searches one after another, with better and worse kinds of paths, speeds and patterns.
class GraphFinder {
 public:
  GraphFinder(const NcclSystem& system, GraphPattern pattern, std::uint32_t min, std::uint32_t max,
              const NcclSearchOptions& options)
      : system_(system), speeds_(speeds_of(system)), gpus_(system.count(Kind::gpu)) {
    best_.pattern = gpus_ == 1 && pattern != GraphPattern::ring ? GraphPattern::tree : pattern;
    best_.min_channels = min;
    best_.max_channels = max;
    cross_nic_ = system.count(Kind::net) > 1 && pattern != GraphPattern::tree && pattern != GraphPattern::nvls
                     ? options.cross_nic
                     : 0;
    best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    if (gpus_ > 1) intra_ = types_to(system, Kind::gpu);
    if (gpus_ == 1) intra_ = {PathType::local, PathType::between_cpus};
    if (system.several_servers()) {
      inter_ = types_to(system, Kind::net);
      if (system.architecture() < GpuArchitecture::hopper)
        inter_.worst = std::max(inter_.worst, PathType::between_cpus);
      intra_.worst = inter_.worst;
    }
    best_.intra_type = intra_.best;
    best_.inter_type = inter_.best;
    best_.same_channels = best_.pattern != GraphPattern::nvls;
    if (best_.pattern == GraphPattern::nvls) {
      best_.max_channels = std::min(max_nvls_heads, gpus_);
      if (!system.several_servers()) best_.min_channels = best_.max_channels;
    }
  }

  NcclSearchGraph find() {
    const bool nvls = best_.pattern == GraphPattern::nvls;
    if (nvls && (system_.count(Kind::nvswitch) == 0 || system_.architecture() < GpuArchitecture::hopper)) return best_;
    first_pass();
    duplicate_channels();
    second_pass();
    if (best_.channels.empty() && !nvls) take_numbers_order();
    return best_;
  }

 private:
  static constexpr std::uint32_t max_nvls_heads = 32;  // NCCL_MAX_NVLS_ARITY

  int search(const NcclSearchGraph& wanted) {
    const int steps = wanted.same_channels ? steps_of_same_channels : steps_of_different_channels;
    left_ -= steps;
    const int left = search_channels(system_, wanted, best_, steps);
    if (left != perfect_search) left_ += left > 0 ? left : 0;
    return left;
  }
  double found() const { return static_cast<double>(best_.channels.size()); }
  bool uses_all() const { return found() * best_.inter >= system_.max_of_a_gpu() && !best_.channels.empty(); }
  double max_of_a_gpu() const {
    const bool tree = best_.pattern != GraphPattern::ring && gpus_ > 1;
    return system_.max_of_a_gpu() * (tree ? static_cast<double>(gpus_) / (gpus_ - 1) : 1);
  }

  void first_pass() {
    std::size_t speed = 0;
    while (speed + 1 < speeds_.size() &&
           (speeds_[speed] > system_.max_of_a_channel() || speeds_[speed] * best_.min_channels > max_of_a_gpu()))
      ++speed;
    const GraphPattern pattern = best_.pattern;
    const bool may_be_same = best_.same_channels;
    const std::uint32_t cross_nic = best_.cross_nic;
    NcclSearchGraph wanted = best_;
    wanted.intra = wanted.inter = speeds_[speed];
    while (true) {
      if (search(wanted) == perfect_search || uses_all()) return;
      if (wanted.same_channels) {
        wanted.same_channels = false;
        continue;
      }
      wanted.same_channels = may_be_same;
      if (left_ < 0 && !best_.channels.empty()) return;
      // A simpler tree.
      if (system_.architecture() >= GpuArchitecture::hopper && wanted.pattern == GraphPattern::balanced_tree) {
        wanted.pattern = GraphPattern::tree;
        continue;
      }
      wanted.pattern = pattern;
      const bool none = best_.channels.empty();
      const PathType max_intra = system_.several_servers() ? wanted.inter_type : intra_.worst;
      if (wanted.intra_type < max_intra && (none || wanted.intra_type < best_.intra_type)) {
        wanted.intra_type = worse(wanted.intra_type);
        if (wanted.intra_type < PathType::none) continue;
      }
      wanted.intra_type = intra_.best;
      if (system_.several_servers() && wanted.inter_type < inter_.worst &&
          (none || wanted.inter_type < best_.inter_type || wanted.inter_type < PathType::peers_nic)) {
        wanted.inter_type = worse(wanted.inter_type);
        if (wanted.inter_type < PathType::none) continue;
      }
      wanted.inter_type = inter_.best;
      if (cross_nic_ == 2 && wanted.cross_nic == 0 &&
          (pattern == GraphPattern::ring || pattern == GraphPattern::balanced_tree)) {
        wanted.cross_nic = 2;
        continue;
      }
      wanted.cross_nic = cross_nic;
      if (speed + 1 == speeds_.size() || (!none && speeds_[speed + 1] / best_.inter <= 0.49)) return;
      wanted.intra = wanted.inter = speeds_[++speed];
    }
  }

  // ncclTopoDupChannels
  void duplicate_channels() {
    const auto count = static_cast<std::uint32_t>(best_.channels.size());
    if (count == 0 || best_.pattern == GraphPattern::nvls || best_.intra < 25) return;
    if (system_.architecture() >= GpuArchitecture::hopper && best_.intra < 50 && count > 4) return;
    const std::uint32_t more = std::min(2 * count, best_.max_channels);
    for (std::uint32_t i = count; i < more; ++i) best_.channels.push_back(best_.channels[i - count]);
    best_.intra /= (more + count - 1) / count;
    best_.inter /= (more + count - 1) / count;
  }

  // Faster with as many channels.
  void second_pass() {
    if (best_.channels.empty()) return;
    std::size_t speed = 0;
    while (speed + 1 < speeds_.size() && speeds_[speed] > best_.inter) ++speed;
    NcclSearchGraph wanted = best_;
    wanted.intra = wanted.inter = speeds_[speed];
    wanted.min_channels = static_cast<std::uint32_t>(best_.channels.size());
    int left = perfect_search;
    while (left != 0 && speed > 0) {
      if (best_.pattern == GraphPattern::ring) {
        wanted.intra = wanted.inter = speeds_[--speed];
      } else if (best_.pattern == GraphPattern::nvls) {
        if (wanted.inter != best_.inter || wanted.inter >= wanted.intra * 2) return;
        wanted.min_channels = wanted.max_channels = static_cast<std::uint32_t>(best_.channels.size());
        wanted.inter = speeds_[--speed];
      } else {
        if (wanted.intra != best_.intra || wanted.intra >= wanted.inter * 2) return;
        wanted.intra = speeds_[--speed];
      }
      left = search(wanted);
    }
  }

  void take_numbers_order() {
    NcclSearchChannel all;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) all.gpus.push_back(gpu);
    best_.channels = {all};
    best_.intra = best_.inter = 0.1;
    best_.intra_type = best_.inter_type = PathType::between_cpus;
  }

  const NcclSystem& system_;
  std::span<const double> speeds_;
  std::uint32_t gpus_;
  std::uint32_t cross_nic_ = 0;
  TypeRange intra_;
  TypeRange inter_{PathType::one_switch, PathType::between_cpus};
  std::int64_t left_ = steps_in_all;
  NcclSearchGraph best_;
};

}  // namespace

NcclSearchGraph search_nccl_graph(const NcclSystem& system, GraphPattern pattern, std::uint32_t min_channels,
                                  std::uint32_t max_channels, const NcclSearchOptions& options) {
  WEFT_EXPECT(system.count(Kind::gpu) > 0, "a server without GPUs");
  return GraphFinder(system, pattern, min_channels, max_channels, options).find();
}

}  // namespace weft
