// SPDX-License-Identifier: GPL-2.0-only
// Workload kind `astra_sim_text`: a file of layers of ASTRA-sim 1.0, SimAI or AICB (docs/reference/traces.md).
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "support/basics/contract.hpp"
#include "units/text.hpp"
#include "workloads/compute/compute_noise.hpp"
#include "workloads/importers/layer_table.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

/// An operation of every rank in each pass. Dependencies are slots of the same pass, but for `previous`.
struct LayerSlot {
  /// Up to three slots.
  class Waits {
   public:
    void add(std::int32_t slot) {
      WEFT_EXPECT(count_ < slots_.size(), "a slot waits for {} others", count_ + 1);
      slots_[count_++] = static_cast<std::uint32_t>(slot);
    }
    const std::uint32_t* begin() const { return slots_.data(); }
    const std::uint32_t* end() const { return slots_.data() + count_; }

   private:
    std::array<std::uint32_t, 3> slots_{};
    std::uint32_t count_ = 0;
  };
  std::uint32_t layer = 0;
  int line = 0;
  const char* what = "";  ///< " forward"
  Time compute;
  std::int32_t call = -1;  ///< index in LayerPlan::calls, or none
  bool blocks = true;      ///< the following operations on the compute stream wait for it
  Waits after;
  Waits previous;  ///< slots of the pass before
};

/// Ranks of a group: `size` of them, `stride` apart. Groups are numbered; which ranks begin one follows from both.
struct LayerGrouping {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;
  std::uint32_t first_communicator = 0;
  std::uint32_t first(std::uint32_t group) const { return group / stride * stride * size + group % stride; }
  std::uint32_t group_of(std::uint32_t rank) const { return rank / (stride * size) * stride + rank % stride; }
};

struct LayerPlan {
  std::uint32_t ranks = 0;
  std::uint32_t passes = 1;
  std::vector<LayerSlot> slots;
  std::array<LayerGrouping, layer_groups> groups;
  std::deque<Communicator> communicators;
  struct Call {
    std::uint32_t settled = 0;
    std::uint32_t slot = 0;
    LayerGroup group = LayerGroup::model;
    std::uint32_t first = 0;  ///< id of the first group's call in the first pass
  };
  std::vector<Call> calls;
  std::vector<CollectiveCall> settled;  ///< of the first group, without id and label: each kind, group and size once
  std::vector<std::string> names;       ///< of layers
  std::string file;
  std::uint64_t calls_of_pass = 0;

  std::string label(const LayerSlot& slot) const { return names[slot.layer] + slot.what; }
  std::uint32_t groups_of(LayerGroup group) const { return ranks / groups[static_cast<std::size_t>(group)].size; }
  CollectiveCall call_of(const Call& one, std::uint32_t group, std::uint32_t pass) const {
    CollectiveCall call = settled[one.settled];
    call.where = {file, slots[one.slot].line};
    call.label = label(slots[one.slot]);
    call.communicator = &communicators[groups[static_cast<std::size_t>(one.group)].first_communicator + group];
    call.id = static_cast<std::uint32_t>(calls_of_pass * pass + one.first + group);
    return call;
  }
};

class LayerProgram : public RankProgram {
 public:
  LayerProgram(const LayerPlan& plan, std::uint32_t rank) : plan_(plan), rank_(rank) {}

  bool next(Operation& operation) override {
    if (slot_ == plan_.slots.size()) {
      slot_ = 0;
      ++pass_;
    }
    if (pass_ == plan_.passes) return false;
    const LayerSlot& slot = plan_.slots[slot_];
    const std::uint64_t base = std::uint64_t{pass_} * plan_.slots.size();
    operation = Operation();
    operation.id = base + slot_++;
    operation.line = static_cast<std::uint32_t>(slot.line);
    operation.label = plan_.label(slot);
    for (const std::uint32_t before : slot.after) operation.after.push_back(base + before);
    if (pass_ > 0)
      for (const std::uint32_t before : slot.previous) operation.after.push_back(base - plan_.slots.size() + before);
    operation.duration = slot.compute;
    operation.stream = slot.blocks ? Stream::compute : Stream::none;
    if (slot.call < 0) return true;
    const LayerPlan::Call& call = plan_.calls[static_cast<std::size_t>(slot.call)];
    operation.kind = Operation::Kind::collective;
    operation.stream = Stream::none;
    const auto& grouping = plan_.groups[static_cast<std::size_t>(call.group)];
    operation.call = std::make_shared<CollectiveCall>(plan_.call_of(call, grouping.group_of(rank_), pass_));
    return true;
  }
  std::size_t read_ahead() const override {
    constexpr std::size_t min = 64, max = 4096;
    return std::clamp(2 * plan_.slots.size(), min, max);
  }

