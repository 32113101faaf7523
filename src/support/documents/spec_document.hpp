// SPDX-License-Identifier: GPL-2.0-only
// The tree behind Spec handles: values with their places. Internal to this room.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/documents/spec.hpp"

namespace weft {

/// One node of the tree. All nodes live in Spec::Document::values, which never shrinks, so plain pointers stay valid.
struct Spec::Value {
  enum class Kind { null, scalar, map, sequence };

  /// What only maps and sequences have.
  struct Children {
    std::vector<Value*> in_order;
    std::map<std::string_view, Value*> by_key;  ///< maps only; the keys are views of the children's `key`
    std::set<std::string> asked;                ///< maps only: the keys that somebody looked for
  };

  Document* document = nullptr;
  Kind kind = Kind::null;
  bool quoted = false;                ///< scalar: written in quotes or as a block, or tagged as a string
  bool flow = false;                  ///< map, sequence: written in one line, {...} or [...]
  const std::string* file = nullptr;  ///< the file, or the --set option that gave the value
  int line = 0;                       ///< 1-based; 0 for --set
  int key_line = 0;                   ///< of the key in front; 0 if none
  Value* parent = nullptr;
  std::string key;        ///< in a map
  std::size_t index = 0;  ///< in a sequence
  std::string text;       ///< scalar
  std::unique_ptr<Children> children;
  std::string path;  ///< made when first asked for

  SourceLine where() const { return {*file, line}; }
  SourceLine key_where() const { return {*file, key_line}; }
  Value* find(std::string_view wanted) const;
  void make(Kind container);                           ///< turn into an empty map or sequence
  void append(Value& child);                           ///< to a sequence
  bool insert(const std::string& name, Value& child);  ///< into a map; false if the key is there already
  void erase(Value& child);                            ///< from a map
  void take_content(Value& other);                     ///< become `other`, but stay at this place of the tree
  const std::string& dotted_path();
};

/// One experiment file. Every Spec shares ownership of the whole.
struct Spec::Document {
  std::string verbatim;
  std::deque<std::string> files;  ///< names that values point to: the file and the --set options
  std::deque<Value> values;
  Value* root = nullptr;

  Value& create(const std::string* file, int line);
  const std::string* add_file(std::string name) { return &files.emplace_back(std::move(name)); }
};

/// Parse `text` into new values of `document` and return the top one, or nullptr if there is no YAML document. Lines
/// are counted from 1 if `with_lines`, else all are 0. Throws InputError for everything that is not one good YAML
/// document.
Spec::Value* read_yaml(Spec::Document& document, const std::string& text, const std::string* file, bool with_lines);

/// The value and all below it as YAML.
std::string write_yaml(const Spec::Value& value);

}  // namespace weft
