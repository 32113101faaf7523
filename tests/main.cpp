// SPDX-License-Identifier: GPL-2.0-only
// Runs the tests of a folder, or of one of its files.
//
// test_FOLDER [--file FOLDER/NAME_test.cpp] [--mpi] [GOOGLETEST OPTION...]
//   --file   only the tests of that file, below tests/
//   --mpi    MPI is initialised before and finalised after, and times of ns-3 are picoseconds; for mpirun
// Exit code: 0 all passed, 1 otherwise, also when there was nothing to run.
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <ns3/nstime.h>

#include "engine/mpi_session.hpp"
#include "tests/picoseconds.hpp"

namespace {

/// GoogleTest's filter for the tests of `file`; empty if there are none.
std::string filter_of(const std::string& file) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::string_view(test.file()).ends_with("/" + file))
        filter.append(suite.name()).append(".").append(test.name()).append(":");
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::optional<weft::MpiSession> session;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--mpi") {
      session.emplace();
      weft::begin_mpi();
      weft::count_in_picoseconds();
    } else if (word == "--file" && i + 1 < argc) {
      const std::string file = argv[++i];
      const std::string filter = filter_of(file);
      if (filter.empty()) {
        std::cerr << argv[0] << ": no test stands in a file '" << file << "'\n";
        return 1;
      }
      GTEST_FLAG_SET(filter, filter);
    } else {
      std::cerr << argv[0] << ": unknown argument '" << word << "'; it takes --file FOLDER/NAME_test.cpp and --mpi\n";
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
