// SPDX-License-Identifier: GPL-2.0-only
#include "collectives/steps/exchange.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collectives/steps/nccl_sizes.hpp"
#include "support/basics/contract.hpp"

namespace weft {

MessageSizes MessageSizes::of(const CollectiveCall& call, std::int64_t chunk) {
  MessageSizes sizes;
  sizes.chunk = call.tuning.chunk.count() != 0 ? call.tuning.chunk.count() : chunk;
  sizes.slices = call.tuning.slices != 0 ? call.tuning.slices : 1;
  sizes.credits = call.tuning.credits != 0 ? call.tuning.credits : 8;
  sizes.credits = std::max(sizes.credits, sizes.slices);
  sizes.ahead = sizes.credits / sizes.slices;
  WEFT_EXPECT(sizes.chunk > 0, "chunk of {} bytes", sizes.chunk);
  return sizes;
}

MessageSizes MessageSizes::whole(const CollectiveCall& call) { return of(call, std::int64_t{1} << 50); }

MessageSizes MessageSizes::nccl_step(const CollectiveCall& call) { return of(call, nccl_step_bytes(call)); }

std::int64_t MessageSizes::nccl_step_bytes(const CollectiveCall& call) {
  if (call.tuning.protocol != Protocol::simple) return nccl_step_bytes(call.tuning.protocol);
  if (call.tuning.buffer.count() != 0) return call.tuning.buffer.count() / nccl_steps;
  if (call.graph && call.graph->speeds().settings.buffer != 0) return call.graph->speeds().settings.buffer / nccl_steps;
  return nccl_step_bytes(Protocol::simple);
}

std::int64_t MessageSizes::nccl_step_bytes(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return 32768;  // 8 steps of 512 threads x 8 lines x 16 B, half of them data (src/include/device.h)
    case Protocol::ll128:
      return 576'000;  // 120/128 of 640 threads x 120 elements x 8 B
    default:
      return 524'288;  // 4 MiB / 8 (src/init.cc, DEFAULT_BUFFSIZE)
  }
}

std::int64_t MessageSizes::slice(std::int64_t bytes) const {
  return std::min(bytes, std::max(aligned(ceil_divide(bytes, slices)), chunk / slices / 32));
}

Piece ChannelShare::of(std::int64_t begin, std::int64_t bytes) const {
  const std::int64_t part = aligned(ceil_divide(bytes, channels));
  const std::int64_t low = std::min(bytes, channel * part);
  return {begin + low, std::min(bytes, low + part) - low};
}

Pieces one_piece(Piece piece) {
  return [piece](std::uint32_t number) { return number == 0 ? std::optional<Piece>(piece) : std::nullopt; };
}

PieceCursor::PieceCursor(Pieces pieces, std::int64_t chunk) : pieces_(std::move(pieces)), chunk_(chunk) {
  find_piece();
}

std::int64_t PieceCursor::bytes() const { return std::min(chunk_, left_.bytes); }

void PieceCursor::advance() {
  const std::int64_t taken = bytes();
  left_.offset += taken;
  left_.bytes -= taken;
  if (left_.bytes == 0) find_piece();
}

void PieceCursor::find_piece() {
  while (left_.bytes == 0) {
    const auto piece = pieces_(number_++);
    if (!piece) return;
    left_ = *piece;
  }
}

Exchange& Exchange::send(std::uint32_t peer, Buffer source, Pieces pieces) {
  send_peer_ = peer;
  send_source_ = source;
  sends_ = PieceCursor(std::move(pieces), sizes_.chunk);
  return *this;
}
Exchange& Exchange::receive(std::uint32_t peer, Buffer target, Pieces pieces) {
  receive_peer_ = peer;
  target_ = target;
  receives_ = PieceCursor(std::move(pieces), sizes_.chunk);
  return *this;
}
Exchange& Exchange::reduce(std::uint32_t peer, Buffer source, std::int64_t shift, Buffer target, Pieces pieces) {
  reduces_ = true;
  source_ = source;
  shift_ = shift;
  return receive(peer, target, std::move(pieces));
}