 private:
  const LayerPlan& plan_;
  std::uint32_t rank_;
  std::uint32_t pass_ = 0;
  std::size_t slot_ = 0;
};

class LayerWorkload : public Workload {
 public:
  LayerWorkload(LayerPlan plan, ComputeNoise noise, std::string policy)
      : plan_(std::move(plan)), noise_(std::move(noise)), policy_(std::move(policy)) {}

  std::uint32_t ranks() const override { return plan_.ranks; }
  std::uint64_t steps() const override { return plan_.passes; }
  std::uint64_t call_count() const override { return plan_.calls_of_pass * plan_.passes; }
  bool from_user() const override { return true; }
  std::uint32_t kind_count() const override { return 1; }
  std::uint32_t kind_of(Rank) const override { return 0; }
  Rank first_of_kind(std::uint32_t) const override { return Rank(0); }
  std::uint32_t ranks_of_kind(std::uint32_t) const override { return plan_.ranks; }

  CollectiveCall call(std::uint32_t id) const override {
    WEFT_EXPECT(id < call_count(), "call {} of {}", id, call_count());
    const auto pass = static_cast<std::uint32_t>(id / plan_.calls_of_pass);
    const auto rest = static_cast<std::uint32_t>(id % plan_.calls_of_pass);
    const auto after =
        std::upper_bound(plan_.calls.begin(), plan_.calls.end(), rest,
                         [](std::uint32_t value, const LayerPlan::Call& one) { return value < one.first; });
    return plan_.call_of(*std::prev(after), rest - std::prev(after)->first, pass);
  }

  std::unique_ptr<RankProgram> program(Rank rank) const override {
    WEFT_EXPECT(rank.value() < ranks(), "rank {} of {}", rank.value(), ranks());
    return with_noise(std::make_unique<LayerProgram>(plan_, rank.value()), rank, noise_);
  }

  WorkloadEstimate estimate() const override {
    WorkloadEstimate estimate;
    unsigned __int128 bytes = 0;
    std::vector<WorkloadEstimate> estimates;
    for (const CollectiveCall& one : plan_.settled) estimates.push_back(estimate_call(one));
    for (const LayerPlan::Call& one : plan_.calls) {
      const WorkloadEstimate& call = estimates[one.settled];
      const std::uint64_t times = std::uint64_t{plan_.groups_of(one.group)} * plan_.passes;
      estimate.messages += call.messages * times;
      bytes += static_cast<unsigned __int128>(call.bytes.count()) * times;
    }
    estimate.bytes = saturated(bytes);
    for (const LayerSlot& slot : plan_.slots) estimate.compute = bounded_sum(estimate.compute, slot.compute);
    estimate.compute = bounded_product(plan_.passes, estimate.compute);
    return estimate;
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    const auto size = [this](LayerGroup group) {
      return std::to_string(plan_.groups[static_cast<std::size_t>(group)].size);
    };
    std::vector<std::pair<std::string, std::string>> lines{
        {"policy", policy_},
        {"passes", std::to_string(plan_.passes)},
        {"ranks of a model group", size(LayerGroup::model)},
        {"ranks of a data group", size(LayerGroup::data)},
        {"ranks of an expert group", size(LayerGroup::expert)},
        {"operations of a rank in a pass", grouped(static_cast<std::int64_t>(plan_.slots.size()))},
        {"collective calls", grouped(static_cast<std::int64_t>(call_count()))}};
    for (auto& line : noise_.description(plan_.ranks)) lines.push_back(std::move(line));
    return lines;
  }

 private:
  LayerPlan plan_;
  ComputeNoise noise_;
  std::string policy_;
};

/// The experiment's keys for a file of layers.
struct LayerOptions {
  bool simai = false;
  bool shards = false;  ///< an all-gather's bytes are those of one rank
  Time unit;            ///< of compute times
  CollectiveSettings collectives;
};

