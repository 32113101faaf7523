// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/reading/collective_kernel.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "schedule/pairs/peer_messages.hpp"
#include "support/basics/kept_for_command.hpp"
#include "support/system/data_directory.hpp"
#include "workloads/reading/device.hpp"
#include "workloads/reading/reading.hpp"

namespace weft {

void read_kernel_device(const Spec& spec, const std::string& directory, CollectiveTuning& tuning) {
  const auto value = spec.find("kernel_device");
  if (!value) return;
  const Device device = read_device(Spec::load(resolve_file(*value, directory, "devices", ".yaml")));
  const double rate = static_cast<double>(device.memory_bandwidth.bps()) * device.memory_fraction;
  tuning.reduce_rate = Bandwidth::from_bps(-static_cast<std::int64_t>(rate / 3));
  tuning.copy_rate = Bandwidth::from_bps(-static_cast<std::int64_t>(rate / 2));
  tuning.launch = device.launch;
}

namespace {

namespace files = std::filesystem;

/// A constant, or that of its three values [low, mid, high] which is wanted. `in_order(a, b)`: a takes no longer than
/// b.
template <typename Order>
Spec at_level(const Spec& value, ConstantsLevel level, const Order& in_order) {
  if (!value.is_sequence()) return value;
  if (value.size() != 3)
    throw value.error(fmt::format("found {} values; expected one, or [low, mid, high]", value.size()));
  for (std::size_t i = 0; i < 2; ++i)
    if (!in_order(value[i], value[i + 1]))
      throw value[i + 1].error(fmt::format(
          "found {} after {}; expected [low, mid, high], where low takes the least time: times rise, rates fall",
          value[i + 1].text(), value[i].text()));
  return value[static_cast<std::size_t>(level)];
}

class KernelReader {
 public:
  explicit KernelReader(ConstantsLevel level) : level_(level) {}
  Time time(const Spec& map, const char* key) const { return time_of(map.at(key)); }
  Time time_if_any(const Spec& map, const char* key) const {
    const auto value = map.find(key);
    return value ? time_of(*value) : Time();
  }
  Bandwidth rate(const Spec& map, const char* key) const {
    const auto falls = [](const Spec& a, const Spec& b) { return a.bandwidth() >= b.bandwidth(); };
    return at_level(map.at(key), level_, falls).bandwidth();
  }

  CollectiveKernel::Protocol protocol(const Spec& map) const {
    CollectiveKernel::Protocol protocol;
    protocol.message = time(map, "message");
    protocol.step = time_if_any(map, "step");
    if (const auto bytes = map.find("trip_bytes")) {
      protocol.trip_bytes = bytes->bytes();
      if (protocol.trip_bytes == Bytes(0)) throw bytes->error("a trip of 0 B moves nothing");
      protocol.trip = time(map, "trip");
      protocol.full_trip = time(map, "full_trip");
      if (protocol.full_trip == Time()) throw map.at("full_trip").error("found 0; expected a time such as 0.5 us");
    }
    if (map.has("block_rate")) protocol.pace = rate(map, "block_rate");
    if (const auto trees = map.find("trees")) protocol.trees = tree_rates(*trees);
    if (const auto large = map.find("large_buffers")) protocol.large_buffers = large->boolean();
    map.finish();
    return protocol;
  }
  std::array<Bandwidth, 3> tree_rates(const Spec& map) const {
    const std::array<Bandwidth, 3> rates{rate(map, "one_server"), rate(map, "two_servers"), rate(map, "more_servers")};
    map.finish();
    return rates;
  }
  CollectiveKernel kernel(const Spec& spec) const {
    CollectiveKernel kernel;
    kernel.launch = time(spec, "launch");
    kernel.second_channel = time(spec, "second_channel");
    kernel.large_buffers = time(spec, "large_buffers");
    kernel.pair_buffers = time(spec, "pair_buffers");
    kernel.simple = protocol(spec.at("simple"));
    kernel.ll = protocol(spec.at("ll"));
    kernel.ll.large_buffers = false;
    kernel.ll128 = protocol(spec.at("ll128"));
    kernel.link = rate(spec, "link_rate");
    kernel.store = rate(spec, "store_rate");
    kernel.warp = rate(spec, "warp_rate");
    if (kernel.warp.bps() <= 0) throw spec.at("warp_rate").error("found 0; expected a rate such as 2 GB/s");
    if (const auto reads = spec.find("receivers_read")) kernel.receivers_read = reads->boolean();
    kernel.nvls_loop = time_if_any(spec, "nvls_loop");
    if (spec.has("nvls_rate")) kernel.nvls_rate = rate(spec, "nvls_rate");
    kernel.many_heads_rate = spec.has("nvls_rate_of_many") ? rate(spec, "nvls_rate_of_many") : kernel.nvls_rate;
    spec.finish();
    return kernel;
  }
  CollectiveTransport transport(const Spec& spec) const {
    CollectiveTransport transport;
    transport.turn = time(spec, "turn");
    transport.pass = spec.has("pass") ? time(spec, "pass") : transport.turn;
    transport.ll = time(spec, "ll");
    transport.ll128 = time(spec, "ll128");
    transport.host_read = time(spec, "host_read");
    transport.flush = time(spec, "flush");
    transport.staging = time(spec, "staging");
    transport.staging_rate = rate(spec, "staging_rate");
    if (spec.find("ll_rate")) transport.ll_rate = rate(spec, "ll_rate");
    spec.finish();
    return transport;
  }

