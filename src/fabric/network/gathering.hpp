// SPDX-License-Identifier: GPL-2.0-only
// Gathers the rows of all processes.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/process_group.hpp"

namespace weft {

/// Concatenates the data of all processes; plain data.
template <class Row>
std::vector<Row> gather_rows(ProcessGroup& group, const std::vector<Row>& here) {
  std::vector<std::byte> batch(here.size() * sizeof(Row));
  if (!here.empty()) std::memcpy(batch.data(), here.data(), batch.size());
  std::vector<Row> rows = here;
  for (const auto& other : group.gather(batch)) {
    const std::size_t count = other.size() / sizeof(Row);
    rows.resize(rows.size() + count);
    if (count > 0) std::memcpy(&rows[rows.size() - count], other.data(), other.size());
  }
  return rows;
}

}  // namespace weft
