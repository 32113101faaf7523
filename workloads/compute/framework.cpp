// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/compute/framework.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

const Words<KernelPlace>& place_words() {
  static const Words<KernelPlace> words{{"attention_norm", KernelPlace::attention_norm},
                                        {"attention_input", KernelPlace::attention_input},
                                        {"attention_core", KernelPlace::attention_core},
                                        {"attention_output", KernelPlace::attention_output},
                                        {"attention_residual", KernelPlace::attention_residual},
                                        {"mlp_norm", KernelPlace::mlp_norm},
                                        {"mlp_activation", KernelPlace::mlp_activation},
                                        {"mlp_residual", KernelPlace::mlp_residual},
                                        {"embedding", KernelPlace::embedding},
                                        {"final_norm", KernelPlace::final_norm},
                                        {"loss", KernelPlace::loss},
                                        {"tensor_gathered", KernelPlace::tensor_gathered},
                                        {"tensor_scattered", KernelPlace::tensor_scattered},
                                        {"router", KernelPlace::router},
                                        {"experts_input", KernelPlace::experts_input},
                                        {"experts_output", KernelPlace::experts_output},
                                        {"context_begin", KernelPlace::context_begin},
                                        {"context_part", KernelPlace::context_part},
                                        {"context_end", KernelPlace::context_end},
                                        {"magnitudes", KernelPlace::magnitudes},
                                        {"message_gathered", KernelPlace::message_gathered}};
  return words;
}

const Words<KernelUnit>& unit_words() {
  static const Words<KernelUnit> words{{"residual", KernelUnit::residual},
                                       {"hidden", KernelUnit::hidden},
                                       {"heads", KernelUnit::heads},
                                       {"queries_keys", KernelUnit::queries_keys},
                                       {"queries_keys_values", KernelUnit::queries_keys_values},
                                       {"keys_values", KernelUnit::keys_values},
                                       {"scores", KernelUnit::scores},
                                       {"inner", KernelUnit::inner},
                                       {"logits", KernelUnit::logits},
                                       {"table", KernelUnit::table},
                                       {"choices", KernelUnit::choices},
                                       {"chosen", KernelUnit::chosen},
                                       {"sent", KernelUnit::sent},
                                       {"copies", KernelUnit::copies},
                                       {"parameters", KernelUnit::parameters},
                                       {"kept", KernelUnit::kept},
                                       {"magnitudes", KernelUnit::magnitudes},
                                       {"tensors", KernelUnit::tensors}};
  return words;
}

const Words<KernelWhen>& when_words() {
  static const Words<KernelWhen> words{{"gated", KernelWhen::gated},
                                       {"plain", KernelWhen::plain},
                                       {"learned_positions", KernelWhen::learned_positions},
                                       {"no_positions", KernelWhen::no_positions},
                                       {"grouped", KernelWhen::grouped},
                                       {"head_norms", KernelWhen::head_norms},
                                       {"fp8", KernelWhen::fp8},
                                       {"delayed", KernelWhen::delayed},
                                       {"current", KernelWhen::current},
                                       {"fp8_block", KernelWhen::fp8_block},
                                       {"mxfp8", KernelWhen::mxfp8},
                                       {"fp8_scaled", KernelWhen::fp8_scaled},
                                       {"no_fp8", KernelWhen::no_fp8},
                                       {"sequence", KernelWhen::sequence},
                                       {"no_sequence", KernelWhen::no_sequence},
                                       {"fused_router", KernelWhen::fused_router},
                                       {"separate_router", KernelWhen::separate_router},
                                       {"fused_loss", KernelWhen::fused_loss},
                                       {"separate_loss", KernelWhen::separate_loss},
                                       {"fused_permutation", KernelWhen::fused_permutation},
                                       {"separate_permutation", KernelWhen::separate_permutation},
                                       {"several_here", KernelWhen::several_here},
                                       {"experts_in_turn", KernelWhen::experts_in_turn},
                                       {"padded", KernelWhen::padded},
                                       {"dense", KernelWhen::dense},
                                       {"experts", KernelWhen::experts},
                                       {"no_experts", KernelWhen::no_experts},
                                       {"transposed", KernelWhen::transposed},
                                       {"untransposed", KernelWhen::untransposed},
                                       {"wide_gradients", KernelWhen::wide_gradients},
                                       {"narrow_gradients", KernelWhen::narrow_gradients}};
  return words;
}

template <class Value>
Value word_of(const Spec& spec, const Words<Value>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.push_back(name);
  const std::string text = spec.one_of(names);
  return std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.first == text; })->second;
}

