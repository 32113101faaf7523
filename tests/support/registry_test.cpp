// SPDX-License-Identifier: GPL-2.0-only
// Tests of self-registration.
#include "support/basics/registry.hpp"

#include <gtest/gtest.h>

namespace weft::registry_test {
namespace {

struct Animal {
  virtual ~Animal() = default;
  virtual int legs() const = 0;
};
struct Spider : Animal {
  int legs() const override { return 8; }
};
struct Bird : Animal {
  int legs() const override { return 2; }
};
struct Stone {
  virtual ~Stone() = default;
};

const Registration<Animal, Spider> spider("spider", "eight of them");
const Registration<Animal, Bird> bird("bird", "two of them");

TEST(Registry, FindsAndMakes) {
  const auto& registry = Registry<Animal>::instance();
  ASSERT_NE(registry.find("spider"), nullptr);
  EXPECT_EQ(registry.find("spider")->make()->legs(), Spider().legs());
  EXPECT_EQ(registry.find("bird")->make()->legs(), Bird().legs());
  EXPECT_EQ(registry.find("spider")->summary, "eight of them");
  EXPECT_EQ(registry.find("cat"), nullptr);
}

TEST(Registry, MakesANewOneEachTime) {
  const auto* entry = Registry<Animal>::instance().find("bird");
  const auto one = entry->make();
  const auto other = entry->make();
  EXPECT_NE(one.get(), other.get());
}

TEST(Registry, NamesAreInAlphabeticalOrder) {
  EXPECT_EQ(Registry<Animal>::instance().names(), (std::vector<std::string>{"bird", "spider"}));
}

TEST(Registry, InterfacesDoNotMix) { EXPECT_TRUE(Registry<Stone>::instance().names().empty()); }

TEST(Registry, ASecondOwnerOfANameBreaksAContract) {
  Registry<Animal> registry;
  const Registry<Animal>::Entry entry{"two", [] { return std::make_unique<Bird>(); }};
  registry.add("bird", entry);
  EXPECT_THROW(registry.add("bird", entry), InternalError);
  EXPECT_NO_THROW(registry.add("raven", entry));
}

}  // namespace
}  // namespace weft::registry_test
