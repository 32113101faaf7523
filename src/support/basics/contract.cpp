// SPDX-License-Identifier: GPL-2.0-only
// Text of broken contracts.
#include "support/basics/contract.hpp"

namespace weft::detail {

void contract_broken(const char* file, int line, const char* condition, const std::string& values) {
  throw InternalError(fmt::format("{}:{}: broken contract: {}: {}; this is a bug in weft: please report it", file, line,
                                  condition, values));
}

}  // namespace weft::detail
