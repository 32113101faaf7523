// SPDX-License-Identifier: GPL-2.0-only
// Nodes of a Chakra trace in the order of their dependencies, whatever that of the file is, and the set of their ids.
#include "workloads/chakra/chakra_order.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::chakra_order_test {
namespace {

/// Nodes from a list.
class ListStream : public ChakraStream {
 public:
  explicit ListStream(std::vector<ChakraNode> nodes) : nodes_(nodes.begin(), nodes.end()) {}
  bool next(ChakraNode& node) override {
    if (nodes_.empty()) return false;
    node = nodes_.front();
    nodes_.pop_front();
    return true;
  }

 private:
  std::deque<ChakraNode> nodes_;
};

ChakraNode node_of(std::uint64_t id, std::vector<std::uint64_t> data, std::vector<std::uint64_t> control = {}) {
  ChakraNode node;
  node.id = id;
  node.data_dependencies = std::move(data);
  node.control_dependencies = std::move(control);
  return node;
}

struct Given {
  std::vector<std::uint64_t> ids, numbers;
  std::vector<std::vector<std::uint64_t>> after;
};

Given order_of(std::vector<ChakraNode> nodes, ChakraOrder::Options options = {}) {
  ChakraOrder order(std::make_unique<ListStream>(std::move(nodes)), std::move(options), "x.et");
  Given given;
  ChakraNode node;
  std::uint64_t number = 0;
  for (std::vector<std::uint64_t> after; order.next(node, number, after);) {
    given.ids.push_back(node.id);
    given.numbers.push_back(number);
    given.after.push_back(after);
  }
  return given;
}

TEST(ChakraOrder, numbers_are_the_ids_if_these_increase) {
  const Given given = order_of({node_of(3, {}), node_of(5, {3}), node_of(9, {3, 5, 5}, {3})});
  EXPECT_EQ(given.ids, (std::vector<std::uint64_t>{3, 5, 9}));
  EXPECT_EQ(given.numbers, given.ids);
  EXPECT_EQ(given.after[2], (std::vector<std::uint64_t>{3, 5}));
}

TEST(ChakraOrder, who_depends_on_a_higher_id_gets_a_number_behind_it) {
  const Given given = order_of({node_of(1, {8}), node_of(8, {}), node_of(2, {1})});
  EXPECT_EQ(given.ids, (std::vector<std::uint64_t>{8, 1, 2}));
  EXPECT_EQ(given.numbers, (std::vector<std::uint64_t>{8, 9, 10}));
  EXPECT_EQ(given.after[2], (std::vector<std::uint64_t>{9}));
}

TEST(ChakraOrder, the_window_sorts_and_bounds_what_is_at_hand) {
  EXPECT_EQ(order_of({node_of(3, {}), node_of(1, {}), node_of(2, {})}).ids, (std::vector<std::uint64_t>{1, 2, 3}));
  ChakraOrder::Options one;
  one.window = 1;
  EXPECT_EQ(order_of({node_of(3, {}), node_of(1, {}), node_of(2, {})}, one).ids, (std::vector<std::uint64_t>{3, 1, 2}));
  ChakraOrder::Options few;
  few.farthest = 2;
  const std::string message = complaint([&] {
    order_of({node_of(1, {9}), node_of(2, {9}), node_of(3, {9}), node_of(9, {})}, few);
  });
  EXPECT_NE(message.find("x.et: node 1 ''"), std::string::npos) << message;
  EXPECT_NE(message.find("next 2 nodes"), std::string::npos) << message;
}

TEST(ChakraOrder, random_graphs_in_random_order) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t count = 1 + random() % 60;
    std::vector<std::uint64_t> ids;
    for (std::uint64_t i = 0; i < count; ++i) ids.push_back(random() % 5 == 0 ? random() : i * 3);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::shuffle(ids.begin(), ids.end(), random);
    std::vector<ChakraNode> nodes;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<std::uint64_t> data, control;
      for (std::size_t k = 0; k < i && k < 3; ++k) (k % 2 == 0 ? data : control).push_back(ids[random() % i]);
      nodes.push_back(node_of(ids[i], data, control));
    }
    std::shuffle(nodes.begin(), nodes.end(), random);
    const Given given = order_of(nodes);
    ASSERT_EQ(given.ids.size(), nodes.size());
    std::set<std::uint64_t> numbers;
    for (std::size_t i = 0; i < given.ids.size(); ++i) {
      EXPECT_TRUE(i == 0 || given.numbers[i - 1] < given.numbers[i]);
      for (const std::uint64_t before : given.after[i]) EXPECT_TRUE(numbers.contains(before));
      numbers.insert(given.numbers[i]);
    }
  }
}

