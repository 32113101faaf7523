// SPDX-License-Identifier: GPL-2.0-only
// The two ends of a TCP transfer, as ns-3 applications.
#pragma once

#include <cstdint>
#include <optional>

#include <ns3/application.h>
#include <ns3/inet-socket-address.h>
#include <ns3/ptr.h>
#include <ns3/socket.h>
#include <ns3/tcp-header.h>
#include <ns3/tcp-socket-base.h>
#include <ns3/type-id.h>

#include "internet/transfer_log.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

/// How both ends of a connection are set up.
struct TcpSettings {
  ns3::TypeId congestion_control;  ///< of ns3::TcpCongestionOps
  std::uint32_t segment = 0;       ///< most payload bytes of a packet
  std::uint32_t buffer = 0;        ///< of sender and receiver, bytes: the most that is under way
  Time min_timeout;                ///< of retransmissions
  Time ack_delay;                  ///< an ACK for a single segment waits so long for another
  bool ecn = false;
  std::uint8_t type_of_service = 0;
};

/// Sends so many bytes as fast as TCP allows, and closes the connection; or sends for ever.
class TcpSender final : public ns3::Application {
 public:
  TcpSender(const TcpSettings& settings, ns3::InetSocketAddress receiver, std::optional<Bytes> size, TransferLog& log,
            std::uint32_t transfer)
      : settings_(settings), receiver_(receiver), size_(size), log_(log), transfer_(transfer) {}

 private:
  void StartApplication() override;
  void StopApplication() override;
  void fill();
  void note_sent(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                 ns3::Ptr<const ns3::TcpSocketBase> socket);

  TcpSettings settings_;
  ns3::InetSocketAddress receiver_;
  std::optional<Bytes> size_;
  TransferLog& log_;
  std::uint32_t transfer_;
  ns3::Ptr<ns3::Socket> socket_;
  bool connected_ = false;
  std::int64_t handed_over_ = 0;   // bytes
  std::int64_t sequence_end_ = 0;  // of what has been sent
};

/// Listens, and reads all arriving data.
class TcpReceiver final : public ns3::Application {
 public:
  TcpReceiver(const TcpSettings& settings, std::uint16_t port, TransferLog& log, std::uint32_t transfer)
      : settings_(settings), port_(port), log_(log), transfer_(transfer) {}

 private:
  void StartApplication() override;
  void StopApplication() override;
  void accepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
  void read(ns3::Ptr<ns3::Socket> socket);

  TcpSettings settings_;
  std::uint16_t port_;
  TransferLog& log_;
  std::uint32_t transfer_;
  ns3::Ptr<ns3::Socket> listening_;
};

}  // namespace weft
