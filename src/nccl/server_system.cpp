// SPDX-License-Identifier: GPL-2.0-only
#include "nccl/server_system.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace weft {
namespace {

using Kind = NcclNode::Kind;

double rounded(double gbps) { return std::round(gbps * 10) / 10; }

/// NCCL counts less than the wire carries, generation by generation (src/graph/topo.h, SM80_NVLINK_BW and others): 20
/// of 25 GB/s of a link on Volta and Ampere, 20.6 on Hopper, 40.1 of 50 on Blackwell.
double nvlink_speed(Bandwidth rate, GpuArchitecture architecture) {
  const double share = architecture == GpuArchitecture::hopper      ? 20.6 / 25
                       : architecture == GpuArchitecture::blackwell ? 40.1 / 50
                                                                    : 20.0 / 25;
  return rounded(gigabytes(rate) * share);
}

/// src/graph/topo.cc, kvDictPciGen: 16 lanes of the fourth generation count 24 GB/s, of the fifth 48. PCI-SIG, Base
/// Specification 5.0: 128 of 130 bits of 32 GT/s.
double pci_speed(Bandwidth rate) { return rounded(gigabytes(rate) * 48 / (32.0 * 16 / 8 * 128 / 130)); }

/// The kind of a node of a design.
Kind kind_in(const ServerDesign& design, std::uint32_t node) {
  if (node < design.gpus) return Kind::gpu;
  if (std::find(design.cpus.begin(), design.cpus.end(), node) != design.cpus.end()) return Kind::cpu;
  if (std::find(design.nics.begin(), design.nics.end(), node) != design.nics.end()) return Kind::nic;
  for (const auto& link : design.links)
    if (link.link_class == "nvlink" && (link.a == node || link.b == node)) return Kind::nvswitch;
  return Kind::pci;
}

class SystemMaker {
 public:
  SystemMaker(const ServerDesign& design, const std::vector<std::uint32_t>& accelerators, bool several_servers)
      : design_(design), several_servers_(several_servers), system_(design.architecture), node_(design.nodes, none) {
    for (const std::uint32_t gpu : accelerators) node_[gpu] = system_.add(Kind::gpu, gpu);
  }

  NcclSystem make(Bandwidth nic_rate) {
    add_nodes();
    for (const auto& link : design_.links) add_link(link);
    if (several_servers_) add_networks(nic_rate);
    system_.find_paths(several_servers_ && system_.count(Kind::net) > 0, design_.pxn);
    return std::move(system_);
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  void add_nodes() {
    std::uint32_t all_switches = none;  // NVSwitches are one node to NCCL
    for (std::uint32_t node = design_.gpus; node < design_.nodes; ++node) {
      const Kind kind = kind_in(design_, node);
      if (kind == Kind::nvswitch) {
        if (all_switches == none) all_switches = system_.add(kind);
        node_[node] = all_switches;
      } else {
        node_[node] = system_.add(kind, node);
      }
    }
  }

  void add_link(const ServerDesign::Link& link) {
    const std::uint32_t a = node_[link.a];
    const std::uint32_t b = node_[link.b];
    if (a == none || b == none) return;
    if (link.link_class == "nvlink") {
      system_.connect(a, b, NcclLink::Kind::nvlink, nvlink_speed(link.link.rate, design_.architecture));
    } else if (link.link_class == "smp") {
      system_.connect(a, b, NcclLink::Kind::system, gigabytes(link.link.rate));
    } else if (kind_in(design_, link.a) == Kind::gpu && kind_in(design_, link.b) == Kind::nic) {
      add_behind_switch(a, b, pci_speed(link.link.rate));
    } else {
      system_.connect(a, b, NcclLink::Kind::pci, pci_speed(link.link.rate));
    }
  }

  /// Where a design leaves out the PCIe switch between a NIC and its GPUs, there is one for each NIC; and one host
  /// bridge for all of them where it leaves out the processors: without a way from a NIC to the second GPU, however
  /// bad, NCCL finds no balanced tree, falls back to a single one, and takes as many rings
  /// (github.com/NVIDIA/nccl/issues/1876).
  void add_behind_switch(std::uint32_t gpu, std::uint32_t nic, double speed) {
    std::uint32_t& pci = switch_of_nic_.try_emplace(nic, none).first->second;
    if (pci == none) {
      pci = system_.add(Kind::pci);
      system_.connect(pci, nic, NcclLink::Kind::pci, speed);
      if (design_.cpus.empty()) system_.connect(pci, host_bridge(), NcclLink::Kind::pci, speed);
    }
    system_.connect(gpu, pci, NcclLink::Kind::pci, speed);
  }

  std::uint32_t host_bridge() {
    if (host_bridge_ == none) host_bridge_ = system_.add(Kind::cpu);
    return host_bridge_;
  }

  void add_networks(Bandwidth nic_rate) {
    for (std::uint32_t nic = 0; nic < design_.nics.size(); ++nic)
      system_.connect(node_[design_.nics[nic]], system_.add(Kind::net, nic), NcclLink::Kind::net,
                      gigabytes(nic_rate) * design_.ports_per_nic);
  }

  const ServerDesign& design_;
  bool several_servers_;
  NcclSystem system_;
  std::vector<std::uint32_t> node_;  // of the design's
  std::map<std::uint32_t, std::uint32_t> switch_of_nic_;
  std::uint32_t host_bridge_ = none;  // of a design without processors
};

}  // namespace

NcclSystem nccl_system(const ServerDesign& design, const std::vector<std::uint32_t>& accelerators, Bandwidth nic_rate,
                       bool several_servers) {
  return SystemMaker(design, accelerators, several_servers).make(nic_rate);
}

}  // namespace weft
