// SPDX-License-Identifier: GPL-2.0-only
// Every reader reads the inputs found by fuzzers and their starting inputs again: no crash, no other exception.
#include <gtest/gtest.h>

#include "tests/fuzz/targets.hpp"

namespace weft::fuzz::corpus_test {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Corpus, EveryReaderAnswersEveryFileOfItsCorpus) {
  const char* source = std::getenv("WEFT_SOURCE");
  const std::filesystem::path corpus = std::filesystem::path(source != nullptr ? source : ".") / "tests/fuzz/corpus";
  for (const auto& [name, target] : targets()) {
    std::size_t accepted = 0;  // without any the corpus would not get far into the reader
    for (const auto& entry : std::filesystem::directory_iterator(corpus / name)) {
      SCOPED_TRACE(entry.path());
      EXPECT_NO_THROW(accepted += feed(name, content_of(entry.path())) ? 1 : 0);
    }
    EXPECT_GE(accepted, 1U) << name;
  }
  // The other way round: a folder that no reader takes would be forgotten.
  for (const auto& entry : std::filesystem::directory_iterator(corpus))
    EXPECT_TRUE(targets().contains(entry.path().filename())) << entry.path();
}

TEST(Corpus, EveryReaderAnswersCutOffAndEmptyText) {
  const char* source = std::getenv("WEFT_SOURCE");
  const std::filesystem::path corpus = std::filesystem::path(source != nullptr ? source : ".") / "tests/fuzz/corpus";
  for (const auto& [name, target] : targets()) {
    EXPECT_NO_THROW(feed(name, "")) << name;
    const auto first = *std::filesystem::directory_iterator(corpus / name);
    const std::string text = content_of(first.path());
    for (std::size_t size = 0; size < text.size(); size += 7)
      EXPECT_NO_THROW(feed(name, text.substr(0, size))) << name << ", " << first.path() << ", " << size << " B";
  }
}

/// One input as tests/fuzz/found_inputs.py writes it: a backslash before n, x and two digits, or itself.
std::string input_of(const std::string& line) {
  std::string content;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      content += line[i];
    } else if (line.at(++i) == 'x') {
      content += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      content += line[i] == 'n' ? '\n' : '\\';
    }
  }
  return content;
}

TEST(Corpus, EveryReaderAnswersWhatFuzzersHaveFound) {
  const char* source = std::getenv("WEFT_SOURCE");
  const std::filesystem::path found = std::filesystem::path(source != nullptr ? source : ".") / "tests/fuzz/found";
  EXPECT_EQ(input_of(R"(a\nb\\c\x00\xff)"), std::string("a\nb\\c\0\xff", 7));
  for (const auto& [name, target] : targets()) {
    std::ifstream lines(found / (name + ".txt"));
    EXPECT_TRUE(lines.good()) << name;
    for (std::string line; std::getline(lines, line);)
      EXPECT_NO_THROW(feed(name, input_of(line))) << name << ": " << line;
  }
}

}  // namespace
}  // namespace weft::fuzz::corpus_test
