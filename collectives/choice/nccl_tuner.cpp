// SPDX-License-Identifier: GPL-2.0-only
// NCCL's tuner model as the selection `nccl`: that of 2.30, and where earlier releases differ, theirs (tags v2.20.3-1,
// v2.21.5-1, v2.22.3-1, v2.25.1-1 and v2.27.3-1). Constants and formulas: NCCL src/graph/tuning.cc (ncclTopoTuneModel,
// ncclTopoGetAlgoTime), choice of channels: src/enqueue.cc. Of NCCL's algorithms it weighs Ring, Tree and PAT, and on
// machines whose switches reduce NVLS (one server) and NVLSTree (several); CollNet is taken by name only.
#include "collectives/choice/nccl_tuner.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "collectives/choice/tuner_table.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "schedule/collective/selection.hpp"
#include "schedule/pairs/peer_messages.hpp"

namespace weft {
namespace {

using A = NcclAlgorithm;

std::size_t of(Protocol protocol) {  // NCCL's order: LL, LL128, Simple
  return protocol == Protocol::ll ? 0 : protocol == Protocol::ll128 ? 1 : 2;
}
std::size_t of(A algorithm) { return static_cast<std::size_t>(algorithm); }
bool of_nvls(A algorithm) { return algorithm == A::nvls || algorithm == A::nvls_tree; }

constexpr double base_latency[5][3] = {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {8.0, 8.0, 8.0}, {0, 0, 0}, {0, 0, 0}};
constexpr double nvlink_latency[5][3] = {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 4.0}, {0, 0, 25}, {0, 0, 25}};
constexpr double pci_latency[5][3] = {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {0, 0, 4.0}, {0, 0, 0}, {0, 0, 0}};
constexpr double net_latency[5][3] = {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0, 0, 14.0}, {0, 0, 18}, {0, 0, 20.9}};
// By GPU, and by 1, 2, or more servers.
constexpr double ll_bandwidth[4][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
constexpr double ring_ll128[4][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}};
constexpr double tree_ll128[4][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
constexpr double tree_bandwidth[4][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
constexpr double nvls_tree_bandwidth[4][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}};
constexpr double nvls_efficiency[4] = {0, 0, 0.85, 0.74};
constexpr double tree_correction[3][24] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

// The values of earlier releases.
constexpr double early_hopper_ll[3] = {87.7, 22.5, 19};  // llMaxBws, until 2.21 told Hopper apart from Ampere
constexpr double early_nvls_us = 23;                     // hwLat, until 2.21 made it 25
constexpr double early_nvls_share = 5.0 / 6.0;           // of an all-reduce's bandwidth, up to 2.27
constexpr double early_tree_step_us = 28;                // hwLat of Simple, from 2.19 to 2.22
constexpr double early_nvls_tree_network_us = 14;        // hwLat, up to 2.27
constexpr double early_blackwell_speedup = 2;            // over Hopper, of all bandwidths per channel, up to 2.27
bool up_to_2_20(const NcclMachine& m) { return m.version == NcclVersion::v2_18; }
bool up_to_2_22(const NcclMachine& m) { return m.version <= NcclVersion::v2_21; }
bool up_to_2_27(const NcclMachine& m) { return m.version <= NcclVersion::v2_27; }

/// By default one accelerator of each server has it (src/graph/tuning.cc, ncclPatEnable), since 2.23.
bool has_pat(const NcclMachine& m) { return m.ranks_per_server == 1 && m.version >= NcclVersion::v2_23; }

std::uint32_t log2_floor(std::uint32_t value) { return static_cast<std::uint32_t>(std::bit_width(value)) - 1; }

/// GB/s of a channel, and how many there are.
struct Speeds {
  double intra = 0;
  double inter = 0;
  double channels = 0;
};
Speeds speeds_of(const NcclMachine& m, A algorithm) {
  const auto either = [](double own, double otherwise) { return own > 0 ? own : otherwise; };
  if (algorithm == A::tree)
    return {either(m.tree_intra_gbps, m.intra_gbps), either(m.tree_inter_gbps, m.inter_gbps), double(m.channels)};
  if (of_nvls(algorithm))
    return {either(m.nvls_intra_gbps, m.intra_gbps), either(m.nvls_inter_gbps, m.inter_gbps),
            double(m.nvls_heads > 0 ? m.nvls_heads : m.channels)};
  return {m.intra_gbps, m.inter_gbps, double(m.channels)};
}

/// GB/s that LL gets at most: in one server by GPU, else by CPU.
double max_of_ll(const NcclMachine& m) {
  const std::size_t size = m.servers <= 2 ? m.servers - 1 : 2;
  if (m.servers > 1) return ll_bandwidth[m.cpu == NcclMachine::Cpu::amd ? 1 : 0][size];
  const bool early = up_to_2_20(m) && m.gpu == NcclMachine::Gpu::hopper;
  return early ? early_hopper_ll[size] : ll_bandwidth[static_cast<std::size_t>(m.gpu)][size];
}

/// The share of LL in the bandwidth of rings.
double share_of_ll(const NcclMachine& m, CollectiveKind kind) {
  if (!up_to_2_20(m)) return 0.5;
  return m.servers > 1 || kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce ? 1.0 / 4 : 1.0 / 3;
}

double share_of_ll128(const NcclMachine& m) { return up_to_2_22(m) && m.ranks_per_server == 1 ? 0.7 : 0.92; }

/// Of a channel, up to 2.27. In one server all heads go on as fast as inside.
double early_nvls_bandwidth(const NcclMachine& m, bool all_reduce, A algorithm, const Speeds& speeds) {
  const double between = m.servers == 1 ? speeds.intra : speeds.inter;
  if (!all_reduce && !up_to_2_22(m)) {
    const double local = m.ranks_per_server;
    return std::min(speeds.intra * (local - 1) / local, 0.9 * between);
  }
  const double shared = algorithm == A::nvls_tree && m.servers > 2 ? between / 2 : between;
  return std::min(speeds.intra, shared) * early_nvls_share;
}

/// GB/s that a channel gets at most, by a table of 2.30.
double max_per_channel(const NcclMachine& m, const double (&table)[4][3]) {
  const std::size_t size = m.servers <= 2 ? m.servers - 1 : 2;
  const auto gpu = static_cast<std::size_t>(m.gpu);
  if (m.gpu != NcclMachine::Gpu::blackwell || !up_to_2_27(m)) return table[gpu][size];
  return early_blackwell_speedup * table[gpu - 1][size];
}

double bandwidth_of(const NcclMachine& m, CollectiveKind kind, A algorithm, Protocol protocol) {
  const auto gpu = static_cast<std::size_t>(m.gpu);
  const double ll_max = max_of_ll(m);
  const double n = m.ranks();
  const Speeds speeds = speeds_of(m, algorithm);
  double bus = speeds.channels * (m.servers <= 2 ? speeds.intra : speeds.inter);
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  const double channels = speeds.channels;
  if (of_nvls(algorithm) && up_to_2_27(m)) return channels * early_nvls_bandwidth(m, all_reduce, algorithm, speeds);
  if (of_nvls(algorithm)) {
    const double inside = speeds.intra * nvls_efficiency[gpu] * (channels - 1) / channels;
    double each = inside * (all_reduce ? 2 : (m.ranks_per_server - 1.0) / m.ranks_per_server);
    if (algorithm == A::nvls_tree)
      each = std::min({each, speeds.inter * (m.servers <= 2 ? 2 : 1), max_per_channel(m, nvls_tree_bandwidth)});
    return channels * each * (all_reduce ? n / (2 * (n - 1)) : 1);
  }
  if (algorithm == A::ring) {
    if (protocol == Protocol::ll) bus = std::min(ll_max, share_of_ll(m, kind) * bus);
    if (protocol == Protocol::ll128) bus = std::min(share_of_ll128(m) * bus, channels * max_per_channel(m, ring_ll128));
    const bool blocks = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
    return bus * n / (all_reduce ? 2 * (n - 1) : blocks ? n - 1 : n);
  }
  if (algorithm == A::tree) {
    bus = std::min(0.92 * bus, channels * max_per_channel(m, tree_bandwidth));
    if (protocol == Protocol::ll) bus = std::min(bus / 3.8, ll_max);
    if (protocol == Protocol::ll128)
      bus = std::min(bus * (m.servers == 1 ? 7.0 / 9.0 : 120.0 / 128.0), channels * max_per_channel(m, tree_ll128));
    return bus * (m.tree_is_simple ? 0.85 : 1) * 0.5;
  }
  return bus * 0.75;
}

/// Of a broadcast or reduction along rings. Without the latency of the network's card, and with the tree's step where
/// rings differ.
double chain_latency(const NcclMachine& m, Protocol protocol) {
  const auto& hardware = m.servers > 1 ? net_latency : m.nvlink ? nvlink_latency : pci_latency;
  const std::size_t p = of(protocol);
  if (m.same_rings) return hardware[of(A::ring)][p];
  if (protocol != Protocol::simple) return m.ranks() * hardware[of(A::ring)][p];
  return m.ranks() * (m.version == NcclVersion::v2_21 ? early_tree_step_us : hardware[of(A::tree)][p]);
}

/// Of each step of a ring over several servers: getNetOverhead.
double overhead_us(const NcclMachine& m, Protocol protocol) {
  return (m.cpu == NcclMachine::Cpu::amd ? 2 : 1) * (protocol == Protocol::simple ? 3 : 1);
}

double latency_of(const NcclMachine& m, CollectiveKind kind, A algorithm, Protocol protocol) {
  const std::size_t a = of(algorithm);
  const std::size_t p = of(protocol);
  double intra = (m.nvlink ? nvlink_latency : pci_latency)[a][p];
  const bool simple_tree = algorithm == A::tree && protocol == Protocol::simple;
  if (m.version == NcclVersion::v2_21 && simple_tree) intra = early_tree_step_us;
  if (up_to_2_20(m) && of_nvls(algorithm)) intra = early_nvls_us;
  double inter = net_latency[m.ranks_per_server == 1 && !up_to_2_22(m) ? of(A::tree) : a][p];
  if (m.version == NcclVersion::v2_21 && simple_tree) inter = early_tree_step_us;
  if (up_to_2_27(m) && algorithm == A::nvls_tree) inter = early_nvls_tree_network_us;
  inter += m.net_latency_us;
  if (protocol == Protocol::simple) inter += m.net_latency_us;  // the flush
  double latency = simple_tree && up_to_2_22(m) ? 0 : base_latency[a][p];
  const double n = m.ranks();
  if (algorithm == A::pat) return latency + log2_floor(m.servers) * inter / 3.5 + 2.8 * n;
  if (algorithm == A::nvls) return latency + intra;
  if (algorithm == A::nvls_tree) return latency + intra + 2 * log2_floor(m.servers) * inter;
  if (algorithm == A::tree) return latency + 2 * ((m.ranks_per_server - 1) * intra + log2_floor(m.servers) * inter);
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) return latency + chain_latency(m, protocol);
  const double times = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double between = m.servers == 1 ? 0 : times * (m.servers - (times == 2 && up_to_2_22(m) ? 0 : 1));
  const double overhead = m.servers == 1 ? 0 : overhead_us(m, protocol);
  return latency + (times * (n - 1) - between) * std::max(intra, overhead) + between * inter;
}

