// SPDX-License-Identifier: GPL-2.0-only
// The inside of a server as NCCL finds it.
#include "topologies/files/read_nccl.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>

#include "support/documents/xml.hpp"
#include "topologies/files/listed_machine.hpp"

namespace weft {
namespace {

/// One NVLink in one direction: 25 GB/s from Volta to Hopper, 20 GB/s before, 50 GB/s since Blackwell (NVIDIA's
/// architecture white papers of V100, A100, H100 and B200).
std::int64_t nvlink_bps(std::uint64_t compute_capability) {
  return (compute_capability >= 100 ? 50 : compute_capability >= 70 ? 25 : 20) * std::int64_t{8'000'000'000};
}

/// An Infinity Fabric link of 16 lanes in one direction: what it carries, and the share of that which RCCL counts as
/// data (github.com/ROCm/rccl, src/graph/topo.h, GFX94X_XGMI_WIDTH of 48 GB/s, MI200_XGMI_WIDTH of 36 GB/s), as in
/// mi355x.yaml, mi300x.yaml and frontier_node.yaml of topologies/servers.
struct InfinityFabric {
  std::string_view gcn;
  std::int64_t bps;
  LinkFraming framing;
};
constexpr InfinityFabric infinity_fabrics[] = {{"gfx950", 614'400'000'000, {48, 16, 0}},
                                               {"gfx942", 512'000'000'000, {48, 16, 0}},
                                               {"gfx90a", 400'000'000'000, {36, 14, 0}}};

class NcclReader {
 public:
  NcclReader(const XmlFile& file, const Spec& map) : file_(file), map_(map) {}

  ServerDesign read() {
    const pugi::xml_node system = file_.root("system", "a topology file of NCCL");
    design_.gpus = 0;
    count_gpus(system);
    if (design_.gpus == 0) throw InputError({file_.path(), 1}, "no <gpu> in it; at least 1 is needed");
    design_.nodes = design_.gpus;
    for (const auto& cpu : system.children("cpu")) add_cpu(cpu);
    add_nvlinks();
    join_cpus();
    choose_nics();
    design_.cpus = cpus_;
    return design_;
  }

 private:
  /// Or an Infinity Fabric link.
  struct NvLink {
    std::uint32_t gpu;
    std::string target;
    std::int64_t bps;
    SourceLine where;
    LinkFraming framing = {};
  };

  void count_gpus(const pugi::xml_node& element) {
    for (const auto& child : element.children()) {
      const std::string_view tag = child.name();
      if (tag == "gpu") ++design_.gpus;
      if (tag == "cpu" || tag == "pci") count_gpus(child);
    }
  }

  Time delay(const std::string& key) const { return read_link_delay(map_.at(key)); }

  /// The names are those of src/graph/topo.cc (kvDictCpuArch, kvDictCpuVendor).
  static HostCpu processor(const pugi::xml_node& cpu) {
    if (std::string_view(cpu.attribute("arch").value()) == "arm64") return HostCpu::arm;
    return std::string_view(cpu.attribute("vendor").value()) == "AuthenticAMD" ? HostCpu::amd : HostCpu::intel;
  }

  void add_cpu(const pugi::xml_node& cpu) {
    if (cpus_.empty()) design_.cpu = processor(cpu);
    const std::uint32_t node = design_.nodes++;
    cpus_.push_back(node);
    for (const auto& child : cpu.children("pci")) add_pci(child, node);
  }

  /// 8 GT/s and more: 128 of 130 bits are data, before 8 of 10 (PCI-SIG, Base Specification 3.0). Virtual machines
  /// often do not know: NCCL then takes 16 lanes and 8 GT/s (src/graph/topo.cc, ncclTopoAddPci and kvDictPciGen).
  static Bandwidth pci_rate(const pugi::xml_node& pci, const SourceLine& where) {
    std::string speed = pci.attribute("link_speed").value();
    if (speed.empty() || speed.starts_with("Unknown")) speed = "8.0 GT/s PCIe";
    const std::uint64_t lanes = whole_number(pci.attribute("link_width").value(), 0, 64, "link_width", where);
    const std::int64_t width = lanes == 0 ? 16 : static_cast<std::int64_t>(lanes);
    const std::map<std::string, std::int64_t> lane_bps = {
        {"2.5", 2'000'000'000}, {"5.0", 4'000'000'000},   {"5", 4'000'000'000},   {"8.0", 7'876'923'076},
        {"8", 7'876'923'076},   {"16.0", 15'753'846'153}, {"16", 15'753'846'153}, {"32.0", 31'507'692'307},
        {"32", 31'507'692'307}, {"64.0", 63'015'384'615}, {"64", 63'015'384'615}};
    const auto lane = lane_bps.find(speed.substr(0, speed.find(' ')));
    if (lane == lane_bps.end() || speed.find("GT/s") == std::string::npos)
      throw InputError(where, fmt::format("link_speed: found '{}'; expected a speed such as '16.0 GT/s PCIe'", speed));
    return Bandwidth::from_bps(lane->second * width);
  }

  void add_pci(const pugi::xml_node& pci, std::uint32_t parent) {
    const LinkSpec link{pci_rate(pci, file_.where(pci)), delay("pcie_delay")};
    std::uint32_t node = 0;
    if (pci.child("pci")) {  // a switch
      node = design_.nodes++;
      design_.links.push_back({parent, node, link, "pcie"});
    }
    for (const auto& child : pci.children()) {
      const std::string_view tag = child.name();
      if (tag == "pci") add_pci(child, node);
      if (tag == "gpu") add_gpu(child, pci.attribute("busid").value(), parent, link);
      if (tag == "nic") add_nic(child, parent, link);
    }
  }

  void add_gpu(const pugi::xml_node& gpu, const std::string& busid, std::uint32_t parent, const LinkSpec& link) {
    const SourceLine where = file_.where(gpu);
    const std::uint32_t number = gpus_read_++;
    if (!gpu_at_.emplace(busid, number).second)
      throw InputError(where, fmt::format("bus id '{}' has a GPU already", busid));
    design_.links.push_back({parent, number, link, "pcie"});
    // RCCL writes the number of compute units here, and the architecture to `gcn`.
    const std::uint64_t capability = whole_number(gpu.attribute("sm").value(), 1, 1000, "sm", where);
    const std::string gcn = gpu.attribute("gcn").value();
    if (!gcn.empty()) return add_infinity_fabric(gpu, number, gcn);
    design_.architecture = capability >= 100  ? GpuArchitecture::blackwell
                           : capability >= 90 ? GpuArchitecture::hopper
                           : capability >= 80 ? GpuArchitecture::ampere
                                              : GpuArchitecture::volta;
    for (const auto& child : gpu.children("nvlink")) {
      const SourceLine place = file_.where(child);
      const auto count =
          static_cast<std::int64_t>(whole_number(child.attribute("count").value(), 1, 64, "count", place));
      nvlinks_.push_back({number, child.attribute("target").value(), count * nvlink_bps(capability), place});
    }
  }

  void add_infinity_fabric(const pugi::xml_node& gpu, std::uint32_t number, const std::string& gcn) {
    for (const auto& child : gpu.children("xgmi")) {
      const SourceLine place = file_.where(child);
      const auto known = std::find_if(std::begin(infinity_fabrics), std::end(infinity_fabrics),
                                      [&](const InfinityFabric& one) { return one.gcn == gcn; });
      if (known == std::end(infinity_fabrics))
        throw InputError(place, fmt::format("found an xgmi link of '{}', whose rate is not known; expected gfx950, "
                                            "gfx942 or gfx90a",
                                            gcn));
      const auto count =
          static_cast<std::int64_t>(whole_number(child.attribute("count").value(), 1, 64, "count", place));
      nvlinks_.push_back({number, child.attribute("target").value(), count * known->bps, place, known->framing});
    }
  }

  void add_nic(const pugi::xml_node& nic, std::uint32_t parent, const LinkSpec& link) {
    for ([[maybe_unused]] const auto& net : nic.children("net")) {
      const std::uint32_t node = design_.nodes++;
      design_.nics.push_back(node);
      design_.links.push_back({parent, node, link, "pcie"});
    }
  }

  /// To another GPU: named at both ends. To a bridge (NVSwitch, class 0x0680): all such bridges together are one
  /// switch. To a CPU: that CPU.
  void add_nvlinks() {
    if (nvlinks_.empty()) return;
    const Time nvlink_delay = delay("nvlink_delay");
    std::map<std::uint32_t, std::int64_t> to_switch;
    std::set<std::pair<std::uint32_t, std::uint32_t>> joined;
    for (const NvLink& nvlink : nvlinks_) {
      const auto peer = gpu_at_.find(nvlink.target);
      if (peer == gpu_at_.end()) {
        to_switch[nvlink.gpu] += nvlink.bps;
        continue;
      }
      if (peer->second == nvlink.gpu) throw InputError(nvlink.where, "a GPU with an NVLink to itself");
      if (joined.insert(std::minmax(nvlink.gpu, peer->second)).second)
        design_.links.push_back(
            {nvlink.gpu, peer->second, {Bandwidth::from_bps(nvlink.bps), nvlink_delay}, "nvlink", nvlink.framing});
    }
    if (to_switch.empty()) return;
    const std::uint32_t nvswitch = design_.nodes++;
    for (const auto& [gpu, bps] : to_switch)
      design_.links.push_back({gpu, nvswitch, {Bandwidth::from_bps(bps), nvlink_delay}, "nvlink"});
  }

  void join_cpus() {
    for (std::size_t i = 0; i < cpus_.size(); ++i)
      for (std::size_t j = i + 1; j < cpus_.size(); ++j)
        design_.links.push_back({cpus_[i], cpus_[j], {map_.at("smp_rate").bandwidth(), delay("smp_delay")}, "smp"});
  }

  void choose_nics() {
    design_.nic_of_gpu.assign(design_.gpus, 0);
    if (design_.nics.empty()) return;
    std::vector<std::uint32_t> users(design_.nics.size(), 0);
    for (std::uint32_t gpu = 0; gpu < design_.gpus; ++gpu) {
      const auto hops = hops_from(gpu);
      std::uint32_t best = 0;
      for (std::uint32_t nic = 1; nic < design_.nics.size(); ++nic)
        if (std::pair(hops[design_.nics[nic]], users[nic]) < std::pair(hops[design_.nics[best]], users[best]))
          best = nic;
      design_.nic_of_gpu[gpu] = best;
      ++users[best];
    }
  }
  /// Over PCIe and between CPUs alone.
  std::vector<std::uint32_t> hops_from(std::uint32_t start) const {
    std::vector<std::uint32_t> hops(design_.nodes, UINT32_MAX);
    std::deque<std::uint32_t> queue{start};
    hops[start] = 0;
    for (; !queue.empty(); queue.pop_front()) {
      for (const auto& link : design_.links) {
        if (link.link_class == "nvlink" || (link.a != queue.front() && link.b != queue.front())) continue;
        const std::uint32_t peer = link.a == queue.front() ? link.b : link.a;
        if (hops[peer] != UINT32_MAX) continue;
        hops[peer] = hops[queue.front()] + 1;
        queue.push_back(peer);
      }
    }
    return hops;
  }

  const XmlFile& file_;
  const Spec& map_;
  std::uint32_t gpus_read_ = 0;
  std::vector<std::uint32_t> cpus_;
  std::map<std::string, std::uint32_t> gpu_at_;
  std::vector<NvLink> nvlinks_;
  ServerDesign design_;
};

}  // namespace

ServerDesign read_nccl_server(const Spec& name, const Spec& map) {
  std::string path;
  const std::string text = read_text_file(name, path);
  ServerDesign design = NcclReader(XmlFile(text, path), map).read();
  // Both may be said also where there is nothing that they would be needed for.
  for (const char* key : {"nvlink_delay", "pcie_delay", "smp_rate", "smp_delay"}) static_cast<void>(map.find(key));
  return design;
}

}  // namespace weft
