// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `recommendation`: training steps of a recommendation model whose embedding tables are shared out over
// ranks.
#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "schedule/collective/selection.hpp"
#include "support/basics/contract.hpp"
#include "workloads/compute/adam.hpp"
#include "workloads/compute/operator_times.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// DLRM (Naumov et al., arXiv:1906.00091): dense features pass a bottom MLP; sparse ones are looked up in tables,
/// summed per sample; products of all pairs of the vectors, and the dense vector, pass a top MLP. MLPs are
/// data-parallel, whole tables belong to ranks, so that each rank's tables look up the samples of all, and an
/// all-to-all brings the vectors to the samples' ranks (Mudigere et al., arXiv:2104.05158, 3).
struct RecommendationJob {
  OperatorTimes times{Device{}};
  std::uint32_t ranks = 0;
  std::int64_t batch = 0;                 ///< samples of each rank
  std::int64_t dimension = 0;             ///< of an embedding vector
  std::int64_t pooling = 1;               ///< look-ups per table and sample
  std::vector<std::int64_t> tables;       ///< rows of each
  std::vector<std::int64_t> bottom, top;  ///< widths of the MLPs' layers, the input first
  std::string precision = "fp32";
  std::uint32_t steps = 1;

  std::int64_t element() const { return element_bytes(precision); }
  /// Table i belongs to rank i mod ranks.
  std::int64_t tables_of(std::uint32_t rank) const {
    const auto count = static_cast<std::int64_t>(tables.size());
    return count / ranks + (static_cast<std::int64_t>(rank) < count % ranks ? 1 : 0);
  }
  static std::int64_t weights(const std::vector<std::int64_t>& widths) {
    std::int64_t sum = 0;
    for (std::size_t i = 1; i < widths.size(); ++i) sum += widths[i - 1] * widths[i] + widths[i];
    return sum;
  }
};

/// The steps of one rank. `calls`: of a step, in the order of these.
enum CallNumber : std::uint32_t { indices_call, vectors_call, gradients_call, top_call, bottom_call, calls_of_step };

class RecommendationWorkload final : public Workload {
 public:
  RecommendationWorkload(RecommendationJob job, std::array<CollectiveCall, calls_of_step> calls)
      : job_(std::move(job)), communicator_(0, job_.ranks), calls_(std::move(calls)) {
    for (CollectiveCall& call : calls_) call.communicator = &communicator_;
  }

  std::uint32_t ranks() const override { return job_.ranks; }
  std::uint64_t call_count() const override { return std::uint64_t{calls_of_step} * job_.steps; }
  CollectiveCall call(std::uint32_t id) const override {
    CollectiveCall call = calls_[id % calls_of_step];
    call.label = fmt::format("step {} {}", id / calls_of_step, call.label);
    call.id = id;
    return call;
  }
  std::unique_ptr<RankProgram> program(Rank rank) const override;

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    unsigned __int128 bytes = 0;
    for (const CollectiveCall& call : calls_) {
      const WorkloadEstimate one = estimate_call(call);
      estimate.messages += one.messages * job_.steps;
      bytes += static_cast<unsigned __int128>(one.bytes.count()) * job_.steps;
    }
    estimate.bytes = saturated(bytes);
    const auto walk = program(Rank(0));  // has as many tables as any
    for (Operation operation; walk->next(operation);)
      if (operation.kind == Operation::Kind::compute) estimate.compute += operation.duration;
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    std::int64_t rows = 0;
    for (const std::int64_t table : job_.tables) rows += table;
    const std::int64_t dense = RecommendationJob::weights(job_.bottom) + RecommendationJob::weights(job_.top);
    return {{"tables", fmt::format("{} of {} rows in all, {} to {} on a rank", job_.tables.size(), grouped(rows),
                                   job_.tables_of(job_.ranks - 1), job_.tables_of(0))},
            {"parameters", fmt::format("{} in tables, {} in MLPs", grouped(rows * job_.dimension), grouped(dense))},
            {"device", job_.times.device().name},
            {"samples per step", grouped(job_.batch * job_.ranks)},
            {"steps", std::to_string(job_.steps)}};
  }

  const RecommendationJob& job() const { return job_; }

 private:
  RecommendationJob job_;
  Communicator communicator_;
  std::array<CollectiveCall, calls_of_step> calls_;
};

/// Operations of a step at fixed positions.
class RecommendationProgram final : public RankProgram {
 public:
  RecommendationProgram(const RecommendationWorkload& workload, Rank rank)
      : workload_(workload), job_(workload.job()), rank_(rank) {
    make_step();
  }

