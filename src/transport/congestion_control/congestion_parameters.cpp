// SPDX-License-Identifier: GPL-2.0-only
#include "transport/congestion_control/congestion_parameters.hpp"

#include "support/basics/contract.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

template <class Quantity>
Quantity within(const Spec& spec, Quantity value, Quantity min, Quantity max) {
  if (value < min || value > max)
    throw spec.error("found " + to_text(value) + "; expected " + to_text(min) + " to " + to_text(max));
  return value;
}

}  // namespace

CongestionParameters::CongestionParameters(const std::optional<Spec>& spec) : spec_(spec) {
  if (spec_ && !spec_->is_map() && !spec_->is_null())
    throw spec_->error("expected a map of parameters; docs/reference/congestion_control.md names them");
  if (spec_ && spec_->is_null()) spec_.reset();
}

bool CongestionParameters::has(const char* key) const { return spec_ && spec_->has(key); }

void CongestionParameters::read(const char* key, double& value, double min, double max) const {
  if (has(key)) value = spec_->at(key).number(min, max);
}
void CongestionParameters::read(const char* key, std::int64_t& value, std::int64_t min, std::int64_t max) const {
  if (has(key)) value = spec_->at(key).integer(min, max);
}
void CongestionParameters::read(const char* key, bool& value) const {
  if (has(key)) value = spec_->at(key).boolean();
}
void CongestionParameters::read(const char* key, Time& value, Time min, Time max) const {
  if (has(key)) value = within(spec_->at(key), spec_->at(key).time(), min, max);
}
void CongestionParameters::read(const char* key, Bytes& value, Bytes min, Bytes max) const {
  if (has(key)) value = within(spec_->at(key), spec_->at(key).bytes(), min, max);
}
void CongestionParameters::read(const char* key, Bandwidth& value, Bandwidth min, Bandwidth max) const {
  if (has(key)) value = within(spec_->at(key), spec_->at(key).bandwidth(), min, max);
}
std::string CongestionParameters::read_word(const char* key, const std::vector<std::string>& words) const {
  return has(key) ? spec_->at(key).one_of(words) : words.front();
}

void CongestionParameters::finish() const {
  if (spec_) spec_->finish();
}
InputError CongestionParameters::error(const char* key, const std::string& message) const {
  WEFT_EXPECT(has(key), "{}", key);
  return spec_->at(key).error(message);
}

Bytes to_window(double payload_bytes) {
  constexpr double max = 0x1p53;
  if (!(payload_bytes > 1)) return Bytes(1);
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): above 0
  return Bytes(static_cast<std::int64_t>((payload_bytes < max ? payload_bytes : max) + 0.5));
}

Bandwidth to_rate(double bps, Bandwidth nic_rate) {
  if (!(bps > 1)) return Bandwidth::from_bps(1);
  if (bps >= static_cast<double>(nic_rate.bps())) return nic_rate;
  return Bandwidth::from_bps(static_cast<std::int64_t>(bps + 0.5));  // NOLINT(bugprone-incorrect-roundings): above 0
}

}  // namespace weft
