// SPDX-License-Identifier: GPL-2.0-only
// An accelerator: peak arithmetic, memory bandwidth, and the time that work takes on it.
#include "workloads/reading/device.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> precisions{
    {{"bf16", 2}, {"fp16", 2}, {"fp32", 4}, {"fp8", 1}, {"tf32", 4}}};
constexpr std::array<std::string_view, 2> scaled_in_blocks{"fp8_block", "mxfp8"};

constexpr std::array<std::pair<std::string_view, double>, 3> flops_units{
    {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};

}  // namespace

std::int64_t element_bytes(const std::string& precision) {
  for (const auto& [name, bytes] : precisions)
    if (name == precision) return bytes;
  if (is_scaled_in_blocks(precision)) return 1;
  WEFT_EXPECT(false, "precision '{}'", precision);
  return 0;
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : precisions) names.emplace_back(name);
  return names;
}

bool is_fp8(const std::string& precision) { return precision == "fp8" || is_scaled_in_blocks(precision); }

bool is_scaled_in_blocks(const std::string& precision) {
  return std::find(scaled_in_blocks.begin(), scaled_in_blocks.end(), precision) != scaled_in_blocks.end();
}

std::int64_t scale_bytes(const std::string& precision, std::int64_t elements) {
  const auto blocks = [elements](std::int64_t side) { return elements / side + (elements % side > 0 ? 1 : 0); };
  if (precision == "fp8_block") return 4 * blocks(128);
  return precision == "mxfp8" ? blocks(32) : 0;
}

std::vector<std::string> gemm_precision_names() {
  std::vector<std::string> names = precision_names();
  names.insert(names.end(), scaled_in_blocks.begin(), scaled_in_blocks.end());
  return names;
}

double read_flops(const Spec& value) {
  const std::string text = value.text();
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (failure == std::errc() && number > 0)
    for (const auto& [name, factor] : flops_units)
      if (unit == name && std::isfinite(number * factor)) return number * factor;
  throw value.error(
      fmt::format("'{}' is no arithmetic rate; give a positive number with GFLOP/s, TFLOP/s or PFLOP/s", text));
}

