// SPDX-License-Identifier: GPL-2.0-only
// NCCL's tuner model against values computed by hand from src/graph/tuning.cc, and selections.
#include "collectives/choice/nccl_tuner.hpp"

#include <gtest/gtest.h>

#include "collectives/choice/tuner_table.hpp"
#include "collectives/steps/nccl_sizes.hpp"
#include "schedule/collective/selection.hpp"

namespace weft::nccl_tuner_test {
namespace {

using A = NcclAlgorithm;
constexpr CollectiveKind all_reduce = CollectiveKind::all_reduce;

// One server of 8 H100, 16 channels of 20 GB/s: bus 320 GB/s.
TEST(NcclTuner, OneServerOfEight) {
  const NcclMachine machine;
  const auto latency = [&](A a, Protocol p) { return nccl_estimate(machine, all_reduce, a, p, 1 << 30).latency_us; };
  // Ring: base + 14 steps; tree: base + 2 x 7 hops.
  EXPECT_DOUBLE_EQ(latency(A::ring, Protocol::ll), 6.6 + 14 * 0.6);
  EXPECT_DOUBLE_EQ(latency(A::ring, Protocol::ll128), 14.0 + 14 * 1.9);
  EXPECT_DOUBLE_EQ(latency(A::ring, Protocol::simple), 8.4 + 14 * 3.4);
  EXPECT_DOUBLE_EQ(latency(A::tree, Protocol::ll), 6.8 + 14 * 0.6);
  EXPECT_DOUBLE_EQ(latency(A::tree, Protocol::ll128), 14.0 + 14 * 1.25);
  EXPECT_DOUBLE_EQ(latency(A::tree, Protocol::simple), 8.4 + 14 * 4.0);
  // Large enough for a correction factor of 1 for the tree.
  const auto bandwidth = [&](A a, Protocol p) {
    return nccl_estimate(machine, all_reduce, a, p, std::int64_t{1} << 40).bandwidth;
  };
  EXPECT_NEAR(bandwidth(A::ring, Protocol::ll), 141 * 8 / 14.0, 1e-9);
  EXPECT_NEAR(bandwidth(A::ring, Protocol::ll128), 0.92 * 320 * 8 / 14.0, 1e-9);
  EXPECT_NEAR(bandwidth(A::ring, Protocol::simple), 320 * 8 / 14.0, 1e-9);
  EXPECT_NEAR(bandwidth(A::tree, Protocol::ll), 0.92 * 320 / 3.8 / 2, 1e-9);
  EXPECT_NEAR(bandwidth(A::tree, Protocol::ll128), 0.92 * 320 * 7 / 9 / 2, 1e-9);
  EXPECT_NEAR(bandwidth(A::tree, Protocol::simple), 0.92 * 320 / 2, 1e-9);
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::ring, Protocol::ll, 1 << 20).time_us(1 << 20), 28.01, 0.005);
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::ring, Protocol::simple, 1 << 30).time_us(1 << 30), 5928.03, 0.005);
}

// NVLS: 85 % of 15 of 16 channels, twice for the two halves of an all-reduce; 25 us within the server. NVLSTree of two
// servers: up to 57.7 GB/s per channel, here twice the 20 GB/s of the network.
TEST(NcclTuner, SwitchesThatReduce) {
  NcclMachine machine;
  const NcclEstimate one = nccl_estimate(machine, all_reduce, A::nvls, Protocol::simple, 1 << 30);
  EXPECT_DOUBLE_EQ(one.latency_us, 25);
  EXPECT_NEAR(one.bandwidth, 16 * (20 * 0.85 * 15 / 16 * 2) * 8 / 14.0, 1e-9);
  machine.servers = 2;
  const NcclEstimate two = nccl_estimate(machine, all_reduce, A::nvls_tree, Protocol::simple, 1 << 30);
  EXPECT_DOUBLE_EQ(two.latency_us, 25 + 2 * 20.9);
  EXPECT_NEAR(two.bandwidth, 16 * (20 * 0.85 * 15 / 16 * 2) * 16 / 30.0, 1e-9);
}

// src/graph/tuning.cc of v2.27.3-1: 5/6 of an all-reduce's bandwidth, which between more than two servers is half of
// the network's; of an all-gather (P - 1)/P inside, at most 0.9 (P = 16). NVLSTree's message 14 us.
TEST(NcclTuner, ReleasesThatCountSwitchesBySixths) {
  NcclMachine machine;
  for (const NcclVersion version : {NcclVersion::v2_23, NcclVersion::v2_27}) {
    machine.version = version;
    machine.servers = 1;
    machine.ranks_per_server = 8;
    const auto estimate = [&](CollectiveKind kind, A a) {
      return nccl_estimate(machine, kind, a, Protocol::simple, 1);
    };
    EXPECT_NEAR(estimate(all_reduce, A::nvls).bandwidth, 320 * 5 / 6.0, 1e-9);
    EXPECT_DOUBLE_EQ(estimate(all_reduce, A::nvls).latency_us, 25);
    EXPECT_NEAR(estimate(CollectiveKind::all_gather, A::nvls).bandwidth, 320 * 7 / 8.0, 1e-9);
    machine.ranks_per_server = 16;
    EXPECT_NEAR(estimate(CollectiveKind::reduce_scatter, A::nvls).bandwidth, 320 * 0.9, 1e-9);
    machine.servers = 2;
    EXPECT_NEAR(estimate(all_reduce, A::nvls_tree).bandwidth, 320 * 5 / 6.0, 1e-9);
    EXPECT_DOUBLE_EQ(estimate(all_reduce, A::nvls_tree).latency_us, 25 + 2 * 14);
    machine.servers = 4;
    EXPECT_NEAR(estimate(all_reduce, A::nvls_tree).bandwidth, 160 * 5 / 6.0, 1e-9);
    EXPECT_DOUBLE_EQ(estimate(all_reduce, A::nvls_tree).latency_us, 25 + 4 * 14);
  }
}

