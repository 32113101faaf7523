// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/local/port_sampler.hpp"

#include <algorithm>

namespace weft {

void PortSampler::flush(OutputPort& port, Time now, Bytes queued) {
  while (port.next_sample <= now) {
    const bool works = add(port, port.next_sample, queued);
    port.next_sample += interval_;
    if (!works && port.next_sample <= now) port.next_sample = (now / interval_ + 1) * interval_;
  }
}

void PortSampler::close(OutputPort& port, Time end, Bytes queued) {
  flush(port, end, queued);
  if (port.next_sample - interval_ < end) add(port, end, queued);
}

std::uint64_t PortSampler::missing(const OutputPort& port, Time end, Bytes queued) const {
  const Time works_until = queued > Bytes() ? end : std::min(end, port.free_at);
  return works_until <= port.next_sample ? 1
                                         : static_cast<std::uint64_t>((works_until - port.next_sample) / interval_) + 2;
}

// Adds the interval up to port.next_sample, seen at `time`. Returns false if the port has nothing to do then.
bool PortSampler::add(OutputPort& port, Time time, Bytes queued) {
  // Work committed before that time that is still unsent; a port works without pause until free_at.
  const Time backlog = std::max(Time(), port.free_at - time);
  const Time busy = port.busy - backlog;
  const bool works = backlog > Time() || queued > Bytes();
  if (busy > port.sampled_busy || works) {
    const Bytes bytes = queued + rates_.unsent(port, time);
    samples_.push_back({port.directed_link, static_cast<std::uint32_t>(port.next_sample / interval_ - 1),
                        busy - port.sampled_busy, bytes});
  }
  port.sampled_busy = busy;
  return works;
}

}  // namespace weft
