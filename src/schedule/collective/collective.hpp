// SPDX-License-Identifier: GPL-2.0-only
// Collective operations as calls, and algorithms that turn them into lazy streams of steps.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective/block_table.hpp"
#include "schedule/collective/channel_graph.hpp"
#include "schedule/collective/communicator.hpp"
#include "schedule/collective/nccl_version.hpp"
#include "support/basics/error.hpp"
#include "support/basics/registry.hpp"
#include "units/bandwidth.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// What a collective does. Names in files: all_reduce, all_gather, ... send_recv is that of nccl-tests: each rank sends
/// to the next one, and the last to the first.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  barrier,
  send_recv,
};
constexpr bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}
std::string_view to_text(CollectiveKind kind);
std::optional<CollectiveKind> parse_collective_kind(std::string_view text);
std::vector<std::string> collective_kind_names();

/// Bus-bandwidth factor of nccl-tests (github.com/NVIDIA/nccl-tests doc/PERFORMANCE.md): busbw = algbw * factor, algbw
/// = S / t. all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all, gather, scatter (n-1)/n; the others 1.
double bus_bandwidth_factor(CollectiveKind kind, std::uint32_t ranks);

/// The layout of bytes in a message. NCCL src/include/device.h and src/device/prims_{simple,ll,ll128}.h.
enum class Protocol : std::uint8_t {
  simple,  ///< data only; a counter tells the receiver
  ll,      ///< 4 bytes of data and 4 of flag in turn: twice the bytes
  ll128,   ///< 120 bytes of data and 8 of flag in a line of 128
};
std::string_view to_text(Protocol protocol);
std::optional<Protocol> parse_protocol(std::string_view text);
/// What by_dimension does in one dimension of a grid of ranks.
enum class DimensionAlgorithm : std::uint8_t {
  ring,
  direct,
  halving_doubling,
  double_binary_tree,
  one_ring,  ///< these three: one dimension of all ranks, whatever the grid
  one_direct,
  one_halving_doubling,
};
std::string_view to_text(DimensionAlgorithm algorithm);
std::optional<DimensionAlgorithm> parse_dimension_algorithm(std::string_view text);
std::vector<std::string> dimension_algorithm_names();
/// Of each dimension, the last one for all that follow; none: rings.
struct DimensionAlgorithms {
  /// The algorithm of a dimension; of direct and one_direct with a window, how many messages a rank may have sent
  /// beyond those that it has received, 0: all at once.
  struct Entry {
    DimensionAlgorithm algorithm = DimensionAlgorithm::ring;
    std::uint32_t window = 0;
    auto operator<=>(const Entry&) const = default;
  };
  using List = std::vector<Entry>;
  List all;
  std::map<CollectiveKind, List> of_kind;  ///< for these instead
  const List& of(CollectiveKind kind) const {
    const auto found = of_kind.find(kind);
    return found == of_kind.end() ? all : found->second;
  }
  bool empty() const { return all.empty() && of_kind.empty(); }
  auto operator<=>(const DimensionAlgorithms&) const = default;
};

/// "direct4" is direct with a window of 4.
std::string to_text(const DimensionAlgorithms::Entry& entry);
std::optional<DimensionAlgorithms::Entry> parse_dimension_entry(std::string_view text);

/// Bytes on the wire of so many bytes of data: ll 16 ceil(b/8), ll128 128 ceil(b/120).
Bytes wire_bytes(Protocol protocol, Bytes data);

/// Which value of a constant that is known as a range: the smallest time and highest rate, the likeliest, the opposite.
enum class ConstantsLevel : std::uint8_t { low, mid, high };

