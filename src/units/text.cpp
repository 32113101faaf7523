// SPDX-License-Identifier: GPL-2.0-only
// Quantities from and to text, exact to the last unit.
#include "units/text.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <span>
#include <vector>

namespace weft {
namespace {

/// A unit's name and its size in the base unit (ps, B, bit/s).
struct Unit {
  std::string_view name;
  std::int64_t scale;
};

constexpr std::int64_t kilo = 1'000;
constexpr std::int64_t mega = 1'000'000;
constexpr std::int64_t giga = 1'000'000'000;
constexpr std::int64_t tera = 1'000'000'000'000;
constexpr std::int64_t kibi = std::int64_t{1} << 10;
constexpr std::int64_t mebi = std::int64_t{1} << 20;
constexpr std::int64_t gibi = std::int64_t{1} << 30;
constexpr std::int64_t tebi = std::int64_t{1} << 40;

constexpr Unit time_units[] = {{"ps", 1}, {"ns", kilo}, {"us", mega}, {"ms", giga}, {"s", tera}};

constexpr Unit byte_units[] = {{"B", 1},      {"kB", kilo},  {"MB", mega},  {"GB", giga}, {"TB", tera},
                               {"KiB", kibi}, {"MiB", mebi}, {"GiB", gibi}, {"TiB", tebi}};

/// The first `bit_rate_units` of these are the ones that to_text() writes.
constexpr std::size_t bit_rate_units = 5;
constexpr Unit bandwidth_units[] = {{"b/s", 1},          {"kb/s", kilo},      {"Mb/s", mega},     {"Gb/s", giga},
                                    {"Tb/s", tera},      {"bps", 1},          {"kbps", kilo},     {"Mbps", mega},
                                    {"Gbps", giga},      {"Tbps", tera},      {"B/s", 8},         {"kB/s", 8 * kilo},
                                    {"MB/s", 8 * mega},  {"GB/s", 8 * giga},  {"TB/s", 8 * tera}, {"KiB/s", 8 * kibi},
                                    {"MiB/s", 8 * mebi}, {"GiB/s", 8 * gibi}, {"TiB/s", 8 * tebi}};

/// The name of a kind of quantity, an example, and its units. units[0] is the base unit.
struct Kind {
  std::string_view name;
  std::string_view example;
  std::span<const Unit> units;
};

constexpr Kind time_kind{"time", "500 ns", time_units};
constexpr Kind bytes_kind{"size", "64 MiB", byte_units};
constexpr Kind bandwidth_kind{"rate", "400 Gb/s", bandwidth_units};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// An unsigned decimal number: 0.d0 d1 d2 ... times 10^point, without leading zeros. Zero has no digits.
struct Decimal {
  std::vector<std::uint8_t> digits;
  std::int64_t point = 0;
};

/// Take "e<sign><digits>" from the front of `text` if it is there (an 'e' without digits belongs to the unit).
/// Saturates far outside of what any quantity can hold.
std::int64_t take_exponent(std::string_view& text) {
  if (text.empty() || (text.front() != 'e' && text.front() != 'E')) return 0;
  std::size_t at = 1;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at == text.size() || !is_digit(text[at])) return 0;
  std::int64_t exponent = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    exponent = std::min<std::int64_t>(exponent * 10 + (text[at] - '0'), giga);
  }
  text.remove_prefix(at);
  return negative ? -exponent : exponent;
}

/// Take a number from the front of `text`; nothing if there is none.
std::optional<Decimal> take_number(std::string_view& text) {
  Decimal number;
  bool any = false;
  bool fraction = false;
  for (; !text.empty() && (is_digit(text.front()) || (text.front() == '.' && !fraction)); text.remove_prefix(1)) {
    if (text.front() == '.') {
      fraction = true;
      continue;
    }
    any = true;
    const auto digit = static_cast<std::uint8_t>(text.front() - '0');
    const bool leading_zero = digit == 0 && number.digits.empty();
    if (!leading_zero) number.digits.push_back(digit);
    if (fraction && leading_zero) --number.point;
    if (!fraction && !leading_zero) ++number.point;
  }
  if (!any) return std::nullopt;
  number.point += take_exponent(text);
  return number;
}

enum class Outcome { exact, not_whole, too_large };