// Up to v2.27.3-1 all limits of a channel on Blackwell are twice Hopper's; the later ones were measured.
TEST(NcclTuner, ReleasesThatDoubleHopperForBlackwell) {
  NcclMachine machine;
  machine.gpu = NcclMachine::Gpu::blackwell;
  machine.intra_gbps = 1000;
  machine.inter_gbps = 1000;
  machine.servers = 4;
  const auto limit = [&](A a, Protocol p) {
    return nccl_estimate(machine, all_reduce, a, p, std::int64_t{1} << 40).bandwidth / machine.channels;
  };
  const double of_rings = 32 / 62.0;
  const double of_trees = 0.5;
  EXPECT_NEAR(limit(A::ring, Protocol::ll128), 40 * of_rings, 1e-9);
  EXPECT_NEAR(limit(A::tree, Protocol::ll128), 20 * of_trees, 1e-9);
  EXPECT_NEAR(limit(A::tree, Protocol::simple), 24 * of_trees, 1e-9);
  machine.version = NcclVersion::v2_27;
  EXPECT_NEAR(limit(A::ring, Protocol::ll128), 2 * 36.7 * of_rings, 1e-9);
  EXPECT_NEAR(limit(A::tree, Protocol::ll128), 2 * 29 * of_trees, 1e-9);
  EXPECT_NEAR(limit(A::tree, Protocol::simple), 2 * 36 * of_trees, 1e-9);
}

// src/tuning/nvls.cc: the tree's factors for NVLSTree too, but only on Blackwell with x86, and one place further: 0.5
// at 256 KiB, 0.9 at 512 MiB.
TEST(NcclTuner, TheTreesCorrectionsForNvlsTree) {
  NcclMachine machine;
  machine.servers = 2;
  const auto factor = [&](A a, std::int64_t bytes) {
    const auto bandwidth = [&](std::int64_t b) {
      return nccl_estimate(machine, all_reduce, a, Protocol::simple, b).bandwidth;
    };
    return bandwidth(bytes) / bandwidth(std::int64_t{1} << 40);
  };
  EXPECT_DOUBLE_EQ(factor(A::nvls_tree, 256 << 10), 1);
  machine.gpu = NcclMachine::Gpu::blackwell;
  EXPECT_DOUBLE_EQ(factor(A::nvls_tree, 256 << 10), 0.5);
  EXPECT_DOUBLE_EQ(factor(A::nvls_tree, 512 << 20), 0.9);
  EXPECT_DOUBLE_EQ(factor(A::tree, 512 << 20), 1);
  machine.cpu = NcclMachine::Cpu::arm;
  EXPECT_DOUBLE_EQ(factor(A::nvls_tree, 256 << 10), 1);
  machine.cpu = NcclMachine::Cpu::intel;
  machine.version = NcclVersion::v2_27;
  EXPECT_DOUBLE_EQ(factor(A::nvls_tree, 256 << 10), 1);
}

// Between servers LL is limited, and steps inside them are, by the host's processor: llMaxBws, getNetOverhead.
TEST(NcclTuner, ProcessorsOfHosts) {
  NcclMachine machine;
  machine.servers = 2;
  const auto ll = [&] { return nccl_estimate(machine, all_reduce, A::ring, Protocol::ll, 1); };
  for (const auto cpu : {NcclMachine::Cpu::intel, NcclMachine::Cpu::arm}) {
    machine.cpu = cpu;
    EXPECT_NEAR(ll().bandwidth, 39 * 16 / 30.0, 1e-9);
    EXPECT_DOUBLE_EQ(ll().latency_us, 6.6 + 28 * 1.0 + 2 * 2.7);
  }
  machine.cpu = NcclMachine::Cpu::amd;
  EXPECT_NEAR(ll().bandwidth, 22.5 * 16 / 30, 1e-9);
  EXPECT_DOUBLE_EQ(ll().latency_us, 6.6 + 28 * 2.0 + 2 * 2.7);
}

// 2 x 7 hops of 28 us in releases 2.19 to 2.22, of 4 us before and after; up to 2.22 nothing beside them.
TEST(NcclTuner, ReleasesThatLeaveTreesEarlier) {
  NcclMachine machine;
  for (const NcclVersion version :
       {NcclVersion::v2_18, NcclVersion::v2_21, NcclVersion::v2_23, NcclVersion::v2_27, NcclVersion::v2_30}) {
    machine.version = version;
    const auto latency = [&](A a, Protocol p) { return nccl_estimate(machine, all_reduce, a, p, 1 << 30).latency_us; };
    const double step = version == NcclVersion::v2_21 ? 28.0 : 4.0;
    const double base = version <= NcclVersion::v2_21 ? 0.0 : 8.4;
    EXPECT_DOUBLE_EQ(latency(A::tree, Protocol::simple), base + 14 * step);
    EXPECT_DOUBLE_EQ(latency(A::tree, Protocol::ll), 6.8 + 14 * 0.6);
    EXPECT_DOUBLE_EQ(latency(A::ring, Protocol::simple), 8.4 + 14 * 3.4);
  }
}