namespace {

constexpr double min_fraction = 1e-6;
constexpr std::array<const char*, traffic_count> traffic_names{"elementwise", "norm", "softmax"};

/// `gemms: {peak_fraction: .., bandwidth_fraction: .., units: .., tile: [m, n]}`.
void read_gemm_fractions(const Spec& map, Device& device) {
  device.gemm_fraction = map.at("peak_fraction").number(min_fraction, 1);
  if (const auto value = map.find("bandwidth_fraction")) device.gemm_memory_fraction = value->number(min_fraction, 1);
  const auto units = map.find("units");
  const auto tile = map.find("tile");
  if (units.has_value() != tile.has_value())
    throw map.error("'units' and 'tile' go together: how many tiles are worked on at once, and [m, n] of one");
  if (tile) {
    if (tile->items().size() != 2) throw tile->error("a tile has two sides, such as [128, 128]");
    constexpr std::int64_t max = 1 << 20;
    device.tiles = {units->integer(1, max), (*tile)[0].integer(1, max), (*tile)[1].integer(1, max)};
  }
  map.finish();
}

/// `[[size, value], ..]`; `size_of` and `value_of` read the parts of a point.
template <class SizeOf, class ValueOf>
SizeCurve read_curve(const Spec& list, const char* example, const SizeOf& size_of, const ValueOf& value_of) {
  std::vector<SizeCurve::Point> points;
  for (const Spec& item : list.items()) {
    if (item.size() != 2) throw item.error(fmt::format("a point has a size and a value, such as {}", example));
    const double size = size_of(item[0]);
    if (size <= 0 || (!points.empty() && size <= points.back().size))
      throw item.error("sizes rise from point to point, from above 0");
    points.push_back({size, value_of(item[1])});
  }
  if (points.empty()) throw list.error(fmt::format("an empty list; at least one point, such as [{}]", example));
  return SizeCurve(std::move(points));
}

SizeCurve read_bandwidth_curve(const Spec& list) {
  return read_curve(
      list, "[64 MiB, 0.7]", [](const Spec& size) { return static_cast<double>(size.bytes().count()); },
      [](const Spec& value) { return value.number(min_fraction, 1); });
}

/// A number, or points over k.
SizeCurve read_inner_overhead(const Spec& value) {
  constexpr double max = 1 << 20;
  if (!value.is_sequence()) return SizeCurve(std::vector<SizeCurve::Point>{{1, value.number(0, max)}});
  return read_curve(
      value, "[128, 100]", [](const Spec& size) { return size.number(1, max); },
      [](const Spec& overhead) { return overhead.number(0, max); });
}

/// A number, or points over the keys that a query sees in the mean.
SizeCurve read_backward(const Spec& value) {
  constexpr double max_keys = 1 << 30, max_rate = 10;
  if (!value.is_sequence()) return SizeCurve(std::vector<SizeCurve::Point>{{1, value.number(min_fraction, max_rate)}});
  return read_curve(
      value, "[2048, 0.65]", [](const Spec& keys) { return keys.number(1, max_keys); },
      [](const Spec& rate) { return rate.number(min_fraction, max_rate); });
}

/// `[[2 B, 0.3], [8 B, 0.6]]`, powers of two.
std::vector<GemmRates::Alignment> read_alignment(const Spec& list) {
  constexpr std::uint64_t max = 1 << 10;
  std::vector<GemmRates::Alignment> result;
  for (const Spec& one : list.items()) {
    if (one.size() != 2) throw one.error("an alignment of rows and a fraction of the rate, such as [8 B, 0.6]");
    const auto bytes = static_cast<std::uint64_t>(one[0].bytes().count());
    if (!std::has_single_bit(bytes) || bytes > max) throw one[0].error("a power of two up to 1 KiB, such as 8 B");
    const auto rising = static_cast<std::int64_t>(bytes);
    if (!result.empty() && rising <= result.back().bytes)
      throw one[0].error("not more than the alignment before; from few bytes to many");
    result.push_back({rising, one[1].number(min_fraction, 1)});
  }
  if (result.empty()) throw list.error("no alignment; give at least one, such as [8 B, 0.6]");
  return result;
}

/// `units`, `even_share`, `bandwidth_fraction`, `sharpness` and `slowing`, of GEMMs and of attention.
SharedWork read_shared_work(const Spec& map) {
  SharedWork work;
  work.units = map.at("units").integer(1, 1 << 20);
  if (const auto value = map.find("even_share")) work.even_share = value->number(0, 1);
  if (const auto value = map.find("bandwidth_fraction")) work.memory_fraction = value->number(min_fraction, 1);
  if (const auto value = map.find("sharpness")) work.sharpness = value->number(1, 100);
  if (const auto value = map.find("slowing")) work.slowing = value->number(0, 1);
  return work;
}

/// Keys of `gemms` as older files have them.
const std::map<std::string, std::string> older_gemm_keys{{"most_splits", "max_splits"}};

/// `gemms: {units: .., inner_overhead: .., max_splits: .., bandwidth_fraction: .., tiles: [[m, n, fraction], ..]}`.
GemmRates read_gemms(const Spec& map) {
  constexpr std::int64_t max = 1 << 20;
  GemmRates rates;
  rates.work = read_shared_work(map);
  if (const auto value = map.find("persistent")) rates.work.persistent = value->boolean();
  if (const auto value = map.find("inner_overhead")) rates.inner_overhead = read_inner_overhead(*value);
  if (const auto value = map.find("alignment")) rates.alignment = read_alignment(*value);
  if (const auto value = map.find("max_splits")) rates.max_splits = value->integer(1, 1024);
  if (const auto value = map.find("split_time")) rates.split_time = value->time();
  if (const auto columns = map.find("columns")) {
    rates.columns = read_curve(
        *columns, "[128, 0.7]", [](const Spec& width) { return width.number(1, max); },
        [](const Spec& value) { return value.number(min_fraction, 1); });
    if (const auto value = map.find("few_rows")) rates.few_rows = value->number(min_fraction, 1);
    if (const auto value = map.find("padding_bandwidth")) rates.padding_bandwidth = value->bandwidth();
    map.finish(older_gemm_keys);
    return rates;
  }
  const Spec tiles = map.at("tiles");
  for (const Spec& tile : tiles.items()) {
    if (tile.size() != 3) throw tile.error("a tile has two sides and a fraction of the peak, such as [128, 128, 0.8]");
    rates.tiles.push_back({tile[0].integer(1, max), tile[1].integer(1, max), tile[2].number(min_fraction, 1)});
  }
  if (rates.tiles.empty()) throw tiles.error("no tile; give at least one, such as [128, 128, 0.8]");
  map.finish(older_gemm_keys);
  return rates;
}

/// `{units: .., rows: .., peak_fraction: [[head size, fraction], ..], ..}` of one library.
AttentionRates read_attention(const Spec& map) {
  constexpr std::int64_t max = 1 << 20;
  AttentionRates rates;
  rates.work = read_shared_work(map);
  if (const auto value = map.find("launch")) rates.launch = value->time();
  if (const auto value = map.find("rows")) rates.rows = value->integer(1, max);
  rates.peak_fraction = read_curve(
      map.at("peak_fraction"), "[128, 0.7]", [](const Spec& size) { return size.number(1, max); },
      [](const Spec& value) { return value.number(min_fraction, 1); });
  if (const auto value = map.find("key_overhead")) rates.key_overhead = value->integer(0, max);
  if (const auto value = map.find("alone")) rates.alone = value->number(1, 100);
  if (const auto value = map.find("backward")) rates.backward = read_backward(*value);
  map.finish();
  return rates;
}

/// Keys of `sustained` as older files have them.
const std::map<std::string, std::string> older_sustained_keys{{"products", "gemms"},
                                                              {"fp8_products", "fp8_gemms"},
                                                              {"fp8_block_products", "fp8_block_gemms"},
                                                              {"grouped_products", "grouped_gemms"}};

SustainedRates read_sustained(const Spec& map) {
  SustainedRates rates;
  const auto gemms = map.find("gemms");
  if (const auto of_fp8 = map.find("fp8_gemms")) rates.other_gemms["fp8"] = read_gemms(*of_fp8);
  if (const auto of_blocks = map.find("fp8_block_gemms")) rates.other_gemms["fp8_block"] = read_gemms(*of_blocks);
  if (const auto grouped = map.find("grouped_gemms")) rates.grouped = read_gemms(*grouped);
  if (const auto grouped = map.find("grouped_fp8_block_gemms")) rates.grouped_blocks = read_gemms(*grouped);
  if (const auto libraries = map.find("attention"))
    for (const Spec& one : libraries->items()) {
      std::string library = one.at("library").text();  // before read_attention() refuses all other keys
      rates.attention.emplace_back(std::move(library), read_attention(one));
    }
  if (const auto curves = map.find("memory_kernels")) {
    for (std::size_t i = 0; i < traffic_count; ++i)
      if (const auto list = curves->find(traffic_names[i])) rates.bandwidth[i] = read_bandwidth_curve(*list);
    curves->finish();
  }
  if (const auto launch = map.find("launch")) rates.launch = launch->time();
  if (const auto clock = map.find("clock")) rates.clock = clock->number(min_fraction, 1);
  if (const auto split = map.find("split_accumulation")) rates.split_accumulation = split->number(min_fraction, 1);
  if (const auto relative = map.find("mxfp8")) rates.mxfp8 = relative->number(min_fraction, 1);
  const auto units = map.find("collective_units");
  if (const auto taken = map.find("collective_bandwidth")) rates.collective_bandwidth = taken->bandwidth();
  if (!gemms) map.finish(older_sustained_keys);  // an older key explains more than that `gemms` is missing
  rates.gemms = read_gemms(map.at("gemms"));
  // Beside communication GEMMs keep a unit at least.
  if (units) rates.collective_units = units->integer(0, rates.gemms.work.units - 1);
  map.finish(older_sustained_keys);
  return rates;
}

/// The keys of kernel_time(): without `gemms` a constant efficiency, as roofline_time() has.
void read_fractions(const Spec& spec, Device& device) {
  const auto efficiency = spec.find("efficiency");
  const auto gemms = spec.find("gemms");
  if (efficiency) device.efficiency = device.gemm_fraction = efficiency->number(min_fraction, 1);
  if (gemms) read_gemm_fractions(*gemms, device);
  if (!efficiency) device.efficiency = device.gemm_fraction;
  const auto fraction = [&](const char* name, const char* key, double otherwise) {
    const auto map = spec.find(name);
    if (!map) return otherwise;
    const double value = map->at(key).number(min_fraction, 1);
    map->finish();
    return value;
  };
  device.memory_fraction = fraction("memory_kernels", "bandwidth_fraction", 1);
  device.fused_fraction = fraction("fused_kernels", "peak_fraction", device.gemm_fraction);
  if (const auto launch = spec.find("launch")) device.launch = launch->time();
  if (const auto sustained = spec.find("sustained")) device.sustained = read_sustained(*sustained);
}

}  // namespace

