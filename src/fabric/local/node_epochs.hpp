// SPDX-License-Identifier: GPL-2.0-only
// Advancing by epochs: which nodes run when, and asking for their memory ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "fabric/local/local_network.hpp"
#include "fabric/packet/fetching.hpp"
#include "support/system/interrupt.hpp"

namespace weft {

/// Runs the nodes of a process epoch by epoch. Within an epoch no node can concern another one, so that their order
/// tells nothing. `Model`: FifoModel or QueuedModel.
class NodeEpochs {
 public:
  explicit NodeEpochs(LocalNetwork& net);

  /// Other processes run on this core between two epochs, and leave nothing of this one in its caches.
  void expect_cold_caches() { cache_ = 0; }
  /// Called as soon as no packet before the end of advance() will leave the process any more; null: not called.
  void set_boundary_done(std::function<void()> done) { boundary_done_ = std::move(done); }

  template <class Model>
  void advance(Model& model, Time end);
  /// Processes all events at a node before `end`.
  template <class Model>
  void run_node(Model& model, std::uint32_t local, Time end);

  /// Time of the next event here, or of the next arrival of a packet on its way to a neighbour; a multiple of the
  /// epoch.
  Time next_time() const;
  std::uint64_t epochs() const { return epochs_; }
  /// Events of the busiest node of each epoch, since the last call.
  std::uint64_t take_critical_events() { return std::exchange(critical_events_, 0); }

 private:
  static constexpr Time never = Time::max();

  template <class Model>
  std::uint64_t run_epoch(Model& model, std::size_t interior, Time epoch_end);
  template <class Model>
  void fetch_next(const Model& model, std::size_t left, Time epoch_end) const;
  std::size_t put_boundary_last();
  void fetch_arrivals(const LocalNode& node, Time epoch_end) const;
  void fetch_later_arrivals(const LocalNode& node, Time epoch_end) const;

  LocalNetwork& net_;
  std::vector<std::uint32_t> nodes_;  // of the running epoch
  std::size_t cache_;                 // bytes that stay in the processor's second cache from one epoch to the next
  std::uint64_t epochs_ = 0;
  std::uint64_t critical_events_ = 0;
  std::function<void()> boundary_done_;
};

template <class Model>
void NodeEpochs::advance(Model& model, Time end) {
  while (true) {
    const std::uint64_t epoch = net_.clock.calendar.first();
    if (epoch == NodeCalendar::none) return;
    const Time start = static_cast<std::int64_t>(epoch) * net_.clock.epoch_length();
    if (start >= end) return;
    const Time epoch_end = std::min(start + net_.clock.epoch_length(), end);
    net_.clock.calendar.take(epoch, nodes_);
    ++epochs_;
    const std::size_t interior = boundary_done_ && epoch_end == end ? put_boundary_last() : 0;
    critical_events_ += run_epoch(model, interior, epoch_end);
    if (epoch_end == end) return;
  }
}

// Returns the events of the busiest node.
template <class Model>
std::uint64_t NodeEpochs::run_epoch(Model& model, std::size_t interior, Time epoch_end) {
  std::uint64_t busiest = 0;
  net_.fetches_ahead = nodes_.size() > cache_ / Model::touched_bytes;
  // Backwards: the nodes that were scheduled last have been sent to last, and are in the cache the most likely.
  for (std::size_t left = nodes_.size(); left-- > 0;) {
    look_for_interrupt();  // epochs may be long: there is no bound on the delay of links
    if (left + 1 == interior && next_time() == net_.clock.epoch_start(epoch_end)) boundary_done_();
    if (net_.fetches_ahead) fetch_next(model, left, epoch_end);
    const std::uint32_t local = nodes_[left];
    const std::uint64_t events = net_.clock.events;
    run_node(model, local, epoch_end);
    busiest = std::max(busiest, net_.clock.events - events);
    const LocalNode& node = net_.nodes.all[local];
    const Time next = std::min(net_.next_arrival(node), model.next_event(node));
    if (next != never) net_.clock.calendar.schedule(local, net_.clock.epoch_number(next));
  }
  return busiest;
}

template <class Model>
void NodeEpochs::run_node(Model& model, std::uint32_t local, Time end) {
  net_.clock.running = local;
  model.run(net_.nodes.all[local], end);
  net_.blocks.reuse_retired();
  net_.clock.running = NodeClock::nobody;
}

// A large machine's state comes from memory once per epoch, in three steps because each needs what the one before has
// brought: of the fourth node from here its queues and its host; of the second one its ports, the first packets and
// what the host points to; of the next one the packets after those. Nodes take long enough to hide most of that.
template <class Model>
void NodeEpochs::fetch_next(const Model& model, std::size_t left, Time epoch_end) const {
  if (left >= 4) {
    const LocalNode& node = net_.nodes.all[nodes_[left - 4]];
    fetch(&net_.inputs[node.first_port], &net_.inputs[node.first_port] + node.ports);
    fetch(&net_.heads[node.first_port], &net_.heads[node.first_port] + node.ports);
    model.fetch_first(node);
  }
  if (left >= 2) {
    const LocalNode& node = net_.nodes.all[nodes_[left - 2]];
    fetch(&net_.outputs[node.first_port], &net_.outputs[node.first_port] + node.ports);
    fetch_arrivals(node, epoch_end);
    model.fetch_second(node);
  }
  if (left >= 1) {
    const LocalNode& node = net_.nodes.all[nodes_[left - 1]];
    fetch_later_arrivals(node, epoch_end);
    model.fetch_third(node);
  }
}

}  // namespace weft
