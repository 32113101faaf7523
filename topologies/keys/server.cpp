// SPDX-License-Identifier: GPL-2.0-only
// Servers of several GPUs: alone, or as the endpoints of any family of networks (`server:` in its map).
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "graph/shapes/server_shape.hpp"
#include "support/system/data_directory.hpp"
#include "topologies/files/read_nccl.hpp"

namespace weft {
namespace {

constexpr std::int64_t max_gpus = 1024;

/// The map that has a value, and the underlying design.
class ServerReader {
 public:
  explicit ServerReader(const Spec& spec) : spec_(spec) {
    if (spec.is_scalar()) {
      behind_ = open(spec);
    } else if (const auto named = spec.find("design")) {
      behind_ = open(*named);
    }
  }

  ServerDesign read() {
    if (const auto file = find("nccl_topology")) {
      design_ = read_nccl_server(*file, behind_ && !spec_.is_map() ? *behind_ : spec_);
      // The file says these, whatever the ready-made design has.
      if (spec_.is_map() && behind_)
        for (const char* key : {"gpus", "inside", "links", "nvswitches", "cpus", "nics", "nic_of_gpu", "ports_per_nic",
                                "nvlink_rate", "nvlink_delay", "pcie_rate", "pcie_delay", "smp_rate", "smp_delay"})
          static_cast<void>(behind_->find(key));
      return finish();
    }
    design_.gpus = static_cast<std::uint32_t>(at("gpus").integer(1, max_gpus));
    design_.nodes = design_.gpus;
    const std::string inside = at("inside").one_of({"nvswitch", "mesh", "links", "pcie", "none"});
    if (inside == "nvswitch") add_nvswitches();
    if (inside == "mesh") add_mesh();
    if (inside == "links") add_links();
    if (inside == "pcie") add_pcie();
    add_nics();
    return finish();
  }

 private:
  ServerDesign finish() {
    for (const char* of : {"nvlink", "pcie"}) read_framing(of);
    add_gpu_link();
    read_wiring();
    if (spec_.is_map()) spec_.finish();
    if (behind_) behind_->finish();
    return design_;
  }

  /// A name is that of a ready-made design; with a slash or a dot it is a file, relative to the one that names it.
  static Spec open(const Spec& name) {
    const std::string text = name.text();
    namespace fs = std::filesystem;
    if (text.find('/') != std::string::npos || text.find('.') != std::string::npos)
      return Spec::load((fs::path(name.where().file).parent_path() / text).string());
    const fs::path folder = data_directory("topologies") / "servers";
    std::vector<std::string> known;
    for (const auto& entry : fs::directory_iterator(folder)) known.push_back(entry.path().stem().string());
    std::sort(known.begin(), known.end());
    return Spec::load((folder / (name.one_of(known) + ".yaml")).string());
  }

  std::optional<Spec> find(const std::string& key) const {
    if (spec_.is_map()) {
      auto value = spec_.find(key);
      if (behind_) behind_->find(key);  // counts as read, and is overruled
      if (value) return value;
    }
    return behind_ ? behind_->find(key) : std::nullopt;
  }
  Spec at(const std::string& key) const {
    if (const auto value = find(key)) return *value;
    return spec_.is_map() ? spec_.at(key) : behind_->at(key);  // names the missing key
  }
  LinkSpec link(const std::string& prefix) const {
    return {at(prefix + "_rate").bandwidth(), read_link_delay(at(prefix + "_delay"))};
  }

  void read_framing(const std::string& of) {
    const auto value = find(of + "_framing");
    if (!value || (value->is_scalar() && value->text() == "none")) return;
    const LinkFraming framing = read_link_framing(*value);
    for (ServerDesign::Link& link : design_.links)
      if (link.link_class == of) link.framing = framing;
  }

  /// A GPU's links are shared out among the NVSwitches.
  void add_nvswitches() {
    const auto number = find("nvswitches");
    const auto count = number ? static_cast<std::uint32_t>(number->integer(1, max_gpus)) : 1;
    LinkSpec nvlink = link("nvlink");
    nvlink.rate = Bandwidth::from_bps(nvlink.rate.bps() / count);
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t gpu = 0; gpu < design_.gpus; ++gpu)
        design_.links.push_back({gpu, design_.nodes, nvlink, "nvlink"});
      ++design_.nodes;
    }
  }

  void add_mesh() {
    const LinkSpec nvlink = link("nvlink");
    for (std::uint32_t a = 0; a < design_.gpus; ++a)
      for (std::uint32_t b = a + 1; b < design_.gpus; ++b) design_.links.push_back({a, b, nvlink, "nvlink"});
  }

