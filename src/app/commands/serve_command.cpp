// SPDX-License-Identifier: GPL-2.0-only
// `weft serve`: many command lines with one start, which takes longer than a small run, above all under mpirun.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/commands/commands.hpp"
#include "app/commands/run_command_line.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"

namespace weft {
namespace {

struct Request {
  std::string folder, out, err;
  std::vector<std::string> words;
};

Request read_request(const std::string& pipe, int number, const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Request request{json.at("folder"), json.at("out"), json.at("err"), json.at("words")};
    request.words.insert(request.words.begin(), "weft");
    if (request.words.size() > 1 && request.words[1] == "serve")
      throw InputError(SourceLine{pipe, number}, "found the command 'serve'; expected another one");
    return request;
  } catch (const nlohmann::json::exception& error) {
    throw InputError(
        SourceLine{pipe, number},
        fmt::format("expected {{\"folder\": ..., \"words\": [...], \"out\": ..., \"err\": ...}}: {}", error.what()));
  }
}

/// In its scope, what this process writes to `stream` is added to the file.
class Redirection {
 public:
  Redirection(const std::string& path, int stream) : stream_(stream), before_(fcntl(stream, F_DUPFD_CLOEXEC, 0)) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0 || dup2(file, stream) < 0)
      throw EnvironmentError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
    close(file);
  }
  ~Redirection() {
    dup2(before_, stream_);
    close(before_);
  }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;

 private:
  int stream_;
  int before_;
};

int run(const Request& request, ProcessGroup& group, ProcessGroup& failures) {
  std::error_code failed;
  std::filesystem::current_path(request.folder, failed);
  if (failed) throw EnvironmentError(fmt::format("cannot enter '{}': {}", request.folder, failed.message()));
  const Redirection out(request.out, STDOUT_FILENO);
  const Redirection err(request.err, STDERR_FILENO);
  std::vector<const char*> words;
  for (const std::string& word : request.words) words.push_back(word.c_str());
  const int code = run_command_line(static_cast<int>(words.size()), words.data(), group, failures);
  std::cout.flush();
  std::cout.clear();  // for the next one, if this one could not write
  std::fflush(nullptr);
  group.sleep_until_all_arrive();  // with all of their text
  return code;
}

}  // namespace

int serve_command(const CommandLine& line, ProcessGroup& group, ProcessGroup& failures) {
  const std::string pipe = fmt::format("{}/{}", line.words.at(0), group.rank());
  std::ifstream requests(pipe);
  if (!requests)
    throw InputError(SourceLine{pipe, 0}, "cannot be read; expected a pipe for each process, by its number");
  int number = 0;
  for (std::string text; std::getline(requests, text);) {
    const int code = run(read_request(pipe, ++number, text), group, failures);
    end_at_once_on_interrupts();  // there is nothing to finish
    if (group.rank() == 0 && !(std::cout << code << std::endl))
      throw EnvironmentError("cannot write to standard output");
    if (code == exit_interrupted) return code;
  }
  return exit_done;
}

}  // namespace weft