// src/graph/tuning.cc of v2.20.3-1: LL has a quarter of the rings' 360 GB/s in an all-reduce and a third in an
// all-gather, at most 87.7; NVLS 23 us and 5/6 of 8 x 40 GB/s. So an all-reduce of 8 H100 is NVLS's from 0.5 MiB on,
// where 15 + S / 50.1 and 23 + S / 266.7 are equal at 494 kB; of v2.21.5-1, with half, 141 GB/s and 25 us, from 2 MiB.
TEST(NcclTuner, ReleasesThatLeaveLowLatencyEarlier) {
  NcclMachine machine;
  machine.channels = 12;
  machine.intra_gbps = 30;
  machine.nvls_heads = 8;
  machine.nvls_intra_gbps = 40;
  const auto time = [&](A a, Protocol p, std::int64_t bytes) {
    return nccl_estimate(machine, all_reduce, a, p, bytes).time_us(bytes);
  };
  const auto ll_wins = [&](std::int64_t bytes) {
    return time(A::ring, Protocol::ll, bytes) < time(A::nvls, Protocol::simple, bytes);
  };
  machine.version = NcclVersion::v2_18;
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::ring, Protocol::ll, 1).bandwidth, 87.7 * 8 / 14, 1e-9);
  EXPECT_NEAR(nccl_estimate(machine, CollectiveKind::all_gather, A::ring, Protocol::ll, 1).bandwidth, 87.7 * 8 / 7,
              1e-9);
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::nvls, Protocol::simple, 1).bandwidth, 320 * 5 / 6.0, 1e-9);
  EXPECT_DOUBLE_EQ(nccl_estimate(machine, all_reduce, A::nvls, Protocol::simple, 1).latency_us, 23);
  EXPECT_TRUE(ll_wins(490'000));
  EXPECT_FALSE(ll_wins(498'000));
  machine.version = NcclVersion::v2_21;
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::ring, Protocol::ll, 1).bandwidth, 141 * 8 / 14.0, 1e-9);
  EXPECT_TRUE(ll_wins(1 << 20));
  EXPECT_FALSE(ll_wins(2 << 20));
  machine.version = NcclVersion::v2_18;  // 4 A100 in a mesh: a quarter of 240 GB/s
  machine.gpu = NcclMachine::Gpu::ampere;
  machine.ranks_per_server = 4;
  machine.intra_gbps = 20;
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::ring, Protocol::ll, 1).bandwidth, 240 / 4.0 * 4 / 6, 1e-9);
}

// Of v2.20.3-1 and v2.21.5-1: an all-reduce's ring counts both ways between every two servers of 2 x 8, 4 messages
// instead of 2, and a GPU alone in its server gets 0.7 instead of 0.92 with LL128.
TEST(NcclTuner, ReleasesThatCountMoreOfTheNetwork) {
  NcclMachine machine;
  machine.servers = 2;
  const auto latency = [&] { return nccl_estimate(machine, all_reduce, A::ring, Protocol::ll, 1).latency_us; };
  EXPECT_DOUBLE_EQ(latency(), 6.6 + 28 * 1.0 + 2 * 2.7);
  machine.version = NcclVersion::v2_21;
  EXPECT_DOUBLE_EQ(latency(), 6.6 + 26 * 1.0 + 4 * 2.7);
  machine.ranks_per_server = 1;
  machine.servers = 8;
  machine.inter_gbps = 2;
  EXPECT_NEAR(nccl_estimate(machine, all_reduce, A::ring, Protocol::ll128, 1).bandwidth, 0.7 * 32 * 8 / 14, 1e-9);
}

// Alps: PATH_PHB to the NIC is more than PATH_PXN, and from 2.27 on PATH_P2C is less (src/graph/topo.h).
TEST(NcclTuner, NoLL128ToNicsBehindACpu) {
  NcclMachine machine;
  machine.servers = 2;
  machine.version = NcclVersion::v2_23;
  EXPECT_TRUE(machine.has_ll128());
  machine.nics_behind_cpu = true;
  EXPECT_FALSE(machine.has_ll128());
  machine.version = NcclVersion::v2_27;
  EXPECT_TRUE(machine.has_ll128());
  machine.nics_behind_cpu = false;
  machine.gpudirect = false;  // diverted through the CPU (src/graph/paths.cc, ncclTopoComputePaths)
  EXPECT_FALSE(machine.has_ll128());
  machine.version = NcclVersion::v2_23;
  machine.servers = 1;
  EXPECT_TRUE(machine.has_ll128());
}

// src/graph/tuning.cc, ncclTopoTuneModel: typeIntra <= PATH_NVB.
TEST(NcclTuner, NoLL128OverPcieInsideServers) {
  NcclMachine machine;
  machine.nvlink = false;
  EXPECT_FALSE(machine.has_ll128());
  machine.servers = 2;
  EXPECT_FALSE(machine.has_ll128());
  machine.ranks_per_server = 1;  // nothing is inside
  EXPECT_TRUE(machine.has_ll128());
}