  /// [[a, b, rate], ...]
  void add_links() {
    const LinkSpec nvlink{Bandwidth(), read_link_delay(at("nvlink_delay"))};
    for (const Spec& item : at("links").items()) {
      if (!item.is_sequence() || item.size() != 3)
        throw item.error("expected [GPU, GPU, rate], such as [0, 1, 400 Gb/s]");
      const auto a = static_cast<std::uint32_t>(item[0].integer(0, design_.gpus - 1));
      const auto b = static_cast<std::uint32_t>(item[1].integer(0, design_.gpus - 1));
      if (a == b) throw item.error(fmt::format("GPU {} is linked to itself", a));
      design_.links.push_back({a, b, {item[2].bandwidth(), nvlink.delay}, "nvlink"});
    }
  }

  /// No NVLink: each GPU has a link to its CPU, and the CPUs, which share the GPUs out evenly, are joined.
  void add_pcie() {
    const auto number = find("cpus");
    const auto count = number ? static_cast<std::uint32_t>(number->integer(1, design_.gpus)) : 1;
    for (std::uint32_t cpu = 0; cpu < count; ++cpu) design_.cpus.push_back(design_.nodes++);
    for (std::uint32_t gpu = 0; gpu < design_.gpus; ++gpu)
      design_.links.push_back({gpu, cpu_of(gpu), link("pcie"), "pcie"});
    for (std::uint32_t a = 0; a < count; ++a)
      for (std::uint32_t b = a + 1; b < count; ++b)
        design_.links.push_back({design_.cpus[a], design_.cpus[b], link("smp"), "smp"});
  }
  std::uint32_t cpu_of(std::uint32_t gpu) const {
    return design_.cpus[std::uint64_t{gpu} * design_.cpus.size() / design_.gpus];
  }

  void add_nics() {
    const auto number = find("nics");
    const auto count = number ? static_cast<std::uint32_t>(number->integer(0, max_gpus)) : 0;
    design_.nic_of_gpu.assign(design_.gpus, 0);
    if (count == 0) {
      for (const char* key : {"pcie_rate", "pcie_delay"}) static_cast<void>(find(key));
      return;
    }
    for (std::uint32_t gpu = 0; gpu < design_.gpus; ++gpu)
      design_.nic_of_gpu[gpu] = static_cast<std::uint32_t>(std::uint64_t{gpu} * count / design_.gpus);
    if (const auto listed = find("nic_of_gpu"))
      design_.nic_of_gpu = read_numbers(*listed, design_.gpus, design_.gpus, 0, count - 1);
    if (const auto ports = find("ports_per_nic"))
      design_.ports_per_nic = static_cast<std::uint32_t>(ports->integer(1, 16));
    const LinkSpec pcie = link("pcie");
    for (std::uint32_t nic = 0; nic < count; ++nic) design_.nics.push_back(design_.nodes++);
    check_nics(count);
    if (!design_.cpus.empty()) return put_nics_at_cpus(pcie);
    for (std::uint32_t gpu = 0; gpu < design_.gpus; ++gpu)
      design_.links.push_back({gpu, design_.nics[design_.nic_of_gpu[gpu]], pcie, "pcie"});
  }
  /// Each at the CPU of the first of its GPUs.
  void put_nics_at_cpus(const LinkSpec& pcie) {
    design_.nics_behind_cpu = true;
    for (std::uint32_t nic = 0; nic < design_.nics.size(); ++nic) {
      const auto gpu =
          std::find(design_.nic_of_gpu.begin(), design_.nic_of_gpu.end(), nic) - design_.nic_of_gpu.begin();
      design_.links.push_back({cpu_of(static_cast<std::uint32_t>(gpu)), design_.nics[nic], pcie, "pcie"});
    }
  }
  void check_nics(std::uint32_t count) const {
    for (std::uint32_t nic = 0; nic < count; ++nic)
      if (std::find(design_.nic_of_gpu.begin(), design_.nic_of_gpu.end(), nic) == design_.nic_of_gpu.end())
        throw at(find("nic_of_gpu") ? "nic_of_gpu" : "nics")
            .error(fmt::format("NIC {} of {} has no GPU; leave it out, or name it in nic_of_gpu", nic, count));
  }

  /// As fast as all links of the GPU together, unless its rate is given.
  void add_gpu_link() {
    std::vector<std::int64_t> rate(design_.gpus, 0);
    Time delay = Time::max();
    for (const auto& link : design_.links) {
      if (link.a < design_.gpus) rate[link.a] += link.link.rate.bps();
      if (link.b < design_.gpus) rate[link.b] += link.link.rate.bps();
      delay = std::min(delay, link.link.delay);
    }
    const auto given_rate = find("gpu_rate");
    const auto given_delay = find("gpu_delay");
    const std::int64_t max = *std::max_element(rate.begin(), rate.end());
    const char* none =
        "a server without links inside and without NICs needs {}; if its GPUs reach each other over PCIe, "
        "use inside: pcie";
    if (!given_rate && max == 0) throw spec_.error(fmt::format(fmt::runtime(none), "gpu_rate"));
    if (!given_delay && delay == Time::max()) throw spec_.error(fmt::format(fmt::runtime(none), "gpu_delay"));
    design_.gpu_link.rate = given_rate ? given_rate->bandwidth() : Bandwidth::from_bps(max);
    design_.gpu_link.delay = given_delay ? read_link_delay(*given_delay) : delay;
  }

