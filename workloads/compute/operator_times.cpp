// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/compute/operator_times.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "support/documents/text_file.hpp"
#include "units/text.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {
namespace {

const std::vector<std::string> columns{"kernel", "m", "n", "k", "count", "bytes", "precision", "time"};

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(blanks) - begin + 1));
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::string to_text(const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::gemm) return fmt::format("memory {} B, {}", kernel.bytes, kernel.precision);
  std::string text = fmt::format("gemm {} x {} x {}", kernel.m, kernel.n, kernel.k);
  if (kernel.count != 1) text += fmt::format(", {} of them", kernel.count);
  return text + ", " + kernel.precision;
}

}  // namespace

class OperatorFileReader {
 public:
  OperatorFileReader(const std::string& text, const std::string& name) : text_(text), where_{name, 0} {}

  MeasuredOperators read() {
    for (std::string line; std::getline(text_, line);) {
      ++where_.line;
      const std::string content = trimmed(line);
      if (content.empty() || content.front() == '#') continue;
      if (header_.empty())
        read_header(cells_of(content));
      else
        read_line(cells_of(content));
    }
    if (result_.empty())
      throw InputError({where_.file, 0}, "no measured operators; a header line and at least one line");
    return std::move(result_);
  }

 private:
  void read_header(std::vector<std::string> names) {
    for (const std::string& name : names) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end())
        throw InputError(where_, fmt::format("unknown column '{}'{}; known here: {}", name, did_you_mean(name, columns),
                                             listed(columns)));
      if (std::count(names.begin(), names.end(), name) > 1)
        throw InputError(where_, fmt::format("two columns are called '{}'", name));
    }
    for (const char* name : {"kernel", "time"})
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw InputError(where_, fmt::format("the header lacks the column '{}'", name));
    header_ = std::move(names);
  }

  /// The cell of a column, or "" if there is no such column.
  std::string cell(const std::vector<std::string>& cells, const std::string& name) const {
    const auto at = std::find(header_.begin(), header_.end(), name);
    return at == header_.end() ? "" : cells[static_cast<std::size_t>(at - header_.begin())];
  }

  std::int64_t number(const std::vector<std::string>& cells, const std::string& name, std::int64_t otherwise) const {
    const std::string text = cell(cells, name);
    if (text.empty() && otherwise > 0) return otherwise;
    std::int64_t value = 0;
    const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || rest != text.data() + text.size() || value <= 0)
      throw InputError(where_, fmt::format("`{}`: '{}' is no whole number from 1", name, text));
    return value;
  }

  void read_line(const std::vector<std::string>& cells) {
    if (cells.size() != header_.size())
      throw InputError(where_, fmt::format("{} cells, but the header has {} columns", cells.size(), header_.size()));
    Kernel kernel;
    const std::string kind = cell(cells, "kernel");
    if (kind == "gemm") {
      kernel.m = number(cells, "m", 0);
      kernel.n = number(cells, "n", 0);
      kernel.k = number(cells, "k", 0);
      kernel.count = number(cells, "count", 1);
    } else if (kind == "memory") {
      kernel.kind = Kernel::Kind::memory;
      kernel.bytes = number(cells, "bytes", 0);
    } else {
      throw InputError(where_, fmt::format("`kernel`: '{}' is neither 'gemm'{} nor 'memory'", kind,
                                           kind == "matmul" ? ", as it is called now," : ""));
    }
    const std::string precision = cell(cells, "precision");
    const std::vector<std::string> names = gemm_precision_names();
    if (!precision.empty() && std::find(names.begin(), names.end(), precision) == names.end())
      throw InputError(where_, fmt::format("`precision`: unknown '{}'{}; known here: {}", precision,
                                           did_you_mean(precision, names), listed(names)));
    const std::string text = cell(cells, "time");
    QuantityError reason{};
    const auto time = parse_time(text, reason);
    if (!time || *time <= Time())
      throw InputError(where_, fmt::format("`time`: '{}' is no time; give a positive number with its unit, such as "
                                           "'190 us'",
                                           text));
    const auto key = MeasuredOperators::key_of(kernel, precision);
    const auto [at, fresh] = lines_.emplace(key, where_.line);
    if (!fresh) throw InputError(where_, fmt::format("the kernel of line {} again", at->second));
    result_.times_.emplace(key, *time);
  }

  std::istringstream text_;
  SourceLine where_;
  std::vector<std::string> header_;
  std::map<MeasuredOperators::Key, int> lines_;
  MeasuredOperators result_;
};

MeasuredOperators::Key MeasuredOperators::key_of(const Kernel& kernel, const std::string& precision) {
  if (kernel.kind != Kernel::Kind::gemm) return {Kernel::Kind::memory, kernel.bytes, 0, 0, 0, precision};
  return {kernel.kind, kernel.m, kernel.n, kernel.k, kernel.count, precision};
}

MeasuredOperators MeasuredOperators::parse(const std::string& text, const std::string& name) {
  return OperatorFileReader(text, name).read();
}

MeasuredOperators MeasuredOperators::load(const std::string& path) { return parse(text_of_file(path), path); }

std::optional<Time> MeasuredOperators::find(const Kernel& kernel) const {
  for (const std::string& precision : {kernel.precision, std::string()}) {
    const auto at = times_.find(key_of(kernel, precision));
    if (at != times_.end()) return at->second;
  }
  return std::nullopt;
}