/// Units that exist at a place: bytes per logit of a norm would silently be nothing.
std::vector<KernelUnit> units_at(KernelPlace place) {
  std::vector<KernelUnit> units{KernelUnit::residual, KernelUnit::hidden, KernelUnit::tensors};
  const auto add = [&](std::initializer_list<KernelUnit> more) { units.insert(units.end(), more); };
  switch (place) {
    case KernelPlace::attention_core:
      add({KernelUnit::scores, KernelUnit::heads, KernelUnit::queries_keys, KernelUnit::queries_keys_values});
      break;
    case KernelPlace::attention_input:
    case KernelPlace::attention_output:
      add({KernelUnit::heads, KernelUnit::queries_keys, KernelUnit::queries_keys_values});
      break;
    case KernelPlace::context_begin:
    case KernelPlace::context_part:
    case KernelPlace::context_end:
      add({KernelUnit::heads, KernelUnit::keys_values});
      break;
    case KernelPlace::mlp_activation:
      add({KernelUnit::inner});
      break;
    case KernelPlace::magnitudes:
      return {KernelUnit::magnitudes};
    case KernelPlace::embedding:
      add({KernelUnit::table});
      break;
    case KernelPlace::loss:
      add({KernelUnit::logits});
      break;
    case KernelPlace::router:
      add({KernelUnit::choices, KernelUnit::chosen});
      break;
    case KernelPlace::experts_input:
    case KernelPlace::experts_output:
      add({KernelUnit::sent, KernelUnit::copies, KernelUnit::choices, KernelUnit::chosen, KernelUnit::inner});
      break;
    default:
      break;
  }
  return units;
}

constexpr std::int64_t max_bytes = 1000;
constexpr std::int64_t max_streams = 128;  // streams that a device of NVIDIA runs side by side (CUDA C++ guide, 19.2)

std::int64_t read_bytes_per_unit(const Spec& map) {
  std::int64_t bytes = 0;
  for (const char* key : {"reads", "writes"})
    if (const auto value = map.find(key)) bytes += value->integer(0, max_bytes);
  if (bytes == 0) throw map.error("neither 'reads' nor 'writes': bytes per unit that the kernel moves");
  return bytes;
}

SmallKernel read_small_kernel(const Spec& map, const std::vector<KernelUnit>& units) {
  SmallKernel kernel;
  kernel.name = map.at("kernel").text();
  Words<KernelUnit> allowed;
  for (const auto& word : unit_words())
    if (std::find(units.begin(), units.end(), word.second) != units.end()) allowed.push_back(word);
  kernel.unit = word_of(map.at("per"), allowed);
  kernel.bytes = read_bytes_per_unit(map);
  if (const auto more = map.find("also")) {
    kernel.also.push_back({word_of(more->at("per"), allowed), read_bytes_per_unit(*more)});
    more->finish();
  }
  if (const auto value = map.find("row_scales")) kernel.row_scales = value->integer(0, max_bytes);
  if (const auto value = map.find("block_scales")) kernel.block_scales = value->integer(0, max_bytes);
  if (const auto value = map.find("flops")) kernel.flops = value->number(0, max_bytes);
  if (const auto value = map.find("traffic")) kernel.traffic = read_traffic(*value);
  if (const auto value = map.find("each")) {
    kernel.each_tensor = value->one_of({"tensor"}) == "tensor";
    if (std::find(units.begin(), units.end(), KernelUnit::tensors) == units.end())
      throw value->error("kernels here go over all tensors together; leave it out");
  }
  if (const auto value = map.find("when"))
    for (const Spec& word : value->is_sequence() ? value->items() : std::vector<Spec>{*value})
      kernel.when.push_back(word_of(word, when_words()));
  map.finish();
  return kernel;
}

std::vector<SmallKernel> read_small_kernels(const Spec& list, const std::vector<KernelUnit>& units) {
  std::vector<SmallKernel> kernels;
  for (const Spec& item : list.items()) kernels.push_back(read_small_kernel(item, units));
  return kernels;
}

KernelCatalogue::Accumulation read_accumulation(const Spec& map) {
  KernelCatalogue::Accumulation result;
  for (const char* key : {"reads", "writes"})
    if (const auto value = map.find(key)) result.bytes += value->integer(0, max_bytes);
  if (const auto value = map.find("in_gemms")) result.in_gemms = value->integer(0, max_bytes);
  if (const auto value = map.find("first_micro_batch")) result.from_second = !value->boolean();
  map.finish({{"in_products", "in_gemms"}});  // the key of older catalogues
  if ((result.bytes > 0) == (result.in_gemms > 0))
    throw map.error("give either 'reads' and 'writes' of a kernel, or 'in_gemms'");
  return result;
}

}  // namespace