  void read_wiring() {
    if (const auto wiring = find("wiring"))
      design_.wiring =
          wiring->one_of({"packed", "rail"}) == "rail" ? ServerDesign::Wiring::rail : ServerDesign::Wiring::packed;
    if (const auto pxn = find("pxn")) {
      design_.pxn = pxn->boolean();
      if (design_.pxn && !connected_inside())
        throw pxn->error("PXN goes over the links between the GPUs of a server, and these do not join all of them");
    }
    read_nvlink_sharp();
    if (const auto routing = find("network_routing")) design_.network_routing = routing->text();
    if (const auto kernel = find("collective_kernel")) design_.collective_kernel = kernel->text();
    if (const auto transport = find("collective_transport")) design_.collective_transport = transport->text();
    if (const auto file = find("nccl_graphs")) design_.given_graphs = read_nccl_graphs(*file, design_);
    read_rings();
    read_tuner();
    if (const auto behind = find("nics_behind_cpu")) design_.nics_behind_cpu = behind->boolean();
    if (const auto direct = find("gpudirect")) design_.gpudirect = direct->boolean();
    if (const auto read = find("host_read")) design_.host_read = read->time();
    read_one_of("architecture", gpu_architecture_names, design_.architecture);
    read_one_of("cpu", host_cpu_names, design_.cpu);
  }
  /// That of a ready-made design is for its NVSwitches.
  void read_nvlink_sharp() {
    const auto sharp = find("nvlink_sharp");
    design_.nvlink_sharp = sharp && sharp->boolean();
    const bool switches = std::any_of(design_.links.begin(), design_.links.end(), [this](const auto& link) {
      return link.link_class == "nvlink" && std::max(link.a, link.b) >= design_.gpus;
    });
    if (!design_.nvlink_sharp || switches) return;
    if (!behind_ || (spec_.is_map() && spec_.has("nvlink_sharp")))
      throw sharp->error(
          "NVLink SHARP is what NVSwitches do, and this server has none; expected inside: nvswitch, or false");
    design_.nvlink_sharp = false;
  }
  void read_rings() {
    const auto rings = find("rings");
    if (!rings || (rings->is_scalar() && rings->text() == "none")) return;
    // Those of a ready-made design are for its GPUs, links and NICs.
    const auto changed = [&](const char* key) { return spec_.is_map() && spec_.has(key); };
    const bool other =
        changed("gpus") || changed("inside") || changed("links") || changed("nics") || changed("nic_of_gpu");
    if (behind_ && !changed("rings") && other) return;
    if (const auto table = rings->find("one_server")) design_.rings_of_one_server = ring_table(*table);
    if (const auto table = rings->find("several_servers")) {
      if (design_.nics.empty()) throw table->error("rings over several servers need NICs");
      design_.rings_of_several_servers = ring_table(*table);
    }
    rings->finish();
  }
  void read_nccl_settings(const Spec& settings) {
    auto& own = design_.nccl_settings;
    own.net_latency_us = static_cast<double>(settings.at("net_latency").time().ps()) / 1e6;
    for (const auto& [key, bytes] :
         {std::pair("buffer", &own.buffer), std::pair("p2p_chunk", &own.p2p_chunk),
          std::pair("nvls_chunk", &own.nvls_chunk), std::pair("nvls_tree_chunk", &own.nvls_tree_chunk)}) {
      const Spec value = settings.at(key);
      *bytes = value.bytes().count();
      if (*bytes < 8) throw value.error("found less than 8 B; expected a size such as '512 KiB'");
    }
    settings.finish();
  }
  /// Numbers are for the rings of a table; regions of bytes and ranks are for any.
  void read_tuner() {
    const auto tuner = find("collective_tuner");
    if (!tuner || tuner->text() == "none") return;
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(data_directory("collectives") / "tuners", ignored))
      names.push_back(entry.path().stem().string());
    std::sort(names.begin(), names.end());
    names.emplace_back("none");
    tuner->one_of(names);
    const auto file = data_directory("collectives") / "tuners" / (tuner->text() + ".yaml");
    const Spec numbers = Spec::load(file);
    design_.tuner_needs_rings = !numbers.has("regions");
    if (const auto settings = numbers.find("settings")) read_nccl_settings(*settings);
    const bool here = spec_.is_map() && spec_.has("collective_tuner");
    if (here && design_.tuner_needs_rings && design_.rings_of_several_servers.orders.empty())
      throw tuner->error("collective_tuner has numbers for rings of a table; expected `rings` with several_servers");
    design_.collective_tuner = tuner->text();
  }
  std::vector<std::vector<std::uint32_t>> ring_orders(const Spec& list) const {
    std::vector<std::vector<std::uint32_t>> result;
    for (const Spec& order : list.items()) {
      std::vector<std::uint32_t> gpus;
      for (const Spec& gpu : order.items()) {
        gpus.push_back(static_cast<std::uint32_t>(gpu.integer(0, design_.gpus - 1)));
        if (std::find(gpus.begin(), gpus.end() - 1, gpus.back()) != gpus.end() - 1)
          throw gpu.error(fmt::format("GPU {} is in the ring twice", gpus.back()));
      }
      if (gpus.size() != design_.gpus)
        throw order.error(fmt::format("found {} GPUs; expected all {} of the server", gpus.size(), design_.gpus));
      result.push_back(std::move(gpus));
    }
    return result;
  }
  ServerDesign::RingTable ring_table(const Spec& spec) const {
    constexpr std::int64_t max_repeat = 32;
    ServerDesign::RingTable table;
    if (const auto repeat = spec.find("repeat"))
      table.repeat = static_cast<std::uint32_t>(repeat->integer(1, max_repeat));
    table.orders = ring_orders(spec.at("orders"));
    if (const auto alternate = spec.find("alternate")) table.alternate = alternate->boolean();
    for (const auto& [key, orders] : {std::pair("last_but_one", &table.last_but_one), std::pair("last", &table.last)}) {
      const auto value = spec.find(key);
      if (!value) continue;
      if (!table.alternate)
        throw value->error("these are for rings that alternate; expected `alternate: true` as well");
      *orders = ring_orders(*value);
      if (orders->size() != table.orders.size())
        throw value->error(
            fmt::format("found {} rings; expected {}, as there are `orders`", orders->size(), table.orders.size()));
    }
    if (table.last.empty() != table.last_but_one.empty())
      throw spec.error("last_but_one and last belong together; found only one of them");
    spec.finish();
    return table;
  }
  /// `names` in the order of the values.
  template <class Value, std::size_t count>
  void read_one_of(const char* key, const std::array<std::string_view, count>& names, Value& value) const {
    const auto given = find(key);
    if (!given) return;
    const std::vector<std::string> known(names.begin(), names.end());
    value = static_cast<Value>(std::find(known.begin(), known.end(), given->one_of(known)) - known.begin());
  }
  bool connected_inside() const {
    const auto part = design_.parts();
    return std::all_of(part.begin(), part.end(), [](std::uint32_t p) { return p == 0; });
  }

  const Spec& spec_;
  std::optional<Spec> behind_;
  ServerDesign design_;
};

