// SPDX-License-Identifier: GPL-2.0-only
// A machine whose fabric runs by itself, without ns-3 and without programs of ranks: tests post messages at times.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/network/fabric.hpp"
#include "graph/partition/partition.hpp"
#include "routing/algorithm/path.hpp"

namespace weft::test {

/// One call of HostClient::on_message, on_sent or on_credit.
struct Notice {
  Time at;
  std::uint32_t host = 0;
  std::uint64_t what = 0;  ///< message id, token or queue pair
  friend bool operator==(const Notice&, const Notice&) = default;
};
inline void PrintTo(const Notice& notice, std::ostream* out) {
  *out << "host " << notice.host << ", " << notice.what << " at " << notice.at.ps() << " ps";
}

/// A `network:` map as in an experiment.
inline NetworkParameters network_of(const std::string& text) {
  return read_network_parameters(Spec::parse(text, "test.yaml"));
}

/// A message that a test wants to be posted.
struct Posting {
  Time at;
  std::uint32_t host = 0;
  std::uint32_t queue_pair = 0;
  std::int64_t bytes = 0;
};

/// The packets that leave through a port, in order.
class TapLog final : public PortTap {
 public:
  struct Entry {
    Time start;
    Packet packet;
  };
  std::vector<Entry> entries;
  void transmitted(Time start, const Packet& packet) override { entries.push_back({start, packet}); }
};

class LeanMachine final : public HostClient {
 public:
  /// `text`: a `topology:` map. The part of `process` if `parts` processes share the machine by groups.
  explicit LeanMachine(const std::string& text, const NetworkParameters& network = {}, std::uint64_t seed = 1,
                       int process = 0, std::uint32_t parts = 1)
      : topology(build_topology(Spec::parse(text, "test.yaml"))), parameters(network) {
    if (!parameters.congestion_control)
      parameters.congestion_control = CongestionControlRegistry::instance().find("none")->make();
    parameters.faults = read_link_faults(parameters.fault_keys, topology);
    routing =
        RoutingRegistry::instance().find(parameters.routing.empty() ? topology.routing : parameters.routing)->make();
    routing->prepare(topology, seed);
    partition_ = make_partition(topology, parts, "groups", parameters.min_wire(), seed);
    fabric = std::make_unique<Fabric>(topology, partition_, process, parameters, *routing, seed, Fabric::Drive::epochs);
    fabric->set_client(this);
  }

  Topology topology;
  NetworkParameters parameters;
  std::unique_ptr<RoutingAlgorithm> routing;
  std::unique_ptr<Fabric> fabric;

  std::vector<Posting> postings;  ///< by token of their timer
  std::vector<Notice> messages;   ///< delivered
  std::vector<Message> received;  ///< their descriptors
  std::vector<Notice> sent;
  std::vector<Notice> credits;
  std::vector<char> calls;  ///< m, s, c for the above and t for own timers, as they came
  /// Called at an own timer, with its token less own_timer.
  std::function<void(std::uint32_t host, Time now, std::uint64_t token)> on_own_timer;

  std::uint32_t open(std::uint32_t host, std::uint32_t destination) {
    const std::uint32_t number = fabric->open_queue_pair(NodeId(host), NodeId(destination));
    destinations[{host, number}] = destination;
    return number;
  }
  /// Its sender will be informed, with the position in `postings` as token.
  void post(const Posting& posting) {
    fabric->set_timer(NodeId(posting.host), posting.at, postings.size());
    postings.push_back(posting);
  }
  void run() { run_until(Time::from_s(1'000'000)); }
  void run_until(Time end) { fabric->advance(end); }
  /// Everything has arrived, and packets are conserved.
  void expect_quiet() {
    EXPECT_EQ(fabric->next_time(), Time::max());
    EXPECT_EQ(messages.size(), postings.size());
    EXPECT_EQ(sent.size(), postings.size());
    ProcessGroup group = ProcessGroup::alone();
    EXPECT_NO_THROW(fabric->check_conservation(group));
  }

  LinkCounters counters(NodeId node, std::uint32_t port = 0) const {
    for (const LinkCounters& counters : fabric->link_counters())
      if (counters.from == node && counters.from_port == port) return counters;
    ADD_FAILURE() << "node " << node.value() << " has no port " << port;
    return {};
  }
  /// The packets that leave through a port, by class; control, data and other, unless routing or scheduling want it
  /// otherwise.
  LinkClassCounters class_counters(NodeId node, std::uint32_t lane, std::uint32_t port = 0) const {
    const PortEnd& end = topology.graph.ports(node)[port];
    for (const LinkClassCounters& counters : fabric->results().class_counters(fabric->now()))
      if (counters.directed_link == directed(end.link, end.direction) && counters.lane == lane) return counters;
    ADD_FAILURE() << "node " << node.value() << " has no class " << lane << " at port " << port;
    return {};
  }
  std::shared_ptr<TapLog> tap(NodeId node, std::uint32_t port = 0) {
    auto log = std::make_shared<TapLog>();
    fabric->probes().add_tap(node, port, log);
    return log;
  }
  NodeId a_switch(std::uint32_t number) const { return NodeId(topology.graph.host_count() + number); }

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> destinations;  ///< (host, queue pair)

  /// Timers of tests: from here on, beyond all positions in `postings`.
  static constexpr std::uint64_t own_timer = 1U << 30;

  // HostClient
  void on_timer(NodeId host, Time now, std::uint64_t token) override {
    if (token >= own_timer) {
      calls.push_back('t');
      on_own_timer(host.value(), now, token - own_timer);
      return;
    }
    const Posting& posting = postings.at(token);
    EXPECT_EQ(posting.at, now);
    EXPECT_EQ(posting.host, host.value());
    Message message;
    message.bytes = Bytes(posting.bytes);
    message.notify = 1;
    fabric->post(host, posting.queue_pair, now, message, token);
  }
  void on_message(NodeId host, Time now, const Message& message) override {
    EXPECT_EQ(message.destination, host);
    messages.push_back({now, host.value(), message.id});
    received.push_back(message);
    calls.push_back('m');
  }
  void on_sent(NodeId host, Time now, std::uint64_t token) override {
    sent.push_back({now, host.value(), token});
    calls.push_back('s');
  }
  void on_credit(NodeId host, Time now, std::uint32_t queue_pair, Time /*late*/) override {
    credits.push_back({now, host.value(), queue_pair});
    calls.push_back('c');
  }

 private:
  Partition partition_;
};

}  // namespace weft::test
