// SPDX-License-Identifier: GPL-2.0-only
// HDF5's C interface with owned handles and failures as exceptions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <hdf5.h>

#include "results/tables/table.hpp"

namespace weft::hdf5 {

/// An HDF5 identifier that closes itself.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  /// Throws EnvironmentError with `what` and HDF5's own reason if `id` is no identifier.
  Handle(hid_t id, Close close, const char* what);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  void reset();
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// Throw EnvironmentError with `what` and the innermost reason on HDF5's error stack if `status` is negative.
void check(herr_t status, const char* what);

/// Keep HDF5 from printing its error stack: failures become exceptions.
void silence_error_stack();

/// Fixed-length UTF-8 text, padded with NUL (parallel HDF5 cannot write variable-length data sets).
Handle text_type(std::size_t width);
/// The type of a column's cells in the file (little-endian) and in memory.
Handle file_type(const ColumnInfo& column);
Handle memory_type(const ColumnInfo& column);

/// Creation properties without time stamps, so that equal content gives equal files.
Handle group_properties();
Handle dataset_properties();

Handle create_group(hid_t parent, const std::string& name);

// Attributes: created, or overwritten if there. All processes of a parallel file call with the same value.
void write_attribute(hid_t object, const std::string& name, const std::string& value);
void write_attribute(hid_t object, const std::string& name, std::uint8_t value);
void write_attribute(hid_t object, const std::string& name, std::uint64_t value);
void write_attribute(hid_t object, const std::string& name, std::int64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
/// A number with its unit as the attribute `name`_unit.
void write_quantity(hid_t object, const std::string& name, std::int64_t value, const std::string& unit);
void write_quantity(hid_t object, const std::string& name, double value, const std::string& unit);

}  // namespace weft::hdf5
