// SPDX-License-Identifier: GPL-2.0-only
// A machine whose ideal network runs by itself: tests post messages at times, as with LeanMachine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/ideal/ideal_network.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::test {

class IdealMachine final : public HostClient {
 public:
  explicit IdealMachine(const std::string& text, const NetworkParameters& given = {})
      : topology(build_topology(Spec::parse(text, "test.yaml"))), parameters(given) {
    routing = RoutingRegistry::instance().find(topology.routing)->make();
    routing->prepare(topology, 1);
    const Partition partition = make_partition(topology, 1, "auto", parameters.min_wire(), 1);
    network = std::make_unique<IdealNetwork>(topology, partition, 0, parameters, *routing);
    network->set_client(this);
  }

  Topology topology;
  NetworkParameters parameters;
  std::unique_ptr<RoutingAlgorithm> routing;
  std::unique_ptr<IdealNetwork> network;

  std::vector<Posting> postings;
  std::vector<Notice> messages;
  std::vector<Message> received;
  std::vector<Notice> sent;
  std::vector<Notice> credits;
  std::function<void(std::uint32_t host, Time now, std::uint64_t token)> on_own_timer;
  static constexpr std::uint64_t own_timer = LeanMachine::own_timer;

  std::uint32_t open(std::uint32_t host, std::uint32_t destination) {
    return network->open_queue_pair(NodeId(host), NodeId(destination));
  }
  void post(const Posting& posting) {
    network->set_timer(NodeId(posting.host), posting.at, postings.size());
    postings.push_back(posting);
  }
  /// Everything is delivered.
  void run() {
    network->advance(Time::from_s(1'000'000));
    EXPECT_TRUE(network->idle());
    EXPECT_EQ(network->next_time(), Time::max());
    EXPECT_EQ(messages.size(), postings.size());
    EXPECT_EQ(sent.size(), postings.size());
  }
  std::map<std::uint64_t, Time> ideal_by_id() const {
    std::map<std::uint64_t, Time> result;
    for (const Message& message : received) result[message.id] = message.ideal;
    return result;
  }

  void on_timer(NodeId host, Time now, std::uint64_t token) override {
    if (token >= own_timer) return on_own_timer(host.value(), now, token - own_timer);
    Message message;
    message.bytes = Bytes(postings[token].bytes);
    message.notify = 1;
    network->post(host, postings[token].queue_pair, now, message, token);
  }
  void on_message(NodeId host, Time now, const Message& message) override {
    messages.push_back({now, host.value(), message.id});
    received.push_back(message);
  }
  void on_sent(NodeId host, Time now, std::uint64_t token) override { sent.push_back({now, host.value(), token}); }
  void on_credit(NodeId host, Time now, std::uint32_t queue_pair, Time /*late*/) override {
    credits.push_back({now, host.value(), queue_pair});
  }
};

inline std::map<std::uint64_t, Time> packets_ideal_by_id(const LeanMachine& machine) {
  std::map<std::uint64_t, Time> result;
  for (const Message& message : machine.received) result[message.id] = message.ideal;
  return result;
}

}  // namespace weft::test
