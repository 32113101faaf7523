// SPDX-License-Identifier: GPL-2.0-only
#include "app/running/accounting.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "support/system/data_directory.hpp"

namespace weft {
namespace {

constexpr double max = 1e30;

std::vector<std::string> keys_of(const Spec& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map.entries()) names.push_back(name);
  return names;
}

bool begins_with_letter(const std::string& text) {
  return !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

/// Prices and emissions are divided by these.
bool is_above_zero(const std::string& figure) { return figure == "lifetime" || figure == "availability"; }

/// A number, or {low, mid, high}.
void check_figure(const Spec& value, const std::string& name) {
  const auto check = [&name](const Spec& one) {
    const double least = name == "pue" ? 1 : 0;  // the building with its machine takes no less than the machine
    if (one.number(least, max) == 0 && is_above_zero(name)) throw one.error("found 0; expected a number above 0");
  };
  if (!value.is_map()) return check(value);
  for (const char* estimate : {"low", "mid", "high"}) check(value.at(estimate));
  value.finish();
}

/// A figure, the name of a region, or one number for each hour of a day.
void check_intensity(const Spec& value, const Spec& regions) {
  if (value.is_sequence()) {
    if (value.size() != 24)
      throw value.error(fmt::format("found {} numbers; expected one for each of the 24 hours of a day", value.size()));
    for (const Spec& hour : value.items()) static_cast<void>(hour.number(0, max));
  } else if (value.is_scalar() && begins_with_letter(value.text())) {
    static_cast<void>(value.one_of(keys_of(regions)));
  } else {
    check_figure(value, "grid_intensity");
  }
}

void check_numbers(const Spec& spec, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto value = spec.find(key)) static_cast<void>(value->number(0, max));
}

}  // namespace

void check_accounting(const Spec& spec) {
  const Spec known = Spec::load((data_directory("workloads") / "accounting" / "figures.yaml").string());
  for (const auto& [name, figure] : known.at("figures").entries()) {
    const auto value = spec.find(name);
    if (value && name != "grid_intensity") check_figure(*value, name);
  }
  if (const auto value = spec.find("grid_intensity")) check_intensity(*value, known.at("regions"));
  if (const auto value = spec.find("estimate")) static_cast<void>(value->one_of({"low", "mid", "high"}));
  if (const auto value = spec.find("accelerator")) static_cast<void>(value->one_of(keys_of(known.at("accelerators"))));
  if (const auto value = spec.find("accelerators_per_server")) static_cast<void>(value->integer(1, INT32_MAX));
  if (const auto value = spec.find("start_hour")) static_cast<void>(value->number(0, 24));
  check_numbers(spec, {"training_tokens", "training_steps", "tokens_per_step", "flop_per_step"});
  if (const auto lengths = spec.find("cable_lengths"))
    for (const auto& [link_class, metres] : lengths->entries()) static_cast<void>(metres.number(0, max));
  spec.finish();
}

void check_cable_lengths(const Spec& spec, const std::vector<std::string>& link_classes) {
  const auto lengths = spec.find("cable_lengths");
  if (!lengths) return;
  for (const auto& [link_class, metres] : lengths->entries())
    if (std::find(link_classes.begin(), link_classes.end(), link_class) == link_classes.end())
      throw metres.error(fmt::format("no link of the topology is of class '{}'; expected one of {}", link_class,
                                     fmt::join(link_classes, ", ")));
}

}  // namespace weft
