// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/frames/frame_table.hpp"

#include <cstring>
#include <utility>

#include <ns3/buffer.h>
#include <ns3/header.h>

#include "fabric/frames/ethernet.hpp"
#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::uint32_t none = 0xffffffffU;

/// Words of ns-3 that hold so many bytes and end where the next record of a batch may begin, at eight bytes.
constexpr std::size_t in_words(std::size_t bytes) { return (bytes + 7) / 8 * 2; }

// The first bytes of a frame, unchanged.
class FirstBytes final : public ns3::Header {
 public:
  static constexpr std::uint32_t count = ethernet_header.count() + 20;
  static ns3::TypeId GetTypeId() {
    static const ns3::TypeId type =
        ns3::TypeId("weft::FirstBytes").SetParent<ns3::Header>().SetGroupName("weft").AddConstructor<FirstBytes>();
    return type;
  }
  ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  std::uint32_t GetSerializedSize() const override { return count; }
  void Serialize(ns3::Buffer::Iterator start) const override { start.Write(bytes, count); }
  std::uint32_t Deserialize(ns3::Buffer::Iterator start) override {
    start.Read(bytes, count);
    return count;
  }
  void Print(std::ostream& out) const override { out << count << " bytes"; }

  std::uint8_t bytes[count] = {};
};

}  // namespace

std::uint32_t FrameTable::add(Frame frame) {
  ++live_;
  if (free_ == none) {
    slots_.push_back({std::move(frame), none});
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_;
  free_ = slots_[slot].next;
  slots_[slot].frame = std::move(frame);
  return slot;
}

FrameTable::Frame FrameTable::take(std::uint32_t slot) {
  WEFT_EXPECT(slot < slots_.size() && slots_[slot].frame, "there is no frame {}", slot);
  Frame frame = std::exchange(slots_[slot].frame, nullptr);
  slots_[slot].next = free_;
  free_ = slot;
  --live_;
  return frame;
}

void FrameTable::mark(std::uint32_t slot) {
  // The sender may still hold the packet, to send it again.
  Frame frame = slots_[slot].frame->Copy();
  FirstBytes head;
  frame->RemoveHeader(head);
  std::uint8_t* ip = head.bytes + ethernet_header.count();
  const std::uint8_t before = ip[1];
  ip[1] |= 0x03;
  // The checksum, if there is one: RFC 1624, equation 3, for the first word.
  const std::uint32_t checksum = static_cast<std::uint32_t>(ip[10] << 8 | ip[11]);
  if (checksum != 0) {
    const auto word = [&](std::uint8_t second) { return static_cast<std::uint32_t>(ip[0] << 8 | second); };
    std::uint32_t sum = (~checksum & 0xffffU) + (~word(before) & 0xffffU) + word(ip[1]);
    while (sum >> 16 != 0) sum = (sum & 0xffffU) + (sum >> 16);
    ip[10] = static_cast<std::uint8_t>(~sum >> 8);
    ip[11] = static_cast<std::uint8_t>(~sum);
  }
  frame->AddHeader(head);
  slots_[slot].frame = std::move(frame);
}

void FrameTable::export_to(Batch& batch, std::uint32_t slot) {
  const Frame frame = take(slot);
  const std::uint32_t size = frame->GetSerializedSize();
  scratch_.resize(in_words(size));
  const bool written = frame->Serialize(reinterpret_cast<std::uint8_t*>(scratch_.data()), size) != 0;
  WEFT_EXPECT(written, "ns-3 has not written a packet of {} bytes into {}", frame->GetSize(), size);
  batch.append(std::uint64_t{size});
  batch.append(scratch_.data(), scratch_.size() * sizeof(scratch_[0]));
}

std::uint32_t FrameTable::import_from(std::span<const std::byte> batch, std::size_t& at) {
  const auto size = static_cast<std::uint32_t>(take_record<std::uint64_t>(batch, at));
  scratch_.resize(in_words(size));
  const std::size_t bytes = scratch_.size() * sizeof(scratch_[0]);
  WEFT_EXPECT(at + bytes <= batch.size(), "batch of {} bytes ends at {}", batch.size(), at);
  std::memcpy(scratch_.data(), batch.data() + at, bytes);
  at += bytes;
  return add(ns3::Create<ns3::Packet>(reinterpret_cast<const std::uint8_t*>(scratch_.data()), size, true));
}

void FrameTable::count_sent(Bytes bytes) {
  ++counters_.sent;
  counters_.sent_bytes += bytes;
}

void FrameTable::count_delivered(Bytes bytes) {
  ++counters_.delivered;
  counters_.delivered_bytes += bytes;
}

void FrameTable::drop(const Packet& packet) {
  take(packet.message);
  ++counters_.dropped;
  counters_.dropped_bytes += Bytes(packet.payload);
}

void FrameTable::arrive(NodeId host, std::uint32_t port, Time time, const Packet& packet) {
  if (!receiver_) return drop(packet);
  receiver_({host, port, time, take(packet.message), Bytes(packet.payload)});
}

}  // namespace weft
