// SPDX-License-Identifier: GPL-2.0-only
// Streams of steps written as coroutines: an algorithm reads as the loop that it is, and yields its steps one by one.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <utility>

#include "schedule/collective/collective.hpp"

namespace weft {

/// What a coroutine returns that yields steps: `co_yield step;`. Its frame is all the memory that it has. Coroutines
/// must be free functions that take everything by value, for they outlive the algorithm's object and the caller.
class StepGenerator final : public StepStream {
 public:
  struct promise_type {
    Step current;
    std::exception_ptr failure;

    StepGenerator get_return_object() { return StepGenerator(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const Step& step) {
      current = step;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  StepGenerator(StepGenerator&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  StepGenerator(const StepGenerator&) = delete;
  StepGenerator& operator=(const StepGenerator&) = delete;
  StepGenerator& operator=(StepGenerator&&) = delete;
  ~StepGenerator() override {
    if (handle_) handle_.destroy();
  }

  bool next(Step& step) override {
    if (handle_.done()) return false;
    handle_.resume();
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
    if (handle_.done()) return false;
    step = handle_.promise().current;
    return true;
  }

 private:
  explicit StepGenerator(Handle handle) : handle_(handle) {}
  Handle handle_;
};

inline std::unique_ptr<StepStream> stream_of(StepGenerator generator) {
  return std::make_unique<StepGenerator>(std::move(generator));
}

/// For a rank that takes no part.
inline StepGenerator no_steps() { co_return; }

}  // namespace weft
