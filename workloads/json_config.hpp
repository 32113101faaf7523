// SPDX-License-Identifier: GPL-2.0-only
// Typed access to a flat JSON file, with the line of every complaint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "support/error.hpp"

namespace weft {

/// The top-level fields of a JSON object. Every reading function throws InputError with file and line. Fields that
/// nobody asks for are fine: published configurations have many that say nothing about shapes.
class JsonConfig {
 public:
  /// Throws InputError if the file cannot be read, is not JSON (with the parser's line), or is not an object.
  static JsonConfig load(const std::string& path);
  /// The same from text; `name` stands for the file in messages.
  static JsonConfig parse(const std::string& text, const std::string& name);

  /// True if the field is there and not null.
  bool has(const std::string& key) const;
  /// A whole number from 1 to 2^24: so the product of two and a small factor stays within 64 bits.
  std::int64_t count(const std::string& key) const;
  std::int64_t count_or(const std::string& key, std::int64_t otherwise) const;
  bool boolean_or(const std::string& key, bool otherwise) const;
  std::string text(const std::string& key) const;

  /// An InputError at the line of a field, or at the file as a whole if the field is absent.
  InputError error(const std::string& key, const std::string& message) const;
  const std::string& file() const { return file_; }

 private:
  JsonConfig(std::string file, std::string text);
  const nlohmann::json& field(const std::string& key) const;

  std::string file_;
  std::string text_;
  std::shared_ptr<const nlohmann::json> json_;
};

}  // namespace weft
