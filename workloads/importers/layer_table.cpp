// SPDX-License-Identifier: GPL-2.0-only
// Reading text workloads of ASTRA-sim 1.0 (Workload::initialize_workload in astra-sim/workload/Workload.cc of its
// version 1) and of SimAI (github.com/aliyun/SimAI, the same file of its astra-sim-alibabacloud).
#include "workloads/importers/layer_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include <fmt/format.h>

#include "support/documents/spec.hpp"

namespace weft {
namespace {

constexpr const char* customized_policy = "HYBRID_CUSTOMIZED";
const std::vector<std::string> known_policies{"DATA",
                                              "MODEL",
                                              "HYBRID_DATA_MODEL",
                                              "HYBRID_MODEL_DATA",
                                              "HYBRID_TRANSFORMER",
                                              "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                              "HYBRID_DLRM",
                                              "HYBRID_DLRM_ENHANCED",
                                              customized_policy,
                                              "MICRO",
                                              "DISTRIBUTED_INFERENCE"};
constexpr const char* recomputing_policy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";

class LayerTableReader {
 public:
  explicit LayerTableReader(ByteSource source) : source_(std::move(source)) {}

  LayerTable read() {
    read_header();
    const std::vector<std::string> count = next_line("the number of layers");
    const std::int64_t layers = whole(count.front(), "the number of layers", 1, max_layers);
    for (std::int64_t i = 0; i < layers; ++i) read_layer(fmt::format("layer {} of {}", i + 1, layers));
    std::vector<std::string> words;
    if (get_line(words))
      throw error(fmt::format("more lines than the {} layers that line {} says there are", layers, line_of_count_));
    line_ = header_line_;
    if (is_recommendation() && table_.last_bottom_layer >= table_.layers.size())
      throw error(fmt::format("the last of the bottom layers is {}; expected one of the layers 0 to {}",
                              table_.last_bottom_layer, table_.layers.size() - 1));
    mark_recomputation();
    return std::move(table_);
  }

 private:
  static constexpr std::int64_t max_layers = 10'000'000;

  InputError error(const std::string& message) const { return InputError({source_.name(), line_}, message); }

  /// The words of the next line that has some. Tabs and blanks may be mixed.
  bool get_line(std::vector<std::string>& words) {
    words.clear();
    std::string text;
    constexpr std::size_t longest_line = 1 << 20;
    while (words.empty()) {
      int byte = source_.get();
      if (byte == ByteSource::end) return false;
      ++line_;
      text.clear();
      for (; byte != ByteSource::end && byte != '\n'; byte = source_.get()) {
        text += static_cast<char>(byte);
        if (text.size() > longest_line) throw error("a line of more than a million bytes");
      }
      std::istringstream stream(text);
      for (std::string word; stream >> word;) words.push_back(word);
    }
    return true;
  }

  std::vector<std::string> next_line(const std::string& due) {
    std::vector<std::string> words;
    if (!get_line(words)) {
      ++line_;
      throw error("the file ends; expected " + due);
    }
    if (due == "the number of layers") line_of_count_ = line_;
    return words;
  }

  std::int64_t whole(const std::string& word, const std::string& what, std::int64_t min, std::int64_t max) const {
    const double value = number(word, what);
    if (std::floor(value) != value || value < static_cast<double>(min) || value > static_cast<double>(max))
      throw error(fmt::format("{} is '{}'; expected a whole number from {} to {}", what, word, min, max));
    constexpr double exact = 9007199254740992.0;  // 2^53
    return value < exact ? static_cast<std::int64_t>(value) : std::stoll(word);
  }

