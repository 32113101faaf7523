// SPDX-License-Identifier: GPL-2.0-only
// YAML text to the tree behind Spec handles. It uses the parser's events instead of its tree, because only the events
// still have repeated keys and the line of every alias.
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "support/documents/spec_document.hpp"

namespace weft {
namespace {

using Value = Spec::Value;
using Kind = Spec::Value::Kind;

/// Aliases of aliases grow exponentially: more copies than any reasonable file makes are refused.
constexpr std::size_t max_alias_copies = 2'000'000;

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(Spec::Document& document, const std::string* file, bool with_lines)
      : document_(document), file_(file), with_lines_(with_lines) {}

  Value* root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_ != nullptr)
      fail(line_of(mark),
           "a second YAML document starts here; one file holds one (or is this line not indented far enough?)");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (key_is_due()) fail(line_of(mark), "an empty key; every key must be a word");
    finished(place(document_.create(file_, line_of(mark))), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (key_is_due()) fail(line_of(mark), "expected a key, found an alias; every key must be a word");
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) fail(line_of(mark), "this alias repeats a key, or the value that it is part of");
    Value& copy = copied(*at->second);
    copy.line = line_of(mark);
    place(copy);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (key_is_due()) {
      open_.back().key = Key{text, line_of(mark), text == "<<" && tag == "?"};
      return;
    }
    Value& value = document_.create(file_, line_of(mark));
    value.kind = Kind::scalar;
    value.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    value.text = text;
    finished(place(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(Kind::sequence, line_of(mark), anchor, style);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(Kind::map, line_of(mark), anchor, style);
  }
  void OnMapEnd() override {
    merge(open_.back());
    end();
  }

 private:
  struct Key {
    std::string text;
    int line;
    bool merge;  ///< "<<": its value's entries join the map
  };
  /// A map or sequence whose end has not been read yet.
  struct Open {
    Value* value;
    YAML::anchor_t anchor;
    bool stands_as_key;      ///< refused at its end, so that the parser can first say that the end is missing
    std::optional<Key> key;  ///< the key that waits for its value
    std::vector<Value*> merges;
  };

  int line_of(const YAML::Mark& mark) const { return with_lines_ ? mark.line + 1 : 0; }

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw InputError(SourceLine{*file_, line}, message);
  }

  bool key_is_due() const {
    return !open_.empty() && open_.back().value->kind == Kind::map && !open_.back().key.has_value();
  }

  /// Hang a value into the innermost open container.
  Value& place(Value& value) {
    if (open_.empty()) {
      root_ = &value;
    } else if (open_.back().value->kind == Kind::sequence) {
      open_.back().value->append(value);
    } else {
      place_in_map(open_.back(), value);
    }
    return value;
  }

  void place_in_map(Open& map, Value& value) {
    const Key key = *std::exchange(map.key, std::nullopt);
    value.key_line = key.line;
    // A block starts on a later line than its key, and an absent value has the line of the next item.
    if (value.kind != Kind::scalar) value.line = key.line;
    if (key.merge) {
      map.merges.push_back(&value);
    } else if (!map.value->insert(key.text, value)) {
      fail(key.line, fmt::format("the key '{}' is here twice{}; it came first in line {}", key.text,
                                 in_path(*map.value), map.value->find(key.text)->key_line));
    }
  }

  static std::string in_path(Value& map) {
    const std::string& path = map.dotted_path();
    return path.empty() ? "" : fmt::format(" in '{}'", path);
  }

  void begin(Kind kind, int line, YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    const bool stands_as_key = key_is_due();
    Value& value = document_.create(file_, line);
    value.make(kind);
    value.flow = style == YAML::EmitterStyle::Flow;
    if (!stands_as_key) place(value);
    open_.push_back({&value, anchor, stands_as_key, std::nullopt, {}});
  }

  void end() {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.stands_as_key)
      fail(closed.value->line, "expected a key, found a map or a list; every key must be a word");
    finished(*closed.value, closed.anchor);
  }

  void finished(Value& value, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &value;
  }

  /// Merge keys (https://yaml.org/type/merge.html): a key of the map itself wins, then the earlier source.
  void merge(Open& map) {
    for (Value* source : map.merges) {
      if (source->kind == Kind::sequence) {
        for (Value* item : source->children->in_order) merge_one(*map.value, *item);
      } else {
        merge_one(*map.value, *source);
      }
    }
  }

  void merge_one(Value& map, const Value& source) {
    if (source.kind != Kind::map) fail(source.line, "'<<' takes a map or a list of maps");
    for (const Value* child : source.children->in_order) {
      if (map.find(child->key) == nullptr) map.insert(child->key, copied(*child));
    }
  }

  Value& copied(const Value& original) {
    if (++copies_ > max_alias_copies) fail(original.line, "the aliases expand to far too many values");
    Value& copy = document_.create(original.file, original.line);
    copy.kind = original.kind;
    copy.quoted = original.quoted;
    copy.flow = original.flow;
    copy.key_line = original.key_line;
    copy.text = original.text;
    if (!original.children) return copy;
    copy.make(original.kind);
    for (const Value* child : original.children->in_order) {
      Value& below = copied(*child);
      if (original.kind == Kind::map) {
        copy.insert(child->key, below);
      } else {
        copy.append(below);
      }
    }
    return copy;
  }

  Spec::Document& document_;
  const std::string* file_;
  bool with_lines_;
  Value* root_ = nullptr;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value*> anchors_;
  std::size_t copies_ = 0;
};

/// A hint that the parser's message does not give, if this line (0-based) is indented by a tab or otherwise than the
/// lines before it, or if the one before it has no space behind its colon.
std::string layout_hint(const std::string& text, int line) {
  std::istringstream stream(text);
  std::string content, last;
  std::vector<std::size_t> levels;  // indentations of maps that are open
  for (int i = 0; i <= line && std::getline(stream, content); ++i) {
    const std::size_t indent = content.find_first_not_of(" \t");
    if (indent == std::string::npos || content[indent] == '#') continue;
    if (content.substr(0, indent).find('\t') != std::string::npos && i == line)
      return " (YAML indents by spaces, and this line by a tab)";
    const std::size_t before = levels.empty() ? indent : levels.back();
    while (!levels.empty() && levels.back() > indent) levels.pop_back();
    const bool known_level = !levels.empty() && levels.back() == indent;
    if (i == line && !known_level && before != indent)
      return fmt::format(
          " (this line is indented by {} space{}, the one before it by {}: keys of one map stand below "
          "each other)",
          indent, indent == 1 ? "" : "s", before);
    if (!known_level) levels.push_back(indent);
    if (i < line) last = content;
  }
  const std::size_t colon = last.find(':');
  const bool tight = colon != std::string::npos && last.find(": ") == std::string::npos && !last.ends_with(':');
  return tight ? " (expected a space after the colon in the line before it)" : "";
}

}  // namespace

Spec::Value* read_yaml(Spec::Document& document, const std::string& text, const std::string* file, bool with_lines) {
  TreeBuilder builder(document, file, with_lines);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& problem) {
    if (problem.mark.is_null()) throw InputError({*file, 0}, "not valid YAML: " + problem.msg);
    const int line = with_lines ? problem.mark.line + 1 : 0;
    throw InputError({*file, line}, "not valid YAML: " + problem.msg + layout_hint(text, problem.mark.line));
  }
  return builder.root();
}

}  // namespace weft
