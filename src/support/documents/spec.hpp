// SPDX-License-Identifier: GPL-2.0-only
// Reading an experiment file: typed access to YAML with the line of everything, units, and unknown keys found.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/basics/error.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// One value of an experiment file, with its place ("fat.yaml:3") and path ("topology.link_rate"). A light handle;
/// copies refer to the same document. Every reading function throws InputError with file:line, what was found and what
/// was expected. A map remembers which keys were read (even if absent), so that finish() can refuse unknown keys.
class Spec {
 public:
  /// Read a whole file. Throws InputError if it cannot be opened ("unknown file"), is not YAML (with the parser's
  /// line), is empty, or repeats a key within one map.
  static Spec load(const std::string& path);
  /// The same from text; `name` stands for the file in messages.
  static Spec parse(const std::string& text, const std::string& name);
  /// The value of an option of the command line, such as "--size"; the text is YAML, and messages begin with the
  /// option.
  static Spec of_option(const std::string& option, const std::string& yaml);

  /// Replace or add the value at a dotted path ("topology.k"; a number steps into a sequence: "workload.pairs.0"); the
  /// text is YAML. Missing maps on the way are created; index `size` appends to a sequence. Its place in messages is
  /// "--set topology.k=8". Throws InputError if the path runs through a scalar.
  void set(const std::string& path, const std::string& yaml);
  /// Leaves out the value at a dotted path of keys. Nothing happens if there is none.
  void remove(const std::string& path);
  /// The whole document as YAML text after all set() and remove() calls.
  std::string dump() const;
  /// The file's text as it was read (before set() and remove()).
  const std::string& verbatim() const;

  SourceLine where() const;
  const std::string& path() const;  ///< "" for the document
  bool is_map() const;
  bool is_sequence() const;
  bool is_scalar() const;
  bool is_null() const;

  // Maps -------------------------------------------------------------------------------------------------------------
  /// The value of a key that must be there.
  Spec at(const std::string& key) const;
  /// The value of a key, or nothing if absent.
  std::optional<Spec> find(const std::string& key) const;
  bool has(const std::string& key) const { return find(key).has_value(); }
  /// All keys in file order (counts as asking for each of them).
  std::vector<std::pair<std::string, Spec>> entries() const;
  /// Throws InputError for the first key of this map that was not read: "unknown key 'link_rat' in 'topology' (did you
  /// mean 'link_rate'?); known here: ...". Not recursive: the reader of a map also finishes it. `meant`: names used
  /// elsewhere, and their names here.
  void finish(const std::map<std::string, std::string>& meant = {}) const;

  // Sequences --------------------------------------------------------------------------------------------------------
  std::size_t size() const;  ///< of a map or sequence
  Spec operator[](std::size_t index) const;
  std::vector<Spec> items() const;  ///< throws if not a sequence

  // Scalars ----------------------------------------------------------------------------------------------------------
  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t min = INT64_MIN, std::int64_t max = INT64_MAX) const;
  std::uint64_t natural() const;  ///< from 0 to 2^64 - 1
  double number(double min = -1e300, double max = 1e300) const;
  Time time() const;  ///< below Time::limit(); a bare number is an error that names the units
  Time wait() const;  ///< the same, and at most Time::longest_wait()
  Bytes bytes() const;
  Bandwidth bandwidth() const;  ///< above 0
  /// One of the given words; otherwise an error with "did you mean" and the list.
  std::string one_of(const std::vector<std::string>& words) const;

  /// An InputError at this place: "file:line: `path`: message".
  InputError error(const std::string& message) const;

  struct Document;  ///< internal: support/documents/spec_document.hpp
  struct Value;     ///< internal: support/documents/spec_document.hpp

 private:
  explicit Spec(std::shared_ptr<Value> value) : value_(std::move(value)) {}
  std::shared_ptr<Value> value_;
};

/// " (did you mean 'x'?)" for the nearest of `known` within a small edit distance, or those that have the word as a
/// part of their name, else "".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);
/// True if at most so many edits turn one word into the other.
bool nearly_the_same(const std::string& word, const std::string& known, std::size_t edits);

}  // namespace weft