/// How many of `tree_correction` there are for an algorithm. Of NVLSTree since 2.28, on Blackwell beside x86.
std::size_t places_of_correction(const NcclMachine& m, A algorithm) {
  if (algorithm == A::tree) return 23;
  const bool nvls_tree_too = !up_to_2_27(m) && m.gpu == NcclMachine::Gpu::blackwell && m.cpu != NcclMachine::Cpu::arm;
  return algorithm == A::nvls_tree && nvls_tree_too ? 24 : 0;
}

}  // namespace

NcclEstimate nccl_estimate(const NcclMachine& machine, CollectiveKind kind, NcclAlgorithm algorithm, Protocol protocol,
                           std::int64_t bytes) {
  NcclEstimate estimate{latency_of(machine, kind, algorithm, protocol),
                        bandwidth_of(machine, kind, algorithm, protocol)};
  const std::int64_t lines = bytes >> 6;
  if (const std::size_t places = places_of_correction(machine, algorithm);
      places > 0 && kind == CollectiveKind::all_reduce && lines > 0) {
    const auto place = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(lines)) - 1);
    if (place < places) estimate.bandwidth *= tree_correction[of(protocol)][place];
  }
  if (algorithm == NcclAlgorithm::ring && protocol == Protocol::simple && machine.servers > 1 &&
      kind == CollectiveKind::all_reduce && bytes / (std::int64_t{machine.channels} * machine.ranks()) >= 64)
    estimate.latency_us *= machine.gpu == NcclMachine::Gpu::volta ? 1.9 : 1.4;
  return estimate;
}