 private:
  Time time_of(const Spec& value) const {
    const auto rises = [](const Spec& a, const Spec& b) { return a.time() <= b.time(); };
    return at_level(value, level_, rises).time();
  }
  ConstantsLevel level_;
};

/// The file with a name in a folder of collectives/. Throws InputError at `where`, which names `what`.
Spec named_file(const Spec& where, const std::string& folder, const std::string& what, const std::string& name) {
  const files::path path = data_directory("collectives") / folder;
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : files::directory_iterator(path, ignored)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw where.error(
        fmt::format("unknown {} '{}'{}; known here: {}", what, name, did_you_mean(name, names), listed(names)));
  return Spec::load(path / (name + ".yaml"));
}

std::int64_t bytes_to_a_peer(const CollectiveCall& call) {
  const bool one_peer = call.kind == CollectiveKind::send_recv;
  return one_peer ? call.size.count() : call.size.count() / call.communicator->size();
}

/// Channels that share a GPU's link. Sends and receives: messages to all others at a time, in their parts.
std::uint32_t busy_channels(const CollectiveCall& call, std::uint32_t channels) {
  if (call.algorithm != "nccl_p2p") return channels;
  const std::uint32_t peers = call.kind == CollectiveKind::send_recv ? 1 : call.communicator->size() - 1;
  const std::uint32_t parts = std::min(peer_parts(call, bytes_to_a_peer(call)), channels);
  constexpr std::uint32_t at_once = 8;  // of a channel: NCCL_MAX_DEV_WORK_P2P_PER_BATCH
  return std::min(at_once * channels, peers * parts);
}

/// Warps of a thread block that copy one message out, and one message in.
struct WarpsOfPairs {
  std::int64_t sending = 0;
  std::int64_t receiving = 0;
};

/// Of a block at a time.
PeerWorks works_of_pairs(const CollectiveCall& call) {
  return call.kind == CollectiveKind::send_recv ? PeerWorks() : peer_works(call, bytes_to_a_peer(call));
}

/// The 20 warps of a block (src/enqueue.cc, scheduleP2pTasksToPlan: NCCL_MAX_NTHREADS, 640) are dealt out to its works,
/// and those of a work to its send and its receive, of which sends get one more to post (src/device/sendrecv.h, run).
WarpsOfPairs warps_of_pairs(const CollectiveCall& call, std::uint32_t works) {
  constexpr std::int64_t warps = 20;
  const std::int64_t of_a_work = warps / works;
  if (call.kind == CollectiveKind::gather || call.kind == CollectiveKind::scatter) return {of_a_work, of_a_work};
  if (of_a_work <= 4) return {of_a_work / 2, of_a_work / 2};
  return {(of_a_work - 1) / 2 + 1, (of_a_work - 1) / 2};
}

/// How fast a thread block sends in pairs inside a server. Its warps store on the link at the same time: only their
/// time beyond the link's is left here, as the network counts the link's time.
Bandwidth sending_rate(const CollectiveKernel& kernel, Bandwidth rate, Bandwidth of_link) {
  if (kernel.receivers_read) return rate;
  const double more = 1 / static_cast<double>(rate.bps()) - 1 / static_cast<double>(of_link.bps());
  return more > 0 ? Bandwidth::from_bps(static_cast<std::int64_t>(1 / more)) : Bandwidth();
}

/// Sends and receives with Simple. A receiver's warps copy each chunk from the buffer to its destination. Data for
/// other servers is copied into a buffer that the NIC reads. Messages of a block share the rate that its warps have for
/// one: on GB300 those of a block with one message, three and seven copy as much (validation/published/gb300_racks).
void use_warps(const CollectiveKernel& kernel, const CollectiveCall& call, Bandwidth of_link,
               CollectiveTuning& tuning) {
  const WarpsOfPairs warps = warps_of_pairs(call, 1);
  const std::int64_t messages = works_of_pairs(call).messages;
  const auto shared = [&](std::int64_t count) { return Bandwidth::from_bps(count * kernel.warp.bps() / messages); };
  tuning.store_rate = shared(warps.receiving);
  tuning.network_rate = shared(warps.sending);
  tuning.copy_rate = tuning.reduce_rate = sending_rate(kernel, tuning.network_rate, of_link);
  if (kernel.receivers_read) tuning.fetch_rate = of_link;
}

/// Of a thread block, a `share` of whose warps moves data: bytes of a trip over its time.
Bandwidth rate_of_trips(const CollectiveKernel::Protocol& protocol, double share = 1) {
  const double bits = static_cast<double>(protocol.trip_bytes.count()) * share * 8;
  return Bandwidth::from_bps(static_cast<std::int64_t>(bits * 1e12 / static_cast<double>(protocol.full_trip.ps())));
}

/// With LL. Each thread moves a line in a trip, a block of 16 warps `trip_bytes`. A receiver's threads take a line as
/// soon as its flag is there (src/device/prims_ll.h, LLGenericOp, readLL), while the sender's write the next ones. So
/// bytes take the time of the receiver, which has as many warps or one less.
void use_warps_of_ll(const CollectiveKernel::Protocol& protocol, const CollectiveCall& call, CollectiveTuning& tuning) {
  constexpr double warps_of_a_block = 16;
  const auto warps = static_cast<double>(warps_of_pairs(call, works_of_pairs(call).all).receiving);
  tuning.copy_rate = tuning.reduce_rate = Bandwidth();
  tuning.store_rate = rate_of_trips(protocol, warps / warps_of_a_block);
}

/// Of both ways of a tree together, for a channel: the bytes of an all-reduce pass it once up and once down, and the
/// bus counts both. Channels are copies of those of the search.
Bandwidth pace_of_tree(const CollectiveKernel::Protocol& protocol, const CollectiveCall& call) {
  if (!call.graph) return Bandwidth();
  const std::int64_t of_the_search = protocol.trees[std::min(2U, call.graph->servers() - 1)].bps();
  const std::int64_t found = std::min(call.graph->found(), call.tuning.channels);
  return Bandwidth::from_bps(of_the_search * found / std::max(1U, call.tuning.channels));
}

/// Heads of the servers on which `nvls_loop` was calibrated. A block copies the chunks of all heads one after another
/// (src/device/prims_simple.h, ScatterGatherOp).
constexpr std::uint32_t loop_heads = 8;

/// From the first step to the rates of each: the times of NCCL's kernel of this algorithm and protocol.
void use_kernel(const CollectiveKernel& kernel, CollectiveCall& call) {
  CollectiveTuning& tuning = call.tuning;
  const std::uint32_t channels = std::max(1U, tuning.channels);
  tuning.launch += kernel.launch + (channels > 1 ? kernel.second_channel : Time());
  if (call.algorithm == "nvls" || call.algorithm == "nvls_tree") {
    // The slices of all heads are a loop.
    const std::uint32_t heads = call.graph ? call.graph->speeds().nvls_heads : call.communicator->size();
    const Bandwidth of_all_heads = heads > 8 ? kernel.many_heads_rate : kernel.nvls_rate;
    tuning.stage_latency = kernel.nvls_loop;
    tuning.heads_latency = kernel.nvls_loop * heads / loop_heads;
    tuning.stage_rate = Bandwidth::from_bps(of_all_heads.bps() / std::max(1U, heads));
    tuning.copy_rate = tuning.reduce_rate = Bandwidth::from_bps(kernel.link.bps() / channels * heads / (heads + 1));
    return;
  }
  const auto& protocol = tuning.protocol == Protocol::ll      ? kernel.ll
                         : tuning.protocol == Protocol::ll128 ? kernel.ll128
                                                              : kernel.simple;
  const bool pairs = call.algorithm == "nccl_p2p";
  if (protocol.large_buffers) tuning.launch += pairs ? kernel.pair_buffers : kernel.large_buffers;
  tuning.copies_while_sending = call.algorithm == "ring";
  tuning.message_latency = protocol.message;
  tuning.step_latency = protocol.step;
  tuning.min_step = protocol.trip;
  tuning.pace_rate = protocol.pace;
  if (call.algorithm == "double_binary_tree" && protocol.pace.bps() == 0) {
    tuning.pace_rate = pace_of_tree(protocol, call);
    tuning.paces_own_data = false;
  }
  // A rank waits for the flags of lines and stores each line on the next link at once (src/device/prims_ll128.h,
  // recvReduceSendCopy; src/device/prims_ll.h, LLGenericOp): what its threads move in a trip goes on along a tree. On
  // rings all ranks are busy with a chunk at the same time. RCCL's times were calibrated on trees of whole chunks.
  const bool of_rccl = kernel.ll128.pace.bps() > 0;
  if (call.algorithm == "double_binary_tree" && !of_rccl) tuning.passed_on = protocol.trip_bytes;
  // On a ring that leaves the server at an accelerator, its link carries nothing.
  const double on_links = call.algorithm == "ring" && call.graph ? call.graph->speeds().rings_on_links : 1;
  const double share = on_links > 0 ? busy_channels(call, channels) * on_links : busy_channels(call, channels);
  const Bandwidth of_link =
      Bandwidth::from_bps(static_cast<std::int64_t>(static_cast<double>(kernel.link.bps()) / share));
  tuning.copy_rate = tuning.reduce_rate = protocol.trip_bytes == Bytes(0) ? of_link : rate_of_trips(protocol);
  if (pairs && tuning.protocol == Protocol::ll && protocol.trip_bytes > Bytes(0))
    use_warps_of_ll(protocol, call, tuning);
  if (tuning.protocol != Protocol::simple) return;
  tuning.store_rate = kernel.store;
  if (pairs) use_warps(kernel, call, of_link, tuning);
}

/// A message of Simple (src/device/prims_simple.h, loadSendConn and waitPeer). Its receiver reads a counter in the
/// host's memory, which says that the message has come, and then the mode of the chunk's slot. A sender reads the mode,
/// too. Sends and receives share their buffers among all peers: there the sender also waits for a counter, and both
/// read the offset of each chunk. The rest of the way is that of LL128, whose receivers poll the memory of their GPU,
/// and two passes of the receiver's proxy, to see that the message has come and to count it (src/transport/net.cc,
/// recvProxyProgress).
void use_simple(const CollectiveTransport& transport, Time host_read, bool shared_buffers, CollectiveTuning& tuning) {
  const std::int64_t reads = shared_buffers ? 2 : 1;
  tuning.network_step = host_read * reads;
  tuning.network_latency = transport.ll128 + transport.pass * 2 + host_read * reads;
}

/// Channels that pass the host's memory at one accelerator, in one direction. A ring enters a server at one accelerator
/// and leaves it at another one. Of the two trees, an inner server has a parent and two children in one, a parent alone
/// in the other; on two servers a parent in one, a child in the other.
std::uint32_t channels_over_host(const CollectiveCall& call) {
  const std::uint32_t channels = std::max(1U, call.tuning.channels);
  if (call.algorithm == "nccl_p2p") return std::min(channels, busy_channels(call, channels));
  const bool ring = call.algorithm == "ring";
  if (!ring && call.algorithm != "double_binary_tree") return channels;
  const ServerChannels& kind = call.graph->kind_of(0);
  std::vector<std::uint32_t> halves(kind.accelerators.size());
  const std::uint32_t inner = call.graph->servers() > 2 ? 1 : 0;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    const auto& places = ring ? call.graph->ring_in(0, channel).places : call.graph->tree_in(0, channel).places;
    const std::size_t second = std::min<std::size_t>(1, places.size() - 1);
    halves[places.front()] += ring ? 2 : 1 + inner;
    if (ring) continue;
    halves[places[kind.first_child_at_second_place ? second : 0]] += 1;
    halves[places[kind.second_child_at_second_place ? second : 0]] += inner;
  }
  return std::max(1U, (*std::max_element(halves.begin(), halves.end()) + 1) / 2);
}

/// The times of the path to other servers. LL goes through memory of the host in any case (NCCL src/transport/net.cc).
void use_transport(const CollectiveTransport& transport, CollectiveCall& call) {
  CollectiveTuning& tuning = call.tuning;
  const ChannelSpeeds& speeds = call.graph->speeds();
  tuning.network_turn = transport.turn;
  if (tuning.protocol == Protocol::ll) {
    tuning.network_latency = transport.ll;
    tuning.network_rate = transport.ll_rate;
    return;
  }
  const bool simple = tuning.protocol == Protocol::simple;
  tuning.network_latency = transport.ll128;
  if (simple)
    use_simple(transport, speeds.host_read.value_or(transport.host_read), call.algorithm == "nccl_p2p", tuning);
  if (!speeds.gpudirect) {
    tuning.network_latency += transport.staging;
    // Below one PCIe switch the link to the host has the data twice in each direction: between accelerator and memory,
    // and between memory and NIC. NCCL's search counts both, too (src/graph/paths.cc, the step over the local CPU).
    const std::uint32_t times = speeds.nics_behind_cpu ? 1 : 2;
    tuning.network_rate = Bandwidth::from_bps(transport.staging_rate.bps() / (channels_over_host(call) * times));
  } else if (simple && speeds.generation <= ChannelSpeeds::Generation::ampere) {
    tuning.network_latency += transport.flush;  // ncclTopoNeedFlush; recvProxyProgress: NCCL_PROTO_SIMPLE alone
  }
}

}  // namespace

