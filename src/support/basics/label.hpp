// SPDX-License-Identifier: GPL-2.0-only
// Names of operations, for people.
#pragma once

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace weft {

/// The name of an operation. It is text, or it is made from a part of a plan when somebody asks for it: most runs need
/// the names of few of their operations.
class Label {
 public:
  /// Makes text from what a plan has.
  struct Maker {
    std::string (*make)(const void* part) = nullptr;
    const void* part = nullptr;
    bool operator==(const Maker&) const = default;
  };

  Label() = default;
  Label(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor): text is a label
  Label(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  explicit Label(Maker maker) : maker_(maker) {}
  /// The label of `part`, which has a method label() and has to live longer.
  template <class Part>
  static Label of(const Part& part) {
    return Label(Maker{[](const void* one) { return static_cast<const Part*>(one)->label(); }, &part});
  }

  std::string text() const { return maker_.make != nullptr ? maker_.make(maker_.part) : text_; }
  bool empty() const { return maker_.make == nullptr ? text_.empty() : text().empty(); }
  Label& operator+=(std::string_view more) {
    text_ = text().append(more);
    maker_ = {};
    return *this;
  }
  /// What there is without making text: null, or a maker and no text.
  const Maker& maker() const { return maker_; }
  const std::string& own_text() const { return text_; }

  template <class Text>
  requires std::convertible_to<const Text&, std::string_view>
  friend bool operator==(const Label& a, const Text& b) { return a.text() == std::string_view(b); }
  friend bool operator==(const Label& a, const Label& b) { return a.text() == b.text(); }
  friend std::ostream& operator<<(std::ostream& out, const Label& label) { return out << label.text(); }

 private:
  std::string text_;
  Maker maker_;  // of a label without text
};

}  // namespace weft
