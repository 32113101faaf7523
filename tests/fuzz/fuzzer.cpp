// SPDX-License-Identifier: GPL-2.0-only
// The fuzzer of one reader: compiled once for each name in targets.hpp (WEFT_FUZZ_TARGET), with libFuzzer's main.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzz::feed(WEFT_FUZZ_TARGET, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