  double number(const std::string& word, const std::string& what) const {
    std::size_t used = 0;
    double value = 0;
    try {
      value = std::stod(word, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != word.size() || !std::isfinite(value))
      throw error(fmt::format("{} is '{}'; expected a number", what, word));
    return value;
  }

  // POLICY, then keys and values in any order; a colon may be missing, as in "pp_comm 0".
  void read_header() {
    const std::vector<std::string> words = next_line("the policy, such as DATA or HYBRID_TRANSFORMER_FWD_IN_BCKWD,");
    table_.policy = words.front();
    if (std::find(known_policies.begin(), known_policies.end(), table_.policy) == known_policies.end())
      throw error(fmt::format("unknown policy '{}'{}", table_.policy, did_you_mean(table_.policy, known_policies)));
    table_.simai = table_.policy.find("TRANSFORMER") != std::string::npos || table_.policy == "DISTRIBUTED_INFERENCE";
    header_line_ = line_;
    // Chakra's converter takes the number alone.
    const bool has_number = is_recommendation() && words.size() == 2;
    if (has_number) table_.last_bottom_layer = last_bottom_layer(words[1]);
    for (std::size_t i = has_number ? 2 : 1; i < words.size(); ++i) read_header_key(words, i);
    if (is_recommendation() && words.size() == 1)
      throw error(
          fmt::format("the policy {} needs the last of the bottom layers; expected '{} "
                      "DLRM_LAST_BOTTOM_LAYER: 2'",
                      table_.policy, table_.policy));
  }

  bool is_recommendation() const { return table_.policy.starts_with("HYBRID_DLRM"); }
  std::size_t last_bottom_layer(const std::string& word) const {
    return static_cast<std::size_t>(whole(word, "the last of the bottom layers", 0, max_layers));
  }

  /// The numbers of layers behind `checkpoints` and `checkpoint_initiates`: how many there are, and these.
  std::vector<std::size_t> layers_of(const std::vector<std::string>& words, std::size_t& i, const std::string& key) {
    std::vector<std::size_t> layers;
    const auto next = [&](const std::string& what) {
      if (++i >= words.size()) throw error(fmt::format("'{}' ends; expected {}", key, what));
      return whole(words[i], what, 0, max_layers);
    };
    const std::int64_t count = next(fmt::format("the number of layers of '{}'", key));
    if (count > 0 && table_.policy != recomputing_policy)
      throw error(fmt::format("'{}' is {} with the policy {}; the policy {} alone computes layers again", key, count,
                              table_.policy, recomputing_policy));
    for (std::int64_t k = 0; k < count; ++k)
      layers.push_back(static_cast<std::size_t>(next(fmt::format("layer {} of {} of '{}'", k + 1, count, key))));
    return layers;
  }

  /// ASTRA-sim goes back from a layer that starts recomputation to the last checkpoint, and forward again up to the
  /// next layer that starts one, which has to be the same (Workload::iterate_hybrid_parallel_Transformer_fwd_in_bckwd).
  void mark_recomputation() {
    const auto layer = [&](std::size_t number, const char* key) -> Layer& {
      if (number < table_.layers.size()) return table_.layers[number];
      throw error(fmt::format("'{}' names layer {}; expected one of the layers 0 to {}", key, number,
                              table_.layers.size() - 1));
    };
    for (const std::size_t number : checkpoints_) layer(number, "checkpoints").checkpoint = true;
    for (const std::size_t number : initiates_) layer(number, "checkpoint_initiates").recomputes = true;
    std::size_t begin = table_.layers.size();  // the last checkpoint behind the last layer that recomputes
    for (std::size_t i = 0; i < table_.layers.size(); ++i) {
      if (table_.layers[i].recomputes && begin == table_.layers.size())
        throw error(
            fmt::format("layer {} of 'checkpoint_initiates' has no checkpoint between it and the layer of "
                        "'checkpoint_initiates' before it",
                        i));
      if (table_.layers[i].recomputes) begin = table_.layers.size();
      if (table_.layers[i].checkpoint) begin = i;
    }
  }

  void read_header_key(const std::vector<std::string>& words, std::size_t& i) {
    std::string key = words[i];
    if (!key.empty() && key.back() == ':') key.pop_back();
    constexpr std::int64_t max_ranks = std::numeric_limits<std::int32_t>::max();
    const auto value = [&](std::int64_t min, std::int64_t max) {
      if (++i >= words.size()) throw error(fmt::format("'{}' has no value", key));
      return whole(words[i], "'" + key + "'", min, max);
    };
    if (key == "model_parallel_NPU_group") {
      table_.model_ranks = static_cast<std::uint32_t>(value(1, max_ranks));
    } else if (key == "ep") {
      table_.expert_ranks = static_cast<std::uint32_t>(value(1, max_ranks));
      table_.simai = true;
    } else if (key == "all_gpus") {
      table_.all_ranks = static_cast<std::uint32_t>(value(1, max_ranks));
      table_.simai = true;
    } else if (key == "pp") {
      if (const auto stages = value(1, max_ranks); stages > 1)
        throw error(fmt::format(
            "'pp' is {}: such a file has the layers of one stage, and no messages between stages. SimAI simulates one "
            "stage and adds the pipeline's bubble and messages by a formula afterwards. Set 'pp' to 1 and 'all_gpus' "
            "to "
            "those of a stage for one stage alone; the kind `training` has pipelines",
            stages));
      table_.simai = true;
    } else if (key == "checkpoints") {
      checkpoints_ = layers_of(words, i, key);
    } else if (key == "checkpoint_initiates") {
      initiates_ = layers_of(words, i, key);
    } else if (key == "DLRM_LAST_BOTTOM_LAYER" && is_recommendation()) {
      if (++i >= words.size()) throw error(fmt::format("'{}' has no value", key));
      table_.last_bottom_layer = last_bottom_layer(words[i]);
    } else if (key == "vpp" || key == "ga" || key == "mode" || key == "pp_comm") {
      static_cast<void>(value(0, std::numeric_limits<std::int64_t>::max()));  // of pipelines, of which there is none
      table_.simai = true;
    } else {
      throw error(
          fmt::format("unknown key '{}' in the header; known here: model_parallel_NPU_group, ep, pp, vpp, ga, "
                      "all_gpus, checkpoints, checkpoint_initiates, pp_comm, mode, DLRM_LAST_BOTTOM_LAYER",
                      words[i]));
    }
  }

  void read_layer(const std::string& which) {
    const std::vector<std::string> words = next_line(which);
    const bool customized = table_.policy == customized_policy;
    const std::size_t columns = customized ? 13 : 12;
    if (words.size() != columns)
      throw error(
          fmt::format("{} columns; a layer has {}: name, dependency, and for each of forward, input gradient and "
                      "weight gradient compute, communication and bytes, then the update{}",
                      words.size(), columns, customized ? " and the layer's policy" : ""));
    Layer layer;
    layer.name = words[0];
    layer.line = line_;
    static_cast<void>(number(words[1], "the dependency"));  // no one uses it
    layer.forward = read_pass(words, 2, LayerGroup::model);
    layer.input_gradient = read_pass(words, 5, LayerGroup::model);
    layer.weight_gradient = read_pass(words, 8, LayerGroup::data);
    layer.update = time(words[11], "the update");
    if (customized) choose_groups(layer, words[12]);
    table_.layers.push_back(std::move(layer));
  }

  /// Workload::decode_involved_dimensions of ASTRA-sim, for one layer.
  void choose_groups(Layer& layer, const std::string& policy) const {
    static const std::vector<std::string> policies{"DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA",
                                                   "HYBRID_TRANSFORMER"};
    if (std::find(policies.begin(), policies.end(), policy) == policies.end())
      throw error(
          fmt::format("the layer's policy is '{}'{}; expected DATA, MODEL, HYBRID_DATA_MODEL, "
                      "HYBRID_MODEL_DATA or HYBRID_TRANSFORMER",
                      policy, did_you_mean(policy, policies)));
    layer.policy = policy;
    const bool apart = policy == "HYBRID_MODEL_DATA";
    for (LayerPass* pass : {&layer.forward, &layer.input_gradient}) {
      if (policy == "DATA") pass->collective.reset();
      if (pass->collective && pass->collective->group == LayerGroup::model)
        pass->collective->group = policy == "MODEL" ? LayerGroup::everyone
                                  : apart           ? LayerGroup::model_apart
                                                    : LayerGroup::model;
    }
    std::optional<LayerCollective>& weights = layer.weight_gradient.collective;
    if (policy == "MODEL") weights.reset();
    if (weights && weights->group == LayerGroup::data)
      weights->group = policy == "DATA" ? LayerGroup::everyone
                       : apart          ? LayerGroup::neighbouring_data
                                        : LayerGroup::data;
  }

  double time(const std::string& word, const std::string& what) const {
    const double value = number(word, what);
    constexpr double max = 1e19;
    if (value < 0 || value > max) throw error(fmt::format("{} is '{}'; expected a time from 0 on", what, word));
    return value;
  }

  LayerPass read_pass(const std::vector<std::string>& words, std::size_t at, LayerGroup usual) const {
    LayerPass pass;
    pass.compute = time(words[at], fmt::format("column {}, a compute time,", at + 1));
    const Bytes bytes(whole(words[at + 2], fmt::format("column {}, bytes,", at + 3), 0,
                            std::numeric_limits<std::int64_t>::max() - 1023));
    pass.collective = read_collective(words[at + 1], usual);
    if (pass.collective) pass.collective->bytes = bytes;
    if (bytes == Bytes(0)) pass.collective.reset();
    return pass;
  }

  /// NAME, NAME_EP or NAME_DP_EP. BROADCAST is in old files, and their programs skip it.
  std::optional<LayerCollective> read_collective(const std::string& word, LayerGroup usual) const {
    if (word == "NONE" || word == "BROADCAST") return std::nullopt;
    LayerCollective result;
    result.group = word.ends_with("_DP_EP") ? LayerGroup::expert_data
                   : word.ends_with("_EP")  ? LayerGroup::expert
                                            : usual;
    std::string name = word;
    if (result.group == LayerGroup::expert_data) name.resize(name.size() - 6);
    if (result.group == LayerGroup::expert) name.resize(name.size() - 3);
    if (name == "ALLREDUCE")
      result.kind = CollectiveKind::all_reduce;
    else if (name == "ALLGATHER")
      result.kind = CollectiveKind::all_gather;
    else if (name == "REDUCESCATTER")
      result.kind = CollectiveKind::reduce_scatter;
    else if (name == "ALLTOALL")
      result.kind = CollectiveKind::all_to_all;
    else
      throw error(
          fmt::format("unknown communication '{}'; expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, "
                      "with _EP or _DP_EP behind it",
                      word));
    return result;
  }

  ByteSource source_;
  int line_ = 0;
  int line_of_count_ = 0;
  int header_line_ = 0;
  std::vector<std::size_t> checkpoints_, initiates_;
  LayerTable table_;
};

}  // namespace

LayerTable read_layer_table(ByteSource source) { return LayerTableReader(std::move(source)).read(); }

}  // namespace weft
