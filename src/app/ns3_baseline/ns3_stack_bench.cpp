// SPDX-License-Identifier: GPL-2.0-only
// Baseline of the benchmark: ns-3's own devices, protocol stack and engine on the same fat-tree with the same traffic.
#include "app/ns3_baseline/ns3_stack_bench.hpp"

#include <algorithm>
#include <chrono>

#include <ns3/application.h>
#include <ns3/data-rate.h>
#include <ns3/inet-socket-address.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/ipv4.h>
#include <ns3/net-device-container.h>
#include <ns3/node-container.h>
#include <ns3/packet.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/simulator.h>
#include <ns3/socket.h>
#include <ns3/string.h>
#include <ns3/udp-socket-factory.h>
#include <ns3/uinteger.h>

#include "engine/parallel_simulator_impl.hpp"
#include "support/basics/contract.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

constexpr std::uint16_t sender_port = 4790;
constexpr std::uint16_t receiver_port = 4791;
constexpr std::uint32_t answer_bytes = 4;

/// Sends its bytes as datagrams, as many at a time as the window allows.
class WindowSender final : public ns3::Application {
 public:
  WindowSender(ns3::Ipv4Address destination, std::uint64_t bytes, std::uint32_t payload, std::uint64_t window)
      : destination_(destination),
        bytes_left_(bytes),
        payload_(payload),
        packets_allowed_(std::max<std::uint64_t>(window / payload, 1)) {}

 private:
  void StartApplication() override {
    socket_ = ns3::Socket::CreateSocket(GetNode(), ns3::UdpSocketFactory::GetTypeId());
    socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), sender_port));
    socket_->Connect(ns3::InetSocketAddress(destination_, receiver_port));
    socket_->SetRecvCallback(ns3::MakeCallback(&WindowSender::answered, this));
    send();
  }
  void send() {
    for (; packets_allowed_ > 0 && bytes_left_ > 0; --packets_allowed_) {
      const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(payload_, bytes_left_));
      socket_->Send(ns3::Create<ns3::Packet>(bytes));
      bytes_left_ -= bytes;
    }
  }
  void answered(ns3::Ptr<ns3::Socket> socket) {
    while (socket->Recv() != nullptr) ++packets_allowed_;
    send();
  }

  ns3::Ipv4Address destination_;
  std::uint64_t bytes_left_;
  std::uint32_t payload_;
  std::uint64_t packets_allowed_;
  ns3::Ptr<ns3::Socket> socket_;
};

/// Counts what arrives and answers each datagram.
class AnsweringReceiver final : public ns3::Application {
 public:
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t packets() const { return packets_; }

 private:
  void StartApplication() override {
    socket_ = ns3::Socket::CreateSocket(GetNode(), ns3::UdpSocketFactory::GetTypeId());
    socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), receiver_port));
    socket_->SetRecvCallback(ns3::MakeCallback(&AnsweringReceiver::received, this));
  }
  void received(ns3::Ptr<ns3::Socket> socket) {
    ns3::Address from;
    while (const ns3::Ptr<ns3::Packet> packet = socket->RecvFrom(from)) {
      bytes_ += packet->GetSize();
      ++packets_;
      socket->SendTo(ns3::Create<ns3::Packet>(answer_bytes), 0, from);
    }
  }

  std::uint64_t bytes_ = 0;
  std::uint64_t packets_ = 0;
  ns3::Ptr<ns3::Socket> socket_;
};

void count_reception(std::uint64_t* count, ns3::Ptr<const ns3::Packet>) { ++*count; }