/// Makes operations out of layers.
class LayerPlanner {
 public:
  LayerPlanner(const LayerTable& table, LayerOptions options, const Spec& where, const WorkloadContext& context)
      : table_(table), options_(std::move(options)), where_(where), context_(context) {}

  LayerPlan plan(std::uint32_t ranks, std::uint32_t model, std::uint32_t expert, std::uint32_t passes) {
    plan_.ranks = ranks;
    plan_.passes = passes;
    plan_.file = file_;
    for (const Layer& layer : table_.layers) plan_.names.push_back(layer.name);
    choose_groups(model, expert);
    last_of_layer_.assign(table_.layers.size(), -1);
    if (is("MICRO"))
      for (std::size_t i = 0; i < table_.layers.size(); ++i) weight_gradient(i, true);
    else
      forward_and_backward();
    // The next pass's first use of a layer waits for its gradients.
    for (std::size_t i = 0; i < table_.layers.size(); ++i)
      if (last_of_layer_[i] >= 0) plan_.slots[first_slots_.at(i)].previous.add(last_of_layer_[i]);
    if (blocker_ >= 0) plan_.slots.front().previous.add(blocker_);
    if (pending_ >= 0) plan_.slots.front().previous.add(pending_);
    if (plan_.calls_of_pass * passes >= std::numeric_limits<std::uint32_t>::max())
      throw where_.error("more than 2^32 - 2 collective calls; expected fewer passes");
    return std::move(plan_);
  }

 private:
  bool is(const char* policy) const { return table_.policy == policy; }

  void choose_groups(std::uint32_t model, std::uint32_t expert) {
    const std::uint32_t data = plan_.ranks / model;
    auto& groups = plan_.groups;
    // The first dimension of ASTRA-sim's network, which joins neighbours, is the data's with HYBRID_MODEL_DATA, and the
    // model's with HYBRID_DATA_MODEL (Workload::decode_involved_dimensions). SimAI's model groups are always
    // neighbours.
    const bool data_first = is("HYBRID_MODEL_DATA") && !options_.simai;
    groups[static_cast<std::size_t>(LayerGroup::model)] = {model, data_first ? data : 1};
    groups[static_cast<std::size_t>(LayerGroup::data)] = {data, data_first ? 1 : model};
    groups[static_cast<std::size_t>(LayerGroup::expert)] = {expert, model};
    groups[static_cast<std::size_t>(LayerGroup::expert_data)] = {data / expert, model * expert};
    if (is("HYBRID_CUSTOMIZED")) {
      groups[static_cast<std::size_t>(LayerGroup::everyone)] = {plan_.ranks, 1};
      groups[static_cast<std::size_t>(LayerGroup::model_apart)] = {model, data};
      groups[static_cast<std::size_t>(LayerGroup::neighbouring_data)] = {data, 1};
    }
    for (LayerGrouping& grouping : groups) {
      if (&grouping == &groups[static_cast<std::size_t>(LayerGroup::everyone)] && !is("HYBRID_CUSTOMIZED")) break;
      grouping.first_communicator = static_cast<std::uint32_t>(plan_.communicators.size());
      for (std::uint32_t group = 0; group < plan_.ranks / grouping.size; ++group)
        plan_.communicators.emplace_back(static_cast<std::uint32_t>(plan_.communicators.size()), grouping.size,
                                         grouping.first(group), grouping.stride);
    }
  }

  Time time_of(double value, const Layer& layer) const {
    const double picoseconds = std::round(value * static_cast<double>(options_.unit.ps()));
    if (picoseconds >= static_cast<double>(Time::limit().ps()))
      throw layer_error(layer, "a time of 106 days or more, where simulated time ends");
    return Time::from_ps(static_cast<std::int64_t>(picoseconds));
  }
  InputError layer_error(const Layer& layer, const std::string& message) const {
    return InputError({file_of_layers(), layer.line}, fmt::format("layer '{}': {}", layer.name, message));
  }
  const std::string& file_of_layers() const { return file_; }

