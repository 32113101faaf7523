// SPDX-License-Identifier: GPL-2.0-only
#include "support/system/python.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/basics/error.hpp"
#include "support/system/data_directory.hpp"
#include "support/system/interrupt.hpp"

namespace weft {

int run_script(const std::string& script, const std::vector<std::string>& words) {
  const char* const interpreter = "/usr/bin/python3";
  const std::string path = (data_directory("scripts") / script).string();
  std::vector<const char*> line = {interpreter, "-B", path.c_str()};
  for (const std::string& word : words) line.push_back(word.c_str());
  line.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, interpreter, nullptr, nullptr, const_cast<char**>(line.data()), environ);
  if (failed != 0) throw EnvironmentError(fmt::format("cannot start '{}': {}", interpreter, std::strerror(failed)));
  end_with_this_process(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw EnvironmentError(fmt::format("cannot wait for '{}': {}", interpreter, std::strerror(errno)));
  end_with_this_process(0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace weft