// src/graph/tuning.cc, ncclTopoTuneModel: hwLat[hw[a]][a][p] alone, also of one GPU per server, whose other collectives
// take the tree's row and the latency of the network's card.
TEST(NcclTuner, BroadcastAndReduceAlongRings) {
  NcclMachine machine;
  machine.servers = 16;
  machine.ranks_per_server = 1;
  machine.net_latency_us = 5;
  const auto latency = [&](Protocol p) {
    const NcclEstimate broadcast = nccl_estimate(machine, CollectiveKind::broadcast, A::ring, p, 1 << 20);
    EXPECT_DOUBLE_EQ(nccl_estimate(machine, CollectiveKind::reduce, A::ring, p, 1 << 20).latency_us,
                     broadcast.latency_us);
    return broadcast.latency_us;
  };
  EXPECT_DOUBLE_EQ(latency(Protocol::ll), 6.6 + 2.7);
  EXPECT_DOUBLE_EQ(latency(Protocol::ll128), 14 + 4.0);
  EXPECT_DOUBLE_EQ(latency(Protocol::simple), 8.4 + 14);
  // With rings that differ: nsteps lat, of Simple with the tree's row.
  machine.servers = 1;
  machine.ranks_per_server = 8;
  machine.same_rings = false;
  EXPECT_DOUBLE_EQ(latency(Protocol::ll), 6.6 + 8 * 0.6);
  EXPECT_DOUBLE_EQ(latency(Protocol::simple), 8.4 + 8 * 4.0);
  machine.nvlink = false;
  EXPECT_DOUBLE_EQ(latency(Protocol::ll), 6.6 + 8 * 1.0);
  EXPECT_DOUBLE_EQ(latency(Protocol::simple), 8.4 + 8 * 4.0);
  machine.version = NcclVersion::v2_21;
  EXPECT_DOUBLE_EQ(latency(Protocol::simple), 8.4 + 8 * 28);
}

Selection choice(const std::string& name, CollectiveKind kind, std::uint32_t ranks, std::int64_t size,
                 std::uint32_t server = 1, bool switches_reduce = false, std::uint32_t channels = 1) {
  const Communicator communicator(0, ranks);
  CollectiveCall call;
  call.kind = kind;
  call.communicator = &communicator;
  call.size = Bytes(size);
  call.tuning.ranks_per_server = server;
  call.tuning.channels = channels;
  return find_selector(name)->select(call, {Time::from_us(2), Bandwidth::from_gbps(400), switches_reduce});
}

TEST(NcclTuner, ChoosesByBytes) {
  EXPECT_EQ(choice("nccl", all_reduce, 8, 1024, 8).protocol, Protocol::ll);
  EXPECT_EQ(choice("nccl", all_reduce, 8, std::int64_t{1} << 33, 8).algorithm, "ring");
  EXPECT_EQ(choice("nccl", all_reduce, 8, std::int64_t{1} << 33, 8).protocol, Protocol::simple);
  EXPECT_EQ(choice("nccl", all_reduce, 8, std::int64_t{1} << 33, 8, true).algorithm, "nvls");
  EXPECT_EQ(choice("nccl", all_reduce, 8, 1024, 8, true).algorithm, "ring");
  EXPECT_EQ(choice("nccl", all_reduce, 512, 1 << 16, 8).algorithm, "double_binary_tree");
  EXPECT_EQ(choice("nccl", CollectiveKind::all_to_all, 8, 1 << 30, 8).algorithm, "nccl_p2p");
  EXPECT_EQ(choice("nccl", CollectiveKind::broadcast, 8, 1 << 20, 8).algorithm, "ring");
  // NCCL_ALGO: small all-reduces of many servers are a tree's, unless it is taken away.
  EXPECT_EQ(choice("nccl_ring", all_reduce, 512, 1 << 16, 8).algorithm, "ring");
  EXPECT_EQ(choice("nccl_tree", all_reduce, 8, std::int64_t{1} << 33, 8).algorithm, "double_binary_tree");
  EXPECT_EQ(choice("nccl_tree", CollectiveKind::all_gather, 8, 1 << 20, 8).algorithm, "ring");
  // A message to each of 8: LL up to 16 KiB.
  EXPECT_EQ(choice("nccl", CollectiveKind::all_to_all, 8, 8 * 16384, 8).protocol, Protocol::ll);
  EXPECT_EQ(choice("nccl", CollectiveKind::all_to_all, 8, 8 * 16384 + 8, 8).protocol, Protocol::simple);
  // Connections to other servers have no buffers of LL (NCCL_ALLOC_P2P_NET_LL_BUFFERS is 0).
  EXPECT_EQ(choice("nccl", CollectiveKind::send_recv, 8, 1024, 8).protocol, Protocol::ll);
  EXPECT_EQ(choice("nccl", CollectiveKind::send_recv, 16, 1024, 8).protocol, Protocol::simple);
}

