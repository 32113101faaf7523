// SPDX-License-Identifier: GPL-2.0-only
// Which of the two models the ports of a network have.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "fabric/fifo/fifo_model.hpp"
#include "fabric/queued/queued_model.hpp"

namespace weft {

/// Evaluated once per call from outside and once per epoch, never per packet.
struct PortModel {
  template <class Model>
  PortModel(std::in_place_type_t<Model> type, LocalNetwork& net) : of(type, net) {}

  std::variant<FifoModel, QueuedModel> of;

  template <class Action>
  decltype(auto) visit(Action&& action) {
    return std::visit(std::forward<Action>(action), of);
  }
  /// The result of action(queued model) where ports have queues by class; an empty result where they have none.
  template <class Action>
  auto ask_queued(Action&& action) {
    using Answer = std::decay_t<std::invoke_result_t<Action, QueuedModel&>>;
    if (QueuedModel* model = queued()) return Answer(action(*model));
    return Answer();
  }
  /// Null unless ports have queues by class.
  QueuedModel* queued() { return std::get_if<QueuedModel>(&of); }
  bool buffered() const { return std::holds_alternative<QueuedModel>(of); }
  /// Null unless hosts send frames of ns-3's stacks.
  FrameTable* frames() {
    return ask_queued([](QueuedModel& model) { return model.frames.table.get(); });
  }
};

}  // namespace weft