ChakraSurvey survey_of(std::vector<ChakraNode> nodes, bool control = true) {
  ListStream stream(std::move(nodes));
  return survey_chakra(stream, control, "x.et", [](const ChakraNode&) {});
}

// A file in order is read without looking ahead, and gives the same.
TEST(ChakraOrder, of_a_file_in_order_needs_no_window) {
  EXPECT_TRUE(survey_of({node_of(3, {}), node_of(5, {3}), node_of(9, {3, 5}, {7})}).in_order);
  EXPECT_FALSE(survey_of({node_of(5, {}), node_of(3, {})}).in_order);
  EXPECT_FALSE(survey_of({node_of(3, {5}), node_of(5, {})}).in_order);
  EXPECT_FALSE(survey_of({node_of(3, {}, {5}), node_of(5, {})}).in_order);
  EXPECT_TRUE(survey_of({node_of(3, {}, {5}), node_of(5, {})}, false).in_order);
  std::mt19937 random(11);
  int in_order = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<ChakraNode> nodes;
    for (std::uint64_t i = 0, id = 0; i < 50; ++i) {
      id += 1 + random() % 3;
      std::vector<std::uint64_t> data, control;
      for (std::size_t k = 0; k < nodes.size() && k < 3; ++k)
        (k % 2 == 0 ? data : control).push_back(nodes[random() % nodes.size()].id);
      nodes.push_back(node_of(id, data, control));
    }
    if (round % 2 == 1) std::swap(nodes[random() % 50], nodes[random() % 50]);
    if (!survey_of(nodes).in_order) continue;
    ++in_order;
    ChakraOrder::Options one;
    one.window = 1;
    const Given narrow = order_of(nodes, one), wide = order_of(nodes);
    EXPECT_EQ(narrow.ids, wide.ids);
    EXPECT_EQ(narrow.numbers, wide.numbers);
    EXPECT_EQ(narrow.after, wide.after);
  }
  EXPECT_GE(in_order, 200);
}

// 120 bytes at most, no character cut in two, "?" for what cannot be printed.
TEST(ChakraNode, has_a_name_that_can_be_printed) {
  const auto printed = [](std::string name) {
    ChakraNode node;
    node.name = std::move(name);
    return printable_name(node);
  };
  EXPECT_EQ(printed("void gemm<float>"), "void gemm<float>");
  EXPECT_EQ(printed("a\nb\x7f\xff"
                    "c"),
            "a?b??c");
  EXPECT_EQ(printed("\xc3\xa4 \xe2\x86\x92 b"), "\xc3\xa4 \xe2\x86\x92 b");
  EXPECT_EQ(printed(std::string(120, 'x')), std::string(120, 'x'));
  EXPECT_EQ(printed(std::string(121, 'x')), std::string(120, 'x') + "...");
  EXPECT_EQ(printed(std::string(119, 'x') + "\xc3\xa4"), std::string(119, 'x') + "...");
  EXPECT_EQ(printed("\xc3\xa4" + std::string(118, 'x')), "\xc3\xa4" + std::string(118, 'x'));
  EXPECT_EQ(printed("\xc3\xa4" + std::string(119, 'x')), "\xc3\xa4" + std::string(118, 'x') + "...");
}

TEST(IdSet, is_a_set_of_numbers) {
  std::mt19937_64 random(3);
  IdSet set;
  std::set<std::uint64_t> expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t id = i % 4 == 0 ? random() : random() % 6000;
    EXPECT_EQ(set.insert(id), expected.insert(id).second) << id;
  }
  for (std::uint64_t id = 0; id < 7000; ++id) EXPECT_EQ(set.contains(id), expected.contains(id)) << id;
  for (std::uint64_t id = 0; id < 6000; ++id) EXPECT_EQ(set.insert(id), expected.insert(id).second) << id;
  for (std::uint64_t id = 0; id < 6600; ++id) EXPECT_EQ(set.contains(id), expected.contains(id)) << id;
}

TEST(ByteSource, plain_bytes_are_taken_and_looked_at) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i % 251);
  const TemporaryFile file("bytes", text);
  ByteSource source(file.path());
  EXPECT_EQ(source.peek(40), 40);
  EXPECT_EQ(source.get(), 0);
  std::string read(1, '\0');
  source.read(read, 99'000);
  EXPECT_EQ(source.peek(63), static_cast<unsigned char>(text[99'064]));
  EXPECT_EQ(source.taken(), 99'001U);
  source.read(read, 5'000);
  EXPECT_EQ(read, text);
  EXPECT_EQ(source.get(), ByteSource::end);
  EXPECT_EQ(source.peek(), ByteSource::end);
}

}  // namespace
}  // namespace weft::test::chakra_order_test