  // A slot on the compute stream waits for the last thing that blocked it.
  std::uint32_t add(LayerSlot slot) {
    if (blocker_ >= 0) slot.after.add(blocker_);
    plan_.slots.push_back(std::move(slot));
    return static_cast<std::uint32_t>(plan_.slots.size()) - 1;
  }
  std::uint32_t compute(const Layer& layer, const char* what, double value) {
    LayerSlot slot = slot_of(layer, what);
    slot.compute = time_of(value, layer);
    if (pending_ >= 0) slot.after.add(pending_);
    pending_ = -1;
    const std::uint32_t at = add(std::move(slot));
    blocker_ = static_cast<std::int32_t>(at);
    return at;
  }
  /// Communicates; the update follows, whichever column it is (Layer::call). Returns its slot, or -1 if there is
  /// nothing to communicate.
  std::int32_t communicate(const Layer& layer, const char* what, const char* what_update,
                           const std::optional<LayerCollective>& collective, bool blocks) {
    if (!collective) return -1;
    LayerSlot slot = slot_of(layer, what);
    slot.call = static_cast<std::int32_t>(add_call(layer, *collective));
    auto last = static_cast<std::int32_t>(add(std::move(slot)));
    if (layer.update > 0) {
      LayerSlot update = slot_of(layer, what_update);
      update.compute = time_of(layer.update, layer);
      update.blocks = false;
      update.after.add(last);
      plan_.slots.push_back(std::move(update));
      last = static_cast<std::int32_t>(plan_.slots.size()) - 1;
    }
    if (blocks) blocker_ = last;
    return last;
  }

  LayerSlot slot_of(const Layer& layer, const char* what) const {
    LayerSlot slot;
    slot.layer = static_cast<std::uint32_t>(&layer - table_.layers.data());
    slot.what = what;
    slot.line = layer.line;
    return slot;
  }

  /// Adds a call of the next slot.
  std::size_t add_call(const Layer& layer, const LayerCollective& collective) {
    const std::tuple key(collective.kind, collective.group, collective.bytes.count());
    const auto known = settled_.find(key);
    LayerPlan::Call one;
    one.settled = known == settled_.end() ? settled_[key] = settled(layer, collective) : known->second;
    one.slot = static_cast<std::uint32_t>(plan_.slots.size());
    one.group = collective.group;
    one.first = static_cast<std::uint32_t>(plan_.calls_of_pass);
    plan_.calls_of_pass += plan_.groups_of(collective.group);
    plan_.calls.push_back(one);
    return plan_.calls.size() - 1;
  }

  std::uint32_t settled(const Layer& layer, const LayerCollective& collective) {
    const auto& grouping = plan_.groups[static_cast<std::size_t>(collective.group)];
    CollectiveCall call;
    call.kind = collective.kind;
    call.communicator = &plan_.communicators[grouping.first_communicator];
    __int128 bytes = collective.bytes.count();
    if (call.kind == CollectiveKind::all_gather && options_.shards) bytes *= grouping.size;
    if (bytes > std::numeric_limits<std::int64_t>::max()) throw layer_error(layer, "more than 2^63 bytes are gathered");
    call.size = Bytes(static_cast<std::int64_t>(bytes));
    call.algorithm = options_.collectives.algorithm;
    if (call.kind == CollectiveKind::all_to_all && !all_to_all_.empty()) call.algorithm = all_to_all_;
    call.tuning = options_.collectives.tuning;
    call.where = {file_of_layers(), layer.line};
    try {
      settle_call(where_, call, context_);
    } catch (const InputError& problem) {
      throw layer_error(layer, problem.what());
    }
    plan_.settled.push_back(std::move(call));
    return static_cast<std::uint32_t>(plan_.settled.size() - 1);
  }

  bool has_recommendation() const { return is("HYBRID_DLRM") || is("HYBRID_DLRM_ENHANCED"); }
  /// Whether gradients of inputs are communicated beside the computation of the weights' gradients.
  bool overlaps_input_gradients() const {
    return is("MODEL") || is("HYBRID_MODEL_DATA") || is("HYBRID_DATA_MODEL") || is("HYBRID_CUSTOMIZED");
  }

  void forward_and_backward() {
    for (std::size_t i = 0; i < table_.layers.size(); ++i) {
      first_slots_.push_back(static_cast<std::uint32_t>(plan_.slots.size()));
      if (has_recommendation())
        forward_of_recommendation(i);
      else
        forward(i, " forward");
    }
    if (is("DISTRIBUTED_INFERENCE")) return;
    for (std::size_t i = table_.layers.size(); i-- > 0;) {
      if (has_recommendation())
        backward_of_recommendation(i);
      else
        backward(i);
    }
  }