  bool next(Operation& operation) override {
    const std::uint64_t size = plan_.size();
    if (id_ == size * job_.steps) return false;
    const std::uint64_t step = id_ / size;
    operation = plan_[id_ % size];
    operation.id = id_++;
    for (std::uint64_t& position : operation.after) position += step * size;
    if (step > 0 && operation.after.empty()) operation.after.push_back(step * size - 1);
    if (operation.kind == Operation::Kind::collective)
      operation.call = std::make_shared<CollectiveCall>(
          workload_.call(static_cast<std::uint32_t>(step * calls_of_step + operation.tag)));
    operation.tag = 0;
    return true;
  }
  std::size_t read_ahead() const override { return 64; }
  double compute_slowdown() const override { return job_.times.device().slowdown_while_communicating; }

 private:
  std::uint64_t compute(std::string label, Time duration, std::vector<std::uint64_t> after) {
    Operation operation;
    operation.stream = Stream::compute;
    operation.duration = duration;
    operation.label = std::move(label);
    operation.after = std::move(after);
    plan_.push_back(std::move(operation));
    return plan_.size() - 1;
  }
  std::uint64_t communicate(CallNumber call, std::uint64_t after) {
    Operation operation;
    operation.kind = Operation::Kind::collective;
    operation.stream = Stream::communication;
    operation.tag = call;  // until next()
    operation.label = workload_.call(call).label;
    operation.after = {after};
    plan_.push_back(std::move(operation));
    return plan_.size() - 1;
  }

  Time memory(std::int64_t elements) const {
    Kernel kernel;
    kernel.kind = Kernel::Kind::memory;
    kernel.bytes = elements * job_.element();
    kernel.precision = job_.precision;
    return job_.times.of(kernel);
  }
  /// A GEMM per layer forward; two backward.
  Time layers(const std::vector<std::int64_t>& widths, bool backward) const {
    Time sum;
    Kernel kernel;
    kernel.precision = job_.precision;
    const auto gemm = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      kernel.m = m;
      kernel.n = n;
      kernel.k = k;
      sum += job_.times.of(kernel);
    };
    for (std::size_t i = 1; i < widths.size(); ++i) {
      if (!backward) gemm(job_.batch, widths[i], widths[i - 1]);
      if (backward) gemm(job_.batch, widths[i - 1], widths[i]);
      if (backward) gemm(widths[i - 1], widths[i], job_.batch);
    }
    return sum;
  }
  /// GEMMs of all pairs of vectors of each sample.
  Time interaction(bool backward) const {
    const auto vectors = static_cast<std::int64_t>(job_.tables.size()) + 1;
    Kernel kernel;
    kernel.precision = job_.precision;
    kernel.m = kernel.n = vectors;
    kernel.k = job_.dimension;
    kernel.count = job_.batch;
    if (!backward) return job_.times.of(kernel);
    std::swap(kernel.n, kernel.k);
    return job_.times.of(kernel) * 2;
  }

  void make_step() {
    const std::int64_t samples = job_.batch * job_.ranks;
    const std::int64_t own = job_.tables_of(rank_.value());
    const std::int64_t looked_up = own * samples * job_.pooling * job_.dimension;
    const auto start = compute("read batch", memory(job_.batch * job_.bottom.front()), {});
    const auto indices = communicate(indices_call, start);
    const auto dense = compute("forward bottom MLP", layers(job_.bottom, false), {start});
    const auto found = compute("forward look-up", memory(looked_up + own * samples * job_.dimension), {indices});
    const auto vectors = communicate(vectors_call, found);
    const auto crossed = compute("forward interaction", interaction(false), {dense, vectors});
    compute("forward top MLP", layers(job_.top, false), {crossed});
    const auto top = compute("backward top MLP", layers(job_.top, true), {});
    plan_.back().after = {top - 1};
    const auto top_sum = communicate(top_call, top);
    const auto uncrossed = compute("backward interaction", interaction(true), {top});
    const auto gradients = communicate(gradients_call, uncrossed);
    const auto bottom = compute("backward bottom MLP", layers(job_.bottom, true), {uncrossed});
    const auto bottom_sum = communicate(bottom_call, bottom);
    // Rows are read, changed and written, with a sum of squares each (row-wise Adagrad, one number a row: left out).
    const auto updated = compute("update tables", memory(2 * looked_up + own * samples * job_.dimension), {gradients});
    const std::int64_t weights = RecommendationJob::weights(job_.bottom) + RecommendationJob::weights(job_.top);
    compute("update MLPs", memory(weights * 3), {top_sum, bottom_sum, updated});
  }

  const RecommendationWorkload& workload_;
  const RecommendationJob& job_;
  Rank rank_;
  std::vector<Operation> plan_;
  std::uint64_t id_ = 0;
};

std::unique_ptr<RankProgram> RecommendationWorkload::program(Rank rank) const {
  WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
  return std::make_unique<RecommendationProgram>(*this, rank);
}