TEST(Selections, TablesAndTheBest) {
  EXPECT_EQ(choice("mpich", all_reduce, 16, 2048).algorithm, "recursive_doubling");
  EXPECT_EQ(choice("mpich", all_reduce, 16, 2049).algorithm, "halving_doubling");
  EXPECT_EQ(choice("mpich", CollectiveKind::all_to_all, 8, 8 * 256).algorithm, "bruck");
  EXPECT_EQ(choice("mpich", CollectiveKind::all_to_all, 7, 7 * 256).algorithm, "linear");
  // Open MPI 5.0, coll_tuned_decision_fixed.c: the last size before a change and the first after it.
  EXPECT_EQ(choice("open_mpi", all_reduce, 16, 4095).algorithm, "recursive_doubling");
  EXPECT_EQ(choice("open_mpi", all_reduce, 16, 4096).algorithm, "halving_doubling");
  EXPECT_EQ(choice("open_mpi", all_reduce, 127, 262143).algorithm, "recursive_doubling");
  EXPECT_EQ(choice("open_mpi", all_reduce, 127, 262144).algorithm, "halving_doubling");
  EXPECT_EQ(choice("open_mpi", all_reduce, 128, 131071).algorithm, "binomial");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::all_to_all, 48, 48 * 511).algorithm, "bruck");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::all_to_all, 48, 48 * 512).algorithm, "linear");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::all_to_all, 256, 256 * 32768).algorithm, "pairwise");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::broadcast, 20, (1 << 20) - 1).algorithm, "binomial");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::broadcast, 20, 1 << 20).algorithm, "scatter_allgather");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::reduce_scatter, 16, 262143).algorithm, "halving_doubling");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::reduce_scatter, 16, 262144).algorithm, "ring");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::all_gather, 64, 64 * 511).algorithm, "recursive_doubling");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::all_gather, 100, 100 * 511).algorithm, "bruck");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::all_gather, 100, 100 * 512).algorithm, "ring");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::scatter, 20, 20 * 16383).algorithm, "binomial");
  EXPECT_EQ(choice("open_mpi", CollectiveKind::scatter, 20, 20 * 16384).algorithm, "linear");
  // 16 ranks can all have heard of something after 4 rounds of 2 us at the earliest; linear sends at once: one round.
  EXPECT_EQ(choice("best", CollectiveKind::broadcast, 16, 8).algorithm, "linear");
  EXPECT_EQ(choice("best", CollectiveKind::all_to_all, 16, 16).algorithm, "linear");
  // Of many bytes rings and the like send 2 (P - 1)/P S per rank, a binomial tree 2 S log2 P. Without a number of
  // channels each algorithm is weighed with its usual one.
  for (const std::uint32_t channels : {0, 1}) {
    const Selection large = choice("best", all_reduce, 16, 64 << 20, 1, false, channels);
    EXPECT_NE(large.algorithm, "binomial");
    const Selection small = choice("best", all_reduce, 16, 8, 1, false, channels);
    EXPECT_NE(small.algorithm, "ring");
    EXPECT_NE(large.algorithm, small.algorithm);
  }
  EXPECT_EQ(find_selector("nobody"), nullptr);
  for (const std::string& kind : collective_kind_names())
    for (const char* table : {"mpich", "open_mpi", "nccl", "best"}) {
      const Selection found = choice(table, *parse_collective_kind(kind), 6, 1000);
      EXPECT_TRUE(find_collective(found.algorithm)->supports(*parse_collective_kind(kind))) << table << " " << kind;
    }
}

// RCCL's numbers for servers of 8 MI300X (ROCm/rccl 9e22c79d, src/graph/tuning.cc, tuning_model_5), a bus of 336 GB/s.
TEST(NcclTuner, NumbersOfRccl) {
  const TunerTable& table = tuner_table("rccl_mi300x");
  NcclMachine machine;
  machine.cpu = NcclMachine::Cpu::amd;
  const auto estimate = [&](A a, std::int64_t bytes) {
    return nccl_estimate(table, machine, all_reduce, a, Protocol::simple, bytes);
  };
  constexpr std::int64_t mib = 1 << 20;
  // Two servers, 64 MiB (the 21st factor): the tree's 17 us + 2 (7 x 2.3 + 25) us, 336 GB/s x 0.11 / 2; the ring's 28
  // steps of 3 x 2 us and 2 of 320 us, 336 GB/s x 16 / 30 x 0.1.
  machine.servers = 2;
  EXPECT_NEAR(estimate(A::tree, 64 * mib).latency_us, 17 + 2 * (7 * 2.3 + 25), 1e-9);
  EXPECT_NEAR(estimate(A::tree, 64 * mib).bandwidth, 336 * 0.11 / 2, 1e-9);
  EXPECT_NEAR(estimate(A::ring, 64 * mib).latency_us, 17 + 28 * 6 + 2 * 320, 1e-9);
  EXPECT_NEAR(estimate(A::ring, 64 * mib).bandwidth, 336 * 16 / 30.0 * 0.1, 1e-9);
  // 32 servers, 1 GiB: 2 x 5 levels of 25 us and a factor of 0.6 of 0.59; 62 steps of 320 us.
  machine.servers = 32;
  EXPECT_NEAR(estimate(A::tree, 1024 * mib).latency_us, 17 + 2 * (7 * 2.3 + 5 * 25), 1e-9);
  EXPECT_NEAR(estimate(A::tree, 1024 * mib).bandwidth, 336 * 0.59 * 0.6 / 2, 1e-9);
  EXPECT_NEAR(estimate(A::ring, 1024 * mib).latency_us, 17 + (510 - 62) * 6 + 62 * 320, 1e-9);
  const auto tree_is_faster = [&](std::uint32_t servers, std::int64_t bytes) {
    machine.servers = servers;
    return estimate(A::tree, bytes).time_us(bytes) < estimate(A::ring, bytes).time_us(bytes);
  };
  EXPECT_TRUE(tree_is_faster(2, 64 * mib));
  EXPECT_FALSE(tree_is_faster(2, 128 * mib));
  EXPECT_FALSE(tree_is_faster(8, 1024 * mib));
  EXPECT_FALSE(tree_is_faster(16, 1024 * mib));
  EXPECT_TRUE(tree_is_faster(32, 1024 * mib));
}

