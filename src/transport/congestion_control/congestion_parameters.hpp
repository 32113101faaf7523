// SPDX-License-Identifier: GPL-2.0-only
// Code shared by the congestion-control algorithms: reading their parameters, and rounding their results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/documents/spec.hpp"
#include "transport/congestion_control/congestion_control.hpp"

namespace weft {

/// Reads the map of one algorithm. A key that is absent leaves its value as it is. Each read() throws InputError for a
/// value beyond `min` to `max`, both allowed.
class CongestionParameters {
 public:
  explicit CongestionParameters(const std::optional<Spec>& spec);

  void read(const char* key, double& value, double min, double max) const;
  void read(const char* key, std::int64_t& value, std::int64_t min, std::int64_t max) const;
  void read(const char* key, bool& value) const;
  void read(const char* key, Time& value, Time min, Time max) const;
  void read(const char* key, Bytes& value, Bytes min, Bytes max) const;
  void read(const char* key, Bandwidth& value, Bandwidth min, Bandwidth max) const;
  /// For values whose default depends on the path.
  template <class Quantity>
  void read(const char* key, std::optional<Quantity>& value, Quantity min, Quantity max) const {
    if (!has(key)) return;
    Quantity given{};
    read(key, given, min, max);
    value = given;
  }
  /// One of `words`; the first if absent.
  std::string read_word(const char* key, const std::vector<std::string>& words) const;

  bool has(const char* key) const;
  /// Refuses keys that were not read.
  void finish() const;
  /// An InputError at the value of `key`, which is there.
  InputError error(const char* key, const std::string& message) const;

 private:
  std::optional<Spec> spec_;
};

/// Bytes of the wire that are payload, for full packets: 0 to 1.
inline double payload_share(const FlowPath& path) {
  return static_cast<double>(path.mtu.count()) / static_cast<double>(path.wire_packet().count());
}
/// Wire bytes that a rate brings under way in a time.
inline double wire_bytes(double rate_bps, Time time) { return rate_bps * static_cast<double>(time.ps()) / 8e12; }
/// Wire bytes of the bandwidth-delay product of the NIC.
inline double wire_bdp(const FlowPath& path) {
  return wire_bytes(static_cast<double>(path.nic_rate.bps()), path.base_rtt);
}

/// The nearest whole byte, at least 1 B.
Bytes to_window(double payload_bytes);
/// The nearest bit/s from 1 to the NIC's rate.
Bandwidth to_rate(double bps, Bandwidth nic_rate);

}  // namespace weft