class RecommendationReader final : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    RecommendationJob job;
    job.times = read_operator_times(spec, context.directory);
    const auto count = spec.find("ranks");
    job.ranks = count ? require_ranks(*count, count->integer(), context) : context.hosts;
    job.batch = spec.at("batch").integer(1, 1 << 24);
    job.dimension = spec.at("dimension").integer(1, 1 << 16);
    if (const auto value = spec.find("pooling")) job.pooling = value->integer(1, 1 << 16);
    job.tables = read_list(spec.at("tables"), std::int64_t{1} << 40);
    job.bottom = read_list(spec.at("bottom_mlp"), 1 << 20);
    job.top = read_list(spec.at("top_mlp"), 1 << 20);
    require_widths(spec, job);
    if (const auto value = spec.find("precision")) job.precision = value->one_of({"fp32", "bf16", "fp16", "tf32"});
    if (!job.times.device().peak.contains(job.precision))
      throw spec.error(
          fmt::format("'{}' has no peak for '{}'; set `precision`", job.times.device().name, job.precision));
    if (const auto repeat = spec.find("steps")) job.steps = static_cast<std::uint32_t>(repeat->integer(1, 1'000'000));
    auto calls = make_calls(spec, context, job);
    spec.finish();
    const Communicator members(0, job.ranks);
    for (CollectiveCall& call : calls) {
      call.communicator = &members;
      settle_call(spec, call, context);
    }
    return std::make_unique<RecommendationWorkload>(std::move(job), std::move(calls));
  }

 private:
  static std::vector<std::int64_t> read_list(const Spec& list, std::int64_t max) {
    std::vector<std::int64_t> values;
    for (const Spec& item : list.items()) values.push_back(item.integer(1, max));
    if (values.empty()) throw list.error("an empty list; give at least one number");
    return values;
  }

  static void require_widths(const Spec& spec, const RecommendationJob& job) {
    if (job.bottom.size() < 2 || job.bottom.back() != job.dimension)
      throw spec.at("bottom_mlp")
          .error(fmt::format("its last layer has {} outputs, but vectors have {} numbers; use {}", job.bottom.back(),
                             job.dimension, job.dimension));
    const auto vectors = static_cast<std::int64_t>(job.tables.size()) + 1;
    const std::int64_t inputs = vectors * (vectors - 1) / 2 + job.dimension;
    if (job.top.size() < 2 || job.top.front() != inputs)
      throw spec.at("top_mlp").error(fmt::format(
          "its first width is {}, but {} vectors have {} pairs, which makes {} inputs with the dense vector",
          job.top.front(), vectors, vectors * (vectors - 1) / 2, inputs));
  }

  static std::array<CollectiveCall, calls_of_step> make_calls(const Spec& spec, const WorkloadContext& context,
                                                              const RecommendationJob& job) {
    const CollectiveSettings options = read_collective_options(spec, context);
    const auto exchange = spec.find("exchange_algorithm");
    const auto of_exchanges = [&](CollectiveKind kind) {
      if (exchange) return read_algorithm(*exchange, context.directory);
      return spec.has("algorithm") ? algorithm_of_network(kind) : default_algorithm(context, kind);
    };
    std::array<CollectiveCall, calls_of_step> calls;
    for (CollectiveCall& call : calls) {
      call.tuning = options.tuning;
      call.where = spec.where();
      call.kind = CollectiveKind::all_to_all;
      call.algorithm = of_exchanges(call.kind);
    }
    // Indices of 8 bytes are sent to the tables' ranks; these return vectors, and get their gradients.
    set_blocks(calls[indices_call], job, job.pooling * 8, true);
    set_blocks(calls[vectors_call], job, job.dimension * job.element(), false);
    set_blocks(calls[gradients_call], job, job.dimension * job.element(), true);
    for (const auto& [number, widths] : {std::pair(top_call, &job.top), std::pair(bottom_call, &job.bottom)}) {
      calls[number].kind = CollectiveKind::all_reduce;
      calls[number].algorithm = options.algorithm;
      calls[number].size = Bytes(RecommendationJob::weights(*widths) * job.element());
    }
    calls[indices_call].label = "index exchange";
    calls[vectors_call].label = "vector exchange";
    calls[gradients_call].label = "vector gradient exchange";
    calls[top_call].label = "top MLP gradients";
    calls[bottom_call].label = "bottom MLP gradients";
    return calls;
  }

  /// `bytes` per sample and table, between the rank of the sample and the rank of the table.
  static void set_blocks(CollectiveCall& call, const RecommendationJob& job, std::int64_t bytes, bool to_tables) {
    call.blocks = BlockTable::of_rows(job.ranks, [&](std::uint32_t from, std::vector<std::int64_t>& row) {
      for (std::uint32_t to = 0; to < job.ranks; ++to)
        row[to] = job.tables_of(to_tables ? to : from) * job.batch * bytes;
    });
    call.size = Bytes(call.blocks->total());
  }
};

const Registration<WorkloadReader, RecommendationReader> recommendation_registration(
    "recommendation", "training steps of a recommendation model with shared-out embedding tables");

}  // namespace
}  // namespace weft