NcclEstimate nccl_estimate(const TunerTable& table, const NcclMachine& machine, CollectiveKind kind,
                           NcclAlgorithm algorithm, Protocol protocol, std::int64_t bytes) {
  const bool tree = algorithm == A::tree;
  const TunerTable::Algorithm& numbers = tree ? table.tree : table.ring;
  const std::size_t p = of(protocol);
  const double n = machine.ranks();
  const double all_reduce = kind == CollectiveKind::all_reduce ? 2 : 1;
  const std::vector<double>& correction = numbers.correction[p];
  const auto place =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes >> 6, 1))) - 1);
  const double share = machine.servers <= 2 ? numbers.share_of_two[p] : numbers.share_of_more[p];
  const bool corrected = tree || machine.servers > 1;
  const double bus = table.bus_gbps * share * (corrected ? correction[std::min(place, correction.size() - 1)] : 1);
  if (tree)
    return {table.base_us[p] + 2 * ((machine.ranks_per_server - 1) * numbers.link_us[p] +
                                    log2_floor(machine.servers) * numbers.network_us[p]),
            bus / 2};
  const double overhead = machine.servers == 1 ? 0 : overhead_us(machine, protocol);
  const double between = machine.servers == 1 ? 0 : all_reduce * (machine.servers - 1);
  const double steps = all_reduce * (n - 1);
  return {
      table.base_us[p] + (steps - between) * std::max(numbers.link_us[p], overhead) + between * numbers.network_us[p],
      bus * n / steps};
}

