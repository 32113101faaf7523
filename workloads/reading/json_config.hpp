// SPDX-License-Identifier: GPL-2.0-only
// Typed access to the objects of a JSON file, with the line of every complaint.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "support/basics/error.hpp"

namespace weft {

/// One object of a JSON file. A light handle; copies refer to the same file. Every reading function throws InputError
/// with file and line. It remembers which fields were read (even if absent), because published configurations have many
/// fields that have no effect here, and users may want to know which.
class JsonConfig {
 public:
  /// The outermost object. Throws InputError if the file cannot be read, is not JSON (with the parser's line), or is
  /// not an object.
  static JsonConfig load(const std::string& path);
  /// The same from text; `name` is the name of the file in messages.
  static JsonConfig parse(const std::string& text, const std::string& name);

  /// True if the field is there and not null.
  bool has(const std::string& key) const;
  bool is_object(const std::string& key) const;
  bool is_boolean(const std::string& key) const;
  bool is_text(const std::string& key) const;
  /// A whole number from 1 to 2^24: so the product of two and a small factor stays within 64 bits.
  std::int64_t count(const std::string& key) const;
  std::int64_t count_or(const std::string& key, std::int64_t otherwise) const;
  /// A whole number; 5e8 is one.
  std::int64_t whole(const std::string& key, std::int64_t min, std::int64_t max) const;
  double number(const std::string& key, double min, double max) const;
  bool boolean_or(const std::string& key, bool otherwise) const;
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& otherwise) const;
  /// A list of counts or of texts; an absent one is empty.
  std::vector<std::int64_t> counts(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  /// The object in a field.
  JsonConfig object(const std::string& key) const;
  /// Entries of an object or list in this field; 0 if it is absent or neither.
  std::size_t entries(const std::string& key) const;

  /// Fields of this object that were not read, in alphabetical order.
  std::vector<std::string> unasked() const;

  /// "zero_optimization.stage": the way to a field from the outermost object.
  std::string path(const std::string& key) const;
  /// The place of a field; the whole file if it is absent.
  SourceLine where(const std::string& key) const;
  /// An InputError there.
  InputError error(const std::string& key, const std::string& message) const;
  const std::string& file() const;

 private:
  struct Document;
  JsonConfig(std::shared_ptr<const Document> document, const nlohmann::json& object, std::vector<std::string> way);
  const nlohmann::json& field(const std::string& key) const;
  /// The field, or nothing if it is absent or null.
  const nlohmann::json* find(const std::string& key) const;
  const nlohmann::json* list(const std::string& key) const;

  std::shared_ptr<const Document> document_;
  const nlohmann::json* object_;
  std::vector<std::string> way_;  ///< keys from the outermost object to this one
  std::shared_ptr<std::set<std::string>> asked_;
};

}  // namespace weft