/// Sizes that NCCL fixes at build time, open to experiments. Source: NCCL src/include/{device,collectives}.h
/// (NCCL_STEPS 8, NCCL_BUFFSIZE 4 MiB, *_CHUNKSTEPS, *_SLICESTEPS).
struct CollectiveTuning {
  /// Independent streams over the same ranks, each with its share of the bytes. 0 only until the call is settled.
  std::uint32_t channels = 1;
  Bytes chunk{0};   ///< largest chunk of one step; 0: the algorithm's own (ring all-reduce: 4 steps of 512 KiB)
  Bytes buffer{0};  ///< of a connection with Simple, NCCL_BUFFSIZE; 0: the machine's, or NCCL's 4 MiB
  Bytes p2p_chunk{
      0};  ///< of large sends and receives between servers, NCCL_P2P_NET_CHUNKSIZE; 0: the same way, 128 KiB
  std::uint32_t slices = 0;   ///< slices per chunk, each its own message; 0: the algorithm's own (ring all-reduce: 2)
  std::uint32_t credits = 0;  ///< slices in flight per connection; 0: the algorithm's own (8 steps / steps per slice)
  Protocol protocol = Protocol::simple;
  std::uint32_t ranks_per_server = 0;     ///< consecutive members that share a server; 0: not known
  std::uint32_t ranks_per_leaf = 0;       ///< consecutive members below one leaf switch; 0: all
  std::vector<std::uint32_t> dimensions;  ///< of a torus whose nodes are the members, the first one fastest; or empty
  DimensionAlgorithms dimension_algorithms;  ///< of by_dimension
  std::uint32_t splits = 0;           ///< parts that by_dimension sends through the dimensions; 0: one per channel
  bool each_dimension_whole = false;  ///< by_dimension reduces everything in each dimension in turn
  /// How fast accelerators run NCCL's collectives: a name of collectives/kernels, or none. Empty: that of the machine's
  /// servers where NCCL chooses the algorithm, else none. Of a settled call the one that it has.
  std::string kernel;
  Time launch;                        ///< from the start of a call to its first step: the kernel launch
  Time own_launch;                    ///< of a settled call: `launch` without that of `kernel`
  Time step_latency;                  ///< of each slice that a rank handles, before it goes on
  Time stage_latency;                 ///< more of each slice of a step that is not joined
  Time heads_latency;                 ///< instead, if the step is that of_all_heads
  Bandwidth stage_rate;               ///< such a slice takes at least its bytes at this rate more; 0: no time
  Bandwidth reduce_rate;              ///< bytes of slices that are reduced, per channel; 0: no time
  Bandwidth copy_rate;                ///< bytes of all other slices, per channel; 0: no time
  Bandwidth store_rate;               ///< instead of these, of slices that come and go no further; 0: as the others
  Bandwidth fetch_rate;               ///< receivers read slices over the link themselves; 0: senders write
  bool copies_while_sending = false;  ///< a copy of own data takes no time beside sending them (NCCL's copySend)
  Time min_step;                      ///< the bytes of a slice take at least so long
  Bandwidth pace_rate{};              ///< bytes of a channel, while what passes through is not delayed; 0: no limit
  bool paces_own_data = true;         ///< a rank's own data are delayed as well, so that the first slice is
  /// Bytes of a slice that go on to members of the same server before the rest has come; 0: whole slices. Between
  /// servers slices are whole. Only of calls with a graph.
  Bytes passed_on{0};
  Time message_latency;  ///< from the end of a slice's handling until it is sent, while the rank goes on
  /// NCCL's network between servers: a name of collectives/transports, or none. Empty: as `kernel`. Of a settled call
  /// the one that it has.
  std::string transport;
  /// Of a message to another server, instead of message_latency; below 0: there is no such difference.
  Time network_latency = Time::from_ps(-1);
  Time network_turn;       ///< of such a message at the accelerator's proxy, which does one after another
  Time network_step;       ///< of each slice from another server, or of own data to one, besides its bytes
  Bandwidth network_rate;  ///< bytes of slices to and from other servers, per channel, at most; 0: as fast as others
  ConstantsLevel constants = ConstantsLevel::mid;  ///< of the ranges in collectives/kernels and transports
  NcclVersion nccl_version = NcclVersion::v2_30;
  auto operator<=>(const CollectiveTuning&) const = default;
};