/// `server:` beside the parameters of a family.
class ServersOfNetwork final : public TopologyExtension {
 public:
  Topology extend(const Spec& value, Topology machine) const override {
    const ServerDesign design = ServerReader(value).read();
    return attach_servers(design, std::make_shared<const Topology>(std::move(machine)), value);
  }
};

/// Without a network they would be dead ends. Nodes are renumbered: in NCCL's files NICs are not the last ones.
void leave_out_nics(ServerDesign& design) {
  const auto is_nic = [nics = design.nics](std::uint32_t node) {
    return std::find(nics.begin(), nics.end(), node) != nics.end();
  };
  std::erase_if(design.links, [&](const auto& link) { return is_nic(link.a) || is_nic(link.b); });
  std::vector<std::uint32_t> number(design.nodes);
  std::uint32_t next = 0;
  for (std::uint32_t node = 0; node < design.nodes; ++node) number[node] = is_nic(node) ? next : next++;
  for (ServerDesign::Link& link : design.links)
    link = {number[link.a], number[link.b], link.link, link.link_class, link.framing};
  for (std::uint32_t& cpu : design.cpus) cpu = number[cpu];
  design.nodes = next;
  design.nics.clear();
}

/// One server without a network.
class Server final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    const Spec named = spec.at("design");
    ServerDesign design = ServerReader(named).read();
    spec.finish();
    leave_out_nics(design);
    return attach_servers(design, nullptr, named);
  }
};

const Registration<TopologyExtension, ServersOfNetwork> of_network("server", "servers in the place of hosts");
const Registration<TopologyBuilder, Server> alone("server", "one server without a network: {design: NAME or map}");

}  // namespace
}  // namespace weft
