// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/reading/collective_kernel.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "support/data_directory.hpp"
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

CollectiveKernel::Protocol read_protocol(const Spec& map) {
  CollectiveKernel::Protocol protocol;
  protocol.message = map.at("message").time();
  if (const auto value = map.find("step")) protocol.step = value->time();
  if (const auto bytes = map.find("trip_bytes")) {
    protocol.trip_bytes = bytes->bytes();
    if (protocol.trip_bytes == Bytes(0)) throw bytes->error("a trip of 0 B moves nothing");
    protocol.trip = map.at("trip").time();
    protocol.full_trip = map.at("full_trip").time();
    if (protocol.full_trip == Time()) throw map.at("full_trip").error("found 0; a time such as 0.5 us is due here");
  }
  map.finish();
  return protocol;
}

CollectiveKernel read_collective_kernel(const std::string& path) {
  const Spec spec = Spec::load(path);
  CollectiveKernel kernel;
  kernel.launch = spec.at("launch").time();
  kernel.second_channel = spec.at("second_channel").time();
  kernel.large_buffers = spec.at("large_buffers").time();
  kernel.simple = read_protocol(spec.at("simple"));
  kernel.ll = read_protocol(spec.at("ll"));
  kernel.ll128 = read_protocol(spec.at("ll128"));
  kernel.link = spec.at("link_rate").bandwidth();
  kernel.store = spec.at("store_rate").bandwidth();
  if (const auto value = spec.find("nvls_loop")) kernel.nvls_loop = value->time();
  spec.finish();
  return kernel;
}

/// From the first step to the rates of each: what NCCL's kernel of this algorithm and protocol takes.
void use_kernel(const CollectiveKernel& kernel, CollectiveCall& call) {
  CollectiveTuning& tuning = call.tuning;
  const std::uint32_t channels = std::max(1U, tuning.channels);
  tuning.launch += kernel.launch + (channels > 1 ? kernel.second_channel : Time());
  if (call.algorithm == "nvls" || call.algorithm == "nvls_tree") {
    // The slices of all heads are a loop.
    const std::uint32_t heads = call.graph ? call.graph->speeds().nvls_heads : call.communicator->size();
    tuning.step_latency = Time::from_ps(kernel.nvls_loop.ps() / std::max(1U, heads));
    tuning.copy_rate = tuning.reduce_rate = Bandwidth::from_bps(kernel.link.bps() / channels * heads / (heads + 1));
    return;
  }
  const auto& protocol = tuning.protocol == Protocol::ll      ? kernel.ll
                         : tuning.protocol == Protocol::ll128 ? kernel.ll128
                                                              : kernel.simple;
  if (tuning.protocol != Protocol::ll) tuning.launch += kernel.large_buffers;
  tuning.copies_while_sending = call.algorithm == "ring";
  tuning.message_latency = protocol.message;
  tuning.step_latency = protocol.step;
  tuning.least_step = protocol.trip;
  // NCCL deals a message to a peer out to several channels (src/enqueue.cc, p2p). Here it has one, which is as fast as
  // these together.
  const bool pairs = call.algorithm == "nccl_p2p";
  const std::uint32_t busy = pairs ? std::min(channels, call.communicator->size() - 1) : channels;
  const std::int64_t together = channels / busy;
  tuning.copy_rate = tuning.reduce_rate =
      protocol.trip_bytes == Bytes(0)
          ? Bandwidth::from_bps(kernel.link.bps() / busy)
          : Bandwidth::from_bps(together *
                                static_cast<std::int64_t>(static_cast<double>(protocol.trip_bytes.count()) * 8e12 /
                                                          static_cast<double>(protocol.full_trip.ps())));
  if (tuning.protocol == Protocol::simple) tuning.store_rate = Bandwidth::from_bps(together * kernel.store.bps());
}

}  // namespace

const CollectiveKernel& collective_kernel(const Spec& where, const std::string& name) {
  static std::map<std::string, CollectiveKernel> known;
  if (const auto at = known.find(name); at != known.end()) return at->second;
  const files::path folder = data_directory("collectives") / "kernels";
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : files::directory_iterator(folder, ignored)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw where.error(fmt::format("unknown collective_kernel '{}'{}; known here: {}", name, did_you_mean(name, names),
                                  listed(names)));
  return known.emplace(name, read_collective_kernel(folder / (name + ".yaml"))).first->second;
}

void settle_collective_kernel(const Spec& where, CollectiveCall& call, bool nccl) {
  const CollectiveTuning& tuning = call.tuning;
  const bool given = tuning.launch > Time() || tuning.step_latency > Time() || tuning.reduce_rate.bps() > 0 ||
                     tuning.copy_rate.bps() > 0;
  std::string name = tuning.kernel;
  if (name.empty() && nccl && !given && call.graph) name = call.graph->speeds().kernel;
  if (name.empty() || name == "none" || call.communicator->size() < 2) return;
  use_kernel(collective_kernel(where, name), call);
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
