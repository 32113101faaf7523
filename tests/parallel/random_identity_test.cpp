// SPDX-License-Identifier: GPL-2.0-only
// Random machines, networks, traffic and partitions: each gives the same results on 1 to 8 MPI processes as on one, and
// as under ns-3's own engine.
// MPI ranks: 8
// Time limit: 900 s
// Also in Release: all cases; with sanitizers some
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ns3/nstime.h>
#include <sched.h>

#include "app/reports/recording.hpp"
#include "app/running/experiment.hpp"
#include "app/running/simulation.hpp"
#include "results/tables/fingerprint.hpp"
#include "support/basics/random.hpp"

namespace weft::random_identity_test {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t cases = 60;  // the others touch the same code, twenty times as slowly
constexpr std::uint64_t min_hops = 200'000;
#else
constexpr std::uint64_t cases = 200;
constexpr std::uint64_t min_hops = 1'000'000;
#endif

/// Choices, one after another, that depend on the seed alone.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return random_below(limit, seed_, count_++, 0); }
  std::uint64_t between(std::uint64_t min, std::uint64_t max) { return min + below(max - min + 1); }
  template <class Value>
  const Value& of(const std::vector<Value>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

const std::vector<std::string> rates = {"25 Gb/s", "100 Gb/s", "100 Gb/s", "400 Gb/s", "333 Gb/s"};

/// Few different delays make ties; odd ones make windows that fit nothing.
std::string random_delay(Dice& dice) {
  if (dice.below(3) == 0) return fmt::format("{} ps", dice.between(1'000, 2'000'000));
  return dice.of<std::string>({"100 ns", "500 ns", "500 ns", "1 us"});
}

/// A connected graph of switches with a host or more at each, and its number of hosts.
std::pair<std::string, std::uint64_t> random_graph(Dice& dice) {
  const std::uint64_t switches = dice.between(1, 9);
  const std::uint64_t hosts = dice.between(2, 12);
  std::string links;
  const auto link = [&](const std::string& from, const std::string& to) {
    links += fmt::format("{}{{from: {}, to: {}, rate: {}, delay: {}}}", links.empty() ? "" : ", ", from, to,
                         dice.of(rates), random_delay(dice));
  };
  for (std::uint64_t s = 1; s < switches; ++s) link(fmt::format("switch{}", s), fmt::format("switch{}", dice.below(s)));
  for (std::uint64_t extra = dice.below(switches); extra > 0 && switches > 1; --extra) {
    const std::uint64_t from = dice.below(switches);
    const std::uint64_t to = (from + dice.between(1, switches - 1)) % switches;
    link(fmt::format("switch{}", from), fmt::format("switch{}", to));
  }
  for (std::uint64_t h = 0; h < hosts; ++h)
    link(fmt::format("host{}", h), fmt::format("switch{}", dice.below(switches)));
  return {fmt::format("{{kind: graph, hosts: {}, switches: {}, links: [{}]}}", hosts, switches, links), hosts};
}

std::pair<std::string, std::uint64_t> random_topology(Dice& dice) {
  const std::string links = fmt::format("link_rate: {}, link_delay: {}", dice.of(rates), random_delay(dice));
  switch (dice.below(4)) {
    case 0:
      return {fmt::format("{{kind: fat_tree, k: 4, {}}}", links), 16};
    case 1: {
      const std::uint64_t hosts = dice.between(2, 12);
      return {fmt::format("{{kind: star, hosts: {}, {}}}", hosts, links), hosts};
    }
    default:
      return random_graph(dice);
  }
}

std::string random_network(Dice& dice) {
  return fmt::format("{{mtu: {} B, header: {} B, ack: {}, window: {} B, switch_latency: {}}}",
                     dice.of<int>({256, 1000, 4096, 9000}), dice.between(20, 90),
                     dice.of<std::string>({"66 B", "66 B", "1 B", "none"}), dice.between(1, 200'000),
                     dice.of<std::string>({"0 ns", "0 ns", "300 ns"}));
}

std::string random_workload(Dice& dice, std::uint64_t hosts) {
  const std::uint64_t size = dice.of<std::uint64_t>({0, 1, 4096, 65'536, dice.below(100'000)});
  switch (dice.below(5)) {
    case 0: {
      const auto kind = dice.of<std::string>({"all_reduce", "all_gather", "reduce_scatter", "broadcast"});
      return fmt::format(
          "{{kind: collective, collective: {}, size: {} B, channels: {}, chunk_size: {} B, slices_per_chunk: {}, "
          "iterations: {}}}",
          kind, size * 2, dice.between(1, 3), dice.between(1, 20'000), dice.between(1, 3), dice.between(1, 2));
    }
    case 1:
      return fmt::format("{{kind: traffic, pattern: incast, destination: {}, size: {} B, queue_pairs: {}}}",
                         dice.below(hosts), size, dice.between(1, 3));
    case 2:
      return fmt::format("{{kind: traffic, pattern: all_to_all, size: {} B}}", size / 4);
    case 3:
      return fmt::format(
          "{{kind: traffic, pattern: permutation, size: {} B, queue_pairs: {}, start: {{process: poisson, interval: {} "
          "ns, count: {}}}}}",
          size / 4, dice.between(1, 3), dice.between(100, 5'000), dice.between(1, 12));
    default:
      return fmt::format(
          "{{kind: traffic, pattern: permutation, shift: {}, size: {} B, start: {{process: periodic, interval: {} ns, "
          "count: {}}}}}",
          dice.between(1, hosts - 1), size / 2, dice.between(100, 3'000), dice.between(1, 6));
  }
}

std::string random_experiment(std::uint64_t number) {
  Dice dice(number);
  const auto [topology, hosts] = random_topology(dice);
  const std::string network = random_network(dice);
  const std::string workload = random_workload(dice, hosts);
  return fmt::format(
      "topology: {}\nnetwork: {}\nworkload: {}\nsimulation: {{seed: {}, partition: {}{}}}\noutput: {{sampling: {} "
      "ns}}\n",
      topology, network, workload, dice.below(1'000'000),
      dice.of<std::string>({"random", "random", "metis", "groups", "auto"}),
      dice.below(4) > 0 ? "" : fmt::format(", until: {} ns", dice.between(1, 60'000)), dice.between(300, 20'000));
}

struct Outcome {
  std::uint64_t fingerprint = 0;
  std::uint64_t samples = 0;
  std::uint64_t packet_hops = 0;
  std::int64_t simulated = 0;
  std::uint64_t messages = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << fmt::format("fingerprint {:016x}, samples {:016x}, {} packet-hops, {} ps, {} messages",
                            outcome.fingerprint, outcome.samples, outcome.packet_hops, outcome.simulated,
                            outcome.messages);
}

Outcome simulate(const std::string& text, ProcessGroup group, EngineChoice engine) {
  const Experiment experiment = read_experiment(Spec::parse(text, "random.yaml"), "random.yaml", ".");
  Simulation simulation(experiment, group, engine);
  std::uint64_t samples = 0;
  const auto sum_up = [&samples](const std::vector<PortSample>& taken) {
    for (const PortSample& sample : taken) {
      RowMix mix(4);
      for (const std::int64_t field : {std::int64_t{sample.directed_link}, std::int64_t{sample.interval},
                                       sample.busy.ps(), sample.queue_bytes.count()})
        mix.add(static_cast<std::uint64_t>(field));
      samples += mix.value();
    }
  };
  // Samples are taken now and then, as when rows are written in portions.
  int looks = 0;
  simulation.set_on_pause([&](Time now) { sum_up(simulation.fabric().results().take_closed_samples(now)); });
  const RunFacts facts =
      simulation.run([&looks](Time) { return ++looks % 7 == 0 ? Simulation::Look::pause : Simulation::Look::go_on; });
  if (!facts.cut_short) {
    EXPECT_EQ(simulation.unfinished_ranks(), 0U) << text;
  }
  sum_up(simulation.fabric().results().take_samples(facts.simulated));
  return {run_fingerprint(experiment, simulation, facts), simulation.group().sum(samples), facts.packet_hops,
          facts.simulated.ps(), facts.messages};
}

/// Binds this process to its own core, if there are enough, or lets it run on all of them: processes with different
/// bindings do not take turns.
void bind(std::optional<int> rank) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  cpu_set_t set = all;
  if (rank) {
    int skipped = *rank % CPU_COUNT(&all);
    CPU_ZERO(&set);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&set) == 0; ++core)
      if (CPU_ISSET(core, &all) && skipped-- == 0) CPU_SET(core, &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

/// The first `size` processes of the world; null on the others.
MPI_Comm first_processes(int size) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &part);
  return part;
}

// WEFT_RANDOM_CASE=17 runs that case alone.
TEST(RandomIdentity, EveryNumberOfProcessesAndNs3sEngineAgree) {
  ProcessGroup world(MPI_COMM_WORLD);
  const char* chosen = std::getenv("WEFT_RANDOM_CASE");
  std::uint64_t hops = 0;
  for (std::uint64_t number = 0; number < cases; ++number) {
    if (chosen != nullptr && std::to_string(number) != chosen) continue;
    const std::string text = random_experiment(number);
    const int size = 1 + static_cast<int>(number % static_cast<std::uint64_t>(world.size()));
    const MPI_Comm part = first_processes(size);
    bind(number / static_cast<std::uint64_t>(world.size()) % 2 == 0 ? std::optional(world.rank()) : std::nullopt);
    if (part != MPI_COMM_NULL) {
      const Outcome parallel = simulate(text, ProcessGroup(part), EngineChoice::weft);
      if (world.rank() == 0) {
        SCOPED_TRACE(fmt::format("case {} on {} processes:\n{}", number, size, text));
        EXPECT_EQ(parallel, simulate(text, ProcessGroup::alone(), EngineChoice::ns3_default));
        if (size > 1) {
          EXPECT_EQ(parallel, simulate(text, ProcessGroup::alone(), EngineChoice::weft));
        }
        hops += parallel.packet_hops;
      }
      MPI_Comm comm = part;
      MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (world.rank() == 0) {
    EXPECT_GT(hops, chosen == nullptr ? min_hops : 0U);
  }
}

}  // namespace
}  // namespace weft::random_identity_test
