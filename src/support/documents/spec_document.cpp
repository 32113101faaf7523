// SPDX-License-Identifier: GPL-2.0-only
// The tree behind Spec handles, and its way to YAML text.
#include "support/documents/spec_document.hpp"

#include <yaml-cpp/emitter.h>

namespace weft {

using Value = Spec::Value;
using Kind = Spec::Value::Kind;

Value* Spec::Value::find(std::string_view wanted) const {
  if (kind != Kind::map) return nullptr;
  const auto at = children->by_key.find(wanted);
  return at == children->by_key.end() ? nullptr : at->second;
}

void Spec::Value::make(Kind container) {
  kind = container;
  children = std::make_unique<Children>();
}

void Spec::Value::append(Value& child) {
  child.parent = this;
  child.index = children->in_order.size();
  children->in_order.push_back(&child);
}

bool Spec::Value::insert(const std::string& name, Value& child) {
  if (children->by_key.contains(name)) return false;
  child.parent = this;
  child.key = name;
  children->in_order.push_back(&child);
  children->by_key.emplace(child.key, &child);
  return true;
}

void Spec::Value::erase(Value& child) {
  children->by_key.erase(child.key);
  std::erase(children->in_order, &child);
}

void Spec::Value::take_content(Value& other) {
  kind = other.kind;
  quoted = other.quoted;
  flow = other.flow;
  file = other.file;
  line = other.line;
  key_line = other.key_line;
  text = std::move(other.text);
  children = std::move(other.children);
  if (!children) return;
  for (Value* child : children->in_order) child->parent = this;
}

const std::string& Spec::Value::dotted_path() {
  if (parent != nullptr && path.empty()) {
    const std::string& above = parent->dotted_path();
    const std::string step = parent->kind == Kind::sequence ? std::to_string(index) : key;
    path = above.empty() ? step : above + "." + step;
  }
  return path;
}

Spec::Value& Spec::Document::create(const std::string* file, int line) {
  Value& value = values.emplace_back();
  value.document = this;
  value.file = file;
  value.line = line;
  return value;
}

namespace {

void emit_scalar(YAML::Emitter& out, const std::string& text, bool quoted) {
  if (quoted) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const Value& value) {
  switch (value.kind) {
    case Kind::null:
      out << YAML::Null;
      return;
    case Kind::scalar:
      emit_scalar(out, value.text, value.quoted);
      return;
    case Kind::map:
      out << (value.flow ? YAML::Flow : YAML::Block) << YAML::BeginMap;
      for (const Value* child : value.children->in_order) {
        out << YAML::Key;
        emit_scalar(out, child->key, false);
        out << YAML::Value;
        emit(out, *child);
      }
      out << YAML::EndMap;
      return;
    case Kind::sequence:
      out << (value.flow ? YAML::Flow : YAML::Block) << YAML::BeginSeq;
      for (const Value* child : value.children->in_order) emit(out, *child);
      out << YAML::EndSeq;
      return;
  }
}

}  // namespace

std::string write_yaml(const Spec::Value& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace weft
