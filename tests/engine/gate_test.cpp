// SPDX-License-Identifier: GPL-2.0-only
// Gates between processes: no process passes early, every process passes, and waiting processes sleep.
// Also in Release: threads and processes meet at another pace there, and the compiler orders more
#include "engine/gate.hpp"

#include <atomic>
#include <chrono>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::gate_test {
namespace {

// The shared memory of a test's processes.
struct Common {
  Gate gate;
  std::atomic<std::uint32_t> passed = 0;   // by all, at all openings
  std::atomic<std::uint32_t> written = 0;  // before the gate opens
  std::atomic<std::uint32_t> early = 0;    // who passed and did not find what was written before
};

class GateTest : public testing::Test {
 protected:
  void SetUp() override {
    void* memory = mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    common_ = new (memory) Common;
  }
  void TearDown() override { munmap(common_, sizeof(Common)); }

  /// Runs `body` in a separate process, which ends after it.
  template <class Body>
  static pid_t start(Body body) {
    const pid_t child = fork();
    if (child != 0) return child;
    body();
    _exit(0);
  }
  static void expect_end(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  Common* common_ = nullptr;
};

// More processes than cores here, so that some arrive before and some after the opening.
TEST_F(GateTest, AllPassEachOpeningAndNobodyEarly) {
  constexpr std::uint32_t openings = 5000;
  constexpr std::uint32_t processes = 4;
  // Numbers run over their end: they count modulo 2^32.
  constexpr std::uint32_t before = 0U - openings / 2;
  common_->gate.open(before);
  std::vector<pid_t> children;
  for (std::uint32_t p = 0; p < processes; ++p)
    children.push_back(start([this] {
      for (std::uint32_t n = 1; n <= openings; ++n) {
        common_->gate.wait(before + n);
        if (common_->written != n) ++common_->early;
        ++common_->passed;
      }
    }));
  for (std::uint32_t n = 1; n <= openings; ++n) {
    common_->written = n;
    common_->gate.open(before + n);
    while (common_->passed < n * processes) std::this_thread::yield();
  }
  for (const pid_t child : children) expect_end(child);
  EXPECT_EQ(common_->early, 0);
  EXPECT_EQ(common_->passed, openings * processes);
}

TEST_F(GateTest, WhoWaitsSleeps) {
  const pid_t child = start([this] { common_->gate.wait(1); });
  // "pid (name) state ...", proc(5): S is a process that sleeps, R one that has or wants a processor.
  char state = 'R';
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (state != 'S' && std::chrono::steady_clock::now() < deadline) {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string text;
    std::getline(file, text);
    state = text.at(text.rfind(')') + 2);
    std::this_thread::yield();
  }
  EXPECT_EQ(state, 'S');
  common_->gate.open(1);
  expect_end(child);
}

TEST_F(GateTest, AnOpenGateIsPassedAtOnce) {
  common_->gate.wait(0);
  common_->gate.open(1);
  common_->gate.wait(1);
}

}  // namespace
}  // namespace weft::gate_test
