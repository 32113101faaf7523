// SPDX-License-Identifier: GPL-2.0-only
// What the software of hosts sees of a network, whatever moves its messages: packets, or a formula.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data_path.hpp"
#include "fabric/client/host_client.hpp"
#include "fabric/client/link_counters.hpp"
#include "fabric/parameters/network_parameters.hpp"
#include "transport/messages/message.hpp"
#include "transport/messages/send_waits.hpp"

namespace weft {

class ProcessGroup;

/// A request of a rank for the time of one of its processors, on networks that model processors.
struct ProcessorRequest {
  enum class Kind : std::uint8_t { send = 1, recv, compute };  ///< those that are ready together begin in this order
  Kind kind = Kind::compute;
  std::uint32_t rank = 0;
  std::uint32_t cpu = 0;
  std::uint32_t nic = 0;     ///< send
  std::uint64_t token = 0;   ///< of the operation
  std::uint32_t source = 0;  ///< recv: rank, tag and number of the message among those of both
  std::uint32_t tag = 0;
  std::uint32_t sequence = 0;
  std::uint64_t cause = 0;  ///< what made it ready: the latest HostNetwork::cause() of all that it waited for
  /// on_timer() is called with `token` and this bit when it may begin.
  static constexpr std::uint64_t granted = std::uint64_t{1} << 63;
};

/// Queue pairs that carry messages in order, credits, and timers of the hosts that this process owns; a HostClient is
/// called for arrivals. One virtual call per message. Fabric moves packets; IdealNetwork models whole messages.
class HostNetwork : public DataPath {
 public:
  void set_client(HostClient* client) { client_ = client; }

  // For the software of owned hosts -----------------------------------------------------------------------------------
  virtual const std::vector<NodeId>& hosts() const = 0;
  /// A host that this process simulates (of the fabric: any node).
  virtual bool owns(NodeId node) const = 0;
  /// Gives its number at `host`; they count from 0.
  virtual std::uint32_t open_queue_pair(NodeId host, NodeId destination) = 0;
  /// Hand a message to a queue pair of `host` at `now`. Fills id, source, destination, issued, ideal and packets. Gives
  /// the id.
  virtual std::uint64_t post(NodeId host, std::uint32_t queue_pair, Time now, Message message,
                             std::uint64_t token = 0) = 0;
  /// Tell host `to` that a buffer slot of its queue pair is free at `host`, and for how long that took longer because
  /// the receiver was `late`: HostClient::on_credit gets it, rounded down.
  virtual void send_credit(NodeId host, Time now, NodeId to, std::uint32_t queue_pair, Time late) = 0;
  /// What a queue pair of `host` has spent its time on until `now`, the time of the running event.
  virtual SendTimes send_times(NodeId host, std::uint32_t queue_pair, Time now) const = 0;
  virtual void set_timer(NodeId host, Time at, std::uint64_t token) = 0;
  virtual const NetworkParameters& parameters() const = 0;

  // Networks that know processors
  // ---------------------------------------------------------------------------------------
  /// Computations, sends and recvs of programs begin when the network grants their requests.
  virtual bool shares_processors() const { return false; }
  /// Number of the event that causes what happens now. Later events have higher numbers.
  virtual std::uint64_t cause() const { return 0; }
  virtual void request(NodeId host, Time now, const ProcessorRequest& request);
  /// A computation that has been granted: on_timer() with its token at its end.
  virtual void run_on_processor(NodeId host, Time now, const ProcessorRequest& request, Time duration);

  // Results -----------------------------------------------------------------------------------------------------------
  /// No message is on its way to a node of this process, and no event is pending there.
  virtual bool idle() const = 0;
  /// Collective, when the run has ended and before counters are read: checks what has to hold. `all_idle`: idle() on
  /// all processes.
  virtual void finish(ProcessGroup& group, bool all_idle) = 0;
  virtual std::uint64_t packet_hops() const = 0;
  virtual std::uint64_t events() const = 0;
  /// Of the links that begin at owned nodes.
  virtual std::vector<LinkCounters> link_counters() const = 0;
  virtual std::uint32_t node_count() const = 0;
  /// Bytes of memory that this process's part holds.
  virtual std::uint64_t memory_bytes() const = 0;

 protected:
  HostClient* client_ = nullptr;
};

}  // namespace weft