/// One collective operation of one communicator, the same on all its ranks.
struct CollectiveCall {
  std::uint32_t id = 0;  ///< index of the call in the workload: the collective id of messages and results
  CollectiveKind kind = CollectiveKind::all_reduce;
  const Communicator* communicator = nullptr;
  /// S of nccl-tests: all_reduce, broadcast, reduce, send_recv: the buffer of a rank; all_gather, gather: the result (n
  /// blocks); reduce_scatter, scatter: the input (n blocks); all_to_all: the input of a rank (n blocks); barrier: bytes
  /// of its messages, at least 1. Blocks are equal but for a shorter tail: block b is [b*ceil(S/n), min(S,
  /// (b+1)*ceil(S/n))), unless `blocks` says otherwise.
  Bytes size{0};
  std::uint32_t root = 0;  ///< index in the communicator, if has_root(kind)
  std::string algorithm = "ring";
  CollectiveTuning tuning;
  std::shared_ptr<const BlockTable> blocks;   ///< sizes that differ; size is their sum
  std::shared_ptr<const ChannelGraph> graph;  ///< of the members on the machine's servers; null: it has none
  SourceLine where;
  std::string label;  ///< for people: "grad bucket 3"
};

/// Block of a rank in the buffer of all blocks: where it begins, and its bytes. For all kinds but all_to_all.
std::int64_t block_begin(const CollectiveCall& call, std::uint32_t block);
std::int64_t block_bytes(const CollectiveCall& call, std::uint32_t block);
/// all_to_all: bytes from one rank to another, and where they stand in the sender's input and the receiver's output.
std::int64_t pair_bytes(const CollectiveCall& call, std::uint32_t from, std::uint32_t to);
std::int64_t pair_input(const CollectiveCall& call, std::uint32_t from, std::uint32_t to);
std::int64_t pair_output(const CollectiveCall& call, std::uint32_t from, std::uint32_t to);

/// The step vocabulary that NCCL (src/device/primitives.h) and MSCCL share. In the order of the words: what comes in
/// from `receive_peer` is reduced with (or replaces) the local data, copied to the local output, and sent to
/// `send_peer`.
enum class Primitive : std::uint8_t {
  send,                   ///< out: local input
  recv,                   ///< in -> local output
  copy,                   ///< local input -> local output
  recv_copy_send,         ///< in -> local output and out
  recv_reduce_send,       ///< in + local input -> out (nothing is kept)
  recv_reduce_copy,       ///< in + local input -> local output
  recv_reduce_copy_send,  ///< in + local input -> local output and out
  reduce,                 ///< local input + local output -> local output
  nop,                    ///< nothing: waits, or marks
};
constexpr bool receives(Primitive p) {
  return p == Primitive::recv || p == Primitive::recv_copy_send || p == Primitive::recv_reduce_send ||
         p == Primitive::recv_reduce_copy || p == Primitive::recv_reduce_copy_send;
}
constexpr bool sends(Primitive p) {
  return p == Primitive::send || p == Primitive::recv_copy_send || p == Primitive::recv_reduce_send ||
         p == Primitive::recv_reduce_copy_send;
}
constexpr bool reduces(Primitive p) {
  return p == Primitive::recv_reduce_send || p == Primitive::recv_reduce_copy ||
         p == Primitive::recv_reduce_copy_send || p == Primitive::reduce;
}
constexpr bool stores(Primitive p) {
  return p == Primitive::recv || p == Primitive::copy || p == Primitive::recv_copy_send ||
         p == Primitive::recv_reduce_copy || p == Primitive::recv_reduce_copy_send || p == Primitive::reduce;
}
/// Reads `source`.
constexpr bool reads(Primitive p) { return p == Primitive::send || p == Primitive::copy || reduces(p); }
std::string_view to_text(Primitive primitive);

/// Where the local data of a step lie (MSCCL's i, o, s). Scratch is working memory of one rank and channel, as long as
/// the algorithm wants it: partial results stand there, because a result byte is stored in the output only once.
enum class Buffer : std::uint8_t { input, output, scratch };
std::string_view to_text(Buffer buffer);

constexpr std::uint32_t no_lane = 0xffffffffU;

