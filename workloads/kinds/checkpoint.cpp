// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `checkpoint`: ranks write their shards to storage targets of the same network, or read them.
#include <limits>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "units/text.hpp"
#include "workloads/reading/reading.hpp"
#include "workloads/storage/storage_rounds.hpp"

namespace weft {
namespace {

/// Round after round, one at a time in memory.
class CheckpointProgram : public RankProgram {
 public:
  CheckpointProgram(const StoragePlan& plan, std::uint32_t rank, std::uint64_t rounds, Time interval)
      : plan_(plan), rank_(rank), rounds_(rounds), interval_(interval) {}

  bool next(Operation& operation) override {
    if (at_ == round_.size()) {
      if (made_ == rounds_) return false;
      make_round();
    }
    operation = round_[at_++];
    return true;
  }
  bool in_order_of_time() const override { return rank_ < plan_.clients; }
  // A piece that is waited for must not keep those of other clients from being taken.
  std::size_t read_ahead() const override {
    return static_cast<std::size_t>(rank_ < plan_.clients ? plan_.pieces() + 2
                                                          : 4 * std::uint64_t{plan_.clients_of(rank_)} + 16);
  }

 private:
  void make_round() {
    std::vector<std::uint64_t> after;
    if (made_ > 0) after.push_back(next_id_ - 1);  // the last one of a client's round ends it
    round_ = rank_ < plan_.clients
                 ? client_round(plan_, rank_, next_id_, after, interval_ * static_cast<std::int64_t>(made_))
                 : target_round(plan_, rank_, next_id_);
    next_id_ += round_.size();
    at_ = 0;
    ++made_;
  }

  const StoragePlan& plan_;
  std::uint32_t rank_;
  std::uint64_t rounds_;
  Time interval_;
  std::uint64_t made_ = 0;
  std::uint64_t next_id_ = 0;
  std::vector<Operation> round_;
  std::size_t at_ = 0;
};

class CheckpointWorkload : public Workload {
 public:
  CheckpointWorkload(const StoragePlan& plan, std::uint64_t rounds, Time interval)
      : plan_(plan), rounds_(rounds), interval_(interval) {}

  std::uint32_t ranks() const override { return plan_.ranks(); }
  std::uint64_t call_count() const override { return 0; }
  CollectiveCall call(std::uint32_t id) const override {
    WEFT_EXPECT(false, "call {} of none", id);
    return {};
  }
  std::uint64_t steps() const override { return rounds_; }
  std::uint32_t storage_ranks() const override { return plan_.targets; }
  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return std::make_unique<CheckpointProgram>(plan_, rank.value(), rounds_, interval_);
  }
  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    if (rounds_ == std::numeric_limits<std::uint64_t>::max()) return estimate;
    estimate.messages = plan_.messages_of_round() * rounds_;
    const auto bytes = static_cast<unsigned __int128>((plan_.shard + StoragePlan::word).count()) * plan_.clients;
    estimate.bytes = saturated(bytes * rounds_);
    Time device;
    for (std::uint64_t p = 0; p < plan_.pieces(); ++p) device += plan_.service(plan_.piece_bytes(p));
    estimate.compute = device * static_cast<std::int64_t>(plan_.clients_of(plan_.clients) * rounds_);
    return estimate;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    return {{"operation", plan_.reads ? "read" : "write"},
            {"targets", fmt::format("the last {} of the ranks", plan_.targets)},
            {"size", fmt::format("{} of each rank in {} piece{}", to_text(plan_.shard), plan_.pieces(),
                                 plan_.pieces() == 1 ? "" : "s")},
            {"rounds", rounds_ == std::numeric_limits<std::uint64_t>::max() ? "without end" : std::to_string(rounds_)}};
  }

 private:
  StoragePlan plan_;
  std::uint64_t rounds_;
  Time interval_;
};

class CheckpointReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    StoragePlan plan;
    const auto operation = spec.find("operation");
    plan.reads = operation && operation->one_of({"write", "read"}) == "read";
    read_ranks(spec, context, plan);
    const Spec size = spec.at("size");
    plan.shard = size.bytes();
    if (plan.shard == Bytes(0)) throw size.error("found 0 B; expected at least 1 B");
    const auto piece = spec.find("piece");
    plan.piece = piece ? piece->bytes() : Bytes(std::int64_t{4} << 20);
    if (plan.piece == Bytes(0)) throw piece->error("found 0 B; expected at least 1 B");
    if (const auto rate = spec.find("device_rate")) plan.device_rate = rate->bandwidth();
    if (const auto latency = spec.find("device_latency")) plan.device_latency = latency->time();
    const auto every = spec.find("interval");
    const auto rounds = spec.find("count");
    spec.finish();
    constexpr std::int64_t longest_ps = std::numeric_limits<std::int64_t>::max() / 4;
    const Time interval = every ? every->time() : Time();
    if (!rounds && context.endless)
      return std::make_unique<CheckpointWorkload>(plan, std::numeric_limits<std::uint64_t>::max(), interval);
    const std::int64_t times = rounds ? rounds->integer(1, std::int64_t{1} << 40) : 1;
    if (interval.ps() > longest_ps / times)
      throw every->error(fmt::format("{} rounds so far apart run beyond the range of simulated time", times));
    return std::make_unique<CheckpointWorkload>(plan, static_cast<std::uint64_t>(times), interval);
  }

 private:
  /// By default one target on each storage host of the machine, or as many of them as have something to do.
  static void read_ranks(const Spec& spec, const WorkloadContext& context, StoragePlan& plan) {
    const auto storage = static_cast<std::uint32_t>(context.storage.size());
    const auto given = storage > 0 ? spec.find("targets") : spec.at("targets");
    const auto count = spec.find("ranks");
    const std::uint32_t max = context.all_hosts();
    if (given) plan.targets = static_cast<std::uint32_t>(given->integer(1, std::max(1U, max - 1)));
    plan.clients =
        count ? require_ranks(*count, count->integer(), context) : context.hosts - (storage > 0 ? 0 : plan.targets);
    if (!given) plan.targets = std::min(storage, plan.clients);
    const Spec& place = given ? *given : spec;
    if (plan.clients == 0 || plan.ranks() > max)
      throw place.error(fmt::format("{} ranks and {} storage targets, but the machine has {} hosts", plan.clients,
                                    plan.targets, max));
    if (plan.targets > plan.clients)
      throw place.error(fmt::format("{} storage targets for {} ranks: {} of them would have nothing to do",
                                    plan.targets, plan.clients, plan.targets - plan.clients));
  }
};

const Registration<WorkloadReader, CheckpointReader> checkpoint_registration(
    "checkpoint", "shards written to storage targets, or read");

}  // namespace
}  // namespace weft
