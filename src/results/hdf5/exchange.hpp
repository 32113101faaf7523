// SPDX-License-Identifier: GPL-2.0-only
// Rows of any origin to the MPI rank that owns their key.
#pragma once

#include <cstdint>
#include <vector>

#include <mpi.h>

#include "results/tables/table.hpp"

namespace weft {

RowKey key_of(const std::byte* row);

/// Collective: send each row to the owner of the first word of its key. The words least .. largest are cut into as many
/// equal blocks as there are processes, so that owners in ascending order hold ascending keys. Throws EnvironmentError
/// on all processes if one of them had to hold 2^31 rows or more (MPI's limit on counts).
void exchange(MPI_Comm comm, PackedRows& rows);

/// Positions of the rows in ascending order of their keys. Throws InternalError if a key occurs twice.
std::vector<std::uint64_t> order_by_key(const PackedRows& rows, const std::string& table);

}  // namespace weft