  void forward(std::size_t i, const char* what) {
    const Layer& layer = table_.layers[i];
    compute(layer, what, layer.forward.compute);
    std::optional<LayerCollective> collective = layer.forward.collective;
    if (is("DATA")) collective.reset();
    // SimAI raises small messages of the forward pass.
    constexpr Bytes min(4096);
    if (collective && options_.simai) collective->bytes = std::max(collective->bytes, min);
    communicate(layer, what, " forward update", collective, true);
  }

  void backward(std::size_t i) {
    const Layer& layer = table_.layers[i];
    // Data-parallel layers have their weights' gradients first, and the first layer has no input's.
    if (is("DATA")) {
      weight_gradient(i, false);
      if (i > 0) compute(layer, " input gradient", layer.input_gradient.compute);
      return;
    }
    recompute(i);
    compute(layer, " input gradient", layer.input_gradient.compute);
    if (!overlaps_input_gradients()) {
      communicate_input_gradient(layer, layer.input_gradient.collective, true);
      weight_gradient(i, false);
      return;
    }
    // Nothing is in front of the first layer.
    const std::int32_t last = i == 0 ? -1 : communicate_input_gradient(layer, layer.input_gradient.collective, false);
    weight_gradient(i, false);
    pending_ = last;
  }

  std::int32_t communicate_input_gradient(const Layer& layer, const std::optional<LayerCollective>& collective,
                                          bool blocks) {
    return communicate(layer, " input gradient", " input gradient update", collective, blocks);
  }

  /// The forward pass once more, from the last checkpoint on, in front of a layer that starts this.
  void recompute(std::size_t i) {
    if (!table_.layers[i].recomputes) return;
    std::size_t from = i;
    while (!table_.layers[from].checkpoint) --from;
    for (; from < i; ++from) forward(from, " forward again");
  }

  /// Of recommendation models, the first layer alone exchanges, among all ranks: its embeddings, for which the layer
  /// after the last of the bottom waits (Workload::iterate_hybrid_parallel_DLRM).
  std::optional<LayerCollective> among_all(std::optional<LayerCollective> collective) const {
    if (collective) collective->group = LayerGroup::data;
    return collective;
  }
  static bool is_all_to_all(const std::optional<LayerCollective>& collective) {
    return collective && collective->kind == CollectiveKind::all_to_all;
  }

  void forward_of_recommendation(std::size_t i) {
    const Layer& layer = table_.layers[i];
    compute(layer, " forward", layer.forward.compute);
    if (i == 0 && is_all_to_all(layer.forward.collective))
      embeddings_ = communicate(layer, " forward", " forward update", among_all(layer.forward.collective), false);
    else if (i == table_.last_bottom_layer && !is_all_to_all(layer.forward.collective))
      pending_ = embeddings_;
  }

  void backward_of_recommendation(std::size_t i) {
    const Layer& layer = table_.layers[i];
    weight_gradient(i, false);
    if (i == 0 && is("HYBRID_DLRM")) pending_ = gradients_of_embeddings_;
    if (i == 0) return;
    compute(layer, " input gradient", layer.input_gradient.compute);
    const Layer& first = table_.layers.front();
    if (i == table_.last_bottom_layer + 1)
      gradients_of_embeddings_ = communicate_input_gradient(first, among_all(first.input_gradient.collective), false);
  }

  void weight_gradient(std::size_t i, bool blocks) {
    const Layer& layer = table_.layers[i];
    const std::uint32_t at = compute(layer, " weight gradient", layer.weight_gradient.compute);
    if (blocks) first_slots_.push_back(at);
    std::optional<LayerCollective> collective = layer.weight_gradient.collective;
    if (is("MODEL")) collective.reset();
    const std::int32_t last = communicate(layer, " weight gradient", " update", collective, blocks);
    if (last >= 0) last_of_layer_[i] = last;
  }

 public:
  void set_file(std::string file) { file_ = std::move(file); }
  void set_all_to_all(std::string algorithm) { all_to_all_ = std::move(algorithm); }