// ROCm/rccl 00c78b70, src/rccl_wrap.cc (rcclUpdateCollectiveProtocol): bytes of a rank's block in gathers.
TEST(NcclTuner, ProtocolsOfRccl) {
  const TunerTable& table = tuner_table("rccl_mi300x");
  constexpr std::int64_t kib = 1024;
  constexpr std::int64_t mib = 1024 * kib;
  const auto of = [&](CollectiveKind kind, std::int64_t bytes, std::uint32_t servers) {
    return table.protocol(kind, bytes, 8 * servers, servers);
  };
  EXPECT_EQ(of(all_reduce, mib, 2), Protocol::ll);
  EXPECT_EQ(of(all_reduce, mib + 1, 2), Protocol::ll128);
  EXPECT_EQ(of(all_reduce, 9 * mib, 2), Protocol::ll128);
  EXPECT_EQ(of(all_reduce, 9 * mib + 1, 2), Protocol::simple);
  EXPECT_EQ(of(all_reduce, 34 * mib, 4), Protocol::ll128);  // up to 9 MiB x 3.8
  EXPECT_EQ(of(all_reduce, 35 * mib, 4), Protocol::simple);
  EXPECT_EQ(of(CollectiveKind::all_gather, 16 * 96 * kib, 2), Protocol::ll);
  EXPECT_EQ(of(CollectiveKind::all_gather, 16 * 4928 * kib, 2), Protocol::ll128);
  EXPECT_EQ(of(CollectiveKind::all_gather, 16 * 4929 * kib, 2), Protocol::simple);
  EXPECT_EQ(of(CollectiveKind::reduce_scatter, 16 * 128 * kib, 2), Protocol::ll);
  EXPECT_EQ(of(CollectiveKind::reduce_scatter, 16 * 129 * kib, 2), Protocol::ll128);
  EXPECT_EQ(of(CollectiveKind::reduce_scatter, 16 * 3137 * kib, 2), Protocol::simple);
}

// ROCm/rccl 7383f10d, src/enqueue.cc (calcCollChunking): two servers have 7 + 1 levels. Of 64 MiB a channel has 1 MiB:
// 8 chunks of 128 KiB are less than 8 x 8 and, less than 4 x 8, become 16 of 64 KiB, which are at least 8. 16 MiB: 4 of
// 64 KiB are less than 8. 4 GiB: 128 of 512 KiB are enough.
TEST(NcclTuner, ChunksOfRcclsTrees) {
  const TunerTable& table = tuner_table("rccl_mi300x");
  const auto chunk = [&](std::int64_t bytes) { return table.tree_chunk(bytes, 64, 8, 2, 512 << 10); };
  EXPECT_EQ(chunk(std::int64_t{16} << 20), 32 << 10);
  EXPECT_EQ(chunk(std::int64_t{64} << 20), 64 << 10);
  EXPECT_EQ(chunk(std::int64_t{4} << 30), 512 << 10);
}

// ROCm/rccl 857cc6a9, src/include/device.h: a step of LL has 256 threads x 8 lines x 8 B of data; of LL128 7/8 of 256 x
// 28 x 8 B. Trees halve chunks of LL128 once while a channel has fewer of them than 16 / 8 (1 + 1 + 0.8) = 5.6 (two
// servers of 8), to 14 grains of 1792 B: of 4 MiB it has one, of 32 MiB ten.
TEST(NcclTuner, ChunksOfRcclsLines) {
  for (const char* name : {"rccl_mi300x", "rccl_mi355x"}) {
    const TunerTable& table = tuner_table(name);
    const auto chunk = [&](bool tree, Protocol protocol, std::int64_t bytes) {
      return table.chunk(tree, protocol, bytes, 64, 8, 2);
    };
    EXPECT_EQ(chunk(true, Protocol::ll, 1 << 20), 16 << 10);
    EXPECT_EQ(chunk(false, Protocol::ll, 1 << 20), 16 << 10);
    EXPECT_EQ(chunk(true, Protocol::ll128, 4 << 20), 14 * 1792);
    EXPECT_EQ(chunk(true, Protocol::ll128, 32 << 20), 50176);
    EXPECT_EQ(chunk(false, Protocol::ll128, 4 << 20), 50176);
    EXPECT_EQ(chunk(true, Protocol::simple, 64 << 20), 64 << 10);
    EXPECT_EQ(chunk(false, Protocol::simple, 64 << 20), 0);  // NCCL's
  }
}

