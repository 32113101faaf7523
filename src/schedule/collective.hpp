// SPDX-License-Identifier: GPL-2.0-only
// Collective operations as calls, and algorithms that answer them with lazy streams of steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/communicator.hpp"
#include "support/error.hpp"
#include "support/registry.hpp"
#include "units/bytes.hpp"

namespace weft {

/// What a collective does. Names in files: all_reduce, all_gather, ...
enum class CollectiveKind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all };
std::string_view to_text(CollectiveKind kind);
std::optional<CollectiveKind> parse_collective_kind(std::string_view text);
std::vector<std::string> collective_kind_names();

/// Bus-bandwidth factor of nccl-tests (github.com/NVIDIA/nccl-tests doc/PERFORMANCE.md): busbw = algbw * factor, algbw
/// = S / t. all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all (n-1)/n; broadcast and reduce 1.
double bus_bandwidth_factor(CollectiveKind kind, std::uint32_t ranks);

/// Sizes that NCCL fixes at build time, open to experiments. Source: NCCL src/include/{device,collectives}.h
/// (NCCL_STEPS 8, NCCL_BUFFSIZE 4 MiB, *_CHUNKSTEPS, *_SLICESTEPS).
struct CollectiveTuning {
  std::uint32_t channels = 1;  ///< independent streams over the same ranks, each with its share of the bytes
  Bytes chunk{0};  ///< largest chunk of one step; 0: the algorithm's own (ring all-reduce: 4 steps of 512 KiB)
  std::uint32_t slices = 0;   ///< slices per chunk, each its own message; 0: the algorithm's own (ring all-reduce: 2)
  std::uint32_t credits = 0;  ///< slices in flight per connection; 0: the algorithm's own (8 steps / steps per slice)
};

/// One collective operation of one communicator, the same on all its ranks.
struct CollectiveCall {
  std::uint32_t id = 0;  ///< index of the call in the workload: the collective id of messages and results
  CollectiveKind kind = CollectiveKind::all_reduce;
  const Communicator* communicator = nullptr;
  /// S of nccl-tests: all_reduce, broadcast, reduce: the buffer of a rank; all_gather: the result (n blocks);
  /// reduce_scatter: the input (n blocks); all_to_all: the input of a rank (n blocks). Blocks are equal but for a
  /// shorter tail: block b is [b*ceil(S/n), min(S, (b+1)*ceil(S/n))).
  Bytes size{0};
  std::uint32_t root = 0;  ///< index in the communicator (broadcast, reduce)
  std::string algorithm = "ring";
  CollectiveTuning tuning;
  SourceLine where;
  std::string label;  ///< for people: "grad bucket 3"
};

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
};
constexpr bool receives(Primitive p) { return p != Primitive::send && p != Primitive::copy; }
constexpr bool sends(Primitive p) {
  return p == Primitive::send || p == Primitive::recv_copy_send || p == Primitive::recv_reduce_send ||
         p == Primitive::recv_reduce_copy_send;
}
constexpr bool reduces(Primitive p) {
  return p == Primitive::recv_reduce_send || p == Primitive::recv_reduce_copy || p == Primitive::recv_reduce_copy_send;
}
constexpr bool stores(Primitive p) {
  return p == Primitive::recv || p == Primitive::copy || p == Primitive::recv_copy_send ||
         p == Primitive::recv_reduce_copy || p == Primitive::recv_reduce_copy_send;
}
std::string_view to_text(Primitive primitive);

/// Where the local data of a step lie (MSCCL's i, o, s). Scratch is working memory of one rank and channel, as long as
/// the algorithm wants it: partial results stand there, because a result byte is stored in the output only once.
enum class Buffer : std::uint8_t { input, output, scratch };
std::string_view to_text(Buffer buffer);

/// One step of one channel: a chunk, moved slice by slice. Sender and receiver of a chunk name the same bytes and
/// slice. "Local input" and "local output" of the primitives are `source` and `target`. A channel may read from output
/// and scratch what it has stored there itself.
struct Step {
  Primitive primitive = Primitive::send;
  Buffer source = Buffer::input;
  Buffer target = Buffer::output;  ///< or scratch, which may be overwritten
  std::uint32_t send_peer = 0;     ///< communicator index, if sends(primitive)
  std::uint32_t receive_peer = 0;  ///< communicator index, if receives(primitive)
  Bytes input_offset{0};           ///< in `source` (sends without receive, copies, reductions)
  Bytes output_offset{0};          ///< in `target`, if stores(primitive)
  Bytes bytes{0};                  ///< > 0: empty chunks are not steps
  Bytes slice{0};                  ///< bytes of each slice but a shorter last one; > 0
};

/// The steps of one rank and channel in order, made one by one: memory does not grow with ranks or bytes.
class StepStream {
 public:
  virtual ~StepStream() = default;
  /// The next step, or false at the end.
  virtual bool next(Step& step) = 0;
};

/// Buffers. Input and output of a rank, in bytes (S = call.size, n ranks, B = ceil(S/n) block):
/// all_reduce: input S, output S.   all_gather: input = own block at offset 0, output S (block b at b*B).
/// reduce_scatter: input S, output = own block at offset 0.   broadcast: input S at the root, output S on all others
/// (the root's result is its input: no copy is needed).
class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;
  virtual bool supports(CollectiveKind kind) const = 0;
  /// Slices in flight per connection (send_peer, receive_peer, channel) that this call allows.
  virtual std::uint32_t credits(const CollectiveCall& call) const = 0;
  /// Lazy steps of the rank at `index` on `channel`. A call of one rank or of 0 bytes has no steps (or only copies).
  virtual std::unique_ptr<StepStream> steps(const CollectiveCall& call, std::uint32_t index,
                                            std::uint32_t channel) const = 0;
};
using CollectiveRegistry = Registry<CollectiveAlgorithm>;

}  // namespace weft
