// SPDX-License-Identifier: GPL-2.0-only
// `weft serve`: many command lines with one start, which takes longer than a small run, above all under mpirun.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

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

void enter(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::current_path(folder, failed);
  if (failed) throw EnvironmentError(fmt::format("cannot enter '{}': {}", folder.string(), failed.message()));
}

/// What a request needs before its command: its words, its folder, and its files. On one process of several it may
/// fail.
class Prepared {
 public:
  Prepared(const std::filesystem::path& start, const std::string& pipe, int number, const std::string& text) {
    try {
      request_ = read_request(pipe, number, text);
      enter(start / request_.folder);
      out_.emplace(request_.out, STDOUT_FILENO);
      err_.emplace(request_.err, STDERR_FILENO);
    } catch (const InputError& error) {
      fail(error, exit_input);
    } catch (const EnvironmentError& error) {
      fail(error, exit_environment);
    }
  }
  int code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& words() const { return request_.words; }

 private:
  void fail(const std::exception& error, int code) {
    err_.reset();
    out_.reset();
    message_ = error.what();
    code_ = code;
  }

  Request request_;
  std::optional<Redirection> out_, err_;
  std::string message_;
  int code_ = exit_done;
};

int run(const std::vector<std::string>& command, ProcessGroup& group, ProcessGroup& failures) {
  std::vector<const char*> words;
  for (const std::string& word : command) words.push_back(word.c_str());
  const int code = run_command_line(static_cast<int>(words.size()), words.data(), group, failures);
  std::cout.flush();
  std::cout.clear();  // for the next one, if this one could not write
  std::fflush(nullptr);
  group.sleep_until_all_arrive();  // with all of their text
  return code;
}

/// The exit code of a line. If a process cannot do its part, no process runs the command.
int answer(const std::filesystem::path& start, const std::string& pipe, int number, const std::string& text,
           ProcessGroup& group, ProcessGroup& failures) {
  const Prepared prepared(start, pipe, number, text);
  const auto worst = static_cast<int>(group.maximum(prepared.code()));
  if (worst == exit_done) return run(prepared.words(), group, failures);
  const std::int64_t teller = group.minimum(prepared.code() == worst ? group.rank() : group.size());
  if (teller == group.rank()) say(prepared.message());
  return worst;
}

}  // namespace

int serve_command(const CommandLine& line, ProcessGroup& group, ProcessGroup& failures) {
  const std::string pipe = fmt::format("{}/{}", line.words.at(0), group.rank());
  std::ifstream requests(pipe);
  if (!requests)
    throw InputError(SourceLine{pipe, 0}, "cannot be read; expected a pipe for each process, by its number");
  const std::filesystem::path start = std::filesystem::current_path();
  int number = 0;
  for (std::string text; std::getline(requests, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const int code = answer(start, pipe, number, text, group, failures);
    end_at_once_on_interrupts();  // there is nothing to finish
    if (group.rank() == 0 && !(std::cout << code << std::endl))
      throw EnvironmentError("cannot write to standard output");
    if (code == exit_interrupted) return code;
  }
  return exit_done;
}

}  // namespace weft
