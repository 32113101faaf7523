// SPDX-License-Identifier: GPL-2.0-only
#include "internet/tcp_applications.hpp"

#include <algorithm>

#include <ns3/boolean.h>
#include <ns3/enum.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/tcp-socket-state.h>
#include <ns3/uinteger.h>

#include "support/basics/contract.hpp"

namespace weft {
namespace {

constexpr std::int64_t largest_write = 65'536;
// In a row, then TCP gives up: tcp_retries2 of Linux, Documentation/networking/ip-sysctl.rst.
constexpr std::uint32_t max_retransmissions = 15;

Time now() { return Time::from_ps(ns3::Simulator::Now().GetTimeStep()); }
ns3::TimeValue to_value(Time time) { return ns3::TimeValue(ns3::TimeStep(static_cast<std::uint64_t>(time.ps()))); }

ns3::Ptr<ns3::Socket> open_socket(const ns3::Ptr<ns3::Node>& node, const TcpSettings& settings) {
  const auto tcp = node->GetObject<ns3::TcpL4Protocol>();
  WEFT_EXPECT(tcp, "node {} has no TCP", node->GetId());
  const ns3::Ptr<ns3::Socket> socket = tcp->CreateSocket(settings.congestion_control);
  socket->SetAttribute("SndBufSize", ns3::UintegerValue(settings.buffer));
  socket->SetAttribute("RcvBufSize", ns3::UintegerValue(settings.buffer));
  socket->SetAttribute("SegmentSize", ns3::UintegerValue(settings.segment));
  socket->SetAttribute("MinRto", to_value(settings.min_timeout));
  socket->SetAttribute("DelAckTimeout", to_value(settings.ack_delay));
  socket->SetAttribute("DataRetries", ns3::UintegerValue(max_retransmissions));
  if (settings.ecn) socket->SetAttribute("UseEcn", ns3::EnumValue(ns3::TcpSocketState::On));
  socket->SetIpTos(settings.type_of_service);
  return socket;
}

}  // namespace

void TcpSender::StartApplication() {
  socket_ = open_socket(GetNode(), settings_);
  socket_->SetConnectCallback(
      ns3::Callback<void, ns3::Ptr<ns3::Socket>>([this](ns3::Ptr<ns3::Socket>) {
        connected_ = true;
        log_.connected(transfer_, now());
        fill();
      }),
      ns3::Callback<void, ns3::Ptr<ns3::Socket>>([this](ns3::Ptr<ns3::Socket>) { log_.gave_up(transfer_); }));
  socket_->SetCloseCallbacks(
      ns3::Callback<void, ns3::Ptr<ns3::Socket>>([](ns3::Ptr<ns3::Socket>) {}),
      ns3::Callback<void, ns3::Ptr<ns3::Socket>>([this](ns3::Ptr<ns3::Socket>) { log_.gave_up(transfer_); }));
  socket_->SetSendCallback(
      ns3::Callback<void, ns3::Ptr<ns3::Socket>, std::uint32_t>([this](ns3::Ptr<ns3::Socket>, std::uint32_t) {
        if (connected_) fill();
      }));
  socket_->TraceConnectWithoutContext("Tx", ns3::MakeCallback(&TcpSender::note_sent, this));
  const bool bound = socket_->Bind() == 0;
  WEFT_EXPECT(bound, "node {} has no free TCP port", GetNode()->GetId());
  receiver_.SetTos(settings_.type_of_service);  // Bind() and Connect() take it from the address
  socket_->Connect(receiver_);
}

void TcpSender::fill() {
  while (!size_ || handed_over_ < size_->count()) {
    std::int64_t bytes = std::min<std::int64_t>(largest_write, socket_->GetTxAvailable());
    if (size_) bytes = std::min(bytes, size_->count() - handed_over_);
    if (bytes == 0 || socket_->Send(ns3::Create<ns3::Packet>(static_cast<std::uint32_t>(bytes))) < 0) return;
    handed_over_ += bytes;
  }
  connected_ = false;
  socket_->Close();  // once all is sent
}

// Sequence numbers have 32 bits: a segment is placed relative to the end of all bytes sent so far.
void TcpSender::note_sent(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                          ns3::Ptr<const ns3::TcpSocketBase> /*socket*/) {
  const std::int64_t bytes = payload->GetSize();
  if (bytes == 0) return;
  const std::uint32_t end = header.GetSequenceNumber().GetValue() + static_cast<std::uint32_t>(bytes);
  const auto ahead = static_cast<std::int32_t>(end - static_cast<std::uint32_t>(sequence_end_ + 1));  // SYN has 0
  const std::int64_t fresh = std::clamp<std::int64_t>(ahead, 0, bytes);
  sequence_end_ += fresh;
  if (fresh < bytes) log_.repeated(transfer_, bytes - fresh);
}

void TcpSender::StopApplication() {
  connected_ = false;
  if (socket_) socket_->Close();
}

void TcpReceiver::StartApplication() {
  listening_ = open_socket(GetNode(), settings_);
  ns3::InetSocketAddress address(ns3::Ipv4Address::GetAny(), port_);
  address.SetTos(settings_.type_of_service);  // as above
  const bool bound = listening_->Bind(address) == 0;
  WEFT_EXPECT(bound, "node {}: TCP port {} is in use", GetNode()->GetId(), port_);
  listening_->SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                                ns3::MakeCallback(&TcpReceiver::accepted, this));
  listening_->Listen();
}

void TcpReceiver::accepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address& /*from*/) {
  socket->SetRecvCallback(ns3::MakeCallback(&TcpReceiver::read, this));
}

// A segment at a time: ns-3 joins what it hands over at once into one packet, and copies that with each segment. After
// a loss megabytes may be there.
void TcpReceiver::read(ns3::Ptr<ns3::Socket> socket) {
  while (const ns3::Ptr<ns3::Packet> packet = socket->Recv(settings_.segment, 0)) {
    if (packet->GetSize() == 0) return;  // the end
    log_.received(transfer_, now(), packet->GetSize());
  }
}

void TcpReceiver::StopApplication() {
  if (listening_) listening_->Close();
}

}  // namespace weft
