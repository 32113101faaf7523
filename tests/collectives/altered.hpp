// SPDX-License-Identifier: GPL-2.0-only
// Algorithms with something wrong in them, which a replay has to notice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "schedule/collective/collective.hpp"

namespace weft::testing_steps {

/// Wraps an algorithm that outlives it; a subclass changes parts of it.
class Altered : public CollectiveAlgorithm {
 public:
  explicit Altered(const CollectiveAlgorithm& original) : original_(original) {}
  bool supports(CollectiveKind kind) const override { return original_.supports(kind); }
  std::uint32_t credits(const CollectiveCall& call) const override { return original_.credits(call); }
  std::uint32_t channels(const CollectiveCall& call) const override { return original_.channels(call); }
  std::uint32_t lanes(const CollectiveCall& call) const override { return original_.lanes(call); }
  std::uint32_t aggregators(const CollectiveCall& call) const override { return original_.aggregators(call); }
  std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const override {
    return original_.memory_of(call, lane);
  }
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    return original_.steps(call, index, lane);
  }

 private:
  const CollectiveAlgorithm& original_;
};

/// With fewer credits than the algorithm requires.
class Starved final : public Altered {
 public:
  Starved(const CollectiveAlgorithm& original, std::uint32_t credits) : Altered(original), credits_(credits) {}
  std::uint32_t credits(const CollectiveCall&) const override { return credits_; }

 private:
  std::uint32_t credits_;
};

/// With a fault: `change` may alter a step, and drops it by returning false.
class Faulty final : public Altered {
 public:
  using Change = std::function<bool(std::uint32_t index, std::uint32_t lane, std::uint64_t number, Step& step)>;
  Faulty(const CollectiveAlgorithm& original, Change change) : Altered(original), change_(std::move(change)) {}
  std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                    std::uint32_t lane) const override {
    return std::make_unique<Stream>(Altered::steps(call, index, lane), change_, index, lane);
  }

 private:
  class Stream final : public StepStream {
   public:
    Stream(std::unique_ptr<StepStream> original, const Change& change, std::uint32_t index, std::uint32_t lane)
        : original_(std::move(original)), change_(change), index_(index), lane_(lane) {}
    bool next(Step& step) override {
      while (original_->next(step))
        if (change_(index_, lane_, number_++, step)) return true;
      return false;
    }

   private:
    std::unique_ptr<StepStream> original_;
    const Change& change_;
    std::uint32_t index_;
    std::uint32_t lane_;
    std::uint64_t number_ = 0;
  };

  Change change_;
};

}  // namespace weft::testing_steps
