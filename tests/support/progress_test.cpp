// SPDX-License-Identifier: GPL-2.0-only
// Tests of the progress line, on a clock that the test moves.
#include "support/system/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace weft::progress_test {
namespace {

using namespace std::chrono_literals;

/// A clock that stands still until it is moved.
struct HandClock {
  Progress::Clock::time_point time{};
  std::function<Progress::Clock::time_point()> reader() {
    return [this] { return time; };
  }
};

/// The output of `work` to standard error when that is a file.
std::string plain_output(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

/// The output of `work` to standard error when that is a terminal of 80 columns.
std::string terminal_output(const std::function<void()>& work) {
  setenv("TERM", "xterm", 1);
  int controller = -1;
  int terminal = -1;
  const winsize size{24, 80, 0, 0};
  if (openpty(&controller, &terminal, nullptr, nullptr, &size) != 0) return "no pseudo-terminal";
  const int saved = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  work();
  dup2(saved, STDERR_FILENO);
  close(saved);
  fcntl(controller, F_SETFL, O_NONBLOCK);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(controller, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(terminal);
  close(controller);
  return text;
}

std::size_t occurrences(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

TEST(ProgressText, EstimatesFromTheMeanSpeed) {
  // 1/4 done in 12 s: 12 s * (3/4) / (1/4) = 36 s remain.
  EXPECT_EQ(progress_text(0.25, 12.0, "x"), "25 %, 12 s elapsed, about 36 s left, x");
  EXPECT_EQ(progress_text(0.0, 12.0, ""), "0 %, 12 s elapsed");
  EXPECT_EQ(progress_text(1.0, 12.0, ""), "100 %, 12 s elapsed");
  // 1/2 done in 200 s = 3 min 20 s; in 7500 s = 2 h 5 min.
  EXPECT_EQ(progress_text(0.5, 200.0, ""), "50 %, 3 min 20 s elapsed, about 3 min 20 s left");
  EXPECT_EQ(progress_text(0.5, 7500.0, ""), "50 %, 2 h 05 min elapsed, about 2 h 05 min left");
}

TEST(ProgressText, AnyFraction) {
  EXPECT_EQ(progress_text(-1.0, 2.0, ""), "0 %, 2 s elapsed");
  EXPECT_EQ(progress_text(7.0, 2.0, ""), "100 %, 2 s elapsed");
  EXPECT_EQ(progress_text(std::nan(""), 2.0, ""), "0 %, 2 s elapsed");
  // Not done is not 100 %.
  EXPECT_EQ(progress_text(0.9999, 2.0, "").substr(0, 4), "99 %");
}

TEST(Progress, SilentForShortRuns) {
  EXPECT_EQ(plain_output([] {
              HandClock clock;
              Progress progress(true, clock.reader());
              clock.time += 999ms;
              progress.update(0.5, "");
              progress.finish();
            }),
            "");
}

TEST(Progress, SilentWhenDisabled) {
  EXPECT_EQ(plain_output([] {
              HandClock clock;
              Progress progress(false, clock.reader());
              clock.time += 100s;
              progress.update(0.5, "");
              progress.finish();
            }),
            "");
}

TEST(Progress, PlainLinesEveryFiveSeconds) {
  const std::string text = plain_output([] {
    HandClock clock;
    Progress progress(true, clock.reader());
    for (int tenth = 1; tenth <= 160; ++tenth) {  // 16 s
      clock.time += 100ms;
      progress.update(tenth / 320.0, "detail");
    }
    progress.finish();
    progress.finish();
  });
  EXPECT_EQ(text,
            "15 %, 5 s elapsed, about 27 s left, detail\n"
            "31 %, 10 s elapsed, about 22 s left, detail\n"
            "46 %, 15 s elapsed, about 17 s left, detail\n"
            "100 %, 16 s elapsed, detail\n");
}

TEST(Progress, NoClaimOfSuccessWithoutFinish) {
  const std::string text = plain_output([] {
    HandClock clock;
    Progress progress(true, clock.reader());
    clock.time += 6s;
    progress.update(0.5, "");
  });
  EXPECT_EQ(text, "50 %, 6 s elapsed, about 6 s left\n");
}

TEST(Progress, OneRewrittenLineOnATerminal) {
  const std::string text = terminal_output([] {
    HandClock clock;
    Progress progress(true, clock.reader());
    for (int tenth = 1; tenth <= 20; ++tenth) {
      clock.time += 100ms;
      progress.update(tenth / 40.0, std::string(200, 'x'));
    }
    progress.finish();
  });
  // Every 0.2 s from 1 s to 2 s are 6 lines, and the last one; each starts over in the same row, and fits into it.
  ASSERT_EQ(occurrences(text, '\n'), 1U) << text;
  // The terminal itself writes "\n" as "\r\n".
  EXPECT_EQ(occurrences(text, '\r'), 6U + 1U + 1U) << text;
  EXPECT_NE(text.find("[######..................] 25 %, 1 s elapsed"), std::string::npos) << text;
  EXPECT_NE(text.find("[########################] 100 %, 2 s elapsed"), std::string::npos) << text;
  const std::size_t first = text.find('\r');
  const std::size_t end = text.find("\x1b[K", first);
  EXPECT_EQ(end - first - 1, 79U);
}

}  // namespace
}  // namespace weft::progress_test
