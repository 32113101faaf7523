// SPDX-License-Identifier: GPL-2.0-only
#include "fabric/parameters/switch_parameters.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric/buffer_sharing/buffer_sharing.hpp"
#include "fabric/load_balancing/load_balancing.hpp"
#include "fabric/marking/queue_marking.hpp"
#include "fabric/scheduling/port_scheduler.hpp"
#include "units/text.hpp"

namespace weft {
namespace {

constexpr Bytes max_buffer = Bytes(std::int64_t{1} << 50);

constexpr Bytes max_credit = Bytes(std::int64_t{1} << 30);  // credits are counted modulo 2^32

Bytes bytes_between(const Spec& spec, Bytes min, Bytes max, const char* what) {
  const Bytes value = spec.bytes();
  if (value < min || value > max)
    throw spec.error(
        fmt::format("found {}; expected {} of {} to {}", to_text(value), what, to_text(min), to_text(max)));
  return value;
}
Bytes bytes_at_least(const Spec& spec, Bytes min, const char* what) {
  return bytes_between(spec, min, max_buffer, what);
}

template <class Discipline>
std::shared_ptr<Discipline> make(const std::string& name) {
  return Registry<Discipline>::instance().find(name)->make();
}

void read_sharing(const Spec& spec, BufferParameters& buffer) {
  const auto named = spec.find("sharing");
  const std::string name = named                   ? named->one_of(BufferSharingRegistry::instance().names())
                           : spec.has("threshold") ? "static_threshold"
                                                   : "dynamic_threshold";
  const auto sharing = make<BufferSharing>(name);
  sharing->configure(spec);
  buffer.sharing = sharing;
}

void read_buffer(const Spec& spec, Bytes mtu_frame, BufferParameters& buffer) {
  buffer.place = spec.where();
  if (const auto value = spec.find("size")) buffer.size = bytes_at_least(*value, mtu_frame, "a packet memory");
  read_sharing(spec, buffer);
  if (const auto value = spec.find("queue")) buffer.queue = bytes_at_least(*value, mtu_frame, "an output queue");
  if (const auto value = spec.find("reserve")) buffer.reserve = bytes_at_least(*value, Bytes(), "a reserve");
  spec.finish();
}

void read_pfc(const Spec& spec, PfcParameters& pfc) {
  pfc.place = spec.where();
  if (const auto value = spec.find("headroom"))
    if (value->is_null() || value->text() != "auto") pfc.headroom = bytes_at_least(*value, Bytes(1), "a headroom");
  if (const auto value = spec.find("quanta")) pfc.quanta = value->integer(1, 65'535);
  if (const auto value = spec.find("response")) pfc.response = value->wait();
  if (const auto value = spec.find("xon")) pfc.xon = bytes_at_least(*value, Bytes(), "an offset");
  if (const auto value = spec.find("watchdog")) {
    pfc.watchdog = value->time();
    if (pfc.watchdog <= Time()) throw value->error("found 0; expected a time above 0");
  }
  spec.finish();
}

void read_ecn(const Spec& spec, EcnParameters& ecn) {
  ecn.configured = true;
  std::string name = "red";
  if (const auto value = spec.find("algorithm")) name = value->one_of(MarkingRegistry::instance().names());
  const auto marking = make<MarkingDiscipline>(name);
  marking->configure(spec);
  ecn.marking = marking;
  spec.finish();
}

void read_load_balancing(const Spec& network, SwitchParameters& result) {
  const auto& registry = LoadBalancingRegistry::instance();
  if (const auto value = network.find("load_balancing")) result.load_balancing_name = value->one_of(registry.names());
  const auto balancing = make<LoadBalancing>(result.load_balancing_name);
  for (const std::string& name : registry.names()) {
    if (!registry.find(name)->make()->has_parameters()) continue;
    const auto own = network.find(name);
    if (own && name != result.load_balancing_name) throw own->error("found without load_balancing: " + name);
    if (own) balancing->configure(*own);
  }
  result.load_balancing = balancing;
}

void read_priorities(const Spec& spec, PriorityParameters& priorities) {
  priorities.place = spec.where();
  const auto priority = [&spec](const char* key, std::uint8_t& value) {
    if (const auto found = spec.find(key)) value = static_cast<std::uint8_t>(found->integer(0, 7));
  };
  priority("data", priorities.data);
  priority("control", priorities.control);
  priority("other", priorities.other);
  if (const auto value = spec.find("scheduling")) {
    std::vector<std::string> names = SchedulingRegistry::instance().names();
    names.emplace_back("fifo");
    const std::string word = value->one_of(names);
    priorities.one_queue = word == "fifo";
    if (!priorities.one_queue) priorities.scheduling = make<SchedulingDiscipline>(word);
  }
  if (!priorities.scheduling) priorities.scheduling = make<SchedulingDiscipline>("strict");
  const auto weight = [&](const char* key, std::int64_t& value) {
    const auto found = spec.find(key);
    if (!found) return;
    if (!priorities.scheduling->shares())
      throw found->error("found with strict scheduling; weights belong to scheduling: deficit_round_robin");
    value = found->integer(1, 1000);
  };
  weight("data_weight", priorities.data_weight);
  weight("other_weight", priorities.other_weight);
  spec.finish();
  if (priorities.data == priorities.control || priorities.data == priorities.other ||
      priorities.control == priorities.other)
    throw spec.error(fmt::format("found data {}, control {} and other {}; expected three different priorities",
                                 priorities.data, priorities.control, priorities.other));
  if (priorities.control < priorities.data || priorities.control < priorities.other)
    throw spec.error(
        fmt::format("found control {} below another priority; ACKs and CNPs go first (IEEE 802.1Q: the "
                    "highest number)",
                    priorities.control));
}

void read_reports(const Spec& spec, ReportParameters& reports) {
  reports.given = true;
  reports.place = spec.where();
  if (const auto value = spec.find("interval")) {
    reports.interval = value->wait();
    if (reports.interval <= Time()) throw value->error("found 0; expected a time above 0");
  }
  if (const auto value = spec.find("delay")) reports.delay = value->wait();
  spec.finish();
}

FlowControl flow_control_of(const std::string& word) {
  return word == "pfc" ? FlowControl::pfc : word == "credit" ? FlowControl::credit : FlowControl::none;
}

void read_link_classes(const Spec& spec, SwitchParameters& result) {
  for (const auto& [name, item] : spec.entries()) {
    LinkClassParameters parameters{name, item.where(), {}};
    if (const auto value = item.find("flow_control"))
      parameters.flow_control = flow_control_of(value->one_of({"pfc", "credit", "none"}));
    item.finish();
    result.link_classes.push_back(std::move(parameters));
  }
}

}  // namespace

bool uses(const SwitchParameters& parameters, FlowControl kind) {
  if (parameters.flow_control == kind) return true;
  return std::any_of(parameters.link_classes.begin(), parameters.link_classes.end(),
                     [kind](const LinkClassParameters& entry) { return entry.flow_control == kind; });
}

void choose_default_disciplines(SwitchParameters& parameters) {
  if (!parameters.buffer.sharing) parameters.buffer.sharing = make<BufferSharing>("dynamic_threshold");
  if (!parameters.ecn.marking) parameters.ecn.marking = make<MarkingDiscipline>("red");
  if (!parameters.priorities.scheduling) parameters.priorities.scheduling = make<SchedulingDiscipline>("strict");
  if (!parameters.load_balancing) parameters.load_balancing = make<LoadBalancing>(parameters.load_balancing_name);
}

SwitchParameters read_switch_parameters(const Spec& network, Bytes mtu_frame) {
  SwitchParameters result;
  if (const auto value = network.find("flow_control")) {
    result.flow_control = flow_control_of(value->one_of({"pfc", "credit", "none"}));
    result.flow_control_place = value->where();
  }
  if (const auto value = network.find("link_classes")) {
    read_link_classes(*value, result);
    if (!network.has("flow_control")) result.flow_control_place = value->where();
  }
  const bool pfc = uses(result, FlowControl::pfc);
  // Inside servers links have credits by themselves beside pfc.
  const bool credit = uses(result, FlowControl::credit) || pfc;
  if (const auto value = network.find("buffer")) read_buffer(*value, mtu_frame, result.buffer);
  if (const auto value = network.find("pfc")) {
    if (!pfc) throw value->error("found without flow_control: pfc");
    read_pfc(*value, result.pfc);
  }
  if (const auto value = network.find("credit")) {
    if (!credit) throw value->error("found without flow_control: credit");
    result.credit.place = value->where();
    if (const auto buffer = value->find("buffer"))
      result.credit.buffer = bytes_between(*buffer, mtu_frame, max_credit, "an input buffer");
    value->finish();
  }
  if (const auto value = network.find("ecn")) read_ecn(*value, result.ecn);
  if (const auto value = network.find("priorities")) read_priorities(*value, result.priorities);
  if (const auto value = network.find("switching"))
    result.cut_through = value->one_of({"store_and_forward", "cut_through"}) == "cut_through";
  if (const auto value = network.find("trimming")) {
    result.trimming = value->boolean();
    if (result.trimming && !result.buffer.size && !result.buffer.queue)
      throw value->error("found without a limit of the queues; buffer.queue or buffer.size says when to trim");
  }
  read_load_balancing(network, result);
  if (const auto value = network.find("queue_reports")) read_reports(*value, result.reports);
  if (const auto value = network.find("queues")) result.buffered = value->one_of({"committed", "output"}) == "output";
  if (result.flow_control == FlowControl::credit && result.link_classes.empty() && result.buffer.size)
    throw network.at("buffer").error(
        "found with flow_control: credit, whose buffers are those of each link: "
        "credit.buffer");
  if (pfc && !result.buffer.size)
    throw network.at(result.flow_control == FlowControl::pfc ? "flow_control" : "link_classes")
        .error(
            "pfc is found without buffer.size; pauses come when a switch's packet memory "
            "runs out (for example buffer: {size: 32 MiB})");
  choose_default_disciplines(result);
  return result;
}

}  // namespace weft
