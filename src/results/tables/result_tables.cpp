// SPDX-License-Identifier: GPL-2.0-only
#include "results/tables/result_tables.hpp"

namespace weft {

std::string_view to_text(CellType type) {
  switch (type) {
    case CellType::u8:
      return "uint8";
    case CellType::u32:
      return "uint32";
    case CellType::u64:
      return "uint64";
    case CellType::i64:
      return "int64";
    case CellType::f64:
      return "float64";
    case CellType::text:
      break;
  }
  return "text";
}

std::vector<TableInfo> declared_tables() {
  return []<class... Rows>(std::type_identity<std::tuple<Rows...>>) {
    return std::vector<TableInfo>{describe<Rows>()...};
  }(std::type_identity<AllTables>());
}

}  // namespace weft
