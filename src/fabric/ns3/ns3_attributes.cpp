// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/ns3/ns3_attributes.hpp"

#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <ns3/config.h>
#include <ns3/data-rate.h>
#include <ns3/mac48-address.h>
#include <ns3/nstime.h>
#include <ns3/object.h>
#include <ns3/type-id.h>
#include <ns3/uinteger.h>

namespace weft {
namespace {

// ns-3 ends the program on a type that it does not know.
void check_types(const std::string& path, const Spec& value) {
  std::vector<std::string> known;
  for (std::uint16_t i = 0; i < ns3::TypeId::GetRegisteredN(); ++i)
    known.push_back(ns3::TypeId::GetRegistered(i).GetName());
  for (std::size_t at = path.find("/$"); at != std::string::npos; at = path.find("/$", at + 1)) {
    const std::string name = path.substr(at + 2, path.find('/', at + 1) - at - 2);
    ns3::TypeId type;
    if (!ns3::TypeId::LookupByNameFailSafe(name, &type))
      throw value.error(fmt::format("ns-3 knows no type '{}'{}", name, did_you_mean(name, known)));
  }
}

ns3::TypeId::AttributeInformation find_attribute(ns3::TypeId type, const std::string& name, const Spec& value) {
  std::vector<std::string> known;
  for (ns3::TypeId at = type;; at = at.GetParent()) {
    for (std::size_t i = 0; i < at.GetAttributeN(); ++i) {
      if (at.GetAttribute(i).name == name) return at.GetAttribute(i);
      known.push_back(at.GetAttribute(i).name);
    }
    if (!at.HasParent()) break;
  }
  throw value.error(fmt::format("{} has no attribute '{}'{}; it has {}", type.GetName(), name,
                                did_you_mean(name, known),
                                known.empty() ? "none" : fmt::to_string(fmt::join(known, ", "))));
}

bool is_mac_address(const std::string& text) {
  if (text.size() != 17) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i % 3 == 2 ? text[i] != ':' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  return true;
}

// The readers of an experiment, because ns-3's own end the program on bad text.
ns3::Ptr<ns3::AttributeValue> read_value(const ns3::AttributeChecker& checker, const Spec& value) {
  const ns3::Ptr<ns3::AttributeValue> result = checker.Create();
  ns3::AttributeValue* const raw = ns3::PeekPointer(result);
  if (auto* rate = dynamic_cast<ns3::DataRateValue*>(raw)) {
    rate->Set(ns3::DataRate(static_cast<std::uint64_t>(value.bandwidth().bps())));
  } else if (auto* time = dynamic_cast<ns3::TimeValue*>(raw)) {
    time->Set(ns3::PicoSeconds(static_cast<std::uint64_t>(value.time().ps())));
  } else if (auto* number = dynamic_cast<ns3::UintegerValue*>(raw)) {
    number->Set(static_cast<std::uint64_t>(value.integer(0)));
    if (!checker.Check(*number))
      throw value.error(
          fmt::format("found {}; expected a value of type {}", value.text(), checker.GetUnderlyingTypeInformation()));
  } else if (auto* address = dynamic_cast<ns3::Mac48AddressValue*>(raw)) {
    const std::string text = value.text();
    if (!is_mac_address(text))
      throw value.error(fmt::format("found '{}'; expected a MAC address such as 02:00:00:00:00:01", text));
    address->Set(ns3::Mac48Address(text.c_str()));
  } else {
    throw value.error(
        fmt::format("an experiment cannot set attributes of type {}; a program can", checker.GetValueTypeName()));
  }
  return result;
}

void set_attribute(ns3::Object& object, const std::string& name, const Spec& value) {
  const ns3::TypeId type = object.GetInstanceTypeId();
  const auto attribute = find_attribute(type, name, value);
  if ((attribute.flags & ns3::TypeId::ATTR_SET) == 0 || !attribute.accessor->HasSetter())
    throw value.error(fmt::format("attribute {} of {} can only be read", name, type.GetName()));
  const ns3::Ptr<ns3::AttributeValue> parsed = read_value(*attribute.checker, value);
  try {
    object.SetAttribute(name, *parsed);
  } catch (const InputError& error) {
    throw value.error(error.what());
  }
}

}  // namespace

std::size_t set_ns3_attribute(const std::string& path, const Spec& value) {
  const auto slash = path.rfind('/');
  if (path.empty() || path[0] != '/' || slash == 0 || slash + 1 == path.size())
    throw value.error(fmt::format(
        "'{}' is no ns-3 config path to an attribute; expected one such as /Names/host0/DeviceList/0/DataRate", path));
  const std::string objects = path.substr(0, slash);
  check_types(objects, value);
  const ns3::Config::MatchContainer matches = ns3::Config::LookupMatches(objects);
  for (const ns3::Ptr<ns3::Object>& object : matches) set_attribute(*object, path.substr(slash + 1), value);
  return matches.GetN();
}

}  // namespace weft