namespace {

/// A grouped GEMM was measured with as many rows for each expert: its time depends on the sum of all rows.
Time time_by_rows(const Kernel& kernel, Time even) {
  if (kernel.rows.empty()) return even;
  const auto rows = static_cast<double>(std::accumulate(kernel.rows.begin(), kernel.rows.end(), std::int64_t{0}));
  const double of_even =
      static_cast<double>(kernel.rows_inner ? kernel.k : kernel.m) * static_cast<double>(kernel.count);
  return Time::from_ps(std::llround(std::min(static_cast<double>(even.ps()) * rows / of_even, 0x1p62)));
}

}  // namespace

Time OperatorTimes::of(const Kernel& kernel) const {
  if (const auto measured = measured_.find(kernel)) return time_by_rows(kernel, *measured);
  if (!measured_.empty()) missing_.insert(to_text(kernel));
  return kernel_time(device_, kernel);
}

Time OperatorTimes::beside(const Kernel& kernel) const {
  if (!rest_ || measured_.find(kernel)) return {};
  return std::max(kernel_time(device_, kernel), kernel_time(*rest_, kernel));
}

Time OperatorTimes::of(const Kernel& kernel, const UnitsBeside& communication) const {
  if (!communication.left_free || measured_.find(kernel)) return of(kernel);
  return std::max(of(kernel), kernel_time(with_units_left(device_, communication.units), kernel));
}

Time OperatorTimes::beside(const Kernel& kernel, const UnitsBeside& communication) const {
  if (!rest_ || measured_.find(kernel)) return {};
  const auto rest = beside_communication(device_, communication.units, !communication.left_free);
  return std::max(of(kernel, communication), kernel_time(*rest, kernel));
}

OperatorTimes read_operator_times(const Spec& map, const std::string& directory) {
  Device device = read_device(Spec::load(resolve_file(map.at("device"), directory, "devices", ".yaml")));
  if (const auto rates = map.find("rates")) {
    const std::string which = rates->one_of({"best", "single", "sustained"});
    device.in_a_step = which != "best";
    device.one_by_one = which == "single";
  }
  const auto file = map.find("operators");
  if (!file) return OperatorTimes(std::move(device));
  return OperatorTimes(std::move(device), MeasuredOperators::load(resolve_file(*file, directory, "operators", ".csv")));
}

namespace {

/// `attention: {queries: .., keys: .., head_size: .., heads: .., causal: .., backward: .., library: ..}`: `heads` of
/// all sequences together. Forward two GEMMs, backward five (Dao et al., arXiv:2205.14135, algorithm 4).
void read_attention(const Spec& map, Kernel& kernel) {
  constexpr std::int64_t max = std::int64_t{1} << 31;
  kernel.kind = Kernel::Kind::attention;
  kernel.m = map.at("queries").integer(1, max);
  kernel.n = map.at("keys").integer(1, max);
  kernel.k = map.at("head_size").integer(1, max);
  kernel.count = map.at("heads").integer(1, max);
  if (const auto value = map.find("causal")) kernel.causal = value->boolean();
  if (const auto value = map.find("backward")) kernel.backward = value->boolean();
  if (const auto value = map.find("library")) kernel.library = value->text();
  kernel.flops = (kernel.causal ? 0.5 : 1) * (kernel.backward ? 10 : 4) * static_cast<double>(kernel.m) *
                 static_cast<double>(kernel.n) * static_cast<double>(kernel.k) * static_cast<double>(kernel.count);
  map.finish();
}

/// m, or of grouped GEMMs a list of the rows of each expert.
void read_rows(const Spec& map, std::int64_t max, Kernel& kernel) {
  if (const auto grouped = map.find("grouped")) kernel.grouped = grouped->boolean();
  const auto count = map.find("count");
  const Spec m = map.at("m");
  if (!m.is_sequence()) {
    kernel.m = m.integer(1, max);
    if (count) kernel.count = count->integer(1, max);
    return;
  }
  if (!kernel.grouped)
    throw m.error("a list has the rows of each expert of a grouped GEMM; give one number, or 'grouped: true'");
  if (count) throw count->error("a list of rows says how many experts there are; leave 'count' out");
  constexpr std::int64_t max_rows = std::int64_t{1} << 32;
  std::int64_t sum = 0;
  for (const Spec& item : m.items()) {
    kernel.rows.push_back(item.integer(0, max_rows));
    sum += kernel.rows.back();
    if (kernel.rows.size() > 1 << 20) throw m.error("more than 1,048,576 experts");
  }
  if (sum == 0) throw m.error("no rows at all; give one expert at least a row");
  kernel.count = static_cast<std::int64_t>(kernel.rows.size());
  kernel.m = (sum + kernel.count - 1) / kernel.count;
}

}  // namespace

Kernel read_kernel(const Spec& map, const Device& device) {
  constexpr std::int64_t max = std::int64_t{1} << 40;
  Kernel kernel;
  kernel.precision = device.peak.begin()->first;
  if (const auto precision = map.find("precision")) {
    std::vector<std::string> known;
    for (const auto& [name, peak] : device.peak) known.push_back(name);
    kernel.precision = precision->one_of(known);
  }
  const auto bytes = map.find("bytes");
  if (const auto attention = map.find("attention")) {
    read_attention(*attention, kernel);
    kernel.bytes = map.at("bytes").bytes().count();
  } else if (map.has("m") || !bytes) {
    read_rows(map, max, kernel);
    kernel.n = map.at("n").integer(1, max);
    kernel.k = map.at("k").integer(1, max);
    if (bytes) kernel.bytes = bytes->bytes().count();
  } else {
    kernel.kind = Kernel::Kind::memory;
    kernel.bytes = bytes->bytes().count();
    if (const auto flops = map.find("flops")) kernel.flops = flops->number(0, 1e30);
    if (const auto traffic = map.find("traffic")) kernel.traffic = read_traffic(*traffic);
  }
  map.finish();
  return kernel;
}

}  // namespace weft
