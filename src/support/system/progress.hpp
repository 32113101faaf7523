// SPDX-License-Identifier: GPL-2.0-only
// Progress on standard error, with an estimate of what remains.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace weft {

/// A status line on a terminal, a plain line every few seconds elsewhere; silent for runs of under a second. Use on one
/// process only.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `now` tells the time; tests bring their own.
  explicit Progress(bool enabled, std::function<Clock::time_point()> now = Clock::now);
  /// Ends the status line if finish() was not called, without claiming that the work is done.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `fraction` of the work that is done, in [0, 1]; `detail` is free text ("1.2 ms simulated, 23.1 M packet-hops/s").
  /// Cheap to call often: reads the clock and returns if the last line is recent.
  void update(double fraction, const std::string& detail);
  /// All is done: shows 100 % if anything was shown before.
  void finish();

 private:
  void show(double fraction, double elapsed, const std::string& detail);

  std::function<Clock::time_point()> now_;
  bool enabled_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
  std::string detail_;
};

/// "42 %, 12 s elapsed, about 17 s left, <detail>". `fraction` in [0, 1], `elapsed` in seconds; what remains is
/// estimated from the mean speed so far.
std::string progress_text(double fraction, double elapsed, const std::string& detail);

}  // namespace weft