bool Exchange::next(Step& step) {
  step = Step{};
  if (sends_.done() && receives_.done()) return false;
  if (!sends_.done() && (receives_.done() || lead_ < sizes_.ahead)) {
    step.primitive = Primitive::send;
    step.send_peer = send_peer_;
    step.source = send_source_;
    step.input_offset = Bytes(sends_.offset());
    take(sends_, step);
    ++lead_;
    return true;
  }
  step.primitive = reduces_ ? Primitive::recv_reduce_copy : Primitive::recv;
  step.receive_peer = receive_peer_;
  step.source = source_;
  step.target = target_;
  step.input_offset = Bytes(receives_.offset() + shift_);
  step.output_offset = Bytes(receives_.offset());
  take(receives_, step);
  lead_ -= std::min(lead_, 1U);
  return true;
}

void Exchange::take(PieceCursor& chunks, Step& step) const {
  step.bytes = Bytes(chunks.bytes());
  step.slice = Bytes(sizes_.slice(chunks.bytes()));
  chunks.advance();
}

Step local_copy(Buffer source, std::int64_t from, Buffer target, std::int64_t to, std::int64_t bytes) {
  Step step;
  step.primitive = Primitive::copy;
  step.source = source;
  step.target = target;
  step.input_offset = Bytes(from);
  step.output_offset = Bytes(to);
  step.bytes = step.slice = Bytes(bytes);
  return step;
}

Step waits_for(std::uint32_t lane, std::uint64_t marks) {
  Step step;
  step.primitive = Primitive::nop;
  step.wait_lane = lane;
  step.wait_marks = marks;
  return step;
}

Step marks() {
  Step step;
  step.primitive = Primitive::nop;
  step.mark = true;
  return step;
}

namespace {

StepGenerator lone(std::int64_t bytes) {
  if (bytes > 0) co_yield local_copy(Buffer::input, 0, Buffer::output, 0, bytes);
}

}  // namespace

StepGenerator chunks_of(Step step, MessageSizes sizes, Piece part) {
  for (std::int64_t at = 0; at < part.bytes; at += sizes.chunk) {
    const std::int64_t bytes = std::min(sizes.chunk, part.bytes - at);
    step.input_offset = step.output_offset = Bytes(part.offset + at);
    step.bytes = Bytes(bytes);
    step.slice = Bytes(sizes.slice(bytes));
    co_yield step;
  }
}

std::unique_ptr<StepStream> lone_stream(const CollectiveCall& call, std::uint32_t lane) {
  const bool stays = call.kind == CollectiveKind::all_reduce || call.kind == CollectiveKind::broadcast ||
                     call.kind == CollectiveKind::reduce || call.kind == CollectiveKind::barrier;
  return stream_of(lone(stays || lane != 0 ? 0 : call.size.count()));
}

void expect_valid_lane(const CollectiveAlgorithm& algorithm, const CollectiveCall& call, std::uint32_t index,
                       std::uint32_t lane) {
  const std::uint32_t members = call.communicator->size() + algorithm.aggregators(call);
  WEFT_EXPECT(index < members, "index {} of {} ranks and aggregators", index, members);
  WEFT_EXPECT(lane < algorithm.lanes(call), "lane {} of {}", lane, algorithm.lanes(call));
  WEFT_EXPECT(call.size.count() >= 0, "{} bytes", call.size.count());
  WEFT_EXPECT(algorithm.supports(call.kind), "{} has no {}", call.algorithm, to_text(call.kind));
  WEFT_EXPECT(!has_root(call.kind) || call.root < call.communicator->size(), "root {} of {} ranks", call.root,
              call.communicator->size());
}

std::vector<std::uint32_t> torus_dimensions(const CollectiveCall& call) {
  if (!call.tuning.dimensions.empty()) return call.tuning.dimensions;
  const std::uint32_t ranks = call.communicator->size();
  std::uint32_t small = 1;
  for (std::uint32_t factor = 1; factor * factor <= ranks; ++factor)
    if (ranks % factor == 0) small = factor;
  if (small == 1) return {ranks};
  return {ranks / small, small};
}

std::uint32_t server_size(const CollectiveCall& call) {
  if (call.tuning.ranks_per_server != 0) return std::min(call.tuning.ranks_per_server, call.communicator->size());
  std::uint32_t size = 8;
  while (call.communicator->size() % size != 0) --size;
  return size;
}

std::string refuse_parts_of_servers(const CollectiveCall& call, std::uint32_t server) {
  const std::uint32_t ranks = call.communicator->size();
  return ranks % server == 0 ? std::string() : fmt::format("{} ranks are not whole servers of {}", ranks, server);
}

}  // namespace weft
