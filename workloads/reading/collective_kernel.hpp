// SPDX-License-Identifier: GPL-2.0-only
// What a collective's kernel takes besides the network: from a device file, and from NCCL's own constants.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "schedule/collective/collective.hpp"
#include "support/documents/spec.hpp"

namespace weft {

/// The key `kernel_device`: a device file's memory bandwidth, shared out among the channels, limits what a channel
/// reduces (two reads and a write per byte) and copies (a read and a write), and its `launch` comes before the first
/// step. Keys of the tuning's own overrule it. Throws InputError.
void read_kernel_device(const Spec& spec, const std::string& directory, CollectiveTuning& tuning);

/// The speed at which thread blocks of an accelerator run NCCL's collectives: collectives/kernels/*.yaml explains each
/// value.
struct CollectiveKernel {
  struct Protocol {
    Time message;               ///< latency of a message beside the network's
    Time step;                  ///< of a slice, beside its bytes
    Time trip;                  ///< the bytes of a slice take at least so long
    Bytes trip_bytes;           ///< 0: bytes of a slice at a channel's share of `link`
    Time full_trip;             ///< of trip_bytes
    Bandwidth pace{};           ///< of a block, whatever passes through it; 0: no limit
    bool large_buffers = true;  ///< its buffers are megabytes, which take time once
    /// Bus bandwidth of trees for each channel of the search, in one server, two, and more; 0: no limit.
    std::array<Bandwidth, 3> trees{};
  };
  Time launch;
  Time second_channel;  ///< more, with more than one
  Time large_buffers;   ///< more, of protocols with large buffers
  Time pair_buffers;    ///< the same of sends and receives
  Protocol simple;
  Protocol ll;
  Protocol ll128;
  Bandwidth link;               ///< of a GPU, shared by its channels
  Bandwidth store;              ///< of a channel, of what comes and goes no further
  Bandwidth warp;               ///< of a warp that copies what is sent or received in pairs
  bool receivers_read = false;  ///< in pairs: receivers fetch over NVLink what senders have put into their own memory
  Time nvls_loop;               ///< of NVLink SHARP, all heads' chunks of a channel
  Bandwidth nvls_rate;          ///< these take as long as their bytes at this rate, if that is longer; 0: never
  Bandwidth many_heads_rate;    ///< the same of more than eight heads
};
/// How NCCL's messages get from an accelerator to the network and back, beside the links and switches on their way:
/// collectives/transports/*.yaml explains each value.
struct CollectiveTransport {
  Time turn;       ///< of a message at the thread that hands an accelerator's messages to the NIC, one after another
  Time pass;       ///< of that thread's look at a message that it receives
  Time ll;         ///< latency of a message, by protocol
  Time ll128;      ///< and of Simple without its reads of the host's memory
  Time host_read;  ///< of an accelerator's read of the host's memory, until the value is there
  Time flush;      ///< more of Simple with GPUDirect on Ampere and before
  Time staging;    ///< more of both without GPUDirect, and how fast data go through the host's memory then
  Bandwidth staging_rate;  ///< of an accelerator
  Bandwidth ll_rate;       ///< of data of LL that a channel sends or receives, where they are copied; 0: they are not
};
/// Throws InputError at `where` with the names that there are. `level`: of constants that are ranges.
const CollectiveKernel& collective_kernel(const Spec& where, const std::string& name, ConstantsLevel level);
const CollectiveTransport& collective_transport(const Spec& where, const std::string& name, ConstantsLevel level);
/// Launch, latencies and rates of a call whose algorithm, protocol and channels are known, as the kernel of
/// call.tuning has them; `nccl`: NCCL has chosen the algorithm. Times that the user gives himself stay.
void settle_collective_kernel(const Spec& where, CollectiveCall& call, bool nccl);

/// The key `latencies`: none (the default), or those of NCCL, once the algorithm is known.
void read_latencies(const Spec& spec, CollectiveTuning& tuning);
/// The rates and latencies that had to wait for the algorithm and the number of channels: until then they are below 0.
/// Throws InputError at `where`.
void settle_kernel(const Spec& where, CollectiveCall& call);

/// Times that NCCL's tuner takes for its kernels on NVLink: src/graph/tuning.cc, baseLatencies and hwLatencies of
/// NCCL_HW_NVLINK, LL, LL128 and Simple. The base latency is that before the first step; the hardware latency is that
/// of each step, but of NVLS, whose steps are not counted, the whole. Nothing if NCCL has no such algorithm.
struct KernelLatencies {
  Time launch;
  Time step;
};
std::optional<KernelLatencies> nccl_latencies(const std::string& algorithm, Protocol protocol);

}  // namespace weft