 private:
  const LayerTable& table_;
  LayerOptions options_;
  const Spec& where_;
  const WorkloadContext& context_;
  std::string file_;
  std::string all_to_all_;  // its algorithm, if it has a separate one
  std::map<std::tuple<CollectiveKind, LayerGroup, std::int64_t>, std::uint32_t> settled_;
  LayerPlan plan_;
  std::int32_t blocker_ = -1;     // the slot for which the compute stream waits
  std::int32_t pending_ = -1;     // another one for which the next computation waits
  std::int32_t embeddings_ = -1;  // their exchange
  std::int32_t gradients_of_embeddings_ = -1;
  std::vector<std::uint32_t> first_slots_;  // [layer]
  std::vector<std::int32_t> last_of_layer_;
};

class LayerReader : public WorkloadReader {
 public:
  std::unique_ptr<Workload> read(const Spec& spec, const WorkloadContext& context) const override {
    static_cast<void>(spec.find("kind"));
    const Spec where = spec.at("file");
    const std::string path = resolve_file(where, context.directory, "", "");
    const LayerTable table = read_layer_table(ByteSource(path));
    const std::uint32_t ranks = ranks_of(spec, table, context);
    const std::uint32_t model = model_ranks(spec, table, ranks);
    const auto given_expert = spec.find("expert_ranks");
    const std::uint32_t expert =
        given_expert ? static_cast<std::uint32_t>(given_expert->integer(1, ranks)) : table.expert_ranks;
    if (ranks % model != 0 || ranks / model % expert != 0)
      throw where.error(
          fmt::format("{} ranks do not fall into groups of {} ranks of a model and {} of experts; their "
                      "product divides the ranks",
                      ranks, model, expert));
    LayerOptions options;
    const auto dialect = spec.find("dialect");
    options.simai = dialect ? dialect->one_of({"astra_sim", "simai"}) == "simai" : table.simai;
    options.shards = !options.simai;
    const auto unit = spec.find("time_unit");
    options.unit = unit ? unit->time() : Time::from_ns(1);
    const auto repeat = spec.find("passes");
    const auto passes =
        repeat ? static_cast<std::uint32_t>(repeat->integer(1, std::numeric_limits<std::int32_t>::max())) : 1U;
    options.collectives = read_collective_options(spec, context);
    const auto all_to_all = spec.find("all_to_all_algorithm");
    const std::string by_default = spec.has("algorithm") ? "" : default_algorithm(context, CollectiveKind::all_to_all);
    ComputeNoise noise;
    if (const auto map = spec.find("compute_noise")) noise = {*map, ranks, context.seed};
    spec.finish();
    LayerPlanner planner(table, std::move(options), where, context);
    planner.set_file(path);
    planner.set_all_to_all(all_to_all ? read_algorithm(*all_to_all, context.directory) : by_default);
    return std::make_unique<LayerWorkload>(planner.plan(ranks, model, expert, passes), std::move(noise), table.policy);
  }

 private:
  static std::uint32_t ranks_of(const Spec& spec, const LayerTable& table, const WorkloadContext& context) {
    if (const auto given = spec.find("ranks")) return require_ranks(*given, given->integer(), context);
    return table.all_ranks > 0 ? require_ranks(spec.at("file"), table.all_ranks, context) : context.hosts;
  }
  /// All ranks for MODEL, one for policies without a model's groups; otherwise the file or the experiment has to give
  /// it.
  static std::uint32_t model_ranks(const Spec& spec, const LayerTable& table, std::uint32_t ranks) {
    const auto given = spec.find("model_ranks");
    if (given) return static_cast<std::uint32_t>(given->integer(1, ranks));
    if (table.model_ranks > 0) return table.model_ranks;
    if (table.policy == "MODEL") return ranks;
    if (table.policy == "DATA" || table.policy == "MICRO" || table.policy.starts_with("HYBRID_DLRM")) return 1;
    const auto hybrid = [](const Layer& layer) { return layer.policy.starts_with("HYBRID"); };
    if (table.policy == "HYBRID_CUSTOMIZED" && std::none_of(table.layers.begin(), table.layers.end(), hybrid)) return 1;
    throw spec.at("file").error(
        fmt::format("the policy {} needs the number of ranks that share a model, which the file "
                    "does not say; give `model_ranks`",
                    table.policy));
  }
};

const Registration<WorkloadReader, LayerReader> astra_sim_text_registration(
    "astra_sim_text", "layers of a text workload of ASTRA-sim 1.0, SimAI or AICB");

}  // namespace
}  // namespace weft