/// One step of one lane: a chunk, moved slice by slice. Sender and receiver of a chunk name the same bytes and
/// slice. "Local input" and "local output" of the primitives are `source` and `target`. A lane may read from output
/// and scratch what lanes of the same memory have stored there.
///
/// What comes from several peers is reduced together, and what goes to several goes to all of them, slice by slice: at
/// most three each, as in NCCL's trees (src/include/device.h, NCCL_MAX_TREE_ARITY).
struct Step {
  Primitive primitive = Primitive::send;
  Buffer source = Buffer::input;
  Buffer target = Buffer::output;  ///< or scratch, which may be overwritten
  bool instant = false;            ///< takes no time whatever the tuning says: bookkeeping, no work of a kernel
  bool mark = false;               ///< when it is done, the lane has one mark more, for which others may wait
  bool joined = false;             ///< to NCCL a part of another step, whose stage_latency is that of both
  bool of_all_heads = false;       ///< to NCCL a loop over the chunks of all heads (NVLink SHARP)
  std::uint8_t more_sends = 0;     ///< peers beyond the first
  std::uint8_t more_receives = 0;  ///< the same
  std::uint32_t send_peer = 0;     ///< communicator index, if sends(primitive)
  std::uint32_t receive_peer = 0;  ///< communicator index, if receives(primitive)
  std::array<std::uint32_t, 2> more_send_peers{};
  std::array<std::uint32_t, 2> more_receive_peers{};
  std::uint32_t wait_lane = no_lane;  ///< of the same rank: the step starts when that lane has `wait_marks` marks
  std::uint64_t wait_marks = 0;
  Bytes input_offset{0};   ///< in `source`, if reads(primitive)
  Bytes output_offset{0};  ///< in `target`, if stores(primitive)
  Bytes bytes{0};          ///< > 0 (nop: 0): empty chunks are not steps
  Bytes slice{0};          ///< bytes of each slice but a shorter last one; > 0 (nop: 0)

  std::uint32_t send_count() const { return sends(primitive) ? 1U + more_sends : 0U; }
  std::uint32_t receive_count() const { return receives(primitive) ? 1U + more_receives : 0U; }
  std::uint32_t send_to(std::uint32_t i) const { return i == 0 ? send_peer : more_send_peers[i - 1]; }
  std::uint32_t receive_from(std::uint32_t i) const { return i == 0 ? receive_peer : more_receive_peers[i - 1]; }
  void add_send(std::uint32_t peer);
  void add_receive(std::uint32_t peer);
};

/// The steps of one rank and lane in order, made one by one: memory does not grow with ranks or bytes.
class StepStream {
 public:
  virtual ~StepStream() = default;
  /// The next step, or false at the end.
  virtual bool next(Step& step) = 0;
};

/// Where an aggregator of a call is: in a switch above a member that has a unit for reductions.
struct AggregatorSite {
  enum class Level : std::uint8_t {
    server,  ///< the member's NVSwitch, or the switch that its host hangs on
    leaf,    ///< the first switch of the network between servers
    top,     ///< the highest switches above it
  };
  std::uint32_t member = 0;  ///< communicator index
  Level level = Level::server;
  std::uint32_t unit = 0;  ///< tells apart the aggregators of a call that may be in one switch; < max_units
  /// Below it are member, member + stride, ..., so many of them: all have to be below the same switches.
  std::uint32_t count = 1;
  std::uint32_t stride = 1;
  static constexpr std::uint32_t max_units = 4096;
};