const CollectiveKernel& collective_kernel(const Spec& where, const std::string& name, ConstantsLevel level) {
  static KeptForCommand<std::pair<std::string, ConstantsLevel>, CollectiveKernel> kept;
  auto& known = kept.values();
  if (const auto at = known.find({name, level}); at != known.end()) return at->second;
  const Spec file = named_file(where, "kernels", "collective_kernel", name);
  return known.emplace(std::pair(name, level), KernelReader(level).kernel(file)).first->second;
}

const CollectiveTransport& collective_transport(const Spec& where, const std::string& name, ConstantsLevel level) {
  static KeptForCommand<std::pair<std::string, ConstantsLevel>, CollectiveTransport> kept;
  auto& known = kept.values();
  if (const auto at = known.find({name, level}); at != known.end()) return at->second;
  const Spec file = named_file(where, "transports", "collective_transport", name);
  return known.emplace(std::pair(name, level), KernelReader(level).transport(file)).first->second;
}

void settle_collective_kernel(const Spec& where, CollectiveCall& call, bool nccl) {
  CollectiveTuning& tuning = call.tuning;
  tuning.own_launch = tuning.launch;
  const bool given = tuning.launch > Time() || tuning.step_latency > Time() || tuning.reduce_rate.bps() > 0 ||
                     tuning.copy_rate.bps() > 0;
  std::string name = tuning.kernel;
  if (name.empty() && nccl && !given && call.graph) name = call.graph->speeds().kernel;
  if (name.empty() || name == "none" || call.communicator->size() < 2) return;
  tuning.kernel = name;
  use_kernel(collective_kernel(where, name, tuning.constants), call);
  if (!call.graph || call.graph->servers() < 2) return;
  if (tuning.transport.empty()) tuning.transport = call.graph->speeds().transport;
  if (!tuning.transport.empty() && tuning.transport != "none")
    use_transport(collective_transport(where, tuning.transport, tuning.constants), call);
}