// Of gfx950 (ROCm/rccl 9e22c79d, src/graph/tuning.cc, tuning_model_6): on two servers trees up to 128 MiB and rings
// from 256 MiB on; LL up to 131,071 B, LL128 up to 17,660,227 B.
TEST(NcclTuner, NumbersOfRcclForMi355x) {
  const TunerTable& table = tuner_table("rccl_mi355x");
  NcclMachine machine;
  machine.cpu = NcclMachine::Cpu::amd;
  machine.servers = 2;
  const auto tree_is_faster = [&](Protocol protocol, std::int64_t bytes) {
    return nccl_estimate(table, machine, all_reduce, A::tree, protocol, bytes).time_us(bytes) <
           nccl_estimate(table, machine, all_reduce, A::ring, Protocol::simple, bytes).time_us(bytes);
  };
  constexpr std::int64_t mib = 1 << 20;
  EXPECT_TRUE(tree_is_faster(Protocol::ll128, 32 * mib));
  EXPECT_TRUE(tree_is_faster(Protocol::simple, 128 * mib));
  EXPECT_FALSE(tree_is_faster(Protocol::simple, 256 * mib));
  EXPECT_EQ(table.protocol(all_reduce, 131071, 16, 2), Protocol::ll);
  EXPECT_EQ(table.protocol(all_reduce, 131072, 16, 2), Protocol::ll128);
  EXPECT_EQ(table.protocol(all_reduce, 17660227, 16, 2), Protocol::ll128);
  EXPECT_EQ(table.protocol(all_reduce, 17660228, 16, 2), Protocol::simple);
}

// Regions of aws-ofi-nccl (aws/aws-ofi-nccl 228fa0e, src/tuner/nccl_ofi_regions.cpp): vertices, which belong to their
// regions, and points beside them. `impossible`: the name of an algorithm that NCCL cannot run there.
struct RegionsOf {
  const TunerRegions* regions;
  std::string operator()(double mib, std::uint32_t ranks, std::uint32_t servers, CollectiveKind kind = all_reduce,
                         const std::string& impossible = "") const {
    const auto possible = [&](const TunerRegions::Region& region) { return region.algorithm != impossible; };
    const auto bytes = static_cast<std::int64_t>(mib * (1 << 20));
    const auto* const region = regions->region(kind, bytes, ranks, servers, possible);
    return region == nullptr ? "nccl" : region->algorithm + " " + std::string(to_text(region->protocol));
  }
};

// region_init_internal_p5_p5e, nRanks == 8 * nNodes.
TEST(NcclTuner, RegionsOfAPlugin) {
  ASSERT_NE(tuner_regions("ofi_p5"), nullptr);
  EXPECT_EQ(tuner_regions("rccl_mi300x"), nullptr);
  const RegionsOf of{tuner_regions("ofi_p5")};
  // region_get_coll_info_internal_v3: none for two nodes and fewer.
  EXPECT_EQ(of(1, 8, 1), "nccl");
  EXPECT_EQ(of(1, 16, 2), "nccl");
  EXPECT_EQ(of(512, 16, 2), "nccl");
  EXPECT_EQ(of(36, 32, 4), "double_binary_tree ll128");
  EXPECT_EQ(of(37, 32, 4), "ring ll128");
  EXPECT_EQ(of(37, 32, 4, all_reduce, "ring"), "nccl");
  // The edge from 1 GiB and 17 ranks to 2 GiB and 64: at 32 ranks 2^(log(32 / 17) / log(64 / 17)) = 1.392 GiB.
  EXPECT_EQ(of(1.39 * 1024, 32, 4), "ring ll128");
  EXPECT_EQ(of(1.40 * 1024, 32, 4), "nccl");
  EXPECT_EQ(of(1.5 * 1024, 32, 4), "ring simple");
  EXPECT_EQ(of(112, 64, 8), "double_binary_tree ll128");
  EXPECT_EQ(of(113, 64, 8), "ring ll128");
  EXPECT_EQ(of(512, 64, 8), "ring ll128");
  EXPECT_EQ(of(2.5 * 1024, 64, 8), "ring simple");
  EXPECT_EQ(of(2 * 1024, 128, 16), "ring ll128");
  EXPECT_EQ(of(4 * 1024, 128, 16), "nvls_tree simple");
  EXPECT_EQ(of(4 * 1024, 128, 16, all_reduce, "nvls_tree"), "nccl");
  // Gathers of eight of each server have no regions there, nor has anything of four.
  EXPECT_EQ(of(1, 32, 4, CollectiveKind::all_gather), "nccl");
  EXPECT_EQ(of(1, 32, 8), "nccl");
}

// The same for nRanks == 2 * nNodes and nRanks == nNodes: vertices {5525504, 32} and {296747008, 64}; {2367488, 16}
// and, on the line from {4736000, 2} to {269484032, 128}, at 16 ranks 4736000 x (269484032 / 4736000)^(3 / 6) =
// 35725000 B, 34.07 MiB.
TEST(NcclTuner, RegionsOfPartsOfServers) {
  const RegionsOf of{tuner_regions("ofi_p5")};
  EXPECT_EQ(of(5.2, 32, 16), "double_binary_tree ll128");
  EXPECT_EQ(of(5.3, 32, 16), "ring ll128");
  EXPECT_EQ(of(282, 64, 32), "ring ll128");
  EXPECT_EQ(of(200, 32, 16), "nvls_tree simple");
  EXPECT_EQ(of(2.2, 16, 16), "double_binary_tree ll128");
  EXPECT_EQ(of(2.3, 16, 16), "ring ll128");
  EXPECT_EQ(of(34.0, 16, 16), "ring ll128");
  EXPECT_EQ(of(34.2, 16, 16), "ring simple");
  EXPECT_EQ(of(1, 16, 16, CollectiveKind::all_gather), "nccl");
  EXPECT_EQ(of(1024, 16, 16, CollectiveKind::all_gather), "ring simple");
}

