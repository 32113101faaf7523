// SPDX-License-Identifier: GPL-2.0-only
// Runs command lines of weft as tests ask for them, one after another with one start, which takes longer than most runs
// of tests, above all under mpirun (tests/weft_testing.py, `served`).
//
// many FOLDER: each process reads requests from the pipe FOLDER/RANK, so that none uses a core while it waits, until
// the pipe is closed. A request is a line of JSON: {"folder": where to run, "words": [those after `weft`], "out": file
// for standard output, "err": file for standard error}. The first process answers with the exit code, a line on
// standard output.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>
#include <ns3/nstime.h>
#include <unistd.h>

#include "app/commands/run_command_line.hpp"
#include "engine/mpi_session.hpp"
#include "support/system/interrupt.hpp"

namespace {

void write_to(const std::string& path, int stream) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || dup2(file, stream) < 0) {
    std::perror(path.c_str());
    std::_Exit(1);
  }
  close(file);
}

int run(const nlohmann::json& request, weft::ProcessGroup& group, MPI_Comm failures) {
  std::filesystem::current_path(request.at("folder").get<std::string>());
  write_to(request.at("out"), STDOUT_FILENO);
  write_to(request.at("err"), STDERR_FILENO);
  std::vector<std::string> words = request.at("words");
  words.insert(words.begin(), "weft");
  std::vector<const char*> line;
  for (const std::string& word : words) line.push_back(word.c_str());
  weft::end_at_once_on_interrupts();
  const int code = weft::run_command_line(static_cast<int>(line.size()), line.data(), group, failures);
  std::cout.flush();
  std::cout.clear();
  std::fflush(nullptr);
  group.sleep_until_all_arrive();  // with all of their text
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "many: expected the folder of its pipes\n";
    return 2;
  }
  const weft::MpiSession session;
  ns3::Time::SetResolution(ns3::Time::PS);
  weft::ProcessGroup group = session.processes();
  MPI_Comm failures = MPI_COMM_NULL;
  if (group.size() > 1) MPI_Comm_dup(group.communicator(), &failures);
  std::ifstream requests(fmt::format("{}/{}", argv[1], group.rank()));
  const int answers = dup(STDOUT_FILENO);
  for (std::string line; std::getline(requests, line);) {
    const std::string code = fmt::format("{}\n", run(nlohmann::json::parse(line), group, failures));
    if (group.rank() == 0 && write(answers, code.data(), code.size()) < 0) return 1;
  }
  return 0;
}
