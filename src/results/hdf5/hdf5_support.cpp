// SPDX-License-Identifier: GPL-2.0-only
// Handles, types and attributes of HDF5.
#include "results/hdf5/hdf5_support.hpp"

#include "support/basics/error.hpp"

namespace weft::hdf5 {

namespace {

/// The innermost entry of the error stack names the failure; the outer ones are only its callers.
herr_t keep_innermost(unsigned depth, const H5E_error2_t* entry, void* text) {
  if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

[[noreturn]] void fail(const char* what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  throw EnvironmentError(std::string("HDF5: ") + what + (reason.empty() ? "" : ": " + reason));
}

void write_scalar(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type, const void* value) {
  Handle attribute;
  if (H5Aexists(object, name.c_str()) > 0) {
    attribute = Handle(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "cannot open an attribute");
  } else {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "cannot make a dataspace");
    attribute = Handle(H5Acreate2(object, name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                       "cannot make an attribute");
  }
  check(H5Awrite(attribute.get(), memory_type, value), "cannot write an attribute");
}

Handle copy_type(hid_t type) { return {H5Tcopy(type), H5Tclose, "cannot copy a type"}; }

}  // namespace

Handle::Handle(hid_t id, Close close, const char* what) : id_(id), close_(close) {
  if (id < 0) fail(what);
}

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, H5I_INVALID_HID);
    close_ = other.close_;
  }
  return *this;
}

void Handle::reset() {
  if (id_ >= 0) close_(id_);
  id_ = H5I_INVALID_HID;
}

void check(herr_t status, const char* what) {
  if (status < 0) fail(what);
}

void silence_error_stack() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

Handle text_type(std::size_t width) {
  Handle type = copy_type(H5T_C_S1);
  check(H5Tset_size(type.get(), width), "cannot set a text width");
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "cannot set a text padding");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "cannot set a character set");
  return type;
}

Handle file_type(const ColumnInfo& column) {
  switch (column.type) {
    case CellType::u8:
      return copy_type(H5T_STD_U8LE);
    case CellType::u32:
      return copy_type(H5T_STD_U32LE);
    case CellType::u64:
      return copy_type(H5T_STD_U64LE);
    case CellType::i64:
      return copy_type(H5T_STD_I64LE);
    case CellType::f64:
      return copy_type(H5T_IEEE_F64LE);
    case CellType::text:
      break;
  }
  return text_type(column.width);
}

Handle memory_type(const ColumnInfo& column) {
  switch (column.type) {
    case CellType::u8:
      return copy_type(H5T_NATIVE_UINT8);
    case CellType::u32:
      return copy_type(H5T_NATIVE_UINT32);
    case CellType::u64:
      return copy_type(H5T_NATIVE_UINT64);
    case CellType::i64:
      return copy_type(H5T_NATIVE_INT64);
    case CellType::f64:
      return copy_type(H5T_NATIVE_DOUBLE);
    case CellType::text:
      break;
  }
  return text_type(column.width);
}

Handle group_properties() {
  Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "cannot make group properties");
  check(H5Pset_obj_track_times(properties.get(), false), "cannot switch time stamps off");
  return properties;
}

Handle dataset_properties() {
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "cannot make data set properties");
  check(H5Pset_obj_track_times(properties.get(), false), "cannot switch time stamps off");
  // Every cell is written right after creation: filling first would write everything twice.
  check(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER), "cannot set the fill time");
  return properties;
}

Handle create_group(hid_t parent, const std::string& name) {
  const Handle properties = group_properties();
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose,
          "cannot make a group"};
}

void write_attribute(hid_t object, const std::string& name, const std::string& value) {
  // Variable length (unlike data sets): h5py gives a str, and the value may be overwritten by a longer one.
  const Handle type = copy_type(H5T_C_S1);
  check(H5Tset_size(type.get(), H5T_VARIABLE), "cannot set a text width");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "cannot set a character set");
  const char* const text = value.c_str();
  write_scalar(object, name, type.get(), type.get(), &text);
}

void write_attribute(hid_t object, const std::string& name, std::uint8_t value) {
  write_scalar(object, name, H5T_STD_U8LE, H5T_NATIVE_UINT8, &value);
}

void write_attribute(hid_t object, const std::string& name, std::uint64_t value) {
  write_scalar(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value) {
  write_scalar(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void write_attribute(hid_t object, const std::string& name, double value) {
  write_scalar(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void write_quantity(hid_t object, const std::string& name, std::int64_t value, const std::string& unit) {
  write_attribute(object, name, value);
  write_attribute(object, name + "_unit", unit);
}

void write_quantity(hid_t object, const std::string& name, double value, const std::string& unit) {
  write_attribute(object, name, value);
  write_attribute(object, name + "_unit", unit);
}

}  // namespace weft::hdf5
