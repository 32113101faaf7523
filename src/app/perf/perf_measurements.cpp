// SPDX-License-Identifier: GPL-2.0-only
#include "app/perf/perf_measurements.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/documents/text_file.hpp"

namespace weft {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::int64_t whole_size(const SourceLine& place, const std::string& word) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || rest != end || value < 0)
    throw InputError(place, fmt::format("the size found is '{}'; expected a whole number of bytes", word));
  return value;
}

double microseconds_of(const SourceLine& place, const std::string& word) {
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value) || value <= 0)
    throw InputError(place, fmt::format("the time found is '{}'; expected microseconds above 0", word));
  return value;
}

/// The table that nccl-tests prints. Columns are found by its head: versions differ in them.
class MeasuredTable {
 public:
  explicit MeasuredTable(Measurements& result) : result_(result) {}

  void take(const SourceLine& place, const std::string& line) {
    std::string text = line;
    if (const auto tag = text.find("<stdout>:"); text.starts_with('[') && tag != std::string::npos)
      text.erase(0, tag + 9);
    text.erase(0, text.find_first_not_of(" \t"));
    if (text.starts_with('#'))
      take_comment(place, text.substr(1));
    else if (!text.empty() && text[0] >= '0' && text[0] <= '9' && text.find(" NCCL ") == std::string::npos)
      take_row(place, words_of(text));
  }

 private:
  void take_comment(const SourceLine& place, const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    constexpr std::string_view starting = "Collective test starting:";
    if (const auto at = text.find(starting); at != std::string::npos && words.size() > 3) {
      result_.program = words.back();
      result_.program_place = place;
    } else if (words.size() > 2 && words[0] == "Rank" &&
               words[1].find_first_not_of("0123456789") == std::string::npos) {
      result_.ranks = std::max(result_.ranks, static_cast<std::uint32_t>(whole_size(place, words[1])) + 1);
      result_.ranks_place = place;
    } else if (words.size() > 2 && words[0] == "size" && words[1] == "count") {
      take_head(words);
    }
  }

  void take_head(const std::vector<std::string>& words) {
    columns_ = words.size() - (words.back() == "timestamp" ? 1 : 0);
    times_.clear();
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if ((words[i] == "time" || words[i] == "cputime") && words[i + 1] == "algbw") times_.push_back(i);
  }

  void take_row(const SourceLine& place, const std::vector<std::string>& words) {
    if (times_.empty())
      throw InputError(place,
                       fmt::format("'{} ...' stands before nccl-tests' head '#  size  count  type ... time  algbw "
                                   "busbw', by which its columns are known; is this its whole output?",
                                   words[0]));
    MeasuredRow row;
    row.place = place;
    row.bytes = whole_size(place, words[0]);
    // Collectives that only work in place have no values in the columns for out of place.
    const bool only_in_place = times_.size() == 2 && words.size() == times_[1];
    if (!only_in_place && words.size() < columns_)
      throw InputError(place, fmt::format("{} columns found; expected {}, as the head says", words.size(), columns_));
    row.type = words[2];
    row.operation = words[3];
    const double first = microseconds_of(place, words[times_[0]]);
    (only_in_place ? row.in_place : row.out_of_place) = first;
    if (times_.size() == 2 && !only_in_place && words[times_[1]] != "N/A")
      row.in_place = microseconds_of(place, words[times_[1]]);
    result_.rows.push_back(std::move(row));
  }

  Measurements& result_;
  std::vector<std::size_t> times_;  // columns
  std::size_t columns_ = 0;
};

/// A table of one's own: a head that names the columns, then rows of numbers.
class MeasuredCsv {
 public:
  explicit MeasuredCsv(Measurements& result) : result_(result) {}

  void take(const SourceLine& place, const std::string& line) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 1 && cells[0].empty()) return;
    if (columns_ == 0) return take_head(place, cells);
    if (cells.size() != columns_)
      throw InputError(place, fmt::format("{} columns found; expected {}, as the head says", cells.size(), columns_));
    MeasuredRow row;
    row.place = place;
    row.bytes = whole_size(place, cells[*size_]);
    if (type_) row.type = cells[*type_];
    if (time_ && !cells[*time_].empty()) row.out_of_place = microseconds_of(place, cells[*time_]);
    if (in_place_ && !cells[*in_place_].empty()) row.in_place = microseconds_of(place, cells[*in_place_]);
    if (!row.out_of_place && !row.in_place) throw InputError(place, "the row has no time");
    result_.rows.push_back(std::move(row));
  }

 private:
  static std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    for (const char letter : line) {
      if (letter == ',' || letter == ';')
        cells.emplace_back();
      else if (letter != '"' && letter != '\r')
        cells.back() += letter;
    }
    for (std::string& cell : cells) {
      cell.erase(0, cell.find_first_not_of(" \t"));
      cell.erase(cell.find_last_not_of(" \t") + 1);
    }
    return cells;
  }

  void take_head(const SourceLine& place, const std::vector<std::string>& names) {
    const auto column = [&names](const std::vector<std::string>& wanted) -> std::optional<std::size_t> {
      for (const std::string& name : wanted)
        if (const auto at = std::find(names.begin(), names.end(), name); at != names.end())
          return static_cast<std::size_t>(at - names.begin());
      return std::nullopt;
    };
    size_ = column({"size_bytes", "size", "bytes"});
    time_ = column({"time_us", "time"});
    in_place_ = column({"in_place_us"});
    type_ = column({"type"});
    if (!size_ || (!time_ && !in_place_))
      throw InputError(place, fmt::format("the head found is '{}'; expected the columns 'size' (bytes) and 'time' or "
                                          "'in_place_us' (microseconds), and 'type' if it is known",
                                          fmt::join(names, ",")));
    columns_ = names.size();
  }

  Measurements& result_;
  std::optional<std::size_t> size_, time_, in_place_, type_;
  std::size_t columns_ = 0;
};

