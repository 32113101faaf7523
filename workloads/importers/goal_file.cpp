// SPDX-License-Identifier: GPL-2.0-only
// What both forms of GOAL schedules share.
#include "workloads/importers/goal_file.hpp"

#include <algorithm>
#include <queue>

namespace weft {
namespace {

class SortedGoal final : public GoalStream {
 public:
  SortedGoal(std::vector<GoalOperation> operations, const std::vector<GoalWait>& waits) : file_(std::move(operations)) {
    sort_lists(waits);
    order();
  }

  bool next(GoalOperation& operation, std::vector<std::uint32_t>& dependencies) override {
    if (at_ == order_.size()) return false;
    const std::uint32_t i = order_[at_++];
    operation = file_[i];
    dependencies.clear();
    for (std::uint32_t w = first_[i]; w < first_[i + 1]; ++w)
      dependencies.push_back(position_[before_[w] & ~goal_at_start] | (before_[w] & goal_at_start));
    std::sort(dependencies.begin(), dependencies.end());
    dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
    return true;
  }

  /// The first operation that can never come, or nothing.
  const GoalOperation* left_over() const {
    for (std::size_t i = 0; i < file_.size(); ++i)
      if (position_[i] == goal_at_start) return &file_[i];
    return nullptr;
  }

 private:
  // Waits by operation: a counting sort.
  void sort_lists(const std::vector<GoalWait>& waits) {
    first_.assign(file_.size() + 1, 0);
    for (const GoalWait& wait : waits) ++first_[wait.operation + 1];
    for (std::size_t i = 0; i < file_.size(); ++i) first_[i + 1] += first_[i];
    std::vector<std::uint32_t> filled(first_.begin(), first_.end());
    before_.resize(waits.size());
    for (const GoalWait& wait : waits)
      before_[filled[wait.operation]++] = wait.before | (wait.at_start ? goal_at_start : 0);
  }

  void order() {
    const auto count = static_cast<std::uint32_t>(file_.size());
    std::vector<std::uint32_t> missing(count);
    std::vector<std::vector<std::uint32_t>> dependents(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      missing[i] = first_[i + 1] - first_[i];
      for (std::uint32_t w = first_[i]; w < first_[i + 1]; ++w) dependents[before_[w] & ~goal_at_start].push_back(i);
    }
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < count; ++i)
      if (missing[i] == 0) ready.push(i);
    position_.assign(count, goal_at_start);
    while (!ready.empty()) {
      const std::uint32_t i = ready.top();
      ready.pop();
      position_[i] = static_cast<std::uint32_t>(order_.size());
      order_.push_back(i);
      for (const std::uint32_t next : dependents[i])
        if (--missing[next] == 0) ready.push(next);
    }
  }

  std::vector<GoalOperation> file_;
  std::vector<std::uint32_t> first_;     // [operations, and the end] into before_
  std::vector<std::uint32_t> before_;    // positions in the file, with goal_at_start
  std::vector<std::uint32_t> order_;     // positions in the file
  std::vector<std::uint32_t> position_;  // [position in the file] in order_
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<GoalStream> sort_goal(std::vector<GoalOperation> operations, const std::vector<GoalWait>& waits,
                                      const GoalComplaint& error) {
  auto sorted = std::make_unique<SortedGoal>(std::move(operations), waits);
  if (const GoalOperation* left = sorted->left_over())
    throw error(*left, "the operation waits, through others or directly, for itself");
  return sorted;
}

std::unique_ptr<GoalFile> open_goal(const GoalContent& content) {
  // Magic numbers of the binary form: 4223, and 2342 for one that a simulator has used up.
  ByteSource source = content();
  const int low = source.peek(0), high = source.peek(1);
  bool zeros = true;
  for (std::size_t i = 2; i < 8; ++i) zeros = zeros && source.peek(i) == 0;
  const bool binary = zeros && ((low == 0x7f && high == 0x10) || (low == 0x26 && high == 0x09));
  return binary ? open_goal_binary(content) : open_goal_text(content);
}

}  // namespace weft
