// SPDX-License-Identifier: GPL-2.0-only
// What fuzzers have found and what they start from goes through every reader again: no crash, no other exception.
#include <gtest/gtest.h>

#include "tests/fuzz/targets.hpp"

namespace weft::fuzz {
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

}  // namespace
}  // namespace weft::fuzz
