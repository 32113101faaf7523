// SPDX-License-Identifier: GPL-2.0-only
// Text of input errors: where, then what.
#include "support/basics/error.hpp"

namespace weft {

InputError::InputError(const SourceLine& where, const std::string& message)
    : std::runtime_error(where.file.empty() ? message : where.text() + ": " + message) {}

TimeLimitError::TimeLimitError(const std::string& message)
    : EnvironmentError(message + ": simulated time ends after 106 days, as far as 63 bits of picoseconds reach") {}

}  // namespace weft