namespace {

/// Channels that a call of so many bytes gets. `threshold`: bytes of a thread from which on there are more.
std::uint32_t channels_for(std::uint32_t channels, std::int64_t bytes, std::int64_t threads, std::int64_t threshold) {
  while (channels > 1 && bytes < channels * threads * threshold) --channels;
  return channels;
}
std::uint32_t channels_for(std::uint32_t channels, std::int64_t bytes, NcclAlgorithm algorithm, Protocol protocol,
                           std::uint32_t ranks, std::int64_t threads = 0) {
  if (threads == 0) threads = protocol == Protocol::ll128 ? 640 : 512;
  std::int64_t threshold = protocol == Protocol::simple ? 64 : 8;
  if (protocol == Protocol::ll && algorithm == NcclAlgorithm::ring) threshold *= ranks;
  return channels_for(channels, bytes, threads, threshold);
}

/// `only`: one of its algorithms if it can do the call, as named by NCCL_ALGO; empty: all.
class NcclTuner : public CollectiveSelector {
 public:
  explicit NcclTuner(std::string_view only = {}) : only_(only) {}
  Selection select(const CollectiveCall& call, const SelectionContext& context) const override {
    if (call.graph && call.communicator->size() > 1)
      return choose(call, machine_of(call), max_channels(call), context.switches_reduce);
    NcclMachine machine;
    machine.version = call.tuning.nccl_version;
    const std::uint32_t n = call.communicator->size();
    machine.ranks_per_server = std::max(1U, call.tuning.ranks_per_server);
    if (n % machine.ranks_per_server != 0) machine.ranks_per_server = 1;
    machine.servers = std::max(1U, n / machine.ranks_per_server);
    machine.channels = call.tuning.channels > 1 ? call.tuning.channels : machine.ranks_per_server > 1 ? 16 : 2;
    machine.inter_gbps = static_cast<double>(context.rate.bps()) / 8e9 * machine.ranks_per_server / machine.channels;
    if (machine.ranks_per_server == 1) machine.intra_gbps = machine.inter_gbps;
    return choose(call, machine, machine.channels, context.switches_reduce);
  }

