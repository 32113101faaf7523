// SPDX-License-Identifier: GPL-2.0-only
// Operations in few bytes: all that they say comes back.
#include "schedule/program/packed_operation.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace weft::packed_operation_test {
namespace {

constexpr const char* long_label = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)";

Operation everything() {
  Operation operation;
  operation.kind = Operation::Kind::recv;
  operation.stream = Stream::tensor;
  operation.after = {3, 5};
  operation.after_start = {4};
  operation.not_before = Time::from_ps(11);
  operation.duration = Time::from_ps(12);
  operation.peer = Rank(7);
  operation.tag = 8;
  operation.bytes = Bytes(4096);
  operation.any_source = true;
  operation.any_tag = true;
  operation.at_most = true;
  operation.queue_pair = 9;
  operation.cpu = 10;
  operation.line = 13;
  operation.label = "grads";
  operation.phase = "forward";
  operation.group = "pipeline";
  operation.operator_name = "attention";
  operation.flops = 1.5;
  operation.slowdown = 1.25;
  operation.worker = Worker::nobody;
  return operation;
}

void expect_same(const Operation& a, const Operation& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.after, b.after);
  EXPECT_EQ(a.after_start, b.after_start);
  EXPECT_EQ(a.not_before, b.not_before);
  EXPECT_EQ(a.duration, b.duration);
  EXPECT_EQ(a.peer, b.peer);
  EXPECT_EQ(a.tag, b.tag);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.any_source, b.any_source);
  EXPECT_EQ(a.any_tag, b.any_tag);
  EXPECT_EQ(a.at_most, b.at_most);
  EXPECT_EQ(a.queue_pair, b.queue_pair);
  EXPECT_EQ(a.cpu, b.cpu);
  EXPECT_EQ(a.line, b.line);
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.operator_name, b.operator_name);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.slowdown, b.slowdown);
  EXPECT_EQ(a.worker, b.worker);
}

// A new field changes the size of an operation: it has to be packed, too.
TEST(packed_operation, all_fields_come_back) {
  EXPECT_EQ(sizeof(Operation), 248U) << "for_each_field() and this test have to have all fields";
  SharedTexts texts;
  for (const std::string& label : {std::string(), std::string("grads"), std::string(long_label)}) {
    Operation operation = everything();
    operation.label = label;
    expect_same(PackedOperation(operation, texts).operation(), operation);
  }
  expect_same(PackedOperation(Operation(), texts).operation(), Operation());
}

struct Part {
  std::string label() const { return name; }
  std::string name;
};

TEST(packed_operation, a_label_of_a_part_is_made_when_it_is_asked_for) {
  SharedTexts texts;
  Part part{"forward"};
  Operation operation = everything();
  operation.label = Label::of(part);
  const PackedOperation packed(operation, texts);
  part.name = long_label;
  EXPECT_EQ(packed.operation().label, long_label);
  EXPECT_EQ(texts.size(), 0U);
}

TEST(packed_operation, a_long_label_is_kept_once_and_as_long_as_it_is_used) {
  SharedTexts texts;
  Operation operation;
  operation.label = long_label;
  {
    PackedOperation first(operation, texts);
    PackedOperation second(operation, texts);
    EXPECT_EQ(texts.size(), 1U);
    PackedOperation third = std::move(first);
    EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): what is left of it
    second = PackedOperation();
    EXPECT_EQ(texts.size(), 1U);
    EXPECT_EQ(third.operation().label, long_label);
  }
  EXPECT_EQ(texts.size(), 0U);
}

}  // namespace
}  // namespace weft::packed_operation_test