Traffic read_traffic(const Spec& word) {
  const std::string name = word.one_of({traffic_names.begin(), traffic_names.end()});
  return static_cast<Traffic>(std::find(traffic_names.begin(), traffic_names.end(), name) - traffic_names.begin());
}

double SizeCurve::at(double size) const {
  if (size <= points_.front().size) return points_.front().value;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const Point &low = points_[i - 1], &high = points_[i];
    if (size > high.size) continue;
    return low.value + (high.value - low.value) * std::log(size / low.size) / std::log(high.size / low.size);
  }
  return points_.back().value;
}

double GemmRates::speed_of_rows(std::int64_t bytes) const {
  for (const Alignment& one : alignment)
    if (bytes <= one.bytes) return one.rate;
  return 1;
}

double slowdown_beside_communication(const Device& device) {
  const auto rest = beside_communication(device);
  if (!rest) return device.slowdown_while_communicating;
  const double arithmetic = device.peak.begin()->second / rest->peak.begin()->second;
  const double memory =
      static_cast<double>(device.memory_bandwidth.bps()) / static_cast<double>(rest->memory_bandwidth.bps());
  return std::max(device.slowdown_while_communicating, std::min(std::max(arithmetic, memory), max_slowdown));
}

namespace {

Device take_units(const Device& device, std::int64_t taken, bool waits) {
  const auto units = static_cast<double>(device.sustained->gemms.work.units);
  const double left = std::max(1.0, units - static_cast<double>(taken)) / units;
  Device rest = device;
  for (auto& [precision, peak] : rest.peak) peak *= left;
  const auto leave = [&](SharedWork& work) {
    if (waits && work.persistent) work.blocks = work.units;
    work.units = std::max<std::int64_t>(1, std::llround(static_cast<double>(work.units) * left));
  };
  leave(rest.sustained->gemms.work);
  for (auto& [precision, gemms] : rest.sustained->other_gemms) leave(gemms.work);
  if (rest.sustained->grouped) leave(rest.sustained->grouped->work);
  if (rest.sustained->grouped_blocks) leave(rest.sustained->grouped_blocks->work);
  for (auto& [library, attention] : rest.sustained->attention) leave(attention.work);
  return rest;
}

}  // namespace