 private:
  static NcclMachine machine_of(const CollectiveCall& call) {
    const ChannelGraph& graph = *call.graph;
    const ChannelSpeeds& speeds = graph.speeds();
    NcclMachine machine;
    machine.version = call.tuning.nccl_version;
    machine.gpu = static_cast<NcclMachine::Gpu>(speeds.generation);
    machine.cpu = static_cast<NcclMachine::Cpu>(speeds.cpu);
    machine.nics_behind_cpu = speeds.nics_behind_cpu;
    machine.servers = graph.servers();
    machine.ranks_per_server = std::max(1U, graph.size() / graph.servers());
    machine.channels = graph.found();
    machine.intra_gbps = speeds.ring_intra;
    machine.inter_gbps = speeds.ring_inter;
    machine.tree_intra_gbps = speeds.tree_intra;
    machine.tree_inter_gbps = speeds.tree_inter;
    machine.nvls_intra_gbps = speeds.nvls_intra;
    machine.nvls_inter_gbps = speeds.nvls_inter;
    machine.nvls_heads = speeds.nvls_heads;
    machine.nvlink = speeds.nvlink;
    machine.tree_is_simple = speeds.tree_is_simple;
    machine.same_rings = speeds.same_rings;
    machine.gpudirect = speeds.gpudirect;
    machine.net_latency_us = speeds.settings.net_latency_us;
    // The path diverted through the CPU takes the link above a PCIe switch in both directions, and a channel enters at
    // one NIC as well as it leaves at one (src/graph/search.cc, followPath).
    if (!speeds.gpudirect && !speeds.nics_behind_cpu)
      for (double* speed : {&machine.inter_gbps, &machine.tree_inter_gbps, &machine.nvls_inter_gbps}) *speed /= 2;
    return machine;
  }
  /// The user's value, as NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS together; small calls have fewer nevertheless.
  static std::uint32_t max_channels(const CollectiveCall& call) {
    return call.tuning.channels == 0 ? call.graph->channels() : call.tuning.channels;
  }