void KernelCatalogue::Host::slow_down(double factor) {
  for (Time* time : {&kernel, &collective, &attention, &mlp, &router, &expert})
    *time = Time::from_ps(std::llround(std::min(static_cast<double>(time->ps()) * factor, 0x1p62)));
}

namespace {

/// `host: {kernel: 8 us, collective: 30 us, waits_for_chunks: true}`.
KernelCatalogue::Host read_host(const Spec& map) {
  KernelCatalogue::Host host;
  host.kernel = map.at("kernel").time();
  host.collective = map.at("collective").time();
  if (const auto value = map.find("attention")) host.attention = value->time();
  if (const auto value = map.find("mlp")) host.mlp = value->time();
  if (const auto value = map.find("router")) host.router = value->time();
  if (const auto value = map.find("expert")) host.expert = value->time();
  if (const auto value = map.find("waits_for_chunks")) host.waits_for_chunks = value->boolean();
  map.finish();
  return host;
}

/// `block_on_host: {min: 2 ms, max: 5 ms}`.
KernelCatalogue::BlockOnHost read_block_on_host(const Spec& map) {
  const KernelCatalogue::BlockOnHost block{map.at("min").time(), map.at("max").time()};
  if (block.max < block.min) throw map.at("max").error("expected no less than `min`");
  map.finish();
  return block;
}

/// `context: {repeats_keys: true, waits: true, gradient_bytes: 4}`.
KernelCatalogue::Context read_context(const Spec& map) {
  KernelCatalogue::Context context;
  if (const auto value = map.find("ring_in_blocks")) context.ring_in_blocks = value->boolean();
  if (const auto value = map.find("repeats_keys")) context.repeats_keys = value->boolean();
  if (const auto value = map.find("waits")) context.waits = value->boolean();
  if (const auto value = map.find("gradient_bytes")) context.gradient_bytes = value->integer(1, 8);
  map.finish();
  return context;
}

KernelCatalogue::Buckets read_buckets(const Spec& map) {
  KernelCatalogue::Buckets buckets;
  constexpr std::int64_t most = std::int64_t{1} << 48;
  buckets.elements = map.at("elements").integer(1, most);
  if (const auto value = map.find("elements_per_rank")) buckets.elements_per_rank = value->integer(1, most);
  if (const auto value = map.find("of_first_chunk")) buckets.of_first_chunk = value->boolean();
  if (const auto value = map.find("aligned")) buckets.aligned = value->boolean();
  map.finish();
  return buckets;
}

SmallKernel plain_kernel(const char* name, KernelUnit unit, std::int64_t elements, std::vector<KernelWhen> when = {}) {
  SmallKernel kernel;
  kernel.name = name;
  kernel.unit = unit;
  kernel.elements = elements;
  kernel.when = std::move(when);
  return kernel;
}

SmallKernel byte_mask() {
  SmallKernel kernel;
  kernel.name = "dropout mask";
  kernel.unit = KernelUnit::scores;
  kernel.bytes = 1;
  return kernel;
}

KernelCatalogue make_plain_kernels() {
  KernelCatalogue result;
  result.name = "plain";
  const auto put = [&](KernelPlace place, std::vector<SmallKernel> forward, std::vector<SmallKernel> backward) {
    result.places[static_cast<std::size_t>(place)] = {std::move(forward), std::move(backward)};
  };
  using Unit = KernelUnit;
  const std::vector<SmallKernel> norm{plain_kernel("norm", Unit::residual, 2)};
  const std::vector<SmallKernel> norm_back{plain_kernel("norm", Unit::residual, 4)};
  for (const auto place : {KernelPlace::attention_norm, KernelPlace::mlp_norm, KernelPlace::final_norm})
    put(place, norm, norm_back);
  const SmallKernel residual = plain_kernel("residual", Unit::residual, 3);
  put(KernelPlace::attention_residual, {residual}, {residual});
  put(KernelPlace::mlp_residual, {residual}, {});
  put(KernelPlace::mlp_activation, {plain_kernel("activation", Unit::inner_and_gates, 1)},
      {plain_kernel("activation", Unit::inner_and_gates, 2)});
  // Scale, mask and softmax read and write the scores; dropout the same with a mask of one byte.
  put(KernelPlace::attention_core,
      {plain_kernel("softmax", Unit::scores, 2), plain_kernel("dropout", Unit::scores, 2), byte_mask()},
      {plain_kernel("softmax", Unit::scores, 3), plain_kernel("dropout", Unit::scores, 2), byte_mask()});
  const SmallKernel with = plain_kernel("embedding", Unit::hidden, 3, {KernelWhen::learned_positions});
  const SmallKernel without = plain_kernel("embedding", Unit::hidden, 2, {KernelWhen::no_positions});
  put(KernelPlace::embedding, {with, without}, {with, with, without, without});  // token row, position row, result
  put(KernelPlace::loss, {plain_kernel("loss", Unit::logits, 2)}, {plain_kernel("loss", Unit::logits, 2)});
  return result;
}

}  // namespace