void read_latencies(const Spec& spec, CollectiveTuning& tuning) {
  const auto value = spec.find("latencies");
  if (value && value->one_of({"none", "nccl"}) == "nccl") tuning.step_latency = Time::from_ps(-1);
}

void settle_kernel(const Spec& where, CollectiveCall& call) {
  CollectiveTuning& tuning = call.tuning;
  for (Bandwidth* rate : {&tuning.reduce_rate, &tuning.copy_rate})
    if (rate->bps() < 0) *rate = Bandwidth::from_bps(-rate->bps() / tuning.channels);
  if (tuning.step_latency >= Time()) return;
  const auto latencies = nccl_latencies(call.algorithm, tuning.protocol);
  if (!latencies)
    throw where.error(
        fmt::format("latencies: nccl, but NCCL knows none of '{}'; ring, double_binary_tree, pat, nvls and "
                    "nvls_tree have such, and step_latency and launch_latency give any",
                    call.algorithm));
  tuning.step_latency = latencies->step;
  tuning.launch += latencies->launch;
}

std::optional<KernelLatencies> nccl_latencies(const std::string& algorithm, Protocol protocol) {
  struct Row {
    const char* algorithm;
    std::array<double, 3> base;   // us: LL, LL128, Simple
    std::array<double, 3> steps;  // us
  };
  static constexpr std::array<Row, 3> rows = {{{"double_binary_tree", {6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}},
                                               {"ring", {6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}},
                                               {"pat", {8.0, 8.0, 8.0}, {0, 0, 4.0}}}};
  const auto microseconds = [](double us) { return Time::from_ps(static_cast<std::int64_t>(us * 1e6 + 0.5)); };
  if (algorithm == "nvls" || algorithm == "nvls_tree") return KernelLatencies{Time::from_us(25), Time()};
  const std::size_t at = protocol == Protocol::ll ? 0 : protocol == Protocol::ll128 ? 1 : 2;
  for (const Row& row : rows)
    if (algorithm == row.algorithm) return KernelLatencies{microseconds(row.base[at]), microseconds(row.steps[at])};
  return std::nullopt;
}

}  // namespace weft