  /// `channels`: that a call has at most.
  Selection choose(const CollectiveCall& call, const NcclMachine& machine, std::uint32_t channels,
                   bool switches_reduce) const {
    const std::int64_t bytes = call.size.count();
    const auto kind = call.kind;
    const bool blocks = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
    const bool chain = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
    if (kind == CollectiveKind::barrier)
      return {"double_binary_tree", Protocol::ll, 1, {}, "a barrier is NCCL's smallest all-reduce"};
    if (kind != CollectiveKind::all_reduce && !blocks && !chain) {
      const std::int64_t to_a_peer = kind == CollectiveKind::send_recv ? bytes : bytes / call.communicator->size();
      // Connections to other servers share buffers, which are Simple's alone (NCCL_ALLOC_P2P_NET_LL_BUFFERS,
      // src/transport/net.cc).
      const bool small = machine.servers == 1 && is_small_to_peer(call, to_a_peer, channels);
      return {"nccl_p2p",
              small ? Protocol::ll : Protocol::simple,
              call.graph ? std::bit_ceil(channels) : channels,
              {},
              small ? "messages of up to 16 KiB per channel use LL in a server" : "sends and receives"};
    }
    // On fewer servers than a table is for, RCCL's numbers give LL128 no less than LL, which comes first (ROCm/rccl
    // src/graph/tuning.cc at 9e22c79d); before ROCm 7.0 it had no LL128 on these accelerators.
    const TunerRegions* const regions = call.graph ? tuner_regions(call.graph->speeds().tuner) : nullptr;
    if (regions != nullptr) return choose(*regions, call, machine, channels, switches_reduce);
    const bool has_table = call.graph && !call.graph->speeds().tuner.empty() && regions == nullptr;
    if (has_table) {
      const TunerTable& table = tuner_table(call.graph->speeds().tuner);
      if (table.protocols_of(kind) != nullptr && machine.servers >= table.least_servers)
        return choose(table, call, machine, channels);
    }
    return by_model(call, machine, channels, switches_reduce, !has_table);
  }

  /// NCCL's own choice for a collective that has algorithms.
  Selection by_model(const CollectiveCall& call, const NcclMachine& machine, std::uint32_t channels,
                     bool switches_reduce, bool ll128) const {
    const std::int64_t bytes = call.size.count();
    const CollectiveKind kind = call.kind;
    const bool blocks = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
    const bool chain = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
    Selection best;
    double min = INFINITY;
    const bool only = takes_only(kind);
    const auto weigh = [&](NcclAlgorithm algorithm, const char* name, Protocol protocol) {
      if (only && only_ != name) return;
      const double time = nccl_estimate(machine, kind, algorithm, protocol, bytes).time_us(bytes);
      if (time >= min) return;
      min = time;
      best.algorithm = name;
      best.protocol = protocol;
      best.channels = of_nvls(algorithm) && call.graph
                          ? nvls_channels(call)
                          : channels_for(channels, bytes, algorithm, protocol, machine.ranks());
    };
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      if (protocol == Protocol::ll128 && (!machine.has_ll128() || !ll128)) continue;
      if (kind == CollectiveKind::all_reduce) weigh(NcclAlgorithm::tree, "double_binary_tree", protocol);
      weigh(NcclAlgorithm::ring, "ring", protocol);
    }
    const bool heads = !call.graph || machine.nvls_heads > 0;
    if (switches_reduce && heads && machine.ranks_per_server > 1 && !chain) {
      const bool fits = kind == CollectiveKind::all_reduce || machine.ranks_per_server <= max_nvls_heads;
      if (machine.servers == 1 && fits) weigh(NcclAlgorithm::nvls, "nvls", Protocol::simple);
      if (machine.servers > 1 && kind == CollectiveKind::all_reduce)
        weigh(NcclAlgorithm::nvls_tree, "nvls_tree", Protocol::simple);
    }
    if (blocks && has_pat(machine)) weigh(NcclAlgorithm::pat, "pat", Protocol::simple);
    best.reason = fmt::format("NCCL's model gives it {:.2f} us, the least of its algorithms and protocols", min);
    return best;
  }

