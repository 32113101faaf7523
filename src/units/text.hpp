// SPDX-License-Identifier: GPL-2.0-only
// Quantities as people write them: "400 Gb/s", "500 ns", "64 MiB".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// What was wrong with a quantity's text: "a number without a unit", "unknown unit 'Gbs'", ...
struct QuantityError {
  std::string what;
};

/// Parse "<number> <unit>" (the space is optional). Exact: decimal fractions are scaled in integers, and a value that
/// is not a whole number of ps, bytes or bit/s is an error, as is a bare number (except 0 for none of them: a unit is
/// always due), a negative number or one that overflows. On failure nothing is returned and `error` says why.
/// Time units: ps ns us ms s. Bytes: B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB. Bandwidth: b/s (also bps) with k
/// M G T in powers of 1000, and B/s (with kB MB GB TB KiB MiB GiB TiB).
std::optional<Time> parse_time(std::string_view text, QuantityError& error);
std::optional<Bytes> parse_bytes(std::string_view text, QuantityError& error);
std::optional<Bandwidth> parse_bandwidth(std::string_view text, QuantityError& error);

/// Shortest exact text that parses back to the same value: "83.56 ns", "64 MiB", "400 Gb/s". A negative value (a
/// difference) is written with a minus sign, which the parsers refuse.
std::string to_text(Time value);
std::string to_text(Bytes value);
std::string to_text(Bandwidth value);

}  // namespace weft