int line_of(const std::string& text, std::size_t at) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

using LogJson = nlohmann::json;

/// The output of nccl-tests with -J. A row's line is that of its "size".
class MeasuredJson {
 public:
  MeasuredJson(Measurements& result, const std::string& text) : result_(result), text_(text) {}

  void take() {
    LogJson json;
    try {
      json = LogJson::parse(text_);
    } catch (const LogJson::parse_error& failure) {
      throw InputError({result_.file, line_of(text_, failure.byte > 0 ? failure.byte - 1 : 0)},
                       fmt::format("not valid JSON: {}", failure.what()));
    }
    const auto results = json.find("results");
    if (results == json.end() || !results->is_array())
      throw InputError({result_.file, 1}, "there is no list 'results', as nccl-tests -J writes it");
    take_program(json);
    at_ = text_.find("\"results\"");
    for (const LogJson& row : *results) take_row(row);
  }

 private:
  void take_program(const LogJson& json) {
    if (const auto args = json.find("args");
        args != json.end() && args->is_array() && !args->empty() && (*args)[0].is_string()) {
      const std::string path = (*args)[0].get<std::string>();
      result_.program = path.substr(path.rfind('/') + 1);
      result_.program_place = {result_.file, line_of(text_, text_.find("\"args\""))};
    }
    const auto config = json.find("config");
    if (config == json.end() || !config->is_object()) return;
    const auto devices = config->find("devices");
    if (devices == config->end() || !devices->is_array()) return;
    result_.ranks = static_cast<std::uint32_t>(devices->size());
    result_.ranks_place = {result_.file, line_of(text_, text_.find("\"devices\""))};
  }

  void take_row(const LogJson& json) {
    at_ = text_.find("\"size\"", at_ + 1);
    const SourceLine place{result_.file, line_of(text_, at_)};
    MeasuredRow row;
    row.place = place;
    if (!json.is_object() || !json.contains("size") || !json["size"].is_number_integer() || json["size"] < 0)
      throw InputError(place, fmt::format("result {} has no 'size' in bytes", result_.rows.size()));
    row.bytes = json["size"].get<std::int64_t>();
    if (const auto type = json.find("type"); type != json.end() && type->is_string()) row.type = *type;
    row.out_of_place = time_of(place, json, "out_of_place");
    row.in_place = time_of(place, json, "in_place");
    if (!row.out_of_place && !row.in_place)
      throw InputError(place, fmt::format("result {} has neither 'out_of_place' nor 'in_place'", result_.rows.size()));
    result_.rows.push_back(std::move(row));
  }

  std::optional<double> time_of(const SourceLine& place, const LogJson& json, const char* body) const {
    const auto found = json.find(body);
    if (found == json.end() || found->is_null()) return std::nullopt;
    for (const char* name : {"time", "cpu_time"})
      if (found->is_object() && found->contains(name)) return microseconds_of(place, (*found)[name].dump());
    throw InputError(place, fmt::format("result {} has no 'time' in '{}'", result_.rows.size(), body));
  }

  Measurements& result_;
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

Measurements read_measurements(const std::string& path) {
  Measurements result;
  result.file = path;
  const std::string text = text_of_file(path);
  int number = 0;
  const auto take_lines = [&](auto&& table) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) table.take({path, ++number}, line);
  };
  if (path.ends_with(".csv")) {
    take_lines(MeasuredCsv(result));
  } else if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{') {
    MeasuredJson(result, text).take();
  } else {
    take_lines(MeasuredTable(result));
  }
  if (result.rows.empty())
    throw InputError({path, std::max(1, number)},
                     "no row of nccl-tests' table was found to the end of the file; expected its output, what it "
                     "writes with -J, or rows of a CSV file");
  return result;
}

}  // namespace weft