/// Buffers. Input and output of a rank, in bytes (S = call.size, n ranks, B = ceil(S/n) block):
/// all_reduce, barrier: input S, output S.   all_gather: input = own block at offset 0, output S (block b at b*B).
/// reduce_scatter: input S, output = own block at offset 0.   broadcast: input S at the root, output S on all others
/// (the root's result is its input: no copy is needed).   reduce: input S, output S at the root.   gather: input = own
/// block, output S at the root.   scatter: input S at the root, output = own block.   send_recv: input S, output S,
/// that of the rank before.   all_to_all: block i of rank b's input goes to [b*B, b*B + its bytes) of rank i's output.
class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;
  virtual bool supports(CollectiveKind kind) const = 0;
  /// Why it cannot do this call although it supports the kind ("12 ranks are no multiple of ..."), or an empty text.
  virtual std::string refuses(const CollectiveCall& call) const;
  /// The only number of ranks that it is for, or 0.
  virtual std::uint32_t fixed_ranks() const { return 0; }
  /// It is for sizes in bytes that are a multiple of this.
  virtual std::uint32_t size_unit() const { return 1; }
  /// The only protocol that it is for, if any.
  virtual std::optional<Protocol> fixed_protocol() const { return std::nullopt; }
  /// The text form of a schedule that is written out step by step (docs/reference/schedule_format.md), else an empty
  /// text.
  virtual std::string schedule_text() const { return {}; }
  /// It takes calls with `blocks`.
  virtual bool takes_block_tables(CollectiveKind kind) const;
  /// Channels of a call that asks for no number: as many as NCCL has on the machine, if they are NCCL's.
  virtual std::uint32_t usual_channels(const CollectiveCall& /*call*/) const { return 1; }
  /// Connections are (communicator, channel, sender, receiver). Normally what the tuning wants.
  virtual std::uint32_t channels(const CollectiveCall& call) const { return call.tuning.channels; }
  /// Streams of steps of each rank that run at the same time, a multiple of channels(): lane l belongs to channel l %
  /// channels(). At each end one lane at a time uses a connection.
  virtual std::uint32_t lanes(const CollectiveCall& call) const { return channels(call); }
  /// Lanes with the same number here share what they store; each number has a scratch of its own.
  virtual std::uint32_t memory_of(const CollectiveCall& call, std::uint32_t lane) const {
    return lane % channels(call);
  }
  /// Slices in flight per connection (send_peer, receive_peer, channel) that this call allows.
  virtual std::uint32_t credits(const CollectiveCall& call) const = 0;
  /// Lazy steps of the rank at `index` on `lane`. A call of one rank or of 0 bytes has no steps (or only copies).
  virtual std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                            std::uint32_t lane) const = 0;
  /// True for each lane of the rank at `index` that has no steps at all, so that no stream is made for it; an empty
  /// vector: nothing is known.
  virtual std::vector<bool> lanes_without_steps(const CollectiveCall& /*call*/, std::uint32_t /*index*/) const {
    return {};
  }
  /// Aggregators: switches that reduce and copy (NVLink SHARP; R. Graham et al., "Scalable Hierarchical Aggregation
  /// Protocol (SHArP)", COMHPC 2016, doi:10.1109/COMHPC.2016.006). They take part as the indices n, n + 1, ... behind
  /// the n members, have no input and no result, and take no time for their steps.
  virtual std::uint32_t aggregators(const CollectiveCall& /*call*/) const { return 0; }
  /// Of aggregator n + `number`. If its level has several switches above the member, channels take turns among them,
  /// those of one memory_of() together.
  virtual AggregatorSite aggregator_site(const CollectiveCall& /*call*/, std::uint32_t /*number*/) const { return {}; }
  /// All lanes of a rank use one input, output and scratch, and may write any of them again, as MSCCL's do. Otherwise a
  /// channel has a scratch of its own, and an output byte is stored once.
  virtual bool shares_memory() const { return false; }
  /// Input and output are one buffer, named input: that of all blocks, own block at its place.
  virtual bool in_place() const { return false; }
  /// How people name a lane's step: "channel 2, step 5".
  virtual std::string name_step(const CollectiveCall& call, std::uint32_t index, std::uint32_t lane,
                                std::uint64_t step) const;
};
using CollectiveRegistry = Registry<CollectiveAlgorithm>;

/// Reads algorithms from files. Registered by the ending of the files' names, such as "xml".
class ScheduleReader {
 public:
  virtual ~ScheduleReader() = default;
  /// Throws InputError with file and line.
  virtual std::unique_ptr<CollectiveAlgorithm> read(const std::string& path) const = 0;
};
using ScheduleReaderRegistry = Registry<ScheduleReader>;

/// An algorithm by its registered name, or from a file whose ending is registered (read once). Null if there is
/// neither.
std::shared_ptr<const CollectiveAlgorithm> find_collective(const std::string& name);
/// True if the name's ending is one of ScheduleReaderRegistry.
bool is_schedule_file(const std::string& name);

}  // namespace weft