/// number * scale as an integer. Schoolbook multiplication digit by digit, so no length of fraction loses anything.
Outcome scaled(const Decimal& number, std::int64_t scale, std::int64_t& result) {
  std::vector<std::uint8_t> digits(number.digits);
  std::int64_t point = number.point;
  std::int64_t carry = 0;  // below 10 * scale < 2^47
  for (std::size_t i = digits.size(); i-- > 0;) {
    carry += digits[i] * scale;
    digits[i] = static_cast<std::uint8_t>(carry % 10);
    carry /= 10;
  }
  for (; carry > 0; carry /= 10, ++point) digits.insert(digits.begin(), static_cast<std::uint8_t>(carry % 10));

  const auto count = static_cast<std::int64_t>(digits.size());
  for (std::int64_t i = std::max<std::int64_t>(point, 0); i < count; ++i) {
    if (digits[static_cast<std::size_t>(i)] != 0) return Outcome::not_whole;
  }
  result = 0;
  if (std::all_of(digits.begin(), digits.end(), [](std::uint8_t digit) { return digit == 0; })) return Outcome::exact;
  for (std::int64_t i = 0; i < point; ++i) {
    const std::int64_t digit = i < count ? digits[static_cast<std::size_t>(i)] : 0;
    const __int128 next = static_cast<__int128>(result) * 10 + digit;
    if (next > std::numeric_limits<std::int64_t>::max()) return Outcome::too_large;
    result = static_cast<std::int64_t>(next);
  }
  return Outcome::exact;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The unit that a misspelt one is likely to be: "GBps" for "GB/s", other case, a missing separator or end ("Gbs",
/// "G").
std::string suggestion(std::string_view word, const Kind& kind) {
  const auto first = [&kind](auto&& matches) -> std::string {
    const auto at = std::find_if(kind.units.begin(), kind.units.end(), matches);
    return at == kind.units.end() ? "" : " (did you mean " + quoted(at->name) + "?)";
  };
  // Case matters between bits and bytes, so the match that keeps it is tried first.
  const std::string slashed = word.ends_with("ps") ? std::string(word.substr(0, word.size() - 2)) + "/s" : "";
  std::string found = first([&](const Unit& unit) { return unit.name == slashed; });
  const std::string folded = lower(word);
  if (found.empty()) found = first([&](const Unit& unit) { return lower(unit.name) == folded; });
  if (!found.empty()) return found;
  return first([&](const Unit& unit) {
    const std::string known = lower(unit.name);
    return known == folded + "/s" || known == folded + "b" || known.substr(0, known.find('/')) + "s" == folded;
  });
}

std::string known_units(const Kind& kind) {
  std::string list;
  for (const Unit& unit : kind.units) list += (list.empty() ? "" : ", ") + std::string(unit.name);
  return list;
}

const Unit* find_unit(std::string_view name, const Kind& kind) {
  const auto at =
      std::find_if(kind.units.begin(), kind.units.end(), [&](const Unit& unit) { return unit.name == name; });
  return at == kind.units.end() ? nullptr : &*at;
}

/// Parse `text` as a quantity of this kind into its base unit.
std::optional<std::int64_t> parse(std::string_view text, const Kind& kind, QuantityError& error) {
  const std::string example = "write for example " + quoted(kind.example);
  const std::string_view whole = trimmed(text);
  std::string_view rest = whole;
  const auto fail = [&error](std::string what) {
    error.what = std::move(what);
    return std::nullopt;
  };
  if (rest.empty()) return fail("an empty text; " + example);
  if (rest.front() == '-') return fail("a negative " + std::string(kind.name) + "; " + example);
  const std::optional<Decimal> number = take_number(rest);
  if (!number) return fail("no number in front; " + example);
  const std::string_view unit_name = trimmed(rest);
  if (unit_name.empty()) {
    // Sizes are mostly meant in bytes; of times and rates no unit is.
    const bool bytes = kind.units.front().name == "B";
    const std::string in_bytes = "write for example '" + std::string(whole) + " B'";
    return fail("a number without a unit; " + (bytes ? in_bytes : example));
  }
  if (std::string_view(",._'+-0123456789").find(unit_name.front()) != std::string_view::npos) {
    return fail("a malformed number; " + example);
  }
  const Unit* unit = find_unit(unit_name, kind);
  if (unit == nullptr) {
    return fail("unknown unit " + quoted(unit_name) + suggestion(unit_name, kind) +
                "; known units: " + known_units(kind));
  }
  const std::string_view base = kind.units.front().name;
  std::int64_t result = 0;
  switch (scaled(*number, unit->scale, result)) {
    case Outcome::exact:
      return result;
    case Outcome::not_whole:
      return fail("not a whole number of " + std::string(base));
    case Outcome::too_large:
      break;
  }
  return fail("too large; at most " + std::to_string(std::numeric_limits<std::int64_t>::max()) + " " +
              std::string(base) + " can be represented" + (kind.name == time_kind.name ? " (106 days)" : ""));
}

/// magnitude / scale as an exact decimal. Every scale is a product of twos and fives, so the expansion ends.
std::string quotient(std::uint64_t magnitude, std::uint64_t scale) {
  std::string text = std::to_string(magnitude / scale);
  unsigned __int128 rest = magnitude % scale;
  if (rest > 0) text += '.';
  while (rest > 0) {
    rest *= 10;
    text += static_cast<char>('0' + static_cast<int>(rest / scale));
    rest %= scale;
  }
  return text;
}

/// The shortest text among `units`, of equally short ones the largest unit; no unit that would need a leading "0.".
std::string write(std::int64_t value, std::span<const Unit> units) {
  const bool negative = value < 0;
  const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string best;
  std::int64_t best_scale = 0;
  for (const Unit& unit : units) {
    const auto scale = static_cast<std::uint64_t>(unit.scale);
    if (magnitude != 0 && magnitude < scale) continue;
    std::string text = quotient(magnitude, scale) + " " + std::string(unit.name);
    const bool shorter = best.empty() || text.size() < best.size();
    if (shorter || (text.size() == best.size() && unit.scale > best_scale)) {
      best = std::move(text);
      best_scale = unit.scale;
    }
  }
  return negative ? "-" + best : best;
}

}  // namespace

std::optional<Time> parse_time(std::string_view text, QuantityError& error) {
  const auto value = parse(text, time_kind, error);
  return value ? std::optional(Time::from_ps(*value)) : std::nullopt;
}

std::optional<Bytes> parse_bytes(std::string_view text, QuantityError& error) {
  const auto value = parse(text, bytes_kind, error);
  return value ? std::optional(Bytes(*value)) : std::nullopt;
}

std::optional<Bandwidth> parse_bandwidth(std::string_view text, QuantityError& error) {
  const auto value = parse(text, bandwidth_kind, error);
  return value ? std::optional(Bandwidth::from_bps(*value)) : std::nullopt;
}

std::string to_text(Time value) { return write(value.ps(), time_units); }
std::string to_text(Bytes value) { return write(value.count(), byte_units); }
std::string to_text(Bandwidth value) {
  return write(value.bps(), std::span<const Unit>(bandwidth_units).first(bit_rate_units));
}

}  // namespace weft