std::optional<Device> beside_communication(const Device& device) {
  if (!device.in_a_step || !device.sustained) return std::nullopt;
  const SustainedRates& rates = *device.sustained;
  if (rates.collective_units == 0 && rates.collective_bandwidth == Bandwidth()) return std::nullopt;
  return beside_communication(device, rates.collective_units, true);
}

std::optional<Device> beside_communication(const Device& device, std::int64_t units, bool waits) {
  if (!device.in_a_step || !device.sustained) return std::nullopt;
  Device rest = take_units(device, units, waits);
  rest.memory_bandwidth =
      Bandwidth::from_bps(device.memory_bandwidth.bps() - device.sustained->collective_bandwidth.bps());
  return rest;
}

Device with_units_left(const Device& device, std::int64_t units) {
  return device.in_a_step && device.sustained ? take_units(device, units, false) : device;
}

Device read_device(const Spec& spec) {
  Device device;
  device.name = spec.at("name").text();
  const auto names = gemm_precision_names();
  const Spec peak = spec.at("peak");
  for (const auto& name : names)
    if (const auto value = peak.find(name)) device.peak[name] = read_flops(*value);
  peak.finish();
  if (device.peak.empty()) throw peak.error("no precision; give at least one, such as 'bf16: 100 TFLOP/s'");
  read_fractions(spec, device);
  device.memory_bandwidth = spec.at("memory_bandwidth").bandwidth();
  device.memory = spec.at("memory").bytes();
  if (const auto value = spec.find("fp8_transposes")) device.fp8_transposes = value->boolean();
  if (const auto value = spec.find("host_link")) device.host_link = value->bandwidth();
  if (const auto value = spec.find("host_memory_bandwidth")) device.host_memory_bandwidth = value->bandwidth();
  if (const auto value = spec.find("host_slowdown")) device.host_slowdown = value->number(0.01, 100);
  // For readers, shown by `weft device NAME`: where the numbers hold, and the assumptions.
  if (const auto lines = spec.find("validity"))
    for (const Spec& line : lines->items()) static_cast<void>(line.text());
  if (const auto value = spec.find("compute_slowdown_while_communicating"))
    device.slowdown_while_communicating = value->number(1, max_slowdown);
  spec.finish({{"matmul", "gemms"}});  // as older files have it
  if (device.sustained && device.sustained->collective_bandwidth >= device.memory_bandwidth)
    throw spec.at("sustained")
        .at("collective_bandwidth")
        .error("collectives leave nothing of the memory_bandwidth; use less");
  if (!spec.has("efficiency") && !spec.has("gemms"))  // a misspelt key has been found by now
    throw spec.error("neither 'efficiency' nor 'gemms': what of the peak is reached?");
  return device;
}

Time roofline_time(const Device& device, const std::string& precision, double flops, Bytes traffic) {
  const double arithmetic = flops / (device.peak.at(precision) * device.efficiency);
  const double memory = static_cast<double>(traffic.count()) * 8 / static_cast<double>(device.memory_bandwidth.bps());
  return Time::from_ps(std::llround(std::min(std::max(arithmetic, memory) * 1e12, 0x1p62)));
}

}  // namespace weft
