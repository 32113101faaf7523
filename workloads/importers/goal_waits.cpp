// SPDX-License-Identifier: GPL-2.0-only
// The dependencies of one rank of a GOAL text: three joins of sorted lists. Labels with the operations that have them,
// by label; then both ends of each relation, by relation; then the dependencies of each operation, by operation.
#include "workloads/importers/goal_waits.hpp"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), begun with `basis`, and mixed at the end (MurmurHash3's fmix64).
std::uint64_t hash_of(const std::string& text, std::uint64_t basis) {
  for (const char letter : text) basis = (basis ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  basis = (basis ^ (basis >> 33)) * 0xff51afd7ed558ccdULL;
  basis = (basis ^ (basis >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return basis ^ (basis >> 33);
}

}  // namespace

GoalWaits::Key GoalWaits::key_of(const std::string& label) {
  constexpr std::size_t max_letters = 15;
  constexpr std::uint64_t long_label = 0xff;  // no short one is so long
  if (label.size() > max_letters)
    return {hash_of(label, 0xcbf29ce484222325ULL), hash_of(label, 0x84222325cbf29ce4ULL) << 8 | long_label};
  std::array<char, 16> text{};
  std::memcpy(text.data(), label.data(), label.size());
  Key key;
  std::memcpy(key.data(), text.data(), sizeof(Key));
  return {key[0], key[1] << 8 | label.size()};
}

void GoalWaits::operation(const std::string& label) {
  if (!label.empty()) definitions_.add({key_of(label), relations_, operations_});
  ++operations_;
}

void GoalWaits::relation(const std::string& label, const std::string& before, bool at_start) {
  uses_.add({key_of(label), relations_, 0, at_start ? goal_at_start : 0});
  uses_.add({key_of(before), relations_, 1, at_start ? goal_at_start : 0});
  ++relations_;
}

std::optional<GoalWaits::Unknown> GoalWaits::resolve() {
  definitions_.sort();
  uses_.sort();
  if (const auto unknown = find_operations()) return unknown;
  definitions_ = SortedRecords<Definition>();
  uses_ = SortedRecords<Use>();
  ends_.sort();
  join_ends();
  ends_ = SortedRecords<End>();
  waits_.sort();
  Wait first{};
  if (waits_.next(first)) next_ = first;
  return std::nullopt;
}

bool GoalWaits::next_definition(Definition& definition) {
  if (!definitions_.next(definition)) return false;
  if (definition_ && definition_->key == definition.key) {
    const Twice one{definition.operation, definition_->operation};
    twice_ = twice_ ? std::min(*twice_, one) : one;
  }
  definition_ = definition;
  return true;
}

// A definition counts if it is above the relation.
std::optional<GoalWaits::Unknown> GoalWaits::find_operations() {
  std::optional<Unknown> unknown;
  Definition candidate{}, found{};
  bool more = next_definition(candidate), has = false;
  for (Use use{}; uses_.next(use);) {
    for (; more && candidate.key <= use.key; more = next_definition(candidate)) {
      if (has && found.key == candidate.key) continue;
      found = candidate;
      has = true;
    }
    if (has && found.key == use.key && found.place <= use.relation) {
      ends_.add({use.relation, use.before, found.operation | use.at_start});
      continue;
    }
    const Unknown one{use.relation, use.before != 0};
    unknown = unknown ? std::min(*unknown, one) : one;
  }
  while (more) more = next_definition(candidate);
  return unknown;
}

void GoalWaits::join_ends() {
  End waiting{};
  for (End end{}; ends_.next(end);) {
    if (end.before != 0)
      waits_.add({waiting.operation & ~goal_at_start, end.operation});
    else
      waiting = end;
  }
}

void GoalWaits::of(std::uint32_t number, std::vector<std::uint32_t>& before) {
  before.clear();
  while (next_ && next_->operation == number) {
    if (before.empty() || before.back() != next_->before) before.push_back(next_->before);
    Wait following{};
    next_.reset();
    if (waits_.next(following)) next_ = following;
  }
}

}  // namespace weft
