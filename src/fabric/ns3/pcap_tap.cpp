// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ns3/pcap_tap.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>

#include "fabric/network/fabric.hpp"
#include "support/basics/error.hpp"
#include "support/basics/random.hpp"

namespace weft {
namespace {

// Frames are kept whole, though their payload is nothing but zeros: Wireshark calls shorter ones malformed.
constexpr std::size_t snap_length = 262'144;

// Queue pairs 0 and 1 of a port are management's: of subnets, and of general services (InfiniBand Architecture
// Specification vol. 1).
constexpr std::uint32_t first_queue_pair = 2;

// Opcodes of the reliable connection service, table 38 of the specification.
enum Opcode : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_only = 0x04,
  send_only_with_immediate = 0x05,
  acknowledge = 0x11,
};

class Bytestream {
 public:
  void put(std::uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
      bytes_.push_back(static_cast<std::uint8_t>(value >> shift));
  }
  std::size_t size() const { return bytes_.size(); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::uint64_t mac_address(NodeId host) { return 0x0200'0000'0000U | host.value(); }
std::uint32_t ip_address(NodeId host) { return 0x0a00'0000U | (host.value() & 0xff'ffffU); }

std::uint8_t opcode_of(const Packet& packet) {
  if (packet.kind == PacketKind::ack || packet.kind == PacketKind::credit_ack) return acknowledge;
  if (packet.kind == PacketKind::credit) return send_only_with_immediate;
  const bool first = (packet.flags & packet_first) != 0;
  const bool last = (packet.flags & packet_last) != 0;
  if (first && last) return send_only;
  return first ? send_first : last ? send_last : send_middle;
}

// RFC 1071 over the 20 bytes that begin at `start`.
std::uint16_t header_checksum(const std::vector<std::uint8_t>& bytes, std::size_t start) {
  std::uint32_t sum = 0;
  for (std::size_t i = start; i < start + 20; i += 2) sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

}  // namespace

std::vector<std::uint8_t> roce_frame(const Packet& packet) {
  const bool ack = packet.kind == PacketKind::ack || packet.kind == PacketKind::credit_ack;
  const bool credit = packet.kind == PacketKind::credit;
  const int pad = (4 - packet.payload % 4) % 4;
  // BTH 12, AETH 4 or immediate data 4, payload with padding, ICRC 4.
  const int extended = ack || credit ? 4 : 0;
  const int udp = 8 + 12 + extended + packet.payload + pad + 4;
  Bytestream out;
  out.put(mac_address(packet.destination()), 6);
  out.put(mac_address(packet.source()), 6);
  out.put(0x0800, 2);
  out.put(0x4502, 2);  // version 4, 5 words, ECT(0)
  out.put(static_cast<std::uint64_t>(20 + udp), 2);
  out.put(packet.psn & 0xffff, 2);
  out.put(0x4000, 2);  // do not fragment
  out.put(64 << 8 | 17, 2);
  out.put(0, 2);
  out.put(ip_address(packet.source()), 4);
  out.put(ip_address(packet.destination()), 4);
  const std::uint16_t checksum = header_checksum(out.bytes(), 14);
  out.bytes()[24] = static_cast<std::uint8_t>(checksum >> 8);
  out.bytes()[25] = static_cast<std::uint8_t>(checksum);
  // The source port carries the flow's entropy, in the dynamic range (RoCEv2 annex A17.9.1).
  out.put(0xc000U | (mix64(static_cast<std::uint64_t>(packet.queue_pair) + 1) & 0x3fffU), 2);
  out.put(4791, 2);
  out.put(static_cast<std::uint64_t>(udp), 2);
  out.put(0, 2);  // no checksum over IPv4
  const bool notify = (packet.flags & packet_notify) != 0;
  out.put(opcode_of(packet), 1);
  out.put(static_cast<std::uint64_t>(pad) << 4 | (notify ? 0x80 : 0), 1);
  out.put(0xffff, 2);  // default partition
  out.put((packet.queue_pair + first_queue_pair) & 0xff'ffffU, 4);
  out.put((packet.kind == PacketKind::data ? 0x8000'0000U : 0U) | (packet.psn & 0xff'ffffU), 4);
  if (ack) out.put(0x1f00'0000U | (packet.psn & 0xff'ffffU), 4);  // positive, credits unlimited
  if (credit) out.put(1, 4);
  out.bytes().resize(out.size() + packet.payload + static_cast<std::size_t>(pad) + 4, 0);
  return std::move(out.bytes());
}

PcapTap::PcapTap(const std::string& path, const Fabric& fabric)
    : path_(path), fabric_(fabric), file_(path, std::ios::binary) {
  check();
  const auto put = [this](std::uint32_t value, std::streamsize bytes) {
    file_.write(reinterpret_cast<const char*>(&value), bytes);
  };
  put(0xa1b2'3c4dU, 4);
  put(2, 2);
  put(4, 2);
  put(0, 4);
  put(0, 4);
  put(snap_length, 4);
  put(1, 4);
}

void PcapTap::check() const {
  if (!file_) throw EnvironmentError(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
}

void PcapTap::close() {
  file_.close();
  check();
}

void PcapTap::transmitted(Time start, const Packet& packet) {
  std::vector<std::uint8_t> frame;
  if (const auto held = fabric_.frame_of(packet)) {
    frame.resize(held->GetSize());
    held->CopyData(frame.data(), held->GetSize());
    frame.resize(std::max<std::size_t>(frame.size(), 60), 0);  // the padding of IEEE 802.3 clause 3.2.8
  } else {
    frame = roce_frame(packet);
  }
  const auto kept = std::min(frame.size(), snap_length);
  const std::int64_t ns = start.ps() / 1000;
  const std::uint32_t header[4] = {static_cast<std::uint32_t>(ns / 1'000'000'000),
                                   static_cast<std::uint32_t>(ns % 1'000'000'000), static_cast<std::uint32_t>(kept),
                                   static_cast<std::uint32_t>(frame.size())};
  file_.write(reinterpret_cast<const char*>(header), sizeof(header));
  file_.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(kept));
}

}  // namespace weft
