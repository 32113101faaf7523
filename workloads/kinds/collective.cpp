// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `collective`: one collective operation over the first ranks, repeated.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "support/contract.hpp"
#include "units/text.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// Iterations one after another on the communication stream, with a compute operation of length `gap` between them.
class CollectiveProgram : public RankProgram {
 public:
  CollectiveProgram(const Workload& workload, Time gap)
      : workload_(workload), calls_(static_cast<std::uint32_t>(workload.call_count())), gap_(gap) {}

  bool next(Operation& operation) override {
    if (call_ == calls_) return false;
    operation = Operation{};
    operation.id = id_;
    if (id_ > 0) operation.after.push_back(id_ - 1);
    ++id_;
    if (gap_due_) {
      gap_due_ = false;
      operation.stream = Stream::compute;
      operation.duration = gap_;
      operation.label = "gap";
      return true;
    }
    operation.kind = Operation::Kind::collective;
    operation.stream = Stream::communication;
    operation.call = std::make_shared<CollectiveCall>(workload_.call(call_++));
    operation.line = static_cast<std::uint32_t>(operation.call->where.line);
    operation.label = operation.call->label;
    gap_due_ = gap_ > Time() && call_ < calls_;
    return true;
  }
  std::size_t read_ahead() const override { return 4; }

 private:
  const Workload& workload_;
  std::uint32_t calls_;
  Time gap_;
  std::uint32_t call_ = 0;
  std::uint64_t id_ = 0;
  bool gap_due_ = false;
};

class CollectiveWorkload : public Workload {
 public:
  CollectiveWorkload(std::uint32_t ranks, CollectiveCall call, std::uint32_t iterations, Time gap)
      : communicator_(0, ranks), call_(std::move(call)), iterations_(iterations), gap_(gap) {
    call_.communicator = &communicator_;
  }

  std::uint32_t ranks() const override { return communicator_.size(); }
  std::uint64_t call_count() const override { return iterations_; }
  std::uint64_t steps() const override { return iterations_; }
  CollectiveCall call(std::uint32_t id) const override {
    CollectiveCall call = call_;
    call.id = id;
    call.label = fmt::format("{} {}", to_text(call.kind), id);
    return call;
  }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return std::make_unique<CollectiveProgram>(*this, gap_);
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate = estimate_call(call_);
    estimate.messages = static_cast<std::uint64_t>(
        std::min<unsigned __int128>(static_cast<unsigned __int128>(estimate.messages) * iterations_, UINT64_MAX));
    estimate.bytes = saturated(static_cast<unsigned __int128>(estimate.bytes.count()) * iterations_);
    estimate.compute = bounded_product(std::int64_t{iterations_} - 1, gap_);
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    return {{"collective", std::string(to_text(call_.kind))},
            {"algorithm", call_.algorithm},
            {"ranks", std::to_string(ranks())},
            {"size", to_text(call_.size)},
            {"iterations", std::to_string(iterations_)}};
  }

 private:
  Communicator communicator_;
  CollectiveCall call_;
  std::uint32_t iterations_;
  Time gap_;
};

/// A list of sizes, one per rank, or for all_to_all a list of rows. `size` must be their sum.
void read_blocks(const Spec& spec, std::uint32_t ranks, CollectiveCall& call) {
  if (call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast ||
      call.kind == CollectiveKind::reduce || call.kind == CollectiveKind::barrier ||
      call.kind == CollectiveKind::send_recv)
    throw spec.error(fmt::format("'{}' has no blocks", to_text(call.kind)));
  std::vector<std::int64_t> sizes;
  const auto require_one_each = [ranks](const Spec& list) {
    if (list.items().size() != ranks)
      throw list.error(fmt::format("found {} entries; expected one for each of {} ranks", list.size(), ranks));
    return list.items();
  };
  for (const Spec& item : require_one_each(spec)) {
    if (call.kind != CollectiveKind::all_to_all) {
      sizes.push_back(item.bytes().count());
    } else {
      for (const Spec& size : require_one_each(item)) sizes.push_back(size.bytes().count());
    }
  }
  call.blocks = std::make_shared<BlockTable>(ranks, std::move(sizes));
  if (call.blocks->total() != call.size.count())
    throw spec.error(
        fmt::format("the blocks have {} bytes, but size says {}", call.blocks->total(), call.size.count()));
}

class CollectiveReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    CollectiveCall call;
    const Spec kind = spec.at("collective");
    call.kind = *parse_collective_kind(kind.one_of(collective_kind_names()));
    call.where = kind.where();
    const CollectiveSettings options = read_collective_options(spec, context);
    call.algorithm = options.algorithm;
    call.tuning = options.tuning;
    const auto count = spec.find("ranks");
    const std::uint32_t ranks = count ? require_ranks(*count, count->integer(), context) : context.hosts;
    call.root = read_root(spec, call.kind, ranks);
    call.size = read_size(spec, call.kind);
    if (const auto blocks = spec.find("block_sizes")) read_blocks(*blocks, ranks, call);
    const auto repeat = spec.find("iterations");
    const auto iterations =
        repeat ? static_cast<std::uint32_t>(repeat->integer(1, std::numeric_limits<std::int32_t>::max())) : 1U;
    const auto gap = spec.find("gap");
    const Time pause = gap ? gap->time() : Time();
    if (bounded_product(std::int64_t{iterations} - 1, pause) >= Time::limit())
      throw gap->error(fmt::format("found {}; {} of them are longer than 106 days, where simulated time ends",
                                   to_text(pause), iterations - 1));
    spec.finish();
    const Communicator members(0, ranks);
    call.communicator = &members;
    settle_call(kind, call, context);
    return std::make_unique<CollectiveWorkload>(ranks, std::move(call), iterations, pause);
  }
};

const Registration<WorkloadReader, CollectiveReader> collective_registration("collective",
                                                                             "one collective operation, repeated");

}  // namespace
}  // namespace weft
