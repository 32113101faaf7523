// SPDX-License-Identifier: GPL-2.0-only
// The machine as ns-3 objects: names, attributes that change links exactly, and complaints about bad ones.
#include "fabric/ns3/ns3_attributes.hpp"

#include <ns3/config.h>
#include <ns3/mac48-address.h>
#include <ns3/names.h>
#include <ns3/node-list.h>
#include <ns3/pointer.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "tests/fabric/ns3/ns3_scenario.hpp"
#include "transport/messages/ideal_time.hpp"

namespace weft::ns3_attributes_test {
namespace {

using test::Scenario;

constexpr Bandwidth gbps(std::int64_t n) { return Bandwidth::from_gbps(n); }
const std::string line = "{kind: line, links: 2, link_rate: 100 Gb/s, link_delay: 500 ns}";
const std::string fat_tree = "{kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}";

/// Time of one message alone: store and forward over links of these rates and delays.
Time message_time(const Scenario& scenario, Bytes size, const std::vector<PathLink>& path) {
  return ideal_message_time(path, size, scenario.network().mtu, scenario.network().data_overhead());
}

template <class Value>
auto attribute(const ns3::Ptr<ns3::Object>& object, const std::string& name) {
  Value value;
  object->GetAttribute(name, value);
  return value.Get();
}

TEST(ns3_view, nodes_devices_and_channels_mirror_the_machine) {
  Scenario scenario(fat_tree, "{}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const ClusterGraph& graph = scenario.graph();
  ASSERT_EQ(view.hosts().GetN(), graph.host_count());
  ASSERT_EQ(view.switches().GetN(), graph.switch_count());
  EXPECT_EQ(ns3::Names::Find<ns3::Node>("host3"), view.hosts().Get(3));
  EXPECT_EQ(ns3::Names::Find<ns3::Node>("/Names/switch7"), view.switches().Get(7));
  for (std::uint32_t n = 0; n < graph.node_count(); ++n) {
    const auto node = view.node(NodeId(n));
    const auto ends = graph.ports(NodeId(n));
    EXPECT_EQ(ns3::Names::FindName(node), graph.plain_name(NodeId(n)));
    ASSERT_EQ(node->GetNDevices(), ends.size());
    for (std::uint32_t p = 0; p < ends.size(); ++p) {
      const auto device = ns3::DynamicCast<FabricPortDevice>(node->GetDevice(p));
      ASSERT_TRUE(device);
      EXPECT_EQ(device->GetIfIndex(), p);
      EXPECT_EQ(device->GetNode(), node);
      const auto channel = device->GetChannel();
      ASSERT_EQ(channel->GetNDevices(), 2U);
      const auto peer = view.device(ends[p].peer, ends[p].peer_port);
      EXPECT_TRUE((channel->GetDevice(0) == device && channel->GetDevice(1) == peer) ||
                  (channel->GetDevice(1) == device && channel->GetDevice(0) == peer));
    }
  }
  // Each directed link has one device.
  EXPECT_EQ(ns3::Config::LookupMatches("/NodeList/*/DeviceList/*/$weft::FabricPortDevice").GetN(),
            2 * graph.link_count());
  EXPECT_EQ(ns3::Config::LookupMatches("/ChannelList/*/$weft::FabricChannel").GetN(), graph.link_count());
}

TEST(ns3_view, devices_are_net_devices) {
  Scenario scenario(line, "{mtu: 1000 B, header: 62 B}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const ns3::Ptr<ns3::NetDevice> device = view.device(NodeId(1), 0);
  // The fabric's frames without Ethernet header and check sequence.
  EXPECT_EQ(device->GetMtu(), 1000 + 62 - 14 - 4);
  EXPECT_EQ(device->GetAddress(), ns3::Address(ns3::Mac48Address("02:00:00:00:00:01")));
  EXPECT_TRUE(device->IsLinkUp());
  EXPECT_TRUE(device->IsPointToPoint());
  EXPECT_TRUE(device->IsBroadcast());
  EXPECT_TRUE(device->IsMulticast());
  EXPECT_FALSE(device->IsBridge());
  EXPECT_FALSE(device->NeedsArp());
  EXPECT_TRUE(device->SupportsSendFrom());
  EXPECT_EQ(device->GetBroadcast(), ns3::Address(ns3::Mac48Address("ff:ff:ff:ff:ff:ff")));
  EXPECT_TRUE(device->SetMtu(1500));
  EXPECT_EQ(attribute<ns3::UintegerValue>(device, "Mtu"), 1500U);
  device->SetAddress(ns3::Mac48Address("02:00:00:00:00:77"));
  EXPECT_EQ(attribute<ns3::Mac48AddressValue>(device, "Address"), ns3::Mac48Address("02:00:00:00:00:77"));
  ns3::PointerValue channel;
  device->GetAttribute("Channel", channel);
  EXPECT_EQ(channel.GetObject(), device->GetChannel());
  // Ports of a switch have separate addresses.
  const auto other = view.device(NodeId(2), 0)->GetAddress();
  EXPECT_NE(other, view.device(NodeId(2), 1)->GetAddress());
}

TEST(ns3_view, goes_and_comes_again) {
  Scenario scenario(line, "{}", test::silence);
  ns3::Ptr<FabricPortDevice> device;
  {
    const Ns3View view(scenario.fabric(), scenario.topology());
    device = view.device(NodeId(0), 0);
    EXPECT_THROW(Ns3View(scenario.fabric(), scenario.topology()), InternalError);
  }
  EXPECT_FALSE(device->IsLinkUp());
  EXPECT_FALSE(device->Send(ns3::Create<ns3::Packet>(10), device->GetBroadcast(), 0x0800));
  EXPECT_EQ(ns3::Names::Find<ns3::Node>("host0"), nullptr);
  const Ns3View again(scenario.fabric(), scenario.topology());
  EXPECT_NE(ns3::Names::Find<ns3::Node>("host0"), nullptr);
}

TEST(ns3_attributes, without_a_change_links_are_those_of_the_topology) {
  Scenario scenario("{kind: line, links: 2, link_rate: [100 Gb/s, 25 Gb/s], link_delay: [500 ns, 2 us]}", "{}",
                    test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const auto last = view.device(NodeId(1), 0);
  EXPECT_EQ(attribute<ns3::DataRateValue>(last, "DataRate"), ns3::DataRate("25Gbps"));
  EXPECT_EQ(attribute<ns3::DataRateValue>(last->GetChannel(), "DataRate"), ns3::DataRate("25Gbps"));
  EXPECT_EQ(attribute<ns3::TimeValue>(last->GetChannel(), "Delay"), ns3::MicroSeconds(2));
}

struct Change {
  const char* path;
  const char* value;
  PathLink first;  // links of the path from rank 0 to rank 1 after it
  PathLink second;
};

class ChangedLine : public ::testing::TestWithParam<std::tuple<Change, EngineChoice>> {};

TEST_P(ChangedLine, message_time_follows_the_formula) {
  const auto& [change, engine] = GetParam();
  const Bytes size(100'000);
  Scenario scenario(line, "{}", test::one_message(size), engine);
  const Ns3View view(scenario.fabric(), scenario.topology());
  ns3::Config::Set(change.path, ns3::StringValue(change.value));
  scenario.run();
  const Time expected = message_time(scenario, size, {change.first, change.second});
  ASSERT_EQ(scenario.messages().size(), 1U);
  EXPECT_EQ(scenario.messages()[0].delivered - scenario.messages()[0].issued, expected.ps());
  EXPECT_EQ(scenario.messages()[0].ideal, expected.ps());
  const LinkTimes times = scenario.counters(NodeId(0), 0).times;
  EXPECT_EQ(times.rate, change.first.rate);
  EXPECT_EQ(times.delay, change.first.delay);
}

constexpr PathLink unchanged{gbps(100), Time::from_ns(500)};
const Change changes[] = {
    {"/Names/host0/DeviceList/0/DataRate", "50Gbps", {gbps(50), Time::from_ns(500)}, unchanged},
    {"/Names/host0/DeviceList/0/$weft::FabricPortDevice/DataRate",
     "400Gbps",
     {gbps(400), Time::from_ns(500)},
     unchanged},
    {"/Names/switch0/DeviceList/1/DataRate", "800Gbps", unchanged, {gbps(800), Time::from_ns(500)}},
    // The other direction: only ACKs take it.
    {"/Names/switch0/DeviceList/0/DataRate", "10Gbps", unchanged, unchanged},
    {"/Names/host1/DeviceList/0/Channel/DataRate", "40Gbps", unchanged, {gbps(40), Time::from_ns(500)}},
    {"/Names/host0/DeviceList/0/Channel/Delay", "7ns", {gbps(100), Time::from_ns(7)}, unchanged},
    {"/Names/switch0/DeviceList/*/Channel/Delay", "3us", {gbps(100), Time::from_us(3)}, {gbps(100), Time::from_us(3)}},
    {"/NodeList/*/DeviceList/*/$weft::FabricPortDevice/DataRate",
     "200Gbps",
     {gbps(200), Time::from_ns(500)},
     {gbps(200), Time::from_ns(500)}},
};
INSTANTIATE_TEST_SUITE_P(ns3_attributes, ChangedLine,
                         ::testing::Combine(::testing::ValuesIn(changes),
                                            ::testing::Values(EngineChoice::weft, EngineChoice::ns3_default)));

TEST(ns3_attributes, links_stay_during_the_run) {
  for (const char* path : {"/Names/host0/DeviceList/0/DataRate", "/ChannelList/0/$weft::FabricChannel/DataRate"}) {
    Scenario scenario(line, "{}", test::one_message(Bytes(100'000)));
    const Ns3View view(scenario.fabric(), scenario.topology());
    ns3::Simulator::Schedule(ns3::NanoSeconds(0), [path] { ns3::Config::Set(path, ns3::StringValue("1Gbps")); });
    try {
      scenario.run();
      ADD_FAILURE() << path << " was set during the run";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("before"), std::string::npos) << error.what();
    }
  }
}

TEST(ns3_attributes, zero_is_no_rate_and_no_delay) {
  Scenario scenario(line, "{}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  EXPECT_THROW(ns3::Config::Set("/Names/host0/DeviceList/0/DataRate", ns3::StringValue("0bps")), InputError);
  EXPECT_THROW(ns3::Config::Set("/Names/host0/DeviceList/0/Channel/Delay", ns3::StringValue("0ns")), InputError);
}

TEST(ns3_attributes, an_experiment_names_them_in_its_network_map) {
  Scenario scenario(line, R"({ns3_attributes: {"/Names/host0/DeviceList/0/DataRate": 50 Gb/s, "/b": 1}})",
                    test::silence);
  ASSERT_EQ(scenario.experiment.ns3_attributes.size(), 2U);
  const auto& [path, value] = scenario.experiment.ns3_attributes[0];
  EXPECT_EQ(path, "/Names/host0/DeviceList/0/DataRate");
  const Ns3View view(scenario.fabric(), scenario.topology());
  EXPECT_EQ(set_ns3_attribute(path, value), 1U);
  EXPECT_EQ(scenario.fabric().link_times(directed(LinkId(0), 0)).rate, gbps(50));
  EXPECT_EQ(scenario.fabric().link_times(directed(LinkId(0), 1)).rate, gbps(100));
}

/// The error of set_ns3_attribute(), or the number of objects.
std::string outcome(const std::string& path, const std::string& value) {
  const Spec document = Spec::parse("a: 1\nb: " + value + "\n", "x.yaml");
  try {
    return std::to_string(set_ns3_attribute(path, document.at("b")));
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ns3_attributes, from_an_experiment_reads_the_units_of_experiments) {
  Scenario scenario(fat_tree, "{}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const auto ports = std::to_string(2 * scenario.graph().link_count());
  EXPECT_EQ(outcome("/NodeList/*/DeviceList/*/DataRate", "12.5 GB/s"), ports);
  EXPECT_EQ(outcome("/Names/host2/DeviceList/0/Mtu", "9000"), "1");
  EXPECT_EQ(outcome("/Names/host2/DeviceList/0/Address", "02:00:00:00:00:aa"), "1");
  EXPECT_EQ(outcome("/Names/switch1/DeviceList/[0-2]/Channel/Delay", "1 us"), "3");
  const auto device = view.device(NodeId(2), 0);
  EXPECT_EQ(attribute<ns3::DataRateValue>(device, "DataRate"), ns3::DataRate("100Gbps"));
  EXPECT_EQ(device->GetMtu(), 9000);
  EXPECT_EQ(device->GetAddress(), ns3::Address(ns3::Mac48Address("02:00:00:00:00:aa")));
  EXPECT_EQ(attribute<ns3::TimeValue>(view.device(NodeId(16 + 1), 2)->GetChannel(), "Delay"), ns3::MicroSeconds(1));
}

TEST(ns3_attributes, what_is_wrong_is_said_with_its_line) {
  Scenario scenario(fat_tree, "{}", test::silence);
  const Ns3View view(scenario.fabric(), scenario.topology());
  const std::string port = "/Names/host3/DeviceList/0";
  EXPECT_EQ(outcome("/Names/host99/DeviceList/0/DataRate", "1 Gb/s"), "0");
  EXPECT_EQ(outcome("/Names/host3/DeviceLst/0/DataRate", "1 Gb/s"), "0");
  struct Wrong {
    std::string path, value, fragment;
  };
  for (const Wrong& wrong :
       std::vector<Wrong>{{"DataRate", "1 Gb/s", "is no ns-3 config path"},
                          {"/DataRate", "1 Gb/s", "is no ns-3 config path"},
                          {port + "/", "1 Gb/s", "is no ns-3 config path"},
                          {port + "/DatRate", "1 Gb/s", "did you mean 'DataRate'"},
                          {port + "/DataRate", "50", "without a unit"},
                          {port + "/DataRate", "fast", "found 'fast'"},
                          {port + "/DataRate", "0 Gb/s", "'0 Gb/s'"},
                          {port + "/Channel/Delay", "0 ns", "above 0"},
                          {port + "/Mtu", "70000", "1:65535"},
                          {port + "/Mtu", "big", "found 'big'"},
                          {port + "/Address", "02:00", "02:00:00:00:00:01"},
                          {port + "/Channel", "1", "can only be read"},
                          {port + "/$weft::FabricPrtDevice/Mtu", "1", "'weft::FabricPortDevice'"}}) {
    const std::string message = outcome(wrong.path, wrong.value);
    EXPECT_EQ(message.rfind("x.yaml:2:", 0), 0U) << wrong.path << ": " << message;
    EXPECT_NE(message.find(wrong.fragment), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace weft::ns3_attributes_test
