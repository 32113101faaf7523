// SPDX-License-Identifier: GPL-2.0-only
// Credit-based flow control: throughput over the size of the buffer, and credits that survive losses.
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/parameters/link_flow_control.hpp"
#include "tests/fabric/lean_machine.hpp"

namespace weft::credit_test {
namespace {

using test::LeanMachine;
using test::network_of;

constexpr std::int64_t mtu = 918, frame = 980;
constexpr std::int64_t full = 80'000;  // ps of 1000 B at 100 Gb/s
constexpr std::int64_t grant = 8 * 80;
constexpr std::int64_t delay = 500'000;
const std::string pair_of_hosts = "{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 500 ns}";

NetworkParameters network(std::int64_t buffer, const std::string& more = "ack_interval: 1024") {
  return network_of(fmt::format("{{mtu: {} B, window: 1 GiB, flow_control: credit, credit: {{buffer: {} B}}, {}}}", mtu,
                                buffer, more));
}

// A buffer of m frames passes m packets per round trip of the link (packet, delay, credit update, delay), and at most
// the rate of the link: Kung, Blackwell, Chapman, "Credit-based flow control for ATM networks", SIGCOMM 1994.
TEST(credit, throughput_is_buffer_over_round_trip_or_the_rate) {
  const std::int64_t round = full + delay + grant + delay;
  for (const std::int64_t frames : {1, 2, 3, 7, 13, 14, 20}) {
    LeanMachine machine(pair_of_hosts, network(frames * frame + (frames % 2) * (frame - 1)));
    const auto tap = machine.tap(NodeId(0));
    machine.post({Time(), 0, machine.open(0, 1), 300 * mtu});
    machine.run();
    machine.expect_quiet();
    ASSERT_EQ(tap->entries.size(), 300U);
    for (std::int64_t i = 0; i < 300; ++i) {
      const std::int64_t begin = frames * full < round ? i / frames * round + i % frames * full : i * full;
      ASSERT_EQ(tap->entries[static_cast<std::size_t>(i)].start.ps(), begin) << "frame " << i << ", " << frames;
    }
    EXPECT_EQ(machine.fabric->results().congestion().dropped, 0U);
  }
}

TEST(credit, the_buffer_by_itself_keeps_the_rate) {
  LeanMachine machine(pair_of_hosts,
                      network_of("{mtu: 918 B, window: 1 GiB, flow_control: credit, ack_interval: 1024}"));
  const auto tap = machine.tap(NodeId(0));
  machine.post({Time(), 0, machine.open(0, 1), 300 * mtu});
  machine.run();
  machine.expect_quiet();
  for (std::int64_t i = 0; i < 300; ++i) ASSERT_EQ(tap->entries[static_cast<std::size_t>(i)].start.ps(), i * full);
}

TEST(credit, an_incast_loses_nothing_and_fills_no_more_than_the_buffers) {
  const std::int64_t buffer = 5 * frame;
  LeanMachine machine("{kind: star, hosts: 9, link_rate: 100 Gb/s, link_delay: 500 ns}",
                      network(buffer, "ack_interval: 4"));
  for (std::uint32_t h = 0; h < 8; ++h) machine.post({Time(), h, machine.open(h, 8), 200 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.fabric->results().congestion().dropped, 0U);
  EXPECT_EQ(machine.fabric->results().congestion().repeated, 0U);
  EXPECT_LE(machine.class_counters(machine.a_switch(0), 1, 8).peak_queue_bytes.count(), 8 * buffer);
  EXPECT_GT(machine.class_counters(machine.a_switch(0), 1, 8).peak_queue_bytes.count(), 7 * buffer);
}

// A lost frame must not lose its credit: with space for two frames the third loss would stop the link for ever.
TEST(credit, lost_packets_give_their_credit_back) {
  LeanMachine machine(pair_of_hosts,
                      network(2 * frame, "loss: [{link: all, probability: 0.05}], go_back_n: {timeout: 1 ms}"));
  machine.post({Time(), 0, machine.open(0, 1), 500 * mtu});
  machine.post({Time(), 1, machine.open(1, 0), 500 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_GT(machine.fabric->results().congestion().lost, 20U);
}

TEST(credit, lost_updates_come_when_the_link_works_again) {
  LeanMachine machine(pair_of_hosts, network(2 * frame,
                                             "failures: [{at: 20 us, until: 30 us, link: [host0, switch0]}], "
                                             "reconvergence: 1 s, go_back_n: {timeout: 100 us}"));
  machine.post({Time(), 0, machine.open(0, 1), 500 * mtu});
  machine.post({Time(), 1, machine.open(1, 0), 500 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_GT(machine.fabric->results().congestion().lost, 0U);
}

// One class for all: ACKs take credit like data, and give it back like data.
TEST(credit, in_one_queue_acks_have_credits_too) {
  LeanMachine machine(pair_of_hosts, network(2 * frame, "priorities: {scheduling: fifo}"));
  machine.post({Time(), 0, machine.open(0, 1), 500 * mtu});
  machine.post({Time(), 1, machine.open(1, 0), 500 * mtu});
  machine.run();
  machine.expect_quiet();
  EXPECT_EQ(machine.fabric->results().congestion().repeated, 0U);
}

// NVLink and PCIe have no pause frames (docs/reference/network.md), with and without units for reductions.
TEST(credit, links_inside_servers_have_credits_beside_pfc) {
  const std::string server =
      "{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 us, server: {gpus: 2, inside: nvswitch, nics: 1, "
      "nvlink_rate: 400 Gb/s, nvlink_delay: 100 ns, pcie_rate: 500 Gb/s, pcie_delay: 200 ns}";
  for (const std::string units : {"}", ", switch_reduction: {at: [nvswitch]}}"}) {
    const LeanMachine machine(server + units, network_of("{flow_control: pfc, buffer: {size: 1 MiB}}"));
    const Topology& topology = machine.topology;
    const auto kinds = flow_control_of_classes(machine.parameters.fabric, topology);
    for (std::size_t c = 0; c < kinds.size(); ++c)
      EXPECT_EQ(kinds[c], topology.link_classes[c] == "nic" ? FlowControl::pfc : FlowControl::credit)
          << topology.link_classes[c] << units;
  }
}

// Neither loses a packet for want of room. Without limits of buffers nothing is lost, with and without credits.
TEST(credit, links_inside_servers_have_credits_where_switches_may_drop) {
  const std::string server =
      "{kind: star, hosts: 2, link_rate: 100 Gb/s, link_delay: 1 us, server: {gpus: 2, inside: nvswitch, nics: 1, "
      "nvlink_rate: 400 Gb/s, nvlink_delay: 100 ns, pcie_rate: 500 Gb/s, pcie_delay: 200 ns}}";
  const std::pair<const char*, FlowControl> cases[] = {
      {"{buffer: {size: 1 MiB}}", FlowControl::credit},
      {"{buffer: {queue: 100 kB}}", FlowControl::credit},
      {"{queues: output}", FlowControl::none},
      {"{buffer: {size: 1 MiB}, link_classes: {gpu: {flow_control: none}, nvlink: {flow_control: none}, "
       "pcie: {flow_control: none}}}",
       FlowControl::none}};
  for (const auto& [network, inside] : cases) {
    const LeanMachine machine(server, network_of(network));
    const Topology& topology = machine.topology;
    const auto kinds = flow_control_of_classes(machine.parameters.fabric, topology);
    for (std::size_t c = 0; c < kinds.size(); ++c)
      EXPECT_EQ(kinds[c], topology.link_classes[c] == "nic" ? FlowControl::none : inside)
          << topology.link_classes[c] << network;
  }
}

}  // namespace
}  // namespace weft::credit_test
