// SPDX-License-Identifier: GPL-2.0-only
#include "runtime/execution/live_operations.hpp"

#include <utility>

#include <fmt/format.h>

#include "units/text.hpp"

namespace weft {

void LiveOperation::keep(Operation& operation) {
  details = std::make_unique<OperationDetails>();
  details->operation = std::move(operation);
}

void LiveOperation::pack(Operation& operation, SharedTexts& texts) {
  packed_ = PackedOperation(operation, texts);
  call_ = std::move(operation.call);
  details.reset();
}

void LiveOperation::unpack() {
  if (details != nullptr) return;
  details = std::make_unique<OperationDetails>();
  details->operation = packed_operation();
  packed_ = PackedOperation();
  call_.reset();
}

Operation LiveOperation::packed_operation() const {
  Operation operation = packed_.operation();
  operation.id = turn.id;
  operation.call = call_;
  return operation;
}

std::string LiveOperation::describe() const {
  return details != nullptr ? describe(details->operation) : describe(packed_operation());
}

std::string LiveOperation::describe(const Operation& operation) const {
  std::string text = fmt::format("operation {}", operation.id);
  if (!operation.label.empty()) text += fmt::format(" '{}'", operation.label.text());
  if (operation.line != 0) text += fmt::format(" (line {})", operation.line);
  switch (operation.kind) {
    case Operation::Kind::compute:
      text += ", compute of " + to_text(operation.duration);
      break;
    case Operation::Kind::send:
      text += fmt::format(", send of {} to rank {}, tag {}", to_text(operation.bytes), operation.peer.value(),
                          operation.tag);
      break;
    case Operation::Kind::recv:
      text += fmt::format(", recv of {} from {}, {}", to_text(operation.bytes),
                          operation.any_source ? "any rank" : fmt::format("rank {}", operation.peer.value()),
                          operation.any_tag ? "any tag" : fmt::format("tag {}", operation.tag));
      break;
    case Operation::Kind::collective:
      text += fmt::format(", {} number {}", to_text(operation.call->kind), operation.call->id);
      break;
  }
  if (unfinished > 0)
    return text + fmt::format(": waits for {} operation{} before it", unfinished, unfinished == 1 ? "" : "s");
  if (!started) return text + ": waits for its stream or communicator";
  if (details->collective) return text + ": " + details->collective->waiting();
  return text + (operation.kind == Operation::Kind::recv ? ": no such message has come" : ": has not completed");
}

}  // namespace weft