const KernelCatalogue& plain_kernels() {
  static const KernelCatalogue kernels = make_plain_kernels();
  return kernels;
}

namespace {

bool has_kernel_when(const KernelCatalogue& kernels, KernelWhen when) {
  const auto has = [when](const std::vector<SmallKernel>& list) {
    return std::any_of(list.begin(), list.end(), [when](const SmallKernel& one) { return one.needs(when); });
  };
  return std::any_of(kernels.places.begin(), kernels.places.end(),
                     [&](const auto& place) { return has(place[0]) || has(place[1]); });
}

}  // namespace

bool casts_in_blocks(const KernelCatalogue& kernels, const std::string& precision) {
  return has_kernel_when(kernels, KernelWhen::fp8_scaled) ||
         has_kernel_when(kernels, precision == "mxfp8" ? KernelWhen::mxfp8 : KernelWhen::fp8_block);
}

bool finds_magnitudes(const KernelCatalogue& kernels) { return has_kernel_when(kernels, KernelWhen::current); }

KernelCatalogue read_kernel_catalogue(const Spec& spec) {
  KernelCatalogue result;
  result.name = spec.at("name").text();
  result.attention = word_of(spec.at("attention"), Words<AttentionKernel>{{"flash", AttentionKernel::flash},
                                                                          {"unfused", AttentionKernel::unfused}});
  const Spec places = spec.at("kernels");
  for (const auto& [name, place] : place_words()) {
    const auto map = places.find(name);
    if (!map) continue;
    auto& here = result.places[static_cast<std::size_t>(place)];
    if (const auto list = map->find("forward")) here[0] = read_small_kernels(*list, units_at(place));
    if (const auto list = map->find("backward")) here[1] = read_small_kernels(*list, units_at(place));
    map->finish();
  }
  places.finish();
  if (const auto value = spec.find("blocking_messages")) result.blocking_messages = value->boolean();
  if (const auto value = spec.find("messages_in_turn")) {
    result.messages_in_turn = value->boolean();
    if (result.messages_in_turn && result.blocking_messages)
      throw value->error("found with `blocking_messages`; messages in turn block in any case, so give one of them");
  }
  if (const auto value = spec.find("gathers_sent")) result.gathers_sent = value->boolean();
  if (const auto value = spec.find("expert_streams")) result.expert_streams = value->integer(1, max_streams);
  if (const auto value = spec.find("counts_tokens")) result.counts_tokens = value->boolean();
  if (const auto value = spec.find("keeps_gathered")) result.keeps_gathered = value->boolean();
  if (const auto value = spec.find("recomputes_what_is_needed")) result.recomputes_what_is_needed = value->boolean();
  if (const auto value = spec.find("split_accumulation")) result.split_accumulation = value->boolean();
  if (const auto value = spec.find("swizzles_scales")) result.swizzles_scales = value->boolean();
  if (const auto value = spec.find("router_gradients")) result.router_gradients = value->one_of({"tf32", "fp32"});
  if (const auto value = spec.find("attention_library")) result.attention_library = value->text();
  if (const auto map = spec.find("context")) result.context = read_context(*map);
  if (const auto map = spec.find("host")) result.host = read_host(*map);
  if (const auto map = spec.find("block_on_host")) result.block_on_host = read_block_on_host(*map);
  if (const auto map = spec.find("buckets")) result.buckets = read_buckets(*map);
  const Spec step = spec.at("step");
  const std::vector<KernelUnit> parameters{KernelUnit::parameters, KernelUnit::kept};
  if (const auto map = step.find("accumulation")) result.accumulation = read_accumulation(*map);
  if (const auto map = step.find("accumulation_fp32")) result.accumulation_fp32 = read_accumulation(*map);
  if (const auto value = step.find("all_reduces_fp32")) result.all_reduces_fp32 = value->boolean();
  if (const auto map = step.find("sharded")) {
    if (const auto list = map->find("gathered")) result.gathered = read_small_kernels(*list, parameters);
    if (const auto list = map->find("scattered")) result.scattered = read_small_kernels(*list, parameters);
    map->finish();
  }
  if (const auto list = step.find("gradient_norm")) result.gradient_norm = read_small_kernels(*list, parameters);
  result.optimizer = read_small_kernels(step.at("optimizer"), parameters);
  if (result.optimizer.empty())
    throw step.at("optimizer").error("an empty list: what does the optimizer read and write?");
  step.finish();
  spec.finish();
  return result;
}

}  // namespace weft