  /// A plugin's choice (aws/aws-ofi-nccl src/tuner/nccl_ofi_regions.cpp), and NCCL's where it has none.
  Selection choose(const TunerRegions& regions, const CollectiveCall& call, const NcclMachine& machine,
                   std::uint32_t channels, bool switches_reduce) const {
    const std::int64_t bytes = call.size.count();
    const bool nvls = switches_reduce && machine.nvls_heads > 0;
    const auto possible = [&](const TunerRegions::Region& region) {  // to NCCL, else its table of costs says so
      if (takes_only(call.kind) && region.algorithm != only_) return false;
      if (region.algorithm == "nvls_tree") return nvls && machine.ranks_per_server > 1;
      if (region.algorithm == "pat") return has_pat(machine);
      return region.protocol != Protocol::ll128 || machine.has_ll128();
    };
    const auto* const region = regions.region(call.kind, bytes, machine.ranks(), machine.servers, possible);
    Selection best;
    if (region == nullptr) {
      best = by_model(call, machine, channels, switches_reduce, true);
    } else {
      const A algorithm = region->algorithm == "ring" ? A::ring : region->algorithm == "pat" ? A::pat : A::tree;
      best.algorithm = region->algorithm;
      best.protocol = region->protocol;
      best.channels = best.algorithm == "nvls_tree"
                          ? nvls_channels(call)
                          : channels_for(channels, bytes, algorithm, best.protocol, machine.ranks());
      best.reason = "the plugin's table of sizes and ranks has it";
    }
    return best;
  }

  /// RCCL's choice, ROCm/rccl src/enqueue.cc (topoGetAlgoInfo): the algorithm by time, then the protocol by bytes.
  Selection choose(const TunerTable& table, const CollectiveCall& call, const NcclMachine& machine,
                   std::uint32_t channels) const {
    const std::int64_t bytes = call.size.count();
    const CollectiveKind kind = call.kind;
    const bool only = takes_only(kind);
    bool tree = false;
    double min = INFINITY;
    for (const auto& [algorithm, name] : {std::pair(A::tree, "double_binary_tree"), std::pair(A::ring, "ring")}) {
      if (only ? only_ != name : algorithm == A::tree && kind != CollectiveKind::all_reduce) continue;
      for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
        const double time = nccl_estimate(table, machine, kind, algorithm, protocol, bytes).time_us(bytes);
        if (time >= min) continue;
        min = time;
        tree = algorithm == A::tree;
      }
    }
    Selection best;
    best.algorithm = tree ? "double_binary_tree" : "ring";
    best.protocol = table.protocol(kind, bytes, machine.ranks(), machine.servers);
    const TunerTable::Protocols& limits = *table.protocols_of(kind);
    const auto& threshold = best.protocol == Protocol::ll ? limits.ll : limits.ll128;
    best.channels =
        threshold && best.protocol != Protocol::simple
            ? channels_for(channels, bytes, table.threads, *threshold * machine.ranks())
            : channels_for(channels, bytes, tree ? A::tree : A::ring, best.protocol, machine.ranks(), table.threads);
    if (call.tuning.chunk.count() == 0)
      best.chunk =
          Bytes(table.chunk(tree, best.protocol, bytes, best.channels, machine.ranks_per_server, machine.servers));
    best.reason = fmt::format("the servers' table gives it {:.2f} us, and its sizes the protocol", min);
    return best;
  }

  bool takes_only(CollectiveKind kind) const {
    return !only_.empty() && (kind == CollectiveKind::all_reduce || only_ == "ring");
  }

  std::string_view only_;
};

struct NcclRings final : NcclTuner {
  NcclRings() : NcclTuner("ring") {}
};
struct NcclTrees final : NcclTuner {
  NcclTrees() : NcclTuner("double_binary_tree") {}
};

const Registration<CollectiveSelector, NcclTuner> nccl_tuner_registration(
    "nccl", "NCCL's tuner: ring, tree, PAT or NVLS and a protocol");
const Registration<CollectiveSelector, NcclRings> nccl_ring_registration("nccl_ring", "the same with NCCL_ALGO=RING");
const Registration<CollectiveSelector, NcclTrees> nccl_tree_registration("nccl_tree", "the same with NCCL_ALGO=TREE");

}  // namespace
}  // namespace weft
