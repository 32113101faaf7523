// SPDX-License-Identifier: GPL-2.0-only
// The status line and its estimate.
#include "support/system/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace weft {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double silent_for = 1.0;         // s: shorter runs show nothing
constexpr double terminal_interval = 0.2;  // s between rewrites of the line
constexpr double plain_interval = 5.0;     // s between plain lines
constexpr int bar_width = 24;              // characters

bool stderr_is_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80U;
}

double clamped(double fraction) { return std::isnan(fraction) ? 0.0 : std::clamp(fraction, 0.0, 1.0); }

/// Whole percent, rounded down so that "100 %" means done.
int percent(double fraction) { return static_cast<int>(std::floor(clamped(fraction) * 100.0)); }

std::string duration_text(double seconds) {
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e12)));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string bar(double fraction) {
  const auto filled = static_cast<std::size_t>(std::floor(clamped(fraction) * bar_width));
  return "[" + std::string(filled, '#') + std::string(bar_width - filled, '.') + "] ";
}

}  // namespace

std::string progress_text(double fraction, double elapsed, const std::string& detail) {
  const double done = clamped(fraction);
  std::string text = fmt::format("{} %, {} elapsed", percent(done), duration_text(elapsed));
  if (done > 0.0 && done < 1.0) {
    text += fmt::format(", about {} left", duration_text(elapsed * (1.0 - done) / done));
  }
  if (!detail.empty()) text += ", " + detail;
  return text;
}

Progress::Progress(bool enabled, std::function<Clock::time_point()> now)
    : now_(std::move(now)), enabled_(enabled), terminal_(stderr_is_terminal()), start_(now_()), last_(start_) {}

Progress::~Progress() {
  if (enabled_ && shown_ && terminal_) std::fputs("\n", stderr);
}

void Progress::update(double fraction, const std::string& detail) {
  if (!enabled_) return;
  const Clock::time_point now = now_();
  const double elapsed = Seconds(now - start_).count();
  const double since_last = Seconds(now - last_).count();
  if (elapsed < silent_for || since_last < (terminal_ ? terminal_interval : plain_interval)) return;
  last_ = now;
  shown_ = true;
  detail_ = detail;
  show(fraction, elapsed, detail);
}

void Progress::finish() {
  if (enabled_ && shown_) {
    show(1.0, Seconds(now_() - start_).count(), detail_);
    if (terminal_) std::fputs("\n", stderr);
  }
  enabled_ = false;
}

void Progress::show(double fraction, double elapsed, const std::string& detail) {
  std::string line = progress_text(fraction, elapsed, detail);
  if (terminal_) {
    // One column less than there are: a full line would wrap on some terminals, and "\r" would not reach its start.
    line = (bar(fraction) + line).substr(0, terminal_columns() - 1);
    fmt::print(stderr, "\r{}\x1b[K", line);
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
}

}  // namespace weft
