// SPDX-License-Identifier: GPL-2.0-only
// A small data path for tests: tokens that go round a ring of nodes, which may be spread over processes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <ns3/simulator.h>

#include "engine/data_path.hpp"
#include "engine/parallel_simulator_impl.hpp"
#include "support/basics/random.hpp"

namespace weft::test {

/// Each arrival of a token mixes time and token into the state of its node, so that any change of order or time shows.
/// Every fifth arrival at a node schedules an ns-3 event of the node, which does the same and adds a token.
class TokenRing final : public DataPath {
 public:
  struct Token {
    std::int64_t time = 0;
    std::uint32_t node = 0;
    std::uint32_t hops_left = 0;
    std::uint64_t name = 0;
    friend bool operator<(const Token& a, const Token& b) {
      return std::tie(a.time, a.node, a.name, a.hops_left) < std::tie(b.time, b.node, b.name, b.hops_left);
    }
  };

  TokenRing(std::uint32_t nodes, std::int64_t link_delay, ParallelSimulatorImpl& engine)
      : nodes_(nodes), link_delay_(link_delay), engine_(engine), state_(nodes), arrivals_(nodes) {
    const ProcessGroup& group = engine.process_group();
    rank_ = group.rank();
    ranks_ = static_cast<std::uint32_t>(group.size());
    std::set<int> others;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::uint32_t next = (node + 1) % nodes;
      if (owns(node)) others.insert(owner(next));
      if (owns(next)) others.insert(owner(node));
    }
    others.erase(rank_);
    neighbours_.assign(others.begin(), others.end());
    outgoing_.resize(neighbours_.size());
  }

  int owner(std::uint32_t node) const { return static_cast<int>(std::uint64_t{node} * ranks_ / nodes_); }
  bool owns(std::uint32_t node) const { return owner(node) == rank_; }
  /// A token that arrives at an owned node.
  void insert(const Token& token) { pending_.insert(token); }
  void mix(std::uint32_t node, std::uint64_t value) { state_[node] = mix64(state_[node] * 31 + value); }
  /// [nodes]; nodes of other processes are 0.
  const std::vector<std::uint64_t>& state() const { return state_; }
  std::uint64_t arrivals() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : arrivals_) sum += count;
    return sum;
  }

  Time next_time() const override {
    Time next = pending_.empty() ? Time::max() : Time::from_ps(pending_.begin()->time);
    for (const Batch& batch : outgoing_) {
      for (std::size_t offset = 0; offset < batch.size(); offset += sizeof(Token)) {
        Token token;
        std::memcpy(&token, batch.data() + offset, sizeof token);
        next = std::min(next, Time::from_ps(token.time));
      }
    }
    return next;
  }
  Time lookahead() const override { return Time::from_ps(link_delay_); }
  Time now() const override { return now_; }

  void advance(Time end) override {
    while (!pending_.empty() && pending_.begin()->time < end.ps()) {
      const Token token = *pending_.begin();
      pending_.erase(pending_.begin());
      now_ = Time::from_ps(token.time);
      arrive(token);
    }
  }

  std::span<const int> neighbours() const override { return neighbours_; }
  std::span<Batch> outgoing() override { return outgoing_; }
  void incoming(std::size_t /*neighbour*/, std::span<const std::byte> batch) override {
    for (std::size_t offset = 0; offset < batch.size(); offset += sizeof(Token)) {
      Token token;
      std::memcpy(&token, batch.data() + offset, sizeof token);
      pending_.insert(token);
    }
  }

 private:
  void arrive(const Token& token) {
    mix(token.node, static_cast<std::uint64_t>(token.time) ^ (token.name << 40));
    if (++arrivals_[token.node] % 5 == 0) {
      engine_.enter(token.node, now_);
      ns3::Simulator::Schedule(ns3::Time(link_delay_),
                               [this, node = token.node, name = token.name] { on_event(node, name); });
    }
    if (token.hops_left > 0) send(token.node, token.time, token.name, token.hops_left - 1);
  }

  void on_event(std::uint32_t node, std::uint64_t name) {
    const std::int64_t now = ns3::Simulator::Now().GetTimeStep();
    mix(node, static_cast<std::uint64_t>(now) * 3 + ns3::Simulator::GetContext());
    send(node, now, name + 1'000, 2);
  }

  void send(std::uint32_t node, std::int64_t now, std::uint64_t name, std::uint32_t hops_left) {
    const Token token{now + link_delay_ + static_cast<std::int64_t>(name % 3) * link_delay_ / 2, (node + 1) % nodes_,
                      hops_left, name};
    if (owns(token.node)) {
      pending_.insert(token);
      return;
    }
    const auto place = std::find(neighbours_.begin(), neighbours_.end(), owner(token.node)) - neighbours_.begin();
    outgoing_[static_cast<std::size_t>(place)].append(token);
  }

  std::uint32_t nodes_;
  std::int64_t link_delay_;
  ParallelSimulatorImpl& engine_;
  int rank_ = 0;
  std::uint32_t ranks_ = 1;
  std::multiset<Token> pending_;
  Time now_;
  std::vector<std::uint64_t> state_;
  std::vector<std::uint64_t> arrivals_;
  std::vector<int> neighbours_;
  std::vector<Batch> outgoing_;
};

}  // namespace weft::test
