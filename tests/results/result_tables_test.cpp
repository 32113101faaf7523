// SPDX-License-Identifier: GPL-2.0-only
// The declarations of tables: all their readers follow, and every cell is compared.
// MPI ranks: 1
#include "results/tables/result_tables.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <mpi.h>
#include <unistd.h>

#include "results/hdf5/compare_files.hpp"
#include "results/hdf5/hdf5_recorder.hpp"
#include "results/tables/fingerprint.hpp"

namespace weft {
namespace {

/// Messages as they would be with one column more.
struct WiderMessage : MessageRecord {
  std::int64_t extra = 0;
};

}  // namespace

// This is the one edit that a new column takes, beside the member that holds it.
template <>
struct ResultTable<WiderMessage> : ResultTable<MessageRecord> {
  static constexpr auto columns() {
    return Columns(ResultTable<MessageRecord>::columns(),
                   counted("extra", "B", "more than others", &WiderMessage::extra));
  }
};

namespace {

class DeclaredTables : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("weft-tables-{}", getpid());
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

std::filesystem::path of_source(const std::string& relative) {
  const char* root = std::getenv("WEFT_SOURCE");  // set by ctest
  return (root != nullptr ? std::filesystem::path(root) : std::filesystem::current_path()) / relative;
}

/// A file in which each of the tables has one row.
template <class... Rows>
void write_tables(const std::string& path, const std::vector<Rows>&... rows) {
  Hdf5Recorder recorder(MPI_COMM_SELF, path);
  recorder.write_manifest({});
  recorder.write_outcome(1000, 0);
  (recorder.write(rows, 100), ...);
  recorder.finish(true);
}

void write_all_tables(const std::string& path) {
  []<class... Rows>(const std::string& name, std::type_identity<std::tuple<Rows...>>) {
    write_tables(name, std::vector<Rows>(1)...);
  }(path, std::type_identity<AllTables>());
}

/// Changes the first cell of a column.
void corrupt(const std::string& file_path, const std::string& column) {
  const hid_t file = H5Fopen(file_path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t data = H5Dopen2(file, column.c_str(), H5P_DEFAULT);
  ASSERT_GE(data, 0) << column;
  const hid_t type = H5Dget_type(data);
  std::vector<char> cell(H5Tget_size(type));
  H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cell.data());
  if (H5Tget_class(type) == H5T_FLOAT)
    cell = {0, 0, 0, 0, 0, 0, -32, 63};  // 0.5: what is not a number, too, becomes another one
  else
    cell[0] = static_cast<char>(cell[0] ^ 1);
  EXPECT_GE(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cell.data()), 0) << column;
  H5Tclose(type);
  H5Dclose(data);
  H5Fclose(file);
}

// Of all declared tables but that of the processes, which depends on the single run.
std::vector<std::string> compared_columns() {
  std::vector<std::string> paths;
  for (const TableInfo& table : declared_tables())
    for (const ColumnInfo& column : table.columns)
      if (table.name != ResultTable<ProcessRecord>::name)
        paths.push_back(fmt::format("/{}/{}", table.name, column.name));
  return paths;
}

TEST_F(DeclaredTables, VerifyFindsOneOtherCellInAnyColumnOfAnyTable) {
  write_all_tables(path("a.h5"));
  write_all_tables(path("b.h5"));
  EXPECT_EQ(compare_result_files(path("a.h5"), path("b.h5"), 9), std::vector<std::string>());
  for (const std::string& column : compared_columns()) {
    std::filesystem::copy_file(path("a.h5"), path("b.h5"), std::filesystem::copy_options::overwrite_existing);
    corrupt(path("b.h5"), column);
    const std::vector<std::string> found = compare_result_files(path("a.h5"), path("b.h5"), 9);
    ASSERT_EQ(found.size(), 1U) << column;
    EXPECT_TRUE(found[0].starts_with(column + " row 0: ")) << found[0];
  }
}

TEST_F(DeclaredTables, SameResultsFindsOneOtherCellInAnyColumnOfAnyTable) {
  write_all_tables(path("a.h5"));
  write_all_tables(path("b.h5"));
  const std::string compare =
      fmt::format("/usr/bin/python3 {} --show 999 {} {} > {}", of_source("scripts/same_results").string(), path("a.h5"),
                  path("b.h5"), path("found"));
  ASSERT_EQ(std::system(compare.c_str()), 0);
  for (const std::string& column : compared_columns()) corrupt(path("b.h5"), column);
  EXPECT_NE(std::system(compare.c_str()), 0);
  std::ifstream in(path("found"));
  const std::string found = "\n" + std::string(std::istreambuf_iterator<char>(in), {});
  for (const std::string& column : compared_columns())
    EXPECT_NE(found.find("\n" + column + ": row 0"), std::string::npos) << column << " of\n" << found;
}

TEST_F(DeclaredTables, ATableThatOneFileLacksIsADifference) {
  write_all_tables(path("a.h5"));
  write_tables(path("b.h5"), std::vector<MessageRecord>(1));
  for (const bool turned : {false, true}) {
    const auto found = compare_result_files(path(turned ? "b.h5" : "a.h5"), path(turned ? "a.h5" : "b.h5"), 99);
    EXPECT_EQ(found.size(), declared_tables().size() - 2);  // messages and everything below /manifest
  }
}

TEST_F(DeclaredTables, ANewColumnIsOneEdit) {
  WiderMessage row;
  row.extra = 7;
  const TableInfo info = describe<WiderMessage>();
  EXPECT_EQ(info.columns.size(), describe<MessageRecord>().columns.size() + 1);
  EXPECT_EQ(info.columns.back().name, "extra");
  EXPECT_EQ(info.columns.back().unit, "B");
  EXPECT_EQ(info.columns.back().type, CellType::i64);
  // The fingerprint
  WiderMessage other = row;
  other.extra = 8;
  EXPECT_NE(fingerprint(row), fingerprint(other));
  EXPECT_NE(fingerprint(row), fingerprint(static_cast<const MessageRecord&>(row)));
  // The file and its comparison
  write_tables(path("a.h5"), std::vector<WiderMessage>{row});
  write_tables(path("b.h5"), std::vector<WiderMessage>{other});
  EXPECT_EQ(compare_result_files(path("a.h5"), path("b.h5"), 9),
            std::vector<std::string>{"/messages/extra row 0: 7 and 8"});
}

TEST_F(DeclaredTables, NamesAndSaltsAreUnique) {
  std::set<std::string> names;
  for (const TableInfo& table : declared_tables()) {
    EXPECT_TRUE(names.insert(table.name).second) << table.name;
    EXPECT_FALSE(table.description.empty()) << table.name;
    std::set<std::string> columns;
    for (const ColumnInfo& column : table.columns) {
      EXPECT_TRUE(columns.insert(column.name).second) << table.name << "/" << column.name;
      EXPECT_FALSE(column.unit.empty() || column.description.empty()) << table.name << "/" << column.name;
    }
  }
  const std::vector<std::uint64_t> salts =
      []<class... Rows>(std::type_identity<std::tuple<Rows...>>) -> std::vector<std::uint64_t> {
    return {ResultTable<CollectivePart>::salt, ResultTable<Rows>::salt...};
  }(std::type_identity<AllTables>());
  std::set<std::uint64_t> seen;
  for (const std::uint64_t salt : salts) EXPECT_TRUE(salt == 0 || seen.insert(salt).second) << salt;
  EXPECT_FALSE(seen.empty());
}

/// Lines of the tables of docs/reference/hdf5_schema.md that describe columns.
std::vector<std::string> documented_columns() {
  std::vector<std::string> lines;
  std::ifstream in(of_source("docs/reference/hdf5_schema.md"));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("| `/") && line.find('@') == std::string::npos) lines.push_back(line);
  // Single values of the manifest.
  std::erase_if(lines, [](const std::string& line) {
    return line.find("`/manifest/") != std::string::npos && line.find("`/manifest/parallel/") == std::string::npos;
  });
  return lines;
}

TEST_F(DeclaredTables, AreDocumentedAsTheyAreDeclared) {
  std::vector<std::string> declared;
  for (const TableInfo& table : declared_tables())
    for (const ColumnInfo& column : table.columns) {
      std::string text = column.description;
      for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
      declared.push_back(
          fmt::format("| `/{}/{}` | {} | {} | {} |", table.name, column.name, column.unit, to_text(column.type), text));
    }
  // After a change of a declaration, copy the line from here.
  const std::vector<std::string> documented = documented_columns();
  for (std::size_t i = 0; i < std::max(declared.size(), documented.size()); ++i)
    EXPECT_EQ(i < documented.size() ? documented[i] : "", i < declared.size() ? declared[i] : "");
}

}  // namespace
}  // namespace weft