// The plugin's own list of its choices on 16 nodes with one rank each, and with eight (pull requests 913 and 900),
// where its vertices are still the same.
TEST(NcclTuner, RegionsOfLaterServers) {
  const RegionsOf p5en{tuner_regions("ofi_p5en")};
  EXPECT_EQ(p5en(8, 16, 16, CollectiveKind::all_gather), "pat simple");
  EXPECT_EQ(p5en(48, 16, 16, CollectiveKind::all_gather), "ring ll128");
  EXPECT_EQ(p5en(48.1, 16, 16, CollectiveKind::all_gather), "ring simple");
  EXPECT_EQ(p5en(4.4, 128, 16, CollectiveKind::all_gather), "ring ll");
  EXPECT_EQ(p5en(4.6, 128, 16, CollectiveKind::reduce_scatter), "ring ll128");
  EXPECT_EQ(p5en(0.1875, 32, 4), "double_binary_tree ll");
  EXPECT_EQ(p5en(0.19, 32, 4), "double_binary_tree ll128");
  EXPECT_EQ(p5en(1, 16, 2), "nccl");
  const RegionsOf p6{tuner_regions("ofi_p6_b200")};
  EXPECT_EQ(p6(4, 16, 16, CollectiveKind::all_gather), "pat simple");
  EXPECT_EQ(p6(5, 16, 16, CollectiveKind::all_gather), "ring ll128");
  EXPECT_EQ(p6(0.375, 32, 4), "double_binary_tree ll");
  EXPECT_EQ(p6(17.5, 32, 4), "double_binary_tree ll128");
  EXPECT_EQ(p6(100, 32, 4), "ring ll128");
  EXPECT_EQ(p6(300, 32, 4), "nvls_tree simple");
  EXPECT_EQ(p6(1024, 32, 4), "ring simple");
}

// NCCL src/enqueue.cc (addP2pToPlan), steps of 512 KiB: a quarter below a step, half below eight.
TEST(NcclTuner, ChunksOfSendsBetweenServers) {
  constexpr std::int64_t kib = 1024;
  EXPECT_EQ(p2p_net_chunk(512 * kib - 1, 512 * kib), 128 * kib);
  EXPECT_EQ(p2p_net_chunk(512 * kib, 512 * kib), 256 * kib);
  EXPECT_EQ(p2p_net_chunk(4096 * kib - 1, 512 * kib), 256 * kib);
  EXPECT_EQ(p2p_net_chunk(4096 * kib, 512 * kib), 512 * kib);
}

// src/enqueue.cc (calcCollChunking): 16 channels of 8 heads and chunks of 512 KiB are 64 MiB at a time, and 64 times as
// much is 4 GiB. Below it 64 KiB, 8 MiB at a time, of which 8 are 64 MiB; below that 32 KiB, of which 2 are 8 MiB.
TEST(NcclTuner, ChunksOfNvls) {
  const auto chunk = [](std::int64_t mib, std::int64_t largest) { return nvls_chunk(mib << 20, 16, 8, largest) >> 10; };
  EXPECT_EQ(chunk(4096, 512 << 10), 512);
  EXPECT_EQ(chunk(4095, 512 << 10), 64);
  EXPECT_EQ(chunk(63, 512 << 10), 32);
  EXPECT_EQ(chunk(7, 512 << 10), 16);
  EXPECT_EQ(chunk(1024, 128 << 10), 128);
}

// NCCL src/enqueue.cc (calcCollChunking): 16 channels of 8 heads have 64 MiB of chunks of 512 KiB. 32 MiB: 256, 128,
// then 64 KiB; 512 MiB are 16 times 128 x 256 KiB.
TEST(NcclTuner, ChunksOfNvlsTree) {
  const auto chunk = [](std::int64_t mib) { return nvls_tree_chunk(mib << 20, 16, 8, 512 << 10) >> 10; };
  EXPECT_EQ(chunk(32), 64);
  EXPECT_EQ(chunk(128), 128);
  EXPECT_EQ(chunk(512), 256);
  EXPECT_EQ(chunk(2048), 512);
}

// src/enqueue.cc (v2.8.4, computeColl), with channel->tree.depth = ranks / servers - 1 + log2(servers): four servers of
// eight have 9, eight channels of chunks of 512 KiB. 1 MiB: below 72 chunks down to 128 KiB, below 36 to 64 KiB, 2
// chunks are below 9. 32 MiB: 32 chunks of 128 KiB are below 36. 1 GiB has 256 of the largest.
TEST(NcclTuner, EarlyChunksOfTrees) {
  const auto chunk = [](std::int64_t mib) { return early_tree_chunk(mib << 20, 8, 4, 8, 512 << 10) >> 10; };
  EXPECT_EQ(chunk(1), 32);
  EXPECT_EQ(chunk(32), 64);
  EXPECT_EQ(chunk(1024), 512);
}

}  // namespace
}  // namespace weft::nccl_tuner_test