/// The k-ary fat-tree of M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network
/// architecture", SIGCOMM 2008, doi:10.1145/1402958.1402967, with addresses 10.pod.edge.host as there and prefix
/// routes.
class Ns3FatTree {
 public:
  Ns3FatTree(unsigned k, std::uint64_t bits_per_second, std::int64_t link_delay_ps, std::uint64_t& packet_hops)
      : k_(k), half_(k / 2), packet_hops_(packet_hops) {
    hosts_.Create(k * half_ * half_);
    edges_.Create(k * half_);
    aggregations_.Create(k * half_);
    cores_.Create(half_ * half_);
    link_.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(bits_per_second)));
    link_.SetDeviceAttribute("Mtu", ns3::UintegerValue(9000));
    link_.SetChannelAttribute("Delay", ns3::TimeValue(ns3::Time(link_delay_ps)));
    link_.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::StringValue("1000000p"));  // nothing is lost
    link_.DisableFlowControl();
    ns3::InternetStackHelper stack;
    stack.SetRoutingHelper(ns3::Ipv4StaticRoutingHelper());
    stack.SetIpv6StackInstall(false);
    for (const ns3::NodeContainer* nodes : {&hosts_, &edges_, &aggregations_, &cores_}) stack.Install(*nodes);
    connect_hosts();
    connect_edges();
    connect_cores();
  }

  const ns3::NodeContainer& hosts() const { return hosts_; }

  ns3::Ipv4Address address_of(std::uint32_t host) const {
    return address(host / (half_ * half_), host / half_ % half_, host % half_ + 2);
  }

 private:
  using Node = ns3::Ptr<ns3::Node>;
  struct Ends {
    std::uint32_t lower = 0;  // IPv4 interface numbers
    std::uint32_t upper = 0;
  };

  static ns3::Ipv4Address address(unsigned pod, unsigned edge, unsigned host) {
    return ns3::Ipv4Address((10U << 24) + (pod << 16) + (edge << 8) + host);
  }
  static void route(const Node& node, ns3::Ipv4Address prefix, unsigned bits, std::uint32_t interface) {
    const ns3::Ipv4Mask mask(bits == 0 ? 0U : ~0U << (32 - bits));
    ns3::Ipv4StaticRoutingHelper()
        .GetStaticRouting(node->GetObject<ns3::Ipv4>())
        ->AddNetworkRouteTo(prefix, mask, interface);
  }
  /// Which of its half_ up-ports a switch uses for a group of destinations.
  unsigned up_port(const Node& node, unsigned group) const {
    return static_cast<unsigned>(random_below(half_, 1, node->GetId(), group));
  }

  std::uint32_t add_interface(const ns3::Ptr<ns3::NetDevice>& device, ns3::Ipv4Address local) {
    const auto ipv4 = device->GetNode()->GetObject<ns3::Ipv4>();
    const std::uint32_t interface = ipv4->AddInterface(device);
    // A full mask adds no route.
    ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(local, ns3::Ipv4Mask::GetOnes()));
    ipv4->SetUp(interface);
    device->TraceConnectWithoutContext("PhyRxEnd", ns3::MakeBoundCallback(&count_reception, &packet_hops_));
    return interface;
  }
  ns3::Ipv4Address switch_address() { return ns3::Ipv4Address((172U << 24) + (16U << 16) + ++switch_addresses_); }
  Ends connect(const Node& lower, const Node& upper, ns3::Ipv4Address lower_address) {
    const ns3::NetDeviceContainer devices = link_.Install(lower, upper);
    return {add_interface(devices.Get(0), lower_address), add_interface(devices.Get(1), switch_address())};
  }

  void connect_hosts() {
    for (unsigned host = 0; host < hosts_.GetN(); ++host) {
      const Node edge = edges_.Get(host / half_);
      const Ends ends = connect(hosts_.Get(host), edge, address_of(host));
      route(hosts_.Get(host), ns3::Ipv4Address::GetAny(), 0, ends.lower);
      route(edge, address_of(host), 32, ends.upper);
    }
  }

  void connect_edges() {
    for (unsigned pod = 0; pod < k_; ++pod) {
      for (unsigned edge = 0; edge < half_; ++edge) {
        const Node edge_node = edges_.Get(pod * half_ + edge);
        std::vector<std::uint32_t> up;
        for (unsigned aggregation = 0; aggregation < half_; ++aggregation) {
          const Node aggregation_node = aggregations_.Get(pod * half_ + aggregation);
          const Ends ends = connect(edge_node, aggregation_node, switch_address());
          up.push_back(ends.lower);
          route(aggregation_node, address(pod, edge, 0), 24, ends.upper);
        }
        for (unsigned other = 0; other < half_; ++other) {
          if (other != edge) route(edge_node, address(pod, other, 0), 24, up[up_port(edge_node, k_ + other)]);
        }
        route_other_pods(edge_node, pod, up);
      }
    }
  }

  void connect_cores() {
    for (unsigned pod = 0; pod < k_; ++pod) {
      for (unsigned aggregation = 0; aggregation < half_; ++aggregation) {
        const Node aggregation_node = aggregations_.Get(pod * half_ + aggregation);
        std::vector<std::uint32_t> up;
        for (unsigned i = 0; i < half_; ++i) {
          const Node core = cores_.Get(aggregation * half_ + i);
          const Ends ends = connect(aggregation_node, core, switch_address());
          up.push_back(ends.lower);
          route(core, address(pod, 0, 0), 16, ends.upper);
        }
        route_other_pods(aggregation_node, pod, up);
      }
    }
  }

  void route_other_pods(const Node& node, unsigned pod, const std::vector<std::uint32_t>& up) const {
    for (unsigned other = 0; other < k_; ++other) {
      if (other != pod) route(node, address(other, 0, 0), 16, up[up_port(node, other)]);
    }
  }

  unsigned k_;
  unsigned half_;
  std::uint64_t& packet_hops_;
  std::uint32_t switch_addresses_ = 0;
  ns3::PointToPointHelper link_;
  ns3::NodeContainer hosts_;
  ns3::NodeContainer edges_;
  ns3::NodeContainer aggregations_;
  ns3::NodeContainer cores_;
};

