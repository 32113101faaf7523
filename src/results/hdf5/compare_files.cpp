// SPDX-License-Identifier: GPL-2.0-only
#include "results/hdf5/compare_files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <hdf5.h>

#include "results/hdf5/hdf5_support.hpp"

namespace weft {
namespace {

constexpr std::string_view origin = "manifest";  // describes the file, not the simulated events
constexpr hsize_t rows_at_once = 1 << 18;

hdf5::Handle open_file(const std::string& path) {
  const std::string what = "cannot read '" + path + "'";
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, what.c_str()};
}

bool has(hid_t place, const std::string& name) { return H5Lexists(place, name.c_str(), H5P_DEFAULT) > 0; }

std::vector<std::string> names_in(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  hdf5::check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names), "cannot list a group");
  return names;
}

/// One column of one file, read piece by piece in the type of the file.
class Column {
 public:
  Column(hid_t group, const std::string& name)
      : data_(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, "cannot open a data set"),
        type_(H5Dget_type(data_.get()), H5Tclose, "cannot read a type"),
        space_(H5Dget_space(data_.get()), H5Sclose, "cannot read a dataspace"),
        rows_(static_cast<hsize_t>(H5Sget_simple_extent_npoints(space_.get()))),
        width_(H5Tget_size(type_.get())) {}

  hsize_t rows() const { return rows_; }
  bool like(const Column& other) const { return H5Tequal(type_.get(), other.type_.get()) > 0; }
  std::size_t width() const { return width_; }
  void read(hsize_t first, hsize_t count, std::vector<char>& cells) const {
    cells.resize(count * width_);
    const hdf5::Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose, "cannot make a dataspace");
    hdf5::check(H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr),
                "cannot select rows");
    hdf5::check(H5Dread(data_.get(), type_.get(), memory.get(), space_.get(), H5P_DEFAULT, cells.data()),
                "cannot read rows");
  }
  std::string text(const char* cell) const {
    if (H5Tget_class(type_.get()) == H5T_STRING) return fmt::format("'{}'", std::string(cell, strnlen(cell, width_)));
    if (H5Tget_class(type_.get()) == H5T_FLOAT) {
      double value = 0;
      std::memcpy(&value, cell, sizeof value);
      return fmt::format("{}", value);
    }
    std::int64_t value = 0;  // little-endian, and no unsigned column is near 2^63
    std::memcpy(&value, cell, std::min(width_, sizeof value));
    return fmt::format("{}", value);
  }

 private:
  hdf5::Handle data_;
  hdf5::Handle type_;
  hdf5::Handle space_;
  hsize_t rows_;
  std::size_t width_;
};

/// Adds what differs, until there are `max`.
class Comparison {
 public:
  explicit Comparison(std::size_t max) : max_(max) {}
  std::vector<std::string> found;

  void tables_of(hid_t a, hid_t b) {
    std::vector<std::string> tables = names_in(a);
    for (const std::string& name : names_in(b))
      if (!has(a, name)) tables.push_back(name);
    for (const std::string& table : tables) {
      if (table == origin) continue;
      if (has(a, table) != has(b, table))
        add(fmt::format("/{}: only in the {} file", table, has(a, table) ? "first" : "second"));
      if (!has(a, table) || !has(b, table)) continue;
      const hdf5::Handle first(H5Gopen2(a, table.c_str(), H5P_DEFAULT), H5Gclose, "cannot open a table");
      const hdf5::Handle second(H5Gopen2(b, table.c_str(), H5P_DEFAULT), H5Gclose, "cannot open a table");
      if (names_in(first.get()) != names_in(second.get())) {
        add(fmt::format("/{}: other columns", table));
        continue;
      }
      for (const std::string& name : names_in(first.get()))
        columns(fmt::format("/{}/{}", table, name), Column(first.get(), name), Column(second.get(), name));
    }
  }

 private:
  void add(std::string text) {
    if (found.size() < max_) found.push_back(std::move(text));
  }
  void columns(const std::string& path, const Column& a, const Column& b) {
    if (a.rows() != b.rows()) return add(fmt::format("{}: {} and {} rows", path, a.rows(), b.rows()));
    if (!a.like(b)) return add(fmt::format("{}: another type", path));
    for (hsize_t first = 0; first < a.rows() && found.size() < max_; first += rows_at_once) {
      const hsize_t count = std::min(rows_at_once, a.rows() - first);
      a.read(first, count, cells_[0]);
      b.read(first, count, cells_[1]);
      if (cells_[0] == cells_[1]) continue;
      for (hsize_t row = 0; row < count; ++row) {
        const char* one = cells_[0].data() + row * a.width();
        const char* other = cells_[1].data() + row * a.width();
        if (std::memcmp(one, other, a.width()) == 0) continue;
        add(fmt::format("{} row {}: {} and {}", path, first + row, a.text(one), b.text(other)));
        return;  // the first row tells; columns of one cause differ in many
      }
    }
  }

  std::size_t max_;
  std::vector<char> cells_[2];
};

}  // namespace

std::vector<std::string> compare_result_files(const std::string& first, const std::string& second, std::size_t max) {
  hdf5::silence_error_stack();
  const hdf5::Handle a = open_file(first);
  const hdf5::Handle b = open_file(second);
  Comparison comparison(max);
  comparison.tables_of(a.get(), b.get());
  return comparison.found;
}

}  // namespace weft
