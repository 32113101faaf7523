// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ideal/loggp_network.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engine/process_group.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/error.hpp"
#include "support/system/interrupt.hpp"

namespace weft {

LogGpNetwork::LogGpNetwork(const Topology& topology, const Partition& partition, int process,
                           const NetworkParameters& parameters)
    : parameters_(parameters), model_(parameters.loggp) {
  const ClusterGraph& graph = topology.graph;
  for (const NodeId host : graph.hosts())
    if (partition.owner[host.value()] == process) hosts_.push_back(host);
  counters_ = counters_of_links(graph, partition, process);
  WEFT_EXPECT(hosts_.empty() || hosts_.size() == graph.host_count(), "process {} has {} of {} hosts", process,
              hosts_.size(), graph.host_count());
  queue_pairs_.resize(hosts_.size());
  messages_of_host_.resize(hosts_.size());
}

std::uint32_t LogGpNetwork::add_item(Item item) {
  if (free_item_ == no_slot) {
    items_.push_back(std::move(item));
    return static_cast<std::uint32_t>(items_.size() - 1);
  }
  const std::uint32_t slot = free_item_;
  free_item_ = items_[slot].next;
  items_[slot] = std::move(item);
  return slot;
}

void LogGpNetwork::release_item(std::uint32_t slot) {
  items_[slot].next = free_item_;
  free_item_ = slot;
}

// Schedules an event of a rank; events of one time keep the order of the calls.
void LogGpNetwork::tell(Time time, Kind kind, Item item) {
  if (static_cast<std::uint64_t>(time.ps()) >= static_cast<std::uint64_t>(Time::limit().ps())) [[unlikely]]
    throw TimeLimitError("messages take too long");
  due_.push({time, false, {0, 0, 0, turn_++}, kind, add_item(std::move(item))});
}

void LogGpNetwork::ask(Time time, const Stamp& stamp, Kind kind, std::uint32_t item) {
  if (static_cast<std::uint64_t>(time.ps()) >= static_cast<std::uint64_t>(Time::limit().ps())) [[unlikely]]
    throw TimeLimitError("messages take too long");
  due_.push({time, true, stamp, kind, item});
}

LogGpNetwork::Stamp LogGpNetwork::stamp(const ProcessorRequest& wanted) {
  return {wanted.cause > 0 ? wanted.cause : cause_, std::uint64_t{1} + wanted.rank,
          static_cast<std::uint8_t>(wanted.kind), turn_++};
}

Time LogGpNetwork::cost(Time fixed, Time per_byte, Bytes bytes) const {
  return bounded_sum(fixed, bounded_product(std::max<std::int64_t>(bytes.count(), 1) - 1, per_byte));
}

Time LogGpNetwork::gap(Bytes bytes) const { return cost(model_.gap, model_.gap_per_byte, bytes); }

std::uint32_t LogGpNetwork::open_queue_pair(NodeId host, NodeId destination) {
  queue_pairs_[host].push_back(destination);
  return static_cast<std::uint32_t>(queue_pairs_[host].size() - 1);
}

void LogGpNetwork::set_timer(NodeId host, Time at, std::uint64_t token) {
  Item item;
  item.host = host;
  item.token = token;
  tell(at, Kind::timer, std::move(item));
}

void LogGpNetwork::send_credit(NodeId /*host*/, Time now, NodeId to, std::uint32_t queue_pair, Time late) {
  Item item;
  item.host = to;
  item.queue_pair = queue_pair;
  item.late = late;
  tell(bounded_sum(now, model_.latency), Kind::credit, std::move(item));
}

void LogGpNetwork::request(NodeId host, Time now, const ProcessorRequest& wanted) {
  Item item;
  item.host = host;
  item.request = wanted;
  Clocks& own = clocks(wanted.rank);
  Time time = std::max(now, own.processors[wanted.cpu]);
  if (wanted.kind == ProcessorRequest::Kind::send) time = std::max(time, own.senders[wanted.nic]);
  const Kind kind = wanted.kind == ProcessorRequest::Kind::send   ? Kind::send
                    : wanted.kind == ProcessorRequest::Kind::recv ? Kind::recv
                                                                  : Kind::compute;
  ask(time, stamp(wanted), kind, add_item(std::move(item)));
}

// A send of the program has been granted before; a slice of a collective asks now.
std::uint64_t LogGpNetwork::post(NodeId host, std::uint32_t queue_pair, Time now, Message message,
                                 std::uint64_t token) {
  message.id = message_id(host, messages_of_host_[host]++);
  message.source = host;
  message.token = token;
  message.destination = queue_pairs_[host][queue_pair];
  message.queue_pair = queue_pair;
  message.issued = now;
  message.packets = 1;
  const Time rest = std::max(cost(model_.overhead, model_.overhead_per_byte, message.bytes),
                             cost(model_.overhead, model_.gap_per_byte, message.bytes));
  message.ideal = bounded_sum(model_.overhead + model_.latency, rest);
  ++sent_;
  if (granted_ != no_slot) {
    const ProcessorRequest granted = items_[granted_].request;
    granted_ = no_slot;
    send(message, granted.cpu, granted.nic, now);
    return message.id;
  }
  Item item;
  item.host = host;
  item.is_slice = true;
  item.request.kind = ProcessorRequest::Kind::send;
  item.request.rank = message.source_rank;
  item.message = message;
  const Clocks& own = clocks(message.source_rank);
  const auto free = [](const std::map<std::uint32_t, Time>& of) {
    const auto found = of.find(0);
    return found == of.end() ? Time() : found->second;
  };
  const Time time = std::max({now, free(own.processors), free(own.senders)});
  ask(time, stamp(item.request), Kind::send, add_item(std::move(item)));
  return message.id;
}

void LogGpNetwork::advance(Time end) {
  while (!due_.empty() && due_.top().time < end) {
    look_for_interrupt();  // windows may be long
    const Event event = due_.top();
    due_.pop();
    now_ = event.time;
    ++events_;
    handle(event);
  }
}

void LogGpNetwork::handle(const Event& event) {
  if (event.asks) return handle_asking(event);
  const Item item = std::move(items_[event.item]);
  release_item(event.item);
  // An item that ends now has made others ready when it began.
  cause_ = item.cause > 0 ? item.cause : events_;
  const Time now = event.time;
  if (event.kind == Kind::timer) return client_->on_timer(item.host, now, item.token);
  if (event.kind == Kind::sent) return client_->on_sent(item.host, now, item.token);
  if (event.kind == Kind::credit) return client_->on_credit(item.host, now, item.queue_pair, item.late);
  ++delivered_;
  client_->on_message(item.message.destination, now, item.message);
}

void LogGpNetwork::handle_asking(const Event& event) {
  switch (event.kind) {
    case Kind::send:
      return begin_send(event);
    case Kind::recv:
      return begin_recv(event);
    case Kind::compute:
      return begin_compute(event);
    default:
      return arrive(event);
  }
}

/// True if the resource is not free before a later time: then the event asks again, without losing its turn.
bool LogGpNetwork::wait_for(const Event& event, Time free) {
  if (free <= event.time) return false;
  ask(free, event.stamp, event.kind, event.item);
  return true;
}

void LogGpNetwork::grant(const Event& event) {
  cause_ = events_;
  client_->on_timer(items_[event.item].host, event.time, items_[event.item].request.token | ProcessorRequest::granted);
}

void LogGpNetwork::begin_send(const Event& event) {
  const ProcessorRequest wanted = items_[event.item].request;
  Clocks& own = clocks(wanted.rank);
  if (wait_for(event, std::max(own.processors[wanted.cpu], own.senders[wanted.nic]))) return;
  if (items_[event.item].is_slice) {
    cause_ = events_;
    const Message message = items_[event.item].message;
    release_item(event.item);
    return send(message, wanted.cpu, wanted.nic, event.time);
  }
  granted_ = event.item;
  grant(event);
  WEFT_EXPECT(granted_ == no_slot, "rank {} has not sent what it asked for", wanted.rank);
  release_item(event.item);
}

void LogGpNetwork::send(const Message& message, std::uint32_t cpu, std::uint32_t nic, Time now) {
  Clocks& own = clocks(message.source_rank);
  const Time free = now + cost(model_.overhead, model_.overhead_per_byte, message.bytes);
  own.processors[cpu] = free;
  own.senders[nic] = now + gap(message.bytes);
  Item item;
  item.host = message.destination;
  item.request.kind = ProcessorRequest::Kind::recv;
  item.request.rank = message.destination_rank;
  item.request.cpu = cpu;
  item.request.nic = nic;
  item.message = message;
  item.message.ahead = now - message.issued;
  item.begun = free;
  const Stamp own_stamp{cause_, 0, 0, turn_++};
  ask(now + model_.overhead + model_.latency, own_stamp, Kind::arrive, add_item(std::move(item)));
  // Eager: complete with its processor time. A rendezvous is complete when it is matched with its recv, a one-sided
  // write when its target has it.
  if (message.notify == 0 || message.one_sided != 0 || rendezvous(message)) return;
  Item done;
  done.host = message.source;
  done.token = message.token;
  done.cause = cause_;
  tell(free, Kind::sent, std::move(done));
}

bool LogGpNetwork::rendezvous(const Message& message) const {
  return message.notify != 0 && message.one_sided == 0 && message.bytes > model_.eager;
}

void LogGpNetwork::begin_recv(const Event& event) {
  const Item item = items_[event.item];
  const ProcessorRequest& wanted = item.request;
  const MatchKey key{wanted.rank, wanted.source, wanted.tag, wanted.sequence};
  const auto found = unexpected_.find(key);
  if (found == unexpected_.end()) {
    posted_.insert(key);
  } else {
    cause_ = events_;
    if (found->second.rendezvous) meet(found->second.message, found->second.processor_free, event.time);
    unexpected_.erase(found);
  }
  grant(event);
  release_item(event.item);
}

/// A rendezvous: its sender hears of it at once, as in LogGOPSim.
void LogGpNetwork::meet(const Message& message, Time processor_free, Time now) {
  Item done;
  done.host = message.source;
  done.token = message.token;
  done.cause = cause_;
  tell(std::max(now, processor_free), Kind::sent, std::move(done));
}

void LogGpNetwork::begin_compute(const Event& event) {
  const ProcessorRequest& wanted = items_[event.item].request;
  if (wait_for(event, clocks(wanted.rank).processors[wanted.cpu])) return;
  grant(event);
  release_item(event.item);
}

void LogGpNetwork::run_on_processor(NodeId host, Time now, const ProcessorRequest& request, Time duration) {
  const Time end = bounded_sum(now, duration);
  clocks(request.rank).processors[request.cpu] = end;
  Item item;
  item.host = host;
  item.token = request.token;
  item.cause = cause_;
  tell(end, Kind::timer, std::move(item));
}

void LogGpNetwork::arrive(const Event& event) {
  const ProcessorRequest wanted = items_[event.item].request;
  Clocks& own = clocks(wanted.rank);
  Time& processor = own.processors[wanted.cpu];
  Time& nic = own.receivers[wanted.nic];
  if (wait_for(event, std::max(processor, nic))) return;
  cause_ = events_;
  Item item = std::move(items_[event.item]);
  release_item(event.item);
  const Message& message = item.message;
  const Time handled = event.time + cost(model_.overhead, model_.overhead_per_byte, message.bytes);
  const Time end = std::max(handled, event.time + cost(model_.overhead, model_.gap_per_byte, message.bytes));
  // LogGOPSim's receiver is busy while a message comes in. A slice of a collective is an RDMA write: its bytes take the
  // NIC, and the rank sends meanwhile, as in LogGP itself.
  processor = message.collective == no_slot ? end : handled;
  nic = event.time + gap(message.bytes);
  if (message.collective == no_slot) {
    const MatchKey key{message.destination_rank, message.source_rank, message.tag, message.sequence};
    const bool waits = rendezvous(message);
    if (posted_.erase(key) > 0) {
      if (waits) meet(message, item.begun, event.time);
    } else if (message.one_sided == 0) {
      unexpected_[key] = {waits, message, item.begun};
    }
  }
  item.cause = cause_;
  // No recv and no end of a receiver says that a one-sided write has arrived, only its sender: who hears of it at once,
  // as of a rendezvous.
  const bool written = message.one_sided != 0 && message.notify != 0;
  Item done;
  done.host = message.source;
  done.token = message.token;
  done.cause = cause_;
  tell(end, Kind::deliver, std::move(item));
  if (written) tell(end, Kind::sent, std::move(done));
}

void LogGpNetwork::finish(ProcessGroup& group, bool all_idle) {
  const std::uint64_t sent = group.sum(sent_), delivered = group.sum(delivered_);
  WEFT_EXPECT(!all_idle || sent == delivered, "{} messages were sent, {} delivered", sent, delivered);
}

std::uint64_t LogGpNetwork::memory_bytes() const {
  return items_.capacity() * sizeof(Item) + due_.size() * sizeof(Event) + counters_.capacity() * sizeof(LinkCounters);
}

}  // namespace weft
