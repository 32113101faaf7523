// SPDX-License-Identifier: GPL-2.0-only
// Ranks of GOAL schedules in a temporary file, and in the order of their dependencies.
#include "workloads/importers/goal_order.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <type_traits>
#include <utility>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

/// `waits` positions in the rank follow it.
struct ConvertedOperation {
  GoalOperation operation;
  std::uint32_t waits = 0;
};
static_assert(std::is_trivially_copyable_v<ConvertedOperation>);

class ConvertedGoal final : public GoalStream {
 public:
  ConvertedGoal(std::shared_ptr<const TemporaryFile> file, const ConvertedGoals::Part& part)
      : file_(std::move(file)), at_(part.begin), end_(part.end) {}

  bool next(GoalOperation& operation, std::vector<std::uint32_t>& dependencies) override {
    if (taken_ == block_.size() && at_ == end_) return false;
    ConvertedOperation one;
    take(&one, sizeof(one));
    operation = one.operation;
    dependencies.resize(one.waits);
    take(dependencies.data(), one.waits * sizeof(std::uint32_t));
    return true;
  }

 private:
  void take(void* to, std::size_t count) {
    for (auto* target = static_cast<std::byte*>(to); count > 0;) {
      if (taken_ == block_.size()) fill();
      const std::size_t part = std::min(count, block_.size() - taken_);
      std::memcpy(target, block_.data() + taken_, part);
      taken_ += part;
      target += part;
      count -= part;
    }
  }
  void fill() {
    constexpr std::uint64_t max = 8192;
    block_.resize(static_cast<std::size_t>(std::min(max, end_ - at_)));
    WEFT_EXPECT(!block_.empty(), "a converted rank ends at {}", end_);
    file_->read(at_, block_.data(), block_.size());
    at_ += block_.size();
    taken_ = 0;
  }

  std::shared_ptr<const TemporaryFile> file_;
  std::uint64_t at_, end_;
  std::vector<std::byte> block_;
  std::size_t taken_ = 0;
};

}  // namespace

void ConvertedGoals::append(Part& part, std::uint32_t number, const GoalOperation& operation,
                            const std::vector<std::uint32_t>& before) {
  for (const std::uint32_t wait : before) part.in_order = part.in_order && (wait & ~goal_at_start) < number;
  const ConvertedOperation one{operation, static_cast<std::uint32_t>(before.size())};
  file_->append(&one, sizeof(one));
  file_->append(before.data(), before.size() * sizeof(std::uint32_t));
  part.end = file_->size();
}

std::unique_ptr<GoalStream> ConvertedGoals::stream(const Part& part) const {
  return std::make_unique<ConvertedGoal>(file_, part);
}

void GoalSorting::add(const GoalOperation& operation, const std::vector<std::uint32_t>& before) {
  const std::uint32_t place = taken_++;
  is_given_.push_back(false);
  std::size_t missing = 0;
  for (const std::uint32_t wait : before) {
    const std::uint32_t other = wait & ~goal_at_start;
    if (other < place && is_given_[other]) continue;
    ++missing;
    waiting_[other].push_back(place);
  }
  if (missing > 0)
    held_[place] = {operation, before, missing};
  else
    give(place, operation, before);
}

// Also the operations that have waited only for it. All earlier operations that could be taken have been taken.
void GoalSorting::give(std::uint32_t place, const GoalOperation& operation, const std::vector<std::uint32_t>& before) {
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  const auto one = [&](std::uint32_t at, const GoalOperation& now, const std::vector<std::uint32_t>& waits) {
    places_.add({at, given_});
    for (const std::uint32_t wait : waits) uses_.add({wait & ~goal_at_start, given_, wait & goal_at_start});
    operations_.append(&now, sizeof(now));
    ++given_;
    is_given_[at] = true;
    const auto found = waiting_.find(at);
    if (found == waiting_.end()) return;
    for (const std::uint32_t next : found->second)
      if (--held_.at(next).missing == 0) ready.push(next);
    waiting_.erase(found);
  };
  one(place, operation, before);
  while (!ready.empty()) {
    const auto next = held_.extract(ready.top());
    ready.pop();
    one(next.key(), next.mapped().operation, next.mapped().before);
  }
}

// Places in the file become places in the order: a join of sorted lists.
void GoalSorting::find_waits() {
  places_.sort();
  uses_.sort();
  Place place{};
  bool more = places_.next(place);
  for (Use use{}; uses_.next(use);) {
    while (more && place.in_file < use.before) more = places_.next(place);
    WEFT_EXPECT(more && place.in_file == use.before, "operation {} of the file has no place", use.before);
    waits_.add({use.in_order, place.in_order | use.at_start});
  }
  places_ = SortedRecords<Place>();
  uses_ = SortedRecords<Use>();
  waits_.sort();
}

ConvertedGoals::Part GoalSorting::write(ConvertedGoals& goals, const GoalComplaint& error) {
  if (!held_.empty())
    throw error(held_.begin()->second.operation, "the operation waits, through others or directly, for itself");
  find_waits();
  ConvertedGoals::Part part = goals.begin();
  Wait wait{};
  bool more = waits_.next(wait);
  std::vector<std::uint32_t> before;
  constexpr std::uint32_t at_a_time = 256;
  std::vector<GoalOperation> some(at_a_time);
  for (std::uint32_t number = 0; number < given_; ++number) {
    if (number % at_a_time == 0)
      operations_.read(number * sizeof(GoalOperation), some.data(), at_a_time * sizeof(GoalOperation));
    before.clear();
    for (; more && wait.in_order == number; more = waits_.next(wait)) before.push_back(wait.before);
    goals.append(part, number, some[number % at_a_time], before);
  }
  return part;
}

}  // namespace weft