/// Runs Simulator::Run() and returns its wall-clock seconds.
double run_simulator() {
  const auto start = std::chrono::steady_clock::now();
  ns3::Simulator::Run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Ns3StackResult run_ns3_stack_permutation(unsigned k, const std::vector<std::uint32_t>& destination_of_host,
                                         std::uint64_t bytes_per_host, std::uint32_t payload,
                                         std::uint64_t window_bytes, std::uint64_t bits_per_second,
                                         std::int64_t link_delay_ps) {
  WEFT_EXPECT(k >= 4 && k <= 128 && k % 2 == 0, "k = {}", k);
  WEFT_EXPECT(payload > 0 && payload <= 8'000, "payload = {} B", payload);
  const std::uint32_t hosts = k * k * k / 4;
  WEFT_EXPECT(destination_of_host.size() == hosts, "{} destinations for {} hosts", destination_of_host.size(), hosts);
  for (const std::uint32_t destination : destination_of_host) {
    WEFT_EXPECT(destination < hosts, "destination {} of {} hosts", destination, hosts);
  }
  WEFT_EXPECT(ns3::Time::GetResolution() == ns3::Time::PS, "resolution of ns3::Time is number {}",
              static_cast<int>(ns3::Time::GetResolution()));
  ns3::Simulator::Destroy();
  use_default_simulator();

  Ns3StackResult result;
  std::uint64_t expected_bytes = 0;
  std::uint64_t delivered_bytes = 0;
  {
    Ns3FatTree tree(k, bits_per_second, link_delay_ps, result.packet_hops);
    std::vector<ns3::Ptr<AnsweringReceiver>> receivers;
    for (std::uint32_t host = 0; host < hosts; ++host) {
      receivers.push_back(ns3::CreateObject<AnsweringReceiver>());
      tree.hosts().Get(host)->AddApplication(receivers.back());
    }
    for (std::uint32_t host = 0; host < hosts; ++host) {
      const std::uint32_t destination = destination_of_host[host];
      if (destination == host) continue;
      expected_bytes += bytes_per_host;
      tree.hosts().Get(host)->AddApplication(
          ns3::CreateObject<WindowSender>(tree.address_of(destination), bytes_per_host, payload, window_bytes));
    }
    result.wall_seconds = run_simulator();
    result.simulated_ps = ns3::Simulator::Now().GetTimeStep();
    for (const auto& receiver : receivers) {
      delivered_bytes += receiver->bytes();
      result.packets_delivered += receiver->packets();
    }
  }
  ns3::Simulator::Destroy();
  WEFT_EXPECT(delivered_bytes == expected_bytes, "ns-3's stack delivered {} of {} B", delivered_bytes, expected_bytes);
  return result;
}

}  // namespace weft
