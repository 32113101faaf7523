// SPDX-License-Identifier: GPL-2.0-only
// What switches and links do beyond forwarding: flow control, buffers, marking, priorities.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/documents/spec.hpp"
#include "units/bytes.hpp"
#include "units/time.hpp"

namespace weft {

class BufferSharing;
class LoadBalancing;
class MarkingDiscipline;
class SchedulingDiscipline;

/// How the receiver of a link keeps its sender from overrunning it.
enum class FlowControl : std::uint8_t {
  none,
  pfc,     ///< priority flow control (IEEE 802.1Q-2018 clause 36): pause frames
  credit,  ///< per-lane credits as in InfiniBand (IBTA vol. 1, 7.9): never more is sent than there is room for
};

/// `network.buffer`. A frame counts without preamble and gap.
struct BufferParameters {
  std::optional<Bytes> size;   ///< packet memory of each switch; none: unlimited
  std::optional<Bytes> queue;  ///< most bytes of an output queue, beyond which frames are dropped or trimmed
  Bytes reserve;               ///< of each ingress port and priority, beside the shared memory
  std::shared_ptr<const BufferSharing> sharing;  ///< how much of the rest an ingress queue may take
  SourceLine place;
};

/// `network.pfc`.
struct PfcParameters {
  std::optional<Bytes> headroom;  ///< of each lossless ingress queue; none: what the link needs
  /// Pause time of a frame in units of 512 bit times (IEEE 802.1Q 36.1.3.2). 65,535 is the largest.
  std::int64_t quanta = 65'535;
  /// From the last bit of a pause frame to the end of sending. IEEE 802.3-2018 31B.3.7 allows 118,016 bit times at
  /// 100 Gb/s (1.18 us) for everything within the station; 0 here, as MAC and switch latency are modelled by
  /// themselves.
  Time response;
  std::optional<Bytes> xon;  ///< resume that far below the threshold; none: two frames of full MTU (Zhu et al. 2015)
  /// A lane that has been paused for so long without a break is looked at for a cycle of waiting ports.
  Time watchdog = Time::from_ms(10);
  SourceLine place;
};

/// `network.credit`.
struct CreditParameters {
  std::optional<Bytes> buffer;  ///< input buffer of each port and lane; none: a round trip of the link and two frames
  SourceLine place;
};

/// `network.ecn`: when output queues mark packets.
struct EcnParameters {
  bool configured = false;  ///< the map is there
  std::shared_ptr<const MarkingDiscipline> marking;
};

/// IEEE 802.1Q priorities (0 to 7, higher first) of the kinds of traffic.
struct PriorityParameters {
  std::uint8_t data = 3;     ///< RDMA data; virtual lanes of routing take the numbers from here on
  std::uint8_t control = 6;  ///< ACKs, NACKs, CNPs and credits of collectives: never paused, never dropped
  std::uint8_t other = 0;    ///< traffic of ns-3's IP stack: lossy
  std::shared_ptr<const SchedulingDiscipline> scheduling;  ///< between data and other
  bool one_queue = false;  ///< `scheduling: fifo`: everything in one queue, in the class of data
  std::int64_t data_weight = 1;
  std::int64_t other_weight = 1;
  SourceLine place;
};

/// `network.queue_reports`: how switches tell each other of their queues, where routing asks for that.
struct ReportParameters {
  Time interval = Time::from_us(1);  ///< changed queues are reported at its multiples
  Time delay;                        ///< of a report, beyond that of a frame on the link
  bool given = false;
  SourceLine place;
};

/// One entry of `network.link_classes`.
struct LinkClassParameters {
  std::string name;
  SourceLine place;
  std::optional<FlowControl> flow_control;
};

/// `network.switching` etc.
struct SwitchParameters {
  FlowControl flow_control = FlowControl::none;
  SourceLine flow_control_place;
  std::vector<LinkClassParameters> link_classes;  ///< where they differ from the rest
  BufferParameters buffer;
  PfcParameters pfc;
  CreditParameters credit;
  EcnParameters ecn;
  PriorityParameters priorities;
  bool cut_through = false;
  bool trimming = false;  ///< what does not fit loses its payload instead of its life
  std::string load_balancing_name = "ecmp";
  std::shared_ptr<const LoadBalancing> load_balancing;
  ReportParameters reports;
  bool buffered = false;  ///< `network.queues: output`: the queueing model below even where nothing needs it
};

/// Some link may have this kind, by the network's key or that of a class.
bool uses(const SwitchParameters& parameters, FlowControl kind);

/// Disciplines that were not chosen have their defaults.
void choose_default_disciplines(SwitchParameters& parameters);

/// Reads the keys of `network:` that belong here. Throws InputError.
SwitchParameters read_switch_parameters(const Spec& network, Bytes mtu_frame);

}  // namespace weft
